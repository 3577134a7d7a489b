"""What a tool format is made of, as data.

Purpose: one `Format` value says how a model family writes calls: where they begin and end, how name, id and
arguments are laid out, what stands between two calls, which texts are special tokens, how reasoning is
fenced. The grammar (`grammar.py`) writes exactly this layout; the reader (`reader.py`) reads it and is
lenient about whitespace, so that the two can't drift apart.
Invariant: the first piece of a `Wire` is a literal (its *opener*), and every `Name` is followed by a literal
or by arguments, so that where a name ends can be told from the text.
Complexity: none, this is data.
Source: the chat templates of the model families, named in each format's file.
Rejected: a reader and a grammar of their own for each format (forty of each would say everything twice).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Union

from tokenform.errors import ToolError


@dataclass(frozen=True)
class Name:
    """The tool's name, as it is."""


@dataclass(frozen=True)
class Id:
    """The call's id: what the pattern matches.  full: the id that callers see, made of {id} and {name}."""

    pattern: str
    full: str = "{id}"


@dataclass(frozen=True)
class JsonArguments:
    """The arguments as one JSON object."""


@dataclass(frozen=True)
class PythonArguments:
    """The arguments as keywords of a Python call: `a=1, b='x'`.

    json_words: true, false and null are written besides True, False and None (both are read in any format).
    """

    json_words: bool = False


@dataclass(frozen=True)
class MarkedArguments:
    """The arguments as `{key:value,…}`: keys bare, strings raw between the two marks, words as JSON has them.

    The templates sort the keys: the grammar takes that order and the declared one.
    marked_json: numbers, true and false are written between marks, too.
    markers: texts that no string may hold besides its mark.
    """

    opened: str
    closed: str
    marked_json: bool = False
    markers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Elements:
    """The arguments as elements, one inside the other: members by name, items of a list alike.

    member: what opens a member; {name} is its name, {kind} the kind of its value.
    item: what opens an item of a list.
    close: what closes a member; {name} is its name.
    close_item: what closes an item.
    kinds: what the kinds are called: raw text, JSON, an object, a list; None: the schema tells them apart.
    marker: what every marker begins with, and no raw value holds.
    outer: markers of the call, where they begin otherwise.
    """

    member: str
    item: str
    close: str
    close_item: str
    marker: str
    kinds: tuple[str, str, str, str] | None = None
    outer: tuple[str, ...] = ()

    @property
    def barred(self) -> tuple[str, ...]:
        """What no raw value holds: what closes it, what opens a further one, and the call's own markers."""
        return tuple(dict.fromkeys((self.marker, self.member.partition("{")[0], *self.outer)))


@dataclass(frozen=True)
class JsonCall:
    """The whole call as one JSON object: `{"name": …, "arguments": …}` under the given keys.

    id: the key of the call's id, which is then written first, as digits in a string.
    last_id: the pattern of an id that may be written last, under "id".
    turned: the arguments may be written before the name.
    """

    name: str
    arguments: str
    id: str | None = None
    last_id: str | None = None
    turned: bool = False


@dataclass(frozen=True)
class Tagged:
    """The arguments as one marked-up element each: `before key middle value after`.

    Attributes:
        middle: written before a value that is a string, which is then raw text.
        json_middle: written before any other value, which is then JSON; None: the same, and the schema
            decides; {type} in it is the value's type.
        open_middle: read too, and then the schema decides.
        markers: texts that no raw value may hold besides the closing one.
        python_words: True, False and None are read and written besides true, false and null.
        wrappers: names that models give to one element with all arguments as JSON, which is read.
    """

    before: str
    middle: str
    after: str
    json_middle: str | None = None
    open_middle: str | None = None
    markers: tuple[str, ...] = ()
    python_words: bool = False
    wrappers: tuple[str, ...] = ()

    def typed_middle(self, kind: str) -> str:
        """What is written before a JSON value of this type."""
        name = "number" if kind == "integer" else kind
        return (self.json_middle or self.middle).replace("{type}", name)

    @property
    def close(self) -> str:
        """The closing marker without the whitespace around it."""
        return self.after.strip()


@dataclass(frozen=True)
class Maybe:
    """Parts that a reader takes if they are there.  written: whether the grammar writes them (None: may)."""

    parts: tuple[Part, ...]
    written: bool | None


@dataclass(frozen=True)
class Either:
    """One of these literals; the template writes the first."""

    texts: tuple[str, ...]


Part = Union[  # noqa: UP007
    str, Either, Name, Id, JsonArguments, PythonArguments, MarkedArguments, Elements, JsonCall, Tagged, Maybe
]


@dataclass(frozen=True)
class Wire:
    """One layout of calls.

    Attributes:
        call: the parts of one call.
        section: what opens and closes the list of calls, if anything does.
        between: the text between two calls.
        guess: the opener is ordinary text ("{", "["): away from the start, what follows is a call only if
            it reads as one.
        written: of a layout among `Format.also`: the grammar allows it too.
        closed: calls are told by what closes the section alone, which has to be there.
    """

    call: tuple[Part, ...]
    section: tuple[str, str] | None = None
    between: str = ""
    guess: bool = False
    written: bool = False
    closed: bool = False

    @property
    def opener(self) -> str:
        """The literal that a call, or the list of calls, begins with."""
        first = (self.section and self.section[0]) or self.call[0]
        return first if isinstance(first, str) else "{"

    @property
    def literals(self) -> list[str]:
        """The markers of the section, of a call and of its arguments."""
        texts = list(self.section or ())
        for part in self.call:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Tagged):
                texts += [part.before, part.middle, part.after]
            elif isinstance(part, MarkedArguments):
                texts += [part.opened, part.closed]
        return texts


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        name: what callers choose it by.
        models: the model families that write it.
        wire: the layout that the model's template writes, and the grammar allows.
        also: other layouts, which the reader takes too; the grammar those that are `written`.
        bare: one call may be written without the section around it.
        special: the texts that are special tokens; whitespace may stand before and after them.
        embedded: special tokens that are parts of a longer marker.
        lead: whitespace that the template writes before the calls; it is no part of the text.
        at_start: calls have no marker of their own, so the grammar takes them at the start of the output
            only.
        prefix: a special token that may stand before the calls.
        whole_word: the opener counts only where no word character stands before it.
        reasoning: what opens and closes the reasoning block.
        trigger_ends_reasoning: an opener inside an unclosed reasoning block ends it.
        content: what opens and closes the answer's text, where the model marks it.
        fenced: all text of the answer stands between the two `content` markers; `end` may follow the turn.
        end: what ends the message of a fenced turn.
        prompt_opens: the template's prompt always opens the reasoning block, so that an output may begin
            inside it.
        dropped: markers that are no part of the text (end of turn and the like).
        short_ids: the model's template takes ids of nine letters and digits only.
        channels: the format is Harmony's sequence of messages; `wire.call` lays out the call's message.
        template: texts that stand in chat templates of the format; a template that leaves calls out, and has
            them all, is told to come near it.
        template_without: texts that do not.
    """

    name: str
    models: str
    wire: Wire
    also: tuple[Wire, ...] = ()
    bare: bool = False
    special: tuple[str, ...] = ()
    embedded: tuple[str, ...] = ()
    lead: str = ""
    at_start: bool = False
    prefix: str | None = None
    whole_word: bool = False
    reasoning: tuple[str, str] = ("<think>", "</think>")
    trigger_ends_reasoning: bool = False
    content: tuple[str, ...] = ()
    fenced: bool = False
    end: str = ""
    prompt_opens: bool = False
    dropped: tuple[str, ...] = ()
    short_ids: bool = False
    channels: bool = False
    template: tuple[str, ...] = ()
    template_without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """What fences the reasoning and the answer is special wherever the vocabulary has it as one token.

        Raises:
            ToolError: a layout of the format can't be read: it has no name, or no place where it begins.
        """
        for wire in (self.wire, *self.also):
            self._check(wire)
        known = self.special + self.embedded
        # A fence that is made of several tokens is none itself.
        fences = [m for m in self.reasoning + self.content if not any(t != m and t in m for t in known)]
        object.__setattr__(self, "special", tuple(dict.fromkeys((*self.special, *fences))))

    def _check(self, wire: Wire) -> None:
        parts = [
            inner for part in wire.call for inner in (part.parts if isinstance(part, Maybe) else (part,))
        ]
        named = [index for index, part in enumerate(parts) if isinstance(part, (Name, JsonCall))]
        if len(named) != 1:
            raise ToolError(
                f"the format {self.name!r}: a call needs one Name or one JsonCall, not {len(named)}"
            )
        first = wire.section[0] if wire.section else parts[0]
        if not (isinstance(first, JsonCall) or (isinstance(first, str) and first.strip())):
            raise ToolError(
                f"the format {self.name!r}: a call, or its section, needs a literal to begin with"
            )
        if isinstance(parts[named[0]], Name) and len(parts) == named[0] + 1:
            raise ToolError(f"the format {self.name!r}: a literal or arguments must follow the name")

    @property
    def written(self) -> tuple[Wire, ...]:
        """The layouts that the grammar allows."""
        return (self.wire, *(wire for wire in self.also if wire.written))

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """Tokens that stand in calls alone: free text holds none."""
        wires = (self.wire, *self.also)
        known = (*map(self.opener, wires), *self.dropped, *self.reasoning, *self.content, self.prefix or "")
        tokens = () if self.channels else (*self.special, *self.embedded)
        return tuple(token for token in tokens if not any(token in text for text in known))

    def pieces(self, literal: str) -> tuple[tuple[str, bool], ...]:
        """A literal cut at special tokens: (text, is special) in order."""
        special = self.special + self.embedded
        return tuple((part, part in special) for part in _cut(literal, special))

    def tokens(self, literal: str) -> tuple[str, ...]:
        """A literal as the reader sees it: cut at special tokens and at whitespace, which may be any."""
        return _words(literal, self.special)

    def opener(self, wire: Wire) -> str:
        """The text by which the reader knows that a call of this layout begins."""
        tokens = self.tokens(wire.opener)
        return tokens[0] if tokens else wire.opener


@lru_cache(maxsize=1024)
def _cut(literal: str, marks: tuple[str, ...]) -> tuple[str, ...]:
    """The literal cut before and after every mark."""
    if not marks:
        return (literal,) if literal else ()
    pattern = "|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True))
    return tuple(part for part in re.split(f"({pattern})", literal) if part)


@lru_cache(maxsize=1024)
def _words(literal: str, marks: tuple[str, ...]) -> tuple[str, ...]:
    """The same without its whitespace."""
    return tuple(word for piece in _cut(literal, marks) for word in piece.split())
