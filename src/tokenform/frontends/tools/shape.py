"""The neutral tree in which a tool format says what text it allows.

Purpose: formats, argument spellings and the choice of tools are put together here once, and the engine, the
reference matcher of the tests and the random writer of the tests all read the same tree.
Invariant: a tree is immutable and finite; recursion goes through `Rule` and the table `Shape.rules` alone,
and every rule consumes at least one character before it comes back to itself.
Complexity: linear in the size of the argument schemas, except that a run of k optional members costs k**2 / 2
references to shared nodes (see `joined`).
Rejected: building engine objects in the formats (formats would then need the compiled core to be looked at or
tested), and a textual grammar (schemas would have to be spelled into it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, Union

from tokenform import _core
from tokenform.frontends.grammar import Grammar


@dataclass(frozen=True)
class Text:
    """Exactly this text, in any tokenisation."""

    text: str


@dataclass(frozen=True)
class Special:
    """One special token, named by its text.  A vocabulary without it spells the text out instead."""

    text: str


@dataclass(frozen=True, eq=False)
class Json:
    """A JSON document that satisfies `schema`; `schema` stands alone (its `$defs` travel with it).

    without: texts that may not occur in it as it is written, because common readers would end it there (the
    reader of this library would not).
    strings_in: grammars of strings in it, each with its JSON Pointer, as `json_schema` takes them.
    options: options of `json_schema` that it has in place of those of the whole tree.
    """

    schema: Any
    without: tuple[str, ...] = ()
    strings_in: tuple[tuple[str, Grammar], ...] = ()
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Regex:
    """A text that the pattern matches as a whole, in the dialect of `tokenform.regex`."""

    pattern: str


# Where a template writes whitespace, models write less or more of it: nothing, one space, or line feeds and
# an indentation.  A model that is refused what it wants runs on in whitespace where it can, so what nobody
# writes is not there: a second space, a space at a line's end, a blank line within a call.
BLANK = Regex(r" ?|(?:\r?\n){1,3}[ \t]{0,24}")
LINE = Regex(r" ?|\r?\n[ \t]{0,24}")
SPACE = Regex(r" ?")
# Behind the last call; a small model that would call again and may not indents for as long as it can.
LAST = Regex(r" ?|(?:\r?\n){1,3}")


@dataclass(frozen=True, eq=False)
class RawString:
    """A string that satisfies `schema`, written as it is, without quotes or escapes.

    schema: stands alone; of what it allows, the strings count.
    without: texts that may not occur in it, because they would end it or be read as markup.
    never: patterns of what may not occur in it, where a marker counts by what follows it.
    feeds: whether a line feed may stand before it and after it that is no part of the string; of two line
        feeds one belongs to it.
    """

    schema: Any
    without: tuple[str, ...]
    feeds: tuple[bool, bool] = (False, False)
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trigger:
    """Where free text ends and a call begins.

    special: the trigger is one special token.  whole_word: it counts only where no word character (`\\w`)
    stands right before it.
    """

    text: str
    special: bool = False
    whole_word: bool = False


@dataclass(frozen=True)
class Free:
    """Any text in which no trigger of `until` occurs; it may be empty and may always end.

    What follows in the enclosing `Seq` is a trigger or the end of the output, and the *first* occurrence of a
    trigger is where the free text ends: `Free(until=(t,))` followed by t is the set of texts that have t at
    their end and nowhere else.
    allow: special tokens that may stand in the text.  not_prefix: patterns of what it may not begin with.
    word_end: it is empty or ends with no word character (a trigger that counts as a whole word only follows).
    """

    until: tuple[Trigger, ...] = ()
    allow: tuple[str, ...] = ()
    not_prefix: tuple[str, ...] = ()
    word_end: bool = False


@dataclass(frozen=True, eq=False)
class Seq:
    """The parts, one after the other; no parts: the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Slot:
    """The JSON document of an option, where options differ in it and in what they begin with alone."""


class Follows:
    """What follows the texts that options begin with.

    write: writes its tree.  rules: that it names.  spelling: how documents in its `Slot` are written, where
    not as all others.  made: what the engine read of it then, by options.
    """

    def __init__(
        self,
        write: Callable[[], Node],
        rules: Mapping[str, Node] | None = None,
        spelling: Mapping[str, Any] | None = None,
    ) -> None:
        self.write, self.rules, self.spelling = write, rules or {}, spelling or {}
        self.made: dict[Any, _core.Rest | None] = {}

    @cached_property
    def node(self) -> Node:
        """Its tree."""
        return self.write()

    def forget(self) -> None:
        """Lets go of the tree until it is asked for again."""
        self.__dict__.pop("node", None)

    @cached_property
    def specials(self) -> frozenset[str]:
        """The special tokens in it."""
        nodes = Shape(self.node, self.rules).nodes()
        return frozenset(one.text for one in nodes if isinstance(one, Special))


# Numbers of ways in which a tool is called and its documents are written.
_WAYS = count()


@dataclass(frozen=True, eq=False)
class Kind:
    """Calls of one kind; tools cache their calls by it.

    follows: what follows the calls, where it is the same.  ways: the numbers under which the engine caches
    what it read, by the spelling of documents.
    """

    number: int
    follows: Follows | None
    ways: dict[Any, int] = field(default_factory=dict)

    def spelling_number(self, spelling: Any) -> int:
        """The number of a spelling of documents."""
        found = self.ways.get(spelling)
        return self.ways.setdefault(spelling, next(_WAYS)) if found is None else found


class CachedOption(Seq):
    """An option that the engine reads once for all trees that have it.

    of: the kind of its calls, and the tool.  head: the text that it begins with.  schema: the JSON Schema of
    the document in the slot, as text; None: there is no slot.  whole: makes the same as nodes, rarely needed.
    notes: what it leaves out.
    """

    def __init__(
        self,
        of: tuple[Kind, _core.OfTool],
        head: str,
        follows: Follows,
        schema: str | None,
        whole: Callable[[], Node],
        notes: Sequence[str] = (),
    ) -> None:
        self.__dict__.update(of=of, head=head, follows=follows, schema=schema, whole=whole, notes=notes)

    @classmethod
    def alone(
        cls,
        of: tuple[Kind, _core.OfTool],
        head: str,
        node: Node,
        rules: Mapping[str, Node],
        again: Callable[[], Node],
        notes: Sequence[str] = (),
    ) -> CachedOption:
        """An option that goes on in its own way.  node: all of it, naming the rules; again: remakes it."""
        follows = Follows(lambda: without(again(), head), rules)
        follows.node = without(node, head)
        return cls(of, head, follows, None, again, notes)

    of: tuple[Kind, _core.OfTool]
    head: str
    follows: Follows
    schema: str | None
    whole: Callable[[], Node]
    notes: Sequence[str]

    @cached_property
    def parts(self) -> tuple[Node, ...]:
        node = self.whole()
        return node.parts if isinstance(node, Seq) else (node,)


@dataclass(frozen=True, eq=False)
class Choice:
    """One of the options; no options: no text at all."""

    options: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class OneOf(Choice):
    """One of many cached options; of: what the options are."""

    of: Any = None


@dataclass(frozen=True, eq=False)
class Repeat:
    """`item` between `least` and `most` times (None: without bound), with `separator` between two items."""

    item: Node
    least: int
    most: int | None
    separator: Node | None = None


@dataclass(frozen=True, eq=False)
class AnyOrder:
    """The members in any order, none twice and each required one there, with `separator` between two.

    members: (node, required) pairs.  others: what may come besides, anywhere and any number of times.
    prefix: what each of these begins with: it is read once for all of them.
    """

    members: tuple[tuple[Node, bool], ...]
    others: Node | None = None
    separator: Node | None = None
    prefix: Node | None = None


@dataclass(frozen=True)
class Rule:
    """The node that `Shape.rules` holds under this name."""

    name: str


@dataclass(frozen=True, eq=False)
class Given:
    """What another constraint accepts, as its form (`forms.py`)."""

    form: Mapping[str, Any]


Node = Union[  # noqa: UP007
    Text, Special, Json, Regex, RawString, Free, Seq, Choice, Repeat, AnyOrder, Rule, Given, Slot
]


@dataclass(frozen=True, eq=False)
class Shape:
    """A tree and the rules that it names.

    notes: what the schemas allow and the tree leaves out.
    marks: special tokens that stand in no free text, besides those in the tree.
    """

    root: Node
    rules: Mapping[str, Node] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def nodes(self) -> Iterator[Node]:
        """Every node that the root or a rule reaches, each once; what is kept is looked at as one."""
        seen: set[int] = set()
        stack: list[Node] = [self.root, *self.rules.values()]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            if isinstance(node, Choice):  # of those that go on alike one stands for all
                stack += {id(getattr(one, "follows", one)): one for one in node.options}.values()
            elif not isinstance(node, CachedOption):
                stack.extend(children(node))

    def specials(self) -> set[str]:
        """The texts of its special tokens."""
        found = set(self.marks)
        follows: dict[int, Follows] = {}
        for node in self.nodes():
            if isinstance(node, Special):
                found.add(node.text)
            elif isinstance(node, CachedOption):
                follows[id(node.follows)] = node.follows
        return found.union(*(one.specials for one in follows.values()))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below this one."""
    if isinstance(node, Seq):
        return node.parts
    if isinstance(node, Choice):
        return node.options
    if isinstance(node, Repeat):
        return (node.item,) if node.separator is None else (node.item, node.separator)
    if isinstance(node, AnyOrder):
        beside = (node.others, node.separator, node.prefix)
        return (*(member for member, _ in node.members), *(one for one in beside if one is not None))
    return ()


def sequence(*parts: Node) -> Node:
    """The parts as one node: nested sequences flattened, neighbouring texts joined, blanks written once."""
    flat: list[Node] = []
    for part in parts:
        pieces = part.parts if isinstance(part, Seq) else (part,)
        if pieces and not _joins(flat, pieces[0]):
            flat.append(pieces[0])
        flat += pieces[1:]
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def marked(text: str, marks: re.Pattern[str]) -> Node:
    """A text; what the pattern finds in it are special tokens."""
    parts: list[Node] = []
    end = 0
    for found in marks.finditer(text):
        parts += [Text(text[end : found.start()]), Special(found.group())]
        end = found.end()
    return sequence(*parts, Text(text[end:]))


def without(node: Node, head: str) -> Node:
    """What follows the text that a node begins with."""
    first, *rest = node.parts if isinstance(node, Seq) else (node,)
    assert isinstance(first, Text) and first.text.startswith(head)
    return sequence(Text(first.text[len(head) :]), *rest)


def _joins(flat: list[Node], piece: Node) -> bool:
    """Whether a piece became one with the last of those before it."""
    last = flat[-1] if flat else None
    if type(piece) is Text:
        if type(last) is Text:
            flat[-1] = Text(last.text + piece.text)
            return True
        return not piece.text
    if type(last) is not Regex or not (piece is BLANK or piece is LINE or piece is LAST):
        return False
    blank = last is BLANK or last is LINE
    if blank and (piece is LAST or last is LINE):
        flat[-1] = piece  # the one that allows more
    return blank


def choice(options: Sequence[Node]) -> Node:
    """One of the options, without a wrapper where there is one only; those of no text at all are left out."""
    options = [option for option in options if not (isinstance(option, Choice) and not option.options)]
    return options[0] if len(options) == 1 else Choice(tuple(options))


def optional(node: Node) -> Node:
    """The node, or nothing."""
    return Repeat(node, 0, 1)


def joined(members: Sequence[tuple[Node, bool]], separator: Node | None) -> Node:
    """Members in this order, the optional ones possibly left out, with the separator between those written.

    members: (node, required) pairs.  With a separator the first member written has none before it, so each
    member that may come first starts an option of its own; the tails share their nodes.
    """
    if separator is None or (isinstance(separator, Seq) and not separator.parts):
        return sequence(*(node if required else optional(node) for node, required in members))
    later = [sequence(separator, node) for node, _ in members]
    tail: list[Node] = [Seq(())]
    for (_, required), node in reversed(list(zip(members, later, strict=True))):
        tail.append(sequence(node if required else optional(node), tail[-1]))
    tail.reverse()
    options: list[Node] = []
    for index, (node, required) in enumerate(members):
        options.append(sequence(node, tail[index + 1]))
        if required:
            return choice(options)
    return choice([*options, Seq(())])


def listed(
    first: Sequence[Node], item: Node | None, least: int, most: int | None, separator: Node | None
) -> Node:
    """A list: its first items each by itself, all further ones alike (None: there are none)."""
    if not first:
        return Repeat(item, least, most, separator) if item is not None else Choice(()) if least else Seq(())
    apart = Seq(()) if separator is None else separator
    count = len(first) if most is None else min(len(first), most)
    if item is None and least > count:
        return Choice(())
    left = None if most is None else most - count
    tail: Node = Seq(())
    if item is not None and left != 0:
        tail = Repeat(sequence(apart, item), max(least - count, 0), left)
    for index in range(count - 1, -1, -1):
        one = sequence(apart, first[index], tail) if index else sequence(first[index], tail)
        tail = one if index < least else optional(one)
    return tail
