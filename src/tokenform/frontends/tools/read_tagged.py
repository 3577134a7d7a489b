"""Arguments as marked-up elements, read one by one.

Purpose: the reader of what `tagged.py` writes.
Invariant: a raw value ends at its closing marker, where something follows that may; at the head of another
argument where the marker is missing; and never holds the head of a call or a token that only markers have.
Complexity: linear in the text; a marker that nothing follows is looked at once more.
Rejected: the first closing marker as the end (values hold what looks like one), and the last (where a call is
broken it is that of another call).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.conjuncts import TYPES
from tokenform.frontends.tools.layout import Format, Tagged
from tokenform.frontends.tools.openers import call_heads
from tokenform.frontends.tools.places import WORDS, Place
from tokenform.frontends.tools.read_literals import ArgumentsReader
from tokenform.frontends.tools.read_values import Emit, fail, inside_string, json_value, object_in_string
from tokenform.frontends.tools.source import Reading


class TaggedReader(ArgumentsReader):
    """Reads elements of one layout, one for each argument."""

    layout: Tagged
    _emit: Emit

    def arguments(self) -> Reading[None]:
        self.calls.more = self.layout.before
        yield from self.source.blank()
        if (yield from self.source.matches("{")):
            yield from self.calls.object(self.calls.fragment)
        else:
            yield from self.settled(self._elements, self.place, self.calls.fragment)

    def _elements(self, place: Place, tell: Emit) -> Reading[None]:
        seen: set[str] = set()
        tell("{")
        while (yield from self.calls.try_literal(self.layout.before)):
            key = yield from self._key()
            argument = place.member(key)
            if key in self.layout.wrappers and not argument.declared:
                pieces: list[str] = []
                self._emit = pieces.append
                yield from self._value(key, argument)
                inside = self._unwrapped("".join(pieces))
                if inside:
                    tell((", " if seen else "") + json.dumps(inside, ensure_ascii=False)[1:-1])
                    seen |= set(inside)
                else:
                    self.key(key, seen, False, tell)
                    tell("".join(pieces))
                continue
            self.key(key, seen, argument.declared, tell)
            self._emit = tell
            yield from self._value(key, argument)
        tell("}")

    def _key(self) -> Reading[str]:
        """The name of an argument, which holds nothing that a marker begins with."""
        pieces: list[str] = []
        middles = [m for m in (self.layout.middle, self.layout.json_middle, self.layout.open_middle) if m]
        stops = [self.calls.form.tokens(m)[0].partition("{type}")[0] for m in middles]
        stop = yield from self.source.until([*stops, "\n", "<"], pieces.append)
        if stop not in stops:
            raise fail(self.source, f"the name of the argument {''.join(pieces)!r} does not end")
        return "".join(pieces).strip()

    def _unwrapped(self, text: str) -> dict[str, Any]:
        """The arguments in an object, or in a string of one, if all are declared; else nothing."""
        value = json.loads(object_in_string(text) or text)
        whole = isinstance(value, dict) and all(self.place.member(key).declared for key in value)
        return value if whole else {}

    def _value(self, key: str, argument: Place) -> Reading[None]:
        layout = self.layout
        kinds = argument.kinds
        text_only, json_only = kinds == {"string"}, False
        if layout.json_middle is None:
            yield from self.calls.literal(layout.middle)
        elif (yield from self.calls.try_literal(layout.middle)):
            text_only = "string" in kinds
        elif layout.open_middle is None or not (yield from self.calls.try_literal(layout.open_middle)):
            yield from self._json_middle()
            text_only, json_only = False, True
        if layout.middle.endswith("\n"):
            yield from self.source.accept("\n")
        if text_only:
            self._emit('"')
            yield from self._raw(lambda text: self._emit(inside_string(text)))
            self._emit('"')
            return
        strings = "string" in kinds

        def fits(value: Any) -> bool:
            marked = json_only or not isinstance(value, str)
            return not strings or (marked and argument.takes(value))

        if (json_only or kinds - {"string"}) and (
            yield from self._json(fits, loose=not strings, texts=strings and not json_only)
        ):
            return
        pieces: list[str] = []
        yield from self._raw(pieces.append)
        value = self._text_or_word("".join(pieces), argument, key)
        self._emit(json.dumps(value, ensure_ascii=False))

    def _json_middle(self) -> Reading[None]:
        """What stands before a JSON value."""
        middle = self.layout.json_middle or ""
        if "{type}" in middle:
            for kind in TYPES:
                if (yield from self.calls.try_literal(middle.replace("{type}", kind))):
                    return
        yield from self.calls.literal(middle or self.layout.middle)

    def _json(self, fits: Callable[[Any], bool], loose: bool, texts: bool) -> Reading[bool]:
        """A value that is JSON up to the closing marker, which may stand in its strings; False: it is none,
        or none that fits.  texts: it may be the beginning of a text, in which the marker stands."""
        pieces: list[str] = []
        mark = self.source.mark()
        found = False
        try:
            yield from json_value(self.source, pieces.append, loose)
            yield from self.source.blank()
            ended = yield from self.source.accept(self.layout.close)
            if not ended:
                ended = yield from self._next()
            elif texts:
                ended = yield from self._followed()
            found = ended and fits(json.loads("".join(pieces)))
        except (ToolError, ValueError, RecursionError):
            found = False
        if found:
            self._emit("".join(pieces).strip())
        else:
            self.source.undo(mark)
        return found

    def _next(self) -> Reading[bool]:
        """Whether another argument of the tool begins here, or the call ends."""
        for text in (*self._heads, *self.ends):
            if (yield from self.source.matches(text.lstrip("\n"))):
                return True
        return False

    @cached_property
    def _heads(self) -> list[str]:
        return heads(self.layout, self.place.schema)

    @cached_property
    def _stops(self) -> tuple[list[str], list[str], list[str]]:
        """What ends a raw value: its closing markers; heads of further arguments; what it may not hold."""
        layout = self.layout
        ends = [layout.close, *(["\n" + layout.close] if layout.after.startswith("\n") else [])]
        barred = bars(layout, self.calls.form)
        barred += [mark for mark in layout.markers if mark != layout.close]
        return ends, self._heads, [text for text in barred if text not in self._heads]

    def _raw(self, emit: Callable[[str], None]) -> Reading[None]:
        """Text up to the closing marker, without the line feed that the layout writes before it."""
        ends, begun, barred = self._stops
        last = ""

        def emit_text(text: str) -> None:
            nonlocal last
            last = (last + text)[-80:]
            emit(text)

        stop = yield from self.source.until([*ends, *begun, *barred], emit_text)
        if stop in begun:  # the closing marker is missing: the next argument begins
            # the line feed may be the value's own; what ends like a marker may be a misspelled one
            doubtful = last.endswith("\n") and self.layout.after.endswith("\n")
            if doubtful or re.search(r"</[^<>]*>\s*\Z", last):
                raise fail(self.source, f"an argument needs {self.layout.close!r}, not {stop!r}")
            if stop.startswith("\n"):
                self.source.take(1)
            return
        if stop not in ends:
            raise fail(
                self.source, f"an argument needs {self.layout.close!r}" + (f", not {stop!r}" if stop else "")
            )
        mark, held = self.source.mark(), [self.source.take(len(stop or ""))]
        first = len(held[0])
        barred = list(dict.fromkeys([*barred, *begun, *self.calls.form.special, *self.ends]))
        barred = [text for text in barred if text not in ends]
        while not (yield from self._followed()):
            # text that looks like the marker, if one comes that something follows
            stop = yield from self.source.until([*ends, *barred], held.append)
            if stop not in ends:
                self.source.back(mark)
                self.source.take(first)
                held = held[:1]
                break
            held.append(self.source.take(len(stop or "")))
        self.source.release(mark)
        emit("".join(held[:-1]))

    def _followed(self) -> Reading[bool]:
        """Whether what stands here may follow an argument: another one, or the end of the call.

        Raises:
            ToolError: it is one of these but for capitals: it may be a text, and it may be misspelled.
        """
        mark = self.source.mark()
        yield from self.source.blank()
        found = (yield from self.source.peek()) == ""
        misspelled = False
        for text in (self.calls.form.tokens(self.layout.before)[0], *self.ends):
            here = yield from self.source.peek(len(text))
            found = found or here == text
            misspelled = misspelled or here.lower() == text.lower()
        self.source.undo(mark)
        if misspelled and not found:
            raise fail(self.source, f"an argument is followed by what is spelled {here!r}")
        return found

    def _text_or_word(self, text: str, argument: Place, key: str) -> Any:
        """A raw value that is no JSON: the text itself where it may stand, else a word of Python."""
        word = text.strip().lower()
        strings = "string" in argument.kinds
        if word in WORDS and argument.kinds & {"boolean", "null"} and argument.takes(WORDS[word]):
            return text if strings and argument.takes(text) else WORDS[word]
        if strings:
            return text
        raise fail(self.source, f"the value of the argument {key!r} is no JSON")


def heads(layout: Tagged, schema: Any) -> list[str]:
    """What declared arguments begin with: no text holds it, so that an argument whose closing marker is
    missing ends there.  Where values have lines of their own, on a line of its own."""
    if layout.before in layout.markers:
        return [layout.before]
    feed = "\n" if layout.middle.endswith("\n") else ""
    keys = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    middles = dict.fromkeys(m.strip().partition("{")[0] for m in (layout.middle, layout.json_middle) if m)
    return [feed + layout.before + key + middle for key in keys for middle in middles]


def bars(layout: Tagged, form: Format) -> list[str]:
    """What no text holds besides: tokens that the layout's own markers are made of, and what a call begins
    with, so that a value whose closing marker is missing does not take the next call along."""
    tokens = [token for token in form.embedded if token in layout.before + layout.after]
    return [*tokens, *call_heads(form)]
