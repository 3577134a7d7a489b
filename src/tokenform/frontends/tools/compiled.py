"""The tree of a turn as a grammar of the engine.

Purpose: what a model may write when it may call tools (`making.py`), exact and token by token.
Invariant: the texts are those of the tree; special tokens stand for themselves where the vocabulary has them,
and are spelled out where it has not.
Free text is joined with the text that ends it into one regular language ("the first place where the trigger
ends"), so that reading it is one state of a lexical automaton and not a guess at every character.
Complexity: linear in the tree; a node behind free text is built once more for each such place.
Rejected: free text as a part of its own (each `<` of it might be the trigger's, and every token would be
walked through both).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenform import _core
from tokenform.errors import InvalidGrammar, OptionError
from tokenform.frontends import forms
from tokenform.frontends.forms import ANY, Form, Language, literal
from tokenform.frontends.schemas import SPELLINGS, with_marks
from tokenform.frontends.tools.grammar import Builder
from tokenform.frontends.tools.kept import LastAsked
from tokenform.frontends.tools.shape import (
    AnyOrder,
    Choice,
    Follows,
    Free,
    Given,
    Json,
    Kept,
    Node,
    OneOf,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Shape,
    Slot,
    Special,
    Text,
    Trigger,
)

# One expansion: forms, and names of rules.
Items = list["Form | str"]

_NO_WORD_BEFORE: Language = {"regex": r"(?s)(?:.*\W)?", "dialect": "python"}


# Lists of branches, which a form names by their numbers.
Lists = list[list[_core.Branch]]


def shape_form(shape: Shape, json_options: Mapping[str, str] | None = None) -> Form:
    """The form of a tree."""
    return _Compiler(shape, _known(json_options), None).form()


def branched_form(shape: Shape, json_options: Mapping[str, str] | None = None) -> tuple[Form, Lists]:
    """The form of a tree in which options that are kept stand as branches, and their lists."""
    lists: Lists = []
    return _Compiler(shape, _known(json_options), lists).form(), lists


@dataclass(frozen=True)
class _Laid:
    """The form of turns whose trees differ in the options of lists alone.

    text: as JSON.  lists: what they are of.  specials: of their options.
    """

    text: str
    lists: tuple[Any, ...]
    specials: frozenset[str]


_LAID: LastAsked[_Laid] = LastAsked(4 << 20)


def turn_form(
    builder: Builder, json_options: Mapping[str, str], manner: Mapping[str, str] | None = None
) -> tuple[str, Lists]:
    """The form of a turn as JSON text, and its lists of branches.

    manner: further options of its documents, which callers can't choose.
    """
    options = {**_known(json_options), **(manner or {})}
    key = builder.key and (builder.key, tuple(sorted(options.items())))
    if key and (laid := _LAID.get(key)) is not None:
        kept = {calls: builder.options(calls) for calls in laid.lists}
        compiler = _Compiler(Shape(Seq(())), options, [])
        made = {calls: compiler.branched(listed) for calls, listed in kept.items()}
        same = all(branches and len(branches) == len(kept[calls]) for calls, branches in made.items())
        if same and _specials(kept.values()) == laid.specials:
            return laid.text, [branches for calls in laid.lists if (branches := made[calls])]
    lists: Lists = []
    compiler = _Compiler(builder.shape(), options, lists)
    text = forms.written(compiler.form())
    if key and None not in compiler.listed:
        specials = _specials(builder.options(calls) for calls in dict.fromkeys(compiler.listed))
        _LAID.put(key, _Laid(text, tuple(compiler.listed), specials), len(text))
    return text, lists


def _specials(lists: Iterable[Sequence[Any]]) -> frozenset[str]:
    """The special tokens of options that are kept."""
    found = frozenset[str]()
    for options in lists:
        found = found.union(*(follows.specials for follows in {option.follows for option in options}))
    return found


def _known(json_options: Mapping[str, str] | None) -> dict[str, str]:
    unknown = set(json_options or ()) - set(SPELLINGS)
    if unknown:
        raise OptionError(f"json_options: {', '.join(sorted(unknown))} can't be chosen for tools.")
    return dict(json_options or {})


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


class _Compiler:
    """lists: where lists of branches are put; None: there are none, and what is kept is as other nodes."""

    def __init__(self, shape: Shape, options: dict[str, str], lists: Lists | None) -> None:
        self.shape = shape
        self.options = options
        self.lists = lists
        self.listed: list[Any] = []  # what the lists are of; None: tools that are written into the form
        self.rules = forms.Rules()
        self._told = tuple(sorted(options.items()))
        self._nodes: dict[int, str] = {}
        self._named: set[str] = set()
        self._raws: dict[int, Language] = {}
        self._closed: dict[tuple[int, str], str] = {}
        self._kept: list[object] = []

    @cached_property
    def specials(self) -> set[str]:
        return self.shape.specials()

    def form(self) -> Form:
        self.expand("start", self.sequence((self.shape.root,), None))
        return self.rules.finished("start")

    def expand(self, name: str, alternatives: Sequence[Items]) -> str:
        return self.rules.rule(
            name,
            [[self.symbol(item) for item in _folded(items)] for items in alternatives],
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
            branches = None if self.lists is None else self.branched(node.options)
            if self.lists is not None and branches is not None:
                others = [option for option in node.options if type(option) is not Kept]
                self.lists.append(branches)
                self.listed.append(node.of if isinstance(node, OneOf) and not others else None)
                more = [items for option in others for items in self.sequence((option,), None)]
                return [[{"branches": len(self.lists) - 1}], *more]
            return self.written_out(node, (), None)
        if isinstance(node, Repeat):
            return self.repeat(node)
        if isinstance(node, AnyOrder):
            return [[self.any_order(node)]]
        return self.sequence((node,), None)

    def written_out(self, node: Choice, rest: tuple[Node, ...], opened: _Open | None) -> list[Items]:
        """The expansions of each option; tools among them are a part of the form, which is theirs then."""
        if isinstance(node, OneOf):
            self.listed.append(None)
        return [items for option in node.options for items in self.sequence((option, *rest), opened)]

    def branched(self, options: Sequence[Node]) -> list[_core.Branch] | None:
        """Those of the options that are kept, read where they are new; None: they can't be branches."""
        told, kept = self._told, [option for option in options if type(option) is Kept]
        if not kept:
            return None
        branches: list[Any] = [option.made.get(told) for option in kept]
        places = [at for at, branch in enumerate(branches) if branch is None]
        fresh = [kept[at] for at in places]
        alike: dict[Follows, list[Kept]] = {}
        for option in fresh:
            if option.follows.slotted:
                alike.setdefault(option.follows, []).append(option)
        for follows, new in alike.items():
            rest = self.rest(follows)
            if rest is None:
                return None
            for option, branch in zip(
                new, _core.branches(rest, [(one.head, one.schema) for one in new]), strict=True
            ):
                option.made[told] = branch
        self.read_each([option for option in fresh if not option.follows.slotted])
        for at in places:
            branches[at] = kept[at].made.get(told)
        return None if None in (branches[at] for at in places) else branches

    def rest(self, follows: Follows) -> _core.Rest | None:
        """What follows the texts of options, as the engine reads it; None: it may be nothing."""
        if self._told not in follows.made:
            form = _Compiler(Shape(follows.node, follows.rules), self.options, None).form()
            spelling = forms.written({**self.options, "without": []})
            try:
                made = _core.Rest(forms.written(form), spelling)
            except InvalidGrammar:
                made = None
            follows.made[self._told] = made
        return follows.made[self._told]

    def read_each(self, options: Sequence[Kept]) -> None:
        """Reads options that go on each in its own way: what they have in common is written and read once."""
        rules = {name: node for option in options for name, node in option.follows.rules.items()}
        table = _Compiler(Shape(Seq(()), rules), self.options, None)
        starts = [(option.head, table.rule(option.follows.node)) for option in options]
        try:
            read = _core.branches_of(forms.written(table.rules.finished("")), starts) if starts else []
        except InvalidGrammar:
            return
        for option, branch in zip(options, read, strict=True):
            if branch is not None:
                option.made[self._told] = branch
                option.follows.specials = frozenset(branch.specials)
                option.follows.forget()

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

    def sequence(self, parts: Sequence[Node], opened: _Open | None) -> list[Items]:
        """The expansions of the parts in a row, after a text that is still open."""
        items: Items = []
        waiting = list(reversed(parts))
        while waiting:
            part = waiting.pop()
            plain = None if opened else _PLAIN.get(type(part))
            if plain:
                items += plain(self, part)
            elif isinstance(part, Seq):
                waiting += reversed(part.parts)
            elif isinstance(part, Free):
                if opened:
                    items.append({"language": opened.language})
                branches = self.free(part, last=not waiting)
                if not waiting:
                    return _after(items, branches)
                heads = [branch[:-1] for branch in branches]
                opened = self.open(part)
                if len(heads) > 1 or heads[0]:
                    items.append(self.expand(self.rules.fresh(), heads))
            elif isinstance(part, RawString):
                if opened:
                    items.append({"language": opened.language})
                opened = _Open(self.raw(part), part.without, bool(part.never))
            elif opened and isinstance(part, (Choice, Repeat, Rule)):
                return _after(items, self.branches(part, tuple(reversed(waiting)), opened))
            elif opened:
                marked = _split_trigger((part, *reversed(waiting)), opened) if type(part) is Text else ()
                items.append(self.closed(opened, part, marked))
                if marked:
                    del waiting[1 - len(marked) :]
                elif not isinstance(part, (Special, Text)):
                    items += self.item(part)
                opened = None
        if opened:
            items.append({"language": opened.language})
        return [items]

    def raw(self, node: RawString) -> Language:
        """The language of a string as it is written, which several places may share."""
        if id(node) not in self._raws:
            self._raws[id(node)] = _raw(node)
            self._kept.append(node)
        return self._raws[id(node)]

    def closed(self, opened: _Open, part: Node, marked: tuple[Text | Special, ...]) -> Form | str:
        """An open text and what tells its end: a text or special token; marked: it is made of these."""
        if marked:
            return self.expand(self.rules.fresh(), self.split(marked, opened))
        if isinstance(part, Special):
            key = id(opened.language), part.text
            if key not in self._closed:
                both: list[Items] = [
                    [{"language": opened.language}, {"special": part.text, "spelled": False}],
                    [{"language": opened.before(part.text), "unless": part.text}],
                ]
                self._closed[key] = self.expand(self.rules.fresh(), both)
                self._kept.append(opened.language)
            return self._closed[key]
        return {"language": opened.before(part.text) if isinstance(part, Text) else opened.language}

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
            return self.written_out(part, rest, opened)
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
        plain = _PLAIN.get(type(node))
        return plain(self, node) if plain else [self.rule(node)]

    def json(self, node: Json) -> Items:
        made: Form = {"schema": forms.written(node.schema)}
        if node.strings_in:
            made["schema"], made["holes"] = with_marks(made["schema"], dict(node.strings_in))
        return [{**made, "options": {**self.options, **dict(node.options), "without": list(node.without)}}]

    def named(self, node: Rule) -> Items:
        name = f"rule of {node.name}"
        if node.name not in self._named:
            self._named.add(node.name)
            self.expand(name, self.alternatives(self.shape.rules[node.name]))
        return [name]

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
    run: list[Form] = []
    for item in items:
        if isinstance(item, dict) and forms.is_language(item):
            run.append(item)
            continue
        if run:
            out.append({"language": forms.joined("concat", run)})
            run = []
        out.append(item)
    return [*out, {"language": forms.joined("concat", run)}] if run else out


def _ruled(compiler: _Compiler, node: Node) -> Items:
    return [compiler.rule(node)]


# What stands for a node that nothing open stands before; sequences and open texts are not among them.
_PLAIN: dict[type, Callable[[_Compiler, Any], Items]] = {
    Text: lambda _, node: [{"language": literal(node.text)}] if node.text else [],
    Regex: lambda _, node: [{"language": {"regex": node.pattern, "dialect": "python"}}],
    Special: lambda _, node: [{"special": node.text, "spelled": True}],
    Json: _Compiler.json,
    Given: lambda _, node: [dict(node.form)],
    Slot: lambda _, node: [{"slot": True}],
    Rule: _Compiler.named,
    **dict.fromkeys((Choice, OneOf, Repeat, AnyOrder), _ruled),
}
