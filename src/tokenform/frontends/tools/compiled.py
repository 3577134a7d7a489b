"""The tree of a turn as a grammar of the engine.

Purpose: what a model may write when it may call tools (`making.py`), exact and token by token.
Invariant: the texts are those of the tree; special tokens stand for themselves where the vocabulary has them,
and are spelled out where it has not.
Complexity: linear in the tree; a node behind free text (`open_text.py`) is built once more for each place
that ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

from tokenform.errors import OptionError
from tokenform.frontends import forms
from tokenform.frontends.forms import Form, Language, literal
from tokenform.frontends.schemas import SPELLINGS, with_marks
from tokenform.frontends.tools.open_text import Open, piece, raw_language, split_trigger
from tokenform.frontends.tools.shape import (
    AnyOrder,
    CachedOption,
    Choice,
    Free,
    Given,
    Json,
    Node,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Shape,
    Slot,
    Special,
    Text,
)

# One expansion: forms, and names of rules.
Items = list["Form | str"]


class Linking(Protocol):
    """Where options that are kept are listed (`linked.py`)."""

    def number(self, node: Choice) -> int | None: ...

    def written_out(self, node: Choice) -> None: ...


def shape_form(shape: Shape, json_options: Mapping[str, str] | None = None) -> Form:
    """The form of a tree."""
    return Compiler(shape, known_options(json_options)).form()


def known_options(json_options: Mapping[str, str] | None) -> dict[str, str]:
    """How JSON is written, as `tools` takes it."""
    unknown = set(json_options or ()) - set(SPELLINGS)
    if unknown:
        raise OptionError(f"json_options: {', '.join(sorted(unknown))} can't be chosen for tools.")
    return dict(json_options or {})


class Compiler:
    """linker: where options that are kept are listed; None: they are as other nodes."""

    def __init__(self, shape: Shape, options: Mapping[str, str], linker: Linking | None = None) -> None:
        self.shape, self.options, self.linker = shape, options, linker
        self.rules = forms.Rules()
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
        match node:
            case Choice():
                number = self.linker.number(node) if self.linker else None
                if number is None:
                    return self.written_out(node, (), None)
                others = [option for option in node.options if type(option) is not CachedOption]
                more = [items for option in others for items in self.sequence((option,), None)]
                return [[{"branches": number}], *more]
            case Repeat():
                return self.repeat(node)
            case AnyOrder():
                return [[self.any_order(node)]]
        return self.sequence((node,), None)

    def written_out(self, node: Choice, rest: tuple[Node, ...], opened: Open | None) -> list[Items]:
        """The expansions of each option."""
        if self.linker:
            self.linker.written_out(node)
        return [items for option in node.options for items in self.sequence((option, *rest), opened)]

    def any_order(self, node: AnyOrder) -> str:
        separator = self.rule(node.separator) if node.separator else None
        prefix = self.rule(node.prefix) if node.prefix else None

        def with_prefix(member: Node) -> str:
            name = self.rule(member)
            return self.rules.rule(f"{name} led", [[prefix, name]]) if prefix else name

        members = [(with_prefix(member), required) for member, required in node.members]
        return self.rules.any_order(members, with_prefix(node.others) if node.others else None, separator)

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

    def sequence(self, parts: Sequence[Node], opened: Open | None) -> list[Items]:
        """The expansions of the parts in a row, after a text that is still open."""
        items: Items = []
        waiting = list(reversed(parts))
        while waiting:
            part = waiting.pop()
            match part:
                case Seq():
                    waiting += reversed(part.parts)
                case Free() | RawString():
                    if opened:
                        items.append({"language": opened.language})
                    if isinstance(part, RawString):
                        opened = Open(self.raw(part), part.without, bool(part.never))
                        continue
                    branches = self.free(part, last=not waiting)
                    if not waiting:
                        return _after(items, branches)
                    heads = [branch[:-1] for branch in branches]
                    opened = self.open(part)
                    if len(heads) > 1 or heads[0]:
                        items.append(self.expand(self.rules.fresh(), heads))
                case _ if opened is None:
                    items += self.item(part)
                case Choice() | Repeat() | Rule():
                    return _after(items, self.branches(part, tuple(reversed(waiting)), opened))
                case _:
                    marked = split_trigger((part, *reversed(waiting)), opened) if type(part) is Text else ()
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
            self._raws[id(node)] = raw_language(node)
            self._kept.append(node)
        return self._raws[id(node)]

    def closed(self, opened: Open, part: Node, marked: tuple[Text | Special, ...]) -> Form | str:
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

    def split(self, marked: tuple[Text | Special, ...], opened: Open) -> list[Items]:
        """Open text and a trigger with a special token inside: the token tells where the text has ended."""
        head, mark = marked[0], next(part for part in marked if isinstance(part, Special))
        tokens: Items = [{"language": {"concat": [opened.language, literal(head.text)]}}]
        for part in marked[1:]:
            tokens += (
                [{"special": part.text, "spelled": False}] if isinstance(part, Special) else self.item(part)
            )
        spelled = opened.before("".join(part.text for part in marked))
        return [tokens, [{"language": spelled, "unless": mark.text}]]

    def branches(self, part: Choice | Repeat | Rule, rest: tuple[Node, ...], opened: Open) -> list[Items]:
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
        match node:
            case Text():
                return [{"language": literal(node.text)}] if node.text else []
            case Regex():
                return [{"language": {"regex": node.pattern, "dialect": "python"}}]
            case Special():
                return [{"special": node.text, "spelled": True}]
            case Json():
                return self.json(node)
            case Given():
                return [dict(node.form)]
            case Slot():
                return [{"slot": True}]
            case Rule():
                return self.named(node)
        return [self.rule(node)]

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
        first = piece(node, self.specials, begins=True)
        final: Form = {"language": piece(node, self.specials, begins=False, ends=last and node.word_end)}
        alone: Form = {"language": piece(node, self.specials, begins=True, ends=last and node.word_end)}
        if not node.allow:
            return [[alone]]
        marks: list[Form] = [{"special": text, "spelled": False} for text in node.allow]
        loop = self.rules.fresh()
        later: Form = {"language": piece(node, self.specials, begins=False)}
        begin: list[Items] = [[{"language": first}, mark] for mark in marks]
        again: list[Items] = [[loop, later, mark] for mark in marks]
        self.expand(loop, begin + again)
        return [[alone], [loop, final]]

    def open(self, node: Free) -> Open:
        """The last piece of free text that something follows."""
        bare = not node.allow
        return Open(
            piece(node, self.specials, begins=bare, ends=node.word_end),
            tuple(trigger.text for trigger in node.until),
        )


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
