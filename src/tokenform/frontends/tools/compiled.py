"""The tree of a turn as a grammar of the engine.

Purpose: `tools(…)`: what a model may write when it may call tools, exact and token by token.
Invariant: the texts are those of the tree; special tokens stand for themselves where the vocabulary has them,
and are spelled out where it has not.
Free text is joined with the text that ends it into one regular language ("the first place where the trigger
ends"), so that reading it is one state of a lexical automaton and not a guess at every character.
Complexity: linear in the tree; a node behind free text is built once more for each such place.
Rejected: free text as a part of its own (each `<` of it might be the trigger's, and every token would be
walked through both).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, overload

from tokenform import _core
from tokenform.errors import OptionError, TokenformError
from tokenform.frontends import forms
from tokenform.frontends.forms import ANY, Form, Language, literal
from tokenform.frontends.garbage import collected_later
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.schemas import SPELLINGS, warn_unknown, with_marks
from tokenform.frontends.tools.definitions import (
    ON_BAD_TOOL,
    Definitions,
    Tool,
    ToolLike,
    any_arguments,
    read_tools,
)
from tokenform.frontends.tools.formats import find_format
from tokenform.frontends.tools.grammar import tool_shape
from tokenform.frontends.tools.kept import WEIGHT, Recent, text_of
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.mcp import ToolSession, is_session, mcp_tools
from tokenform.frontends.tools.reader import parse_tool_calls
from tokenform.frontends.tools.shape import (
    AnyOrder,
    Choice,
    Free,
    Given,
    Json,
    Kept,
    Node,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Shape,
    Special,
    Text,
    Trigger,
)
from tokenform.frontends.tools.turn import Reasoning

# One expansion: forms, and names of rules.
Items = list["Form | str"]

_NO_WORD_BEFORE: Language = {"regex": r"(?s)(?:.*\W)?", "dialect": "python"}


@overload
def tools(
    tools: ToolSession,
    *,
    format: Any = ...,
    tokenizer: Any = ...,
    tool_choice: Any = ...,
    parallel: bool | int = ...,
    strict: bool = ...,
    reasoning: Reasoning = ...,
    prompt: str | None = ...,
    json_options: Mapping[str, str] | None = ...,
    on_bad_tool: Literal["raise", "any", "omit"] | None = ...,
) -> Awaitable[Grammar]: ...


@overload
def tools(
    tools: Iterable[ToolLike],
    *,
    format: Any = ...,
    tokenizer: Any = ...,
    tool_choice: Any = ...,
    parallel: bool | int = ...,
    strict: bool = ...,
    reasoning: Reasoning = ...,
    prompt: str | None = ...,
    json_options: Mapping[str, str] | None = ...,
    on_bad_tool: Literal["raise", "any", "omit"] | None = ...,
) -> Grammar: ...


def tools(
    tools: Any,
    *,
    format: Any = None,
    tokenizer: Any = None,
    tool_choice: Any = "auto",
    parallel: bool | int = True,
    strict: bool = True,
    reasoning: Reasoning = "auto",
    prompt: str | None = None,
    json_options: Mapping[str, str] | None = None,
    on_bad_tool: Literal["raise", "any", "omit"] | None = None,
) -> Any:
    """The grammar of a model's turn that may call tools; `parse` reads a text as `ToolCalls`.

    Args:
        tools: functions, pydantic models or definitions, as OpenAI's API and others have them; or a session
            of the Model Context Protocol, and then the grammar is awaited (`await tf.tools(session, ...)`),
            and each of its calls too (`await call()`).
        format: how the model writes calls: a format's name, or one of `tokenform.tool_formats`.
        tokenizer: in place of a format, the model's tokenizer, whose chat template shows it.
        tool_choice: "auto" (text, calls or both), "required" or "any" (at least one call, no text beside the
            reasoning), "none" (no call), the name of the one tool to call, or an object of OpenAI's API
            ("function", "allowed_tools").
        parallel: several calls in one turn; a number is the most there may be.
        strict: arguments that the schema does not declare are forbidden, unless it speaks of them itself.
        reasoning: "auto": a reasoning block may come first; "open": the prompt has opened it; "none": there
            is none.
        prompt: the prompt as the chat template renders it; with "auto", its end tells whether it has opened
            the reasoning block.
        json_options: how JSON is written: `order`, `whitespace`, `numbers`, `strings` of `json_schema`;
            `unsupported="report"` is `on_bad_tool="any"`.
        on_bad_tool: a tool whose parameters can't be read, or not be kept in this format: "raise" an error
            (the default); let its arguments be "any" JSON object; "omit" the tool.  `report` says which and
            why.  Prompts show the parameters as they were given.
    Raises:
        ToolError, InvalidSchema, InvalidType: a definition can't be read; a name that the format can't write;
            or the tokenizer shows no format.
        UnsupportedSchema: arguments that the format can't keep to their schema.
        OptionError: an option's value; or neither a format nor a tokenizer is given.

    >>> import tokenform as tf
    >>> def weather(city: str) -> str:
    ...     "The weather of a city."
    >>> turn = tf.tools([weather], format="hermes", tool_choice="required")
    >>> result = tf.generate("The weather in Lisbon?", turn, max_tokens=80)
    >>> [call.name for call in result.tool_calls]
    ['weather']
    """
    if (format is None) == (tokenizer is None):
        raise OptionError(
            "give the model's tokenizer=, whose chat template shows how calls are written, or the name of a "
            "format= instead."
        )
    format = tokenizer if format is None else format
    if is_session(tools):
        more = {"tool_choice": tool_choice, "parallel": parallel, "strict": strict, "reasoning": reasoning}
        more |= {"prompt": prompt, "json_options": json_options, "on_bad_tool": on_bad_tool}
        return _of_session(tools, format=format, **more)
    form, told = find_format(format), dict(json_options or {})
    bad = _on_bad_tool(on_bad_tool, told.pop("unsupported", "refuse"))
    text = text_of(tools)
    asked = text_of([tool_choice, parallel, strict, reasoning, prompt, told, bad])
    key = None if text is None or asked is None else (text, asked, form)
    kept = GRAMMARS.get(key) if key else None
    if kept is None:
        kept = _made(tools, form, tool_choice, parallel, strict, reasoning, prompt, told, bad)
        if key:
            GRAMMARS.put(key, kept, WEIGHT * len(key[0]))
    warn_unknown(kept.report)
    return kept


GRAMMARS: Recent[Grammar] = Recent(192 << 20)


def _made(
    tools: Iterable[ToolLike],
    form: Format,
    tool_choice: Any,
    parallel: bool | int,
    strict: bool,
    reasoning: Reasoning,
    prompt: str | None,
    told: dict[str, str],
    bad: str,
) -> Grammar:
    # what is made on the way is gone before collections go on
    with collected_later():
        aside: dict[str, str] = {}

        def put_aside(tool: Tool, error: Exception) -> None:
            what = "is left out" if bad == "omit" else "takes any JSON object"
            reason = str(error).removeprefix(f"tool {tool.name!r}: ")
            aside.setdefault(tool.name, f"tool {tool.name!r} {what}: {reason}")

        known = read_tools(tools, None if bad == "raise" else put_aside)
        known = tuple(tool for tool in known if bad != "omit" or tool.name not in aside)
        source = f"tools({', '.join(tool.name for tool in known)}; {form.name})"
        shaped = functools.partial(
            tool_shape,
            format=form,
            tool_choice=tool_choice,
            parallel=parallel,
            strict=strict,
            reasoning=reasoning,
            prompt=prompt,
            order=told.get("order", "declared"),
        )
        try:
            core, notes = _put_together(shaped, known, form, told, source)
        except (TokenformError, RecursionError):
            kept = _kept(known, form, told, strict, bad, put_aside) if bad != "raise" else known
            if kept == known:
                raise
            known = kept
            core, notes = _put_together(shaped, known, form, told, source)
        notes = [*aside.values(), *notes]
        definitions = Definitions([tool.to_openai() for tool in known], form)
    return Grammar(
        core,  # whose form is read when it is asked for: few grammars of tools are a part of others
        notes=notes,
        read=functools.partial(
            parse_tool_calls, tools=known, format=form, reasoning=reasoning, prompt=prompt
        ),
        source=source,
        tools=definitions,
    )


async def _of_session(session: ToolSession, **options: Any) -> Grammar:
    return tools(await mcp_tools(session), **options)


def _put_together(
    shaped: Callable[[Sequence[Tool]], Shape],
    known: Sequence[Tool],
    form: Format,
    options: dict[str, str],
    source: str,
) -> tuple[_core.Grammar, list[str]]:
    """The core's grammar, and what there is to say of the tools."""
    shape = shaped(known)
    made = shape_form(shape, options)
    try:
        core = forms.compiled(made, source)
    except TokenformError as error:
        raise _blamed(error, known, form, options) from None
    return core, [*(line for tool in known for line in tool.report), *shape.notes]


# `tf.tools.Format`: what `format=` takes for a format of one's own, see `tokenform.tool_formats`
tools.Format = Format  # type: ignore[attr-defined]


def _on_bad_tool(chosen: Any, unsupported: Any) -> str:
    if unsupported not in ("refuse", "report"):
        raise OptionError(f"json_options: unsupported is 'refuse' or 'report', not {unsupported!r}.")
    if chosen is None:
        return "any" if unsupported == "report" else "raise"
    if chosen not in ON_BAD_TOOL:
        raise OptionError(f"on_bad_tool is one of {', '.join(map(repr, ON_BAD_TOOL))}, not {chosen!r}.")
    return str(chosen)


def _kept(
    known: Sequence[Tool],
    form: Format,
    options: Mapping[str, str],
    strict: bool,
    bad: str,
    put_aside: Callable[[Tool, Exception], None],
) -> tuple[Tool, ...]:
    """The tools without those that can't be written by themselves, or with any arguments for these."""
    kept: list[Tool] = []
    for tool in known:
        error = _alone(tool, form, options, strict)
        if error is None:
            kept.append(tool)
            continue
        put_aside(tool, error)
        if bad == "any":
            loose = any_arguments(tool)
            # a name that the format can't write
            if _alone(loose, form, options, strict) is not None:
                raise error
            kept.append(loose)
    return tuple(kept)


def _alone(
    tool: Tool, form: Format, options: Mapping[str, str], strict: bool = True
) -> TokenformError | None:
    """The error of a tool by itself."""
    try:
        forms.compiled(shape_form(tool_shape([tool], format=form, strict=strict), options), tool.name)
    except TokenformError as error:
        return error
    return None


def _blamed(
    error: TokenformError, known: Sequence[Tool], form: Format, json_options: Mapping[str, str] | None
) -> TokenformError:
    """The error with the name of the tool that it is about: the first whose calls alone raise it too."""
    for tool in known:
        own = _alone(tool, form, json_options or {})
        if isinstance(own, type(error)):
            message = re.sub(r"^(?:JSON|[{\"].*?) \(\d+\): ", "", str(own))
            return type(own)(f"tool {tool.name!r}: {message}", pointer=own.pointer, keyword=own.keyword)
    return error


def shape_form(shape: Shape, json_options: Mapping[str, str] | None = None) -> Form:
    """The form of a tree."""
    unknown = set(json_options or ()) - set(SPELLINGS)
    if unknown:
        raise OptionError(f"json_options: {', '.join(sorted(unknown))} can't be chosen for tools.")
    return _Compiler(shape, dict(json_options or {})).form()


@dataclass(frozen=True)
class _Open:
    """Text that has begun and ends where what follows it says."""

    language: Language
    # The texts, none of which occurs in it, whose first place is where it ends.
    triggers: tuple[str, ...] = ()
    # What follows may occur in it: the language tells its end.
    told: bool = False

    def before(self, text: str) -> Language:
        """The open text up to the first place where `text` (or the trigger that it begins with) ends."""
        if self.told:
            return {"concat": [self.language, literal(text)]}
        end = next((t for t in self.triggers if text.startswith(t)), text)
        first: Language = {"until": [self.language, literal(end)]}
        return first if end == text else {"concat": [first, literal(text[len(end) :])]}


class _Folded(list[Any]):
    """An expansion as arguments of `Rules.known`."""


class _Compiler:
    def __init__(self, shape: Shape, options: dict[str, str]) -> None:
        self.shape = shape
        self.options = options
        self.rules = forms.Rules()
        self.specials = shape.specials()
        self._told = tuple(sorted(options.items()))
        self._nodes: dict[int, str] = {}
        self._named: set[str] = set()
        self._kept: list[object] = []

    def form(self) -> Form:
        self.expand("start", self.sequence((self.shape.root,), None))
        return self.rules.finished("start")

    def expand(self, name: str, alternatives: Sequence[Items]) -> str:
        return self.rules.rule(
            name,
            [
                [self.rules.known(*item) for item in items]
                if isinstance(items, _Folded)
                else [self.symbol(item) for item in _folded(items)]
                for items in alternatives
            ],
        )

    def symbol(self, item: Form | str) -> str:
        return item if isinstance(item, str) else self.rules.symbol(item)

    def rule(self, node: Node) -> str:
        """The rule of a node by itself; nodes that are shared share it."""
        if id(node) not in self._nodes:
            self._nodes[id(node)] = name = f"node {len(self._nodes)}"
            self._kept.append(node)  # keeps the id from being used again
            self.expand(name, self.alternatives(node))
        return self._nodes[id(node)]

    def alternatives(self, node: Node) -> list[Items]:
        if isinstance(node, Choice):
            return [items for option in node.options for items in self.option(option)]
        if isinstance(node, Repeat):
            return self.repeat(node)
        if isinstance(node, AnyOrder):
            return [[self.any_order(node)]]
        return self.sequence((node,), None)

    def option(self, node: Node) -> list[Items]:
        """The expansions of a node; of one that other trees have too as they were made before."""
        if not isinstance(node, Kept):
            return self.sequence((node,), None)
        if self._told in node.made:
            return [node.made[self._told]]
        found = self.sequence((node,), None)
        if len(found) == 1 and not any(isinstance(item, str) for item in found[0]):
            plain: list[Any] = _folded(found[0])
            node.made[self._told] = _Folded((one, forms.written(one), forms.title(one)) for one in plain)
            return [node.made[self._told]]
        return found

    def any_order(self, node: AnyOrder) -> str:
        separator = self.rule(node.separator) if node.separator else None
        lead = self.rule(node.lead) if node.lead else None

        def led(member: Node) -> str:
            name = self.rule(member)
            return self.rules.rule(f"{name} led", [[lead, name]]) if lead else name

        members = [(led(member), required) for member, required in node.members]
        return self.rules.any_order(members, led(node.others) if node.others else None, separator)

    def repeat(self, node: Repeat) -> list[Items]:
        """`item`, counted where it must be; without bounds by a rule that calls itself."""
        one: Items = [self.rule(node.item)]
        if node.most == 0:
            return [[]]
        between: Items = [] if node.separator is None else [self.rule(node.separator)]
        if node.most is not None:
            rest: Items = []
            for index in range(node.most - 1, 0, -1):
                more: list[Items] = [[*between, *one, *rest]]
                rest = [self.expand(self.rules.fresh(), more if index < node.least else [*more, []])]
            return [[*one, *rest]] + ([[]] if node.least == 0 else [])
        several = self.rules.fresh()
        self.expand(several, [one, [several, *between, *one]])
        counted = [item for _ in range(node.least - 1) for item in (*one, *between)]
        return [[*counted, several]] + ([[]] if node.least == 0 else [])

    def sequence(self, parts: tuple[Node, ...], opened: _Open | None) -> list[Items]:
        """The expansions of the parts in a row, after a text that is still open."""
        items: Items = []
        for index, part in enumerate(parts):
            rest = parts[index + 1 :]
            if isinstance(part, Seq):
                return _after(items, self.sequence((*part.parts, *rest), opened))
            if isinstance(part, Free):
                if opened:
                    items.append({"language": opened.language})
                if not (rest or opened or items):
                    return self.free(part, last=True)
                branches = self.free(part, last=not rest)
                if not rest:
                    return _after(items, branches)
                heads = [branch[:-1] for branch in branches]
                tail = branches[0][-1]
                assert isinstance(tail, dict)
                opened = self.open(part)
                if len(heads) > 1 or heads[0]:
                    items.append(self.expand(self.rules.fresh(), heads))
                continue
            if isinstance(part, RawString):
                if opened:
                    items.append({"language": opened.language})
                opened = _Open(_raw(part), part.without, bool(part.never))
                continue
            if opened is None:
                items += self.item(part)
                continue
            if isinstance(part, (Choice, Repeat, Rule)):
                return _after(items, self.branches(part, rest, opened))
            if isinstance(part, Special):
                both: list[Items] = [
                    [{"language": opened.language}, {"special": part.text, "spelled": False}],
                    [{"language": opened.before(part.text), "unless": part.text}],
                ]
                items.append(self.expand(self.rules.fresh(), both))
            elif isinstance(part, Text) and (marked := _split_trigger(parts[index:], opened)):
                items.append(self.expand(self.rules.fresh(), self.split(marked, opened)))
                return _after(items, self.sequence(parts[index + len(marked) :], None))
            elif isinstance(part, Text):
                items.append({"language": opened.before(part.text)})
            else:
                items += [{"language": opened.language}, *self.item(part)]
            opened = None
        if opened:
            items.append({"language": opened.language})
        return [items]

    def split(self, marked: tuple[Text | Special, ...], opened: _Open) -> list[Items]:
        """Open text and a trigger with a special token inside: the token tells where the text has ended."""
        head, mark = marked[0], next(part for part in marked if isinstance(part, Special))
        tokens: Items = [{"language": {"concat": [opened.language, literal(head.text)]}}]
        for part in marked[1:]:
            tokens += (
                [{"special": part.text, "spelled": False}] if isinstance(part, Special) else self.item(part)
            )
        spelled = opened.before("".join(part.text for part in marked))
        return [tokens, [{"language": spelled, "unless": mark.text}]]

    def branches(self, part: Choice | Repeat | Rule, rest: tuple[Node, ...], opened: _Open) -> list[Items]:
        """The expansions where the open text runs into a node with alternatives."""
        if isinstance(part, Rule):
            return [[{"language": opened.language}, *self.item(part), *self.tail(rest)]]
        if isinstance(part, Choice):
            return [items for option in part.options for items in self.sequence((option, *rest), opened)]
        out: list[Items] = []
        if part.most != 0:
            least, most = max(part.least - 1, 0), None if part.most is None else part.most - 1
            more = part.item if part.separator is None else Seq((part.separator, part.item))
            again = () if most == 0 else (Repeat(more, least, most),)
            tail = self.tail((*again, *rest))
            out = _before(self.sequence((part.item,), opened), tail)
        return out if part.least else [*out, *self.sequence(rest, opened)]

    def tail(self, rest: tuple[Node, ...]) -> Items:
        if not rest:
            return []
        return [self.expand(self.rules.fresh(), self.sequence(rest, None))]

    def item(self, node: Node) -> Items:
        """A node that nothing open stands before."""
        if isinstance(node, Text):
            return [{"language": literal(node.text)}] if node.text else []
        if isinstance(node, Regex):
            return [{"language": {"regex": node.pattern, "dialect": "python"}}]
        if isinstance(node, Special):
            return [{"special": node.text, "spelled": True}]
        if isinstance(node, Json):
            made: Form = {"schema": forms.written(node.schema)}
            if node.strings_in:
                made["schema"], made["holes"] = with_marks(made["schema"], dict(node.strings_in))
            return [{**made, "options": {**self.options, "without": list(node.without)}}]
        if isinstance(node, Given):
            return [dict(node.form)]
        if isinstance(node, Rule):
            name = f"rule of {node.name}"
            if node.name not in self._named:
                self._named.add(node.name)
                self.expand(name, self.alternatives(self.shape.rules[node.name]))
            return [name]
        return [self.rule(node)]

    def free(self, node: Free, *, last: bool) -> list[Items]:
        """Free text as pieces between the special tokens that may stand in it; the last piece comes last."""
        first = self.piece(node, begins=True)
        final: Form = {"language": self.piece(node, begins=False, ends=last and node.word_end)}
        alone: Form = {"language": self.piece(node, begins=True, ends=last and node.word_end)}
        if not node.allow:
            return [[alone]]
        marks: list[Form] = [{"special": text, "spelled": False} for text in node.allow]
        loop = self.rules.fresh()
        later: Form = {"language": self.piece(node, begins=False)}
        begin: list[Items] = [[{"language": first}, mark] for mark in marks]
        again: list[Items] = [[loop, later, mark] for mark in marks]
        self.expand(loop, begin + again)
        return [[alone], [loop, final]]

    def open(self, node: Free) -> _Open:
        """The last piece of free text that something follows."""
        bare = not node.allow
        return _Open(
            self.piece(node, begins=bare, ends=node.word_end), tuple(trigger.text for trigger in node.until)
        )

    def piece(self, node: Free, *, begins: bool, ends: bool = False) -> Language:
        """Texts without triggers and without the texts of special tokens."""
        refused = [_occurring(trigger) for trigger in node.until]
        texts = {trigger.text for trigger in node.until}
        marks = sorted(self.specials - set(node.allow) - texts)
        refused += [forms.containing(literal(text)) for text in marks]
        if begins:
            starts = [{"regex": pattern, "dialect": "python"} for pattern in node.not_prefix]
            refused += [{"concat": [start, ANY]} for start in starts]
        parts: list[Language] = [{"not": language} for language in refused]
        if ends:
            parts.append(_NO_WORD_BEFORE)
        return {"and": parts} if parts else ANY


def _split_trigger(parts: tuple[Node, ...], opened: _Open) -> tuple[Text | Special, ...]:
    """The texts and special tokens that a trigger of the open text is made of; none if it is one piece."""
    taken: list[Text | Special] = []
    for part in parts:
        if not isinstance(part, (Text, Special)):
            break
        taken.append(part)
        text = "".join(piece.text for piece in taken)
        if any(text.startswith(trigger) for trigger in opened.triggers):
            return tuple(taken) if len(taken) > 1 else ()
    return ()


def _occurring(trigger: Trigger) -> Language:
    if trigger.whole_word:
        return {"concat": [_NO_WORD_BEFORE, literal(trigger.text), ANY]}
    return forms.containing(literal(trigger.text))


def _raw(node: RawString) -> Language:
    """The strings with a line feed beside them; without it those that do not begin (end) with one."""
    language: Language = {"string": forms.written(node.schema)}
    feed = literal("\n")
    for fed, order in zip(node.feeds, (1, -1), strict=True):  # before it, after it
        if fed:
            bare: Language = {"and": [language, {"not": {"concat": [feed, ANY][::order]}}]}
            language = {"or": [{"concat": [feed, language][::order]}, bare]}
    refused: list[Language] = [literal(text) for text in node.without]
    refused += [{"regex": pattern, "dialect": "python"} for pattern in node.never]
    return {"and": [language, *({"not": forms.containing(one)} for one in refused)]}


def _after(items: Items, alternatives: list[Items]) -> list[Items]:
    return [[*items, *more] for more in alternatives]


def _before(alternatives: list[Items], items: Items) -> list[Items]:
    return [[*first, *items] for first in alternatives]


def _folded(items: Items) -> Items:
    """Neighbouring languages as one."""
    out: Items = []
    for regular, run in groupby(items, lambda item: isinstance(item, dict) and forms.is_language(item)):
        neighbours: list[Any] = list(run)
        out += [forms.sequence(neighbours)] if regular else neighbours
    return out
