"""Values that are not JSON, read as they arrive: Gemma's marked strings, and elements inside each other.

Purpose: the readers of `marked.py` and `elements.py`: they hand on JSON text, fragment by fragment.
Invariant: where the notation leaves open what a text is (a number or a string, say), the schema of its place
decides, and JSON that satisfies it comes before text.
Complexity: linear in the text; nesting is bounded by `DEPTH`.
Source: the chat templates of Gemma 4, MiniMax M3 and Command A (2026); bare words for strings, a marked
number, and a list that begins with an item where no schema speaks, as vLLM 0.33 and SGLang 0.5.23 read them.
Rejected: reading elements as XML (raw text holds any `<` and `&`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tokenform.errors import TokenformError
from tokenform.frontends.tools.conjuncts import (
    ANNOTATIONS,
    DEFINITIONS,
    alone,
    conjuncts,
    first_items,
    further_items,
    types_of,
)
from tokenform.frontends.tools.elements import JSON, LIST, OBJECT, TEXT
from tokenform.frontends.tools.judge import satisfies
from tokenform.frontends.tools.layout import Elements, Format, MarkedArguments
from tokenform.frontends.tools.read_values import DEPTH, Emit, comma, fail, inside_string
from tokenform.frontends.tools.source import Reading, Source

# A whole number with zeros before it, as Python's `int` takes it.
_PADDED = re.compile(r"-?0+[1-9][0-9]{0,400}")
_WORDS = {"true": True, "false": False, "null": None, "none": None}


def marked_object(
    source: Source,
    layout: MarkedArguments,
    emit: Emit,
    place: NestedPlace,
    depth: int = 0,
) -> Reading[None]:
    """`{key:value,…}`, handed on as JSON; the arguments may stand in parentheses."""
    yield from source.blank()
    closer = ")" if not depth and (yield from source.accept("(")) else "}"
    if closer == "}" and not (yield from source.accept("{")):
        raise fail(source, "the arguments must be an object in braces")
    seen: set[str] = set()
    emit("{")
    yield from source.blank()
    while not (yield from source.accept(closer)):
        key = yield from _marked_key(source, layout)
        # Further inside, where members may be of any name, the last holds, as in Python.
        if not key or (key in seen and not depth):
            raise fail(source, f"the member {key!r} is given twice" if key else "a member needs a name")
        emit((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
        seen.add(key)
        yield from source.blank()
        yield from _marked_value(source, layout, emit, place.member(key), depth + 1)
        yield from comma(source, closer)
    emit("}")


def _marked_key(source: Source, layout: MarkedArguments) -> Reading[str]:
    """The name before `:`, with marks around it or without; without them it holds no comma and no bracket."""
    taken: list[str] = []
    if (yield from source.accept(layout.opened)):
        yield from source.until([layout.closed], taken.append)
        yield from source.accept(layout.closed)
        yield from source.blank()
    else:
        stops = [":", ",", "[", "]", "{", "}", layout.opened, layout.closed, *layout.markers]
        yield from source.until(stops, taken.append)
        if (yield from source.matches(layout.opened)) or (yield from source.matches(layout.closed)):
            raise fail(source, f"the mark {layout.opened!r} stands in a key: a string lacks its other one")
    if not (yield from source.accept(":")):
        raise fail(source, "an object needs ':' after a key")
    return "".join(taken).strip()


def _marked_value(
    source: Source, layout: MarkedArguments, emit: Emit, place: NestedPlace, depth: int
) -> Reading[None]:
    if depth > DEPTH:
        raise fail(source, f"values are nested deeper than {DEPTH}")
    first = yield from source.peek()
    if (yield from source.accept(layout.opened)):
        yield from _marked_string(source, layout, emit, place)
    elif first == "{":
        yield from marked_object(source, layout, emit, place, depth)
    elif first == "[":
        source.take(1)
        yield from source.blank()
        count = 0
        while not (yield from source.accept("]")):
            emit(", " if count else "[")
            yield from _marked_value(source, layout, emit, place.item(count), depth + 1)
            yield from comma(source, "]")
            count += 1
        emit("]" if count else "[]")
    else:
        taken: list[str] = []
        yield from source.until([",", "}", "]", layout.opened, layout.closed, *layout.markers], taken.append)
        text = "".join(taken).strip()
        if not text:
            raise fail(source, "a value is needed here")
        if (yield from source.matches(layout.opened)) or (yield from source.matches(layout.closed)):
            raise fail(source, f"the mark {layout.opened!r} stands in a value: a string lacks its other one")
        emit(leaf(source, text, place))


def _marked_string(source: Source, layout: MarkedArguments, emit: Emit, place: NestedPlace) -> Reading[None]:
    """The text up to the mark; JSON where the place takes no such string."""
    strings = place.silent or place.kinds == {"string"}
    taken: list[str] = []
    if strings:
        emit('"')
    stop = yield from source.until(
        [layout.closed, *layout.markers],
        (lambda text: emit(inside_string(text))) if strings else taken.append,
    )
    if stop != layout.closed:
        raise fail(source, f"a string needs {layout.closed!r}")
    yield from source.accept(layout.closed)
    text = "".join(taken)
    if not strings and "string" in place.kinds and satisfies(text, place.schema):
        emit(json.dumps(text, ensure_ascii=False))
    else:
        emit('"' if strings else leaf(source, text, place))


class NestedReader:
    """Reads elements of one layout."""

    def __init__(self, source: Source, layout: Elements, form: Format) -> None:
        self.source, self.layout, self.form = source, layout, form

    def arguments(self, emit: Emit, place: NestedPlace) -> Reading[None]:
        """All elements that stand here, as the members of one object."""
        yield from self._members(emit, place, 0)

    def _members(self, emit: Emit, place: NestedPlace, depth: int) -> Reading[None]:
        if depth and not place.declares:
            yield from self._free_members(emit, place, depth)
            return
        seen: set[str] = set()
        emit("{")
        while (head := (yield from self._opened(self.layout.member))) is not None:
            key, kind = head
            if not key or (key in seen and not depth):
                raise fail(self.source, f"the member {key!r} is given twice" if key else "a name is needed")
            emit((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
            seen.add(key)
            yield from self._value(emit, place.member(key), kind, self._closer(key), depth + 1)
        emit("}")

    def _free_members(self, emit: Emit, place: NestedPlace, depth: int) -> Reading[None]:
        """Members that the schema does not name: one that is repeated is a list (vLLM 0.33 reads so)."""
        found: dict[str, list[str]] = {}
        while (head := (yield from self._opened(self.layout.member))) is not None:
            key, kind = head
            if not key:
                raise fail(self.source, "a name is needed")
            taken: list[str] = []
            yield from self._value(taken.append, place.member(key), kind, self._closer(key), depth + 1)
            found.setdefault(key, []).append("".join(taken))
        pairs = []
        for key, values in found.items():
            text = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
            pairs.append(f"{json.dumps(key, ensure_ascii=False)}: {text}")
        emit("{" + ", ".join(pairs) + "}")

    def _items(self, emit: Emit, place: NestedPlace, depth: int) -> Reading[None]:
        count = 0
        while (head := (yield from self._opened(self.layout.item))) is not None:
            emit(", " if count else "[")
            yield from self._value(emit, place.item(count), head[1], self.layout.close_item, depth + 1)
            count += 1
        emit("]" if count else "[]")

    def _closer(self, key: str) -> str:
        return self.layout.close.replace("{name}", key)

    def _opened(self, marker: str) -> Reading[tuple[str, str] | None]:
        """Take the opener of an element: its name and kind; None where something else stands."""
        mark = self.source.mark()
        yield from self.source.blank()
        found: dict[str, str] = {"name": "", "kind": ""}
        rest, there = marker, True
        while rest and there:
            literal, _, rest = rest.partition("{")
            there = yield from self.source.accept(literal)
            field, _, rest = rest.partition("}") if there else ("", "", "")
            if there and field:
                taken: list[str] = []
                stop = rest.partition("{")[0]
                yield from self.source.until([stop, self.layout.marker], taken.append)
                found[field] = "".join(taken)
        there = (
            there and not found["name"].startswith("/") and not re.search(r"[\s\"'=]", found["name"].strip())
        )
        if not there:
            self.source.undo(mark)
        return (found["name"].strip(), found["kind"]) if there else None

    def _value(self, emit: Emit, place: NestedPlace, kind: str, closer: str, depth: int) -> Reading[None]:
        """What stands in an element, and its end."""
        if depth > DEPTH:
            raise fail(self.source, f"elements are nested deeper than {DEPTH}")
        meant = self.layout.kinds.index(kind) if self.layout.kinds and kind in self.layout.kinds else None
        if self.layout.kinds and meant is None:
            raise fail(self.source, f"{kind!r} is no kind of element")
        if meant is None:
            meant = yield from self._told(place)
        if meant == OBJECT:
            yield from self._members(emit, place, depth)
            yield from self.source.blank()
        elif meant == LIST:
            yield from self._items(emit, place, depth)
            yield from self.source.blank()
        else:
            yield from self._text(emit, place, meant, kind == "")
        if not (yield from self.source.accept(closer)):
            raise fail(self.source, f"{closer!r} is needed here")

    def _told(self, place: NestedPlace) -> Reading[int]:
        """Whether elements follow, and of which kind."""
        mark = self.source.mark()
        yield from self.source.blank()
        kinds = place.kinds
        opens = self.layout.marker + "<"
        child = (yield from self.source.matches(opens)) and not (yield from self.source.matches(opens + "/"))
        first_item = child and (yield from self.source.matches(self.layout.item))
        ends = (yield from self.source.matches(opens + "/")) and "string" not in kinds
        self.source.undo(mark)
        if child:
            return LIST if "array" in kinds and (first_item or "object" not in kinds) else OBJECT
        if ends and kinds & {"array", "object"} and not kinds & {"number", "integer", "boolean"}:
            return LIST if "array" in kinds else OBJECT
        return TEXT

    def _text(self, emit: Emit, place: NestedPlace, meant: int, open_kind: bool) -> Reading[None]:
        """Raw text or JSON up to the next marker."""
        kinds = place.kinds
        if meant == TEXT and ("string" in kinds if not open_kind else kinds == {"string"}):
            emit('"')
            yield from self.source.until(self.layout.barred, lambda text: emit(inside_string(text)))
            emit('"')
            return
        taken: list[str] = []
        yield from self.source.until(self.layout.barred, taken.append)
        text = "".join(taken)
        if open_kind and place.silent and text.strip() not in _WORDS:
            emit(json.dumps(text, ensure_ascii=False))  # where no schema speaks, a text is a text
        else:
            emit(leaf(self.source, text, place, json_only=meant == JSON))


class NestedPlace:
    """What a schema says of the values in one place, and in the places inside it; each is found once."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._inside: dict[str | int, NestedPlace] = {}

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The types that a value may have."""
        return types_of(self.schema, "")

    @cached_property
    def silent(self) -> bool:
        """Whether everything is allowed, because nothing is said."""
        return not isinstance(self.schema, Mapping) or set(self.schema) <= {*ANNOTATIONS, *DEFINITIONS}

    @property
    def declares(self) -> bool:
        """Whether members are named."""
        return any(part.get("properties") or "additionalProperties" in part for part in self._parts)

    def member(self, key: str) -> NestedPlace:
        """The place of a member's value."""
        if key not in self._inside:
            told = [p["properties"][key] for p in self._parts if key in p.get("properties", {})]
            told += [p["additionalProperties"] for p in self._parts if "additionalProperties" in p]
            self._inside[key] = self._place(told)
        return self._inside[key]

    def item(self, index: int) -> NestedPlace:
        """The place of the item at this index."""
        index = min(index, max((len(first_items(part)) for part in self._parts), default=0))
        if index not in self._inside:
            told = []
            for part in self._parts:
                first = first_items(part)
                told.append(first[index] if index < len(first) else further_items(part))
            self._inside[index] = self._place([said for said in told if said is not True])
        return self._inside[index]

    def _place(self, told: list[Any]) -> NestedPlace:
        """By the first that is said; what is said besides is judged with the whole call."""
        found = isinstance(self.schema, Mapping) and bool(told) and isinstance(told[0], Mapping)
        return NestedPlace(alone(told[0], self.schema, "") if found else True)

    @cached_property
    def _parts(self) -> list[Mapping[str, Any]]:
        """The schemas that hold for a value, those of its branches too."""
        if not isinstance(self.schema, Mapping):
            return []
        try:
            parts = [part for part, _ in conjuncts(self.schema, self.schema, "")]
            for part in list(parts):
                for branch in [*part.get("anyOf", []), *part.get("oneOf", [])]:
                    parts += [inside for inside, _ in conjuncts(branch, self.schema, "")]
        except TokenformError:
            return [self.schema]
        return parts


def whole_numbers(value: Any, place: NestedPlace) -> Any:
    """The value with `5.0` as 5 where the schema asks for an integer: JSON Schema takes it for one."""
    if isinstance(value, float):
        asked = value.is_integer() and "integer" in place.kinds and "number" not in place.kinds
        return int(value) if asked else value
    if isinstance(value, dict):
        return {key: whole_numbers(inner, place.member(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_numbers(inner, place.item(index)) for index, inner in enumerate(value)]
    return value


def leaf(source: Source, text: str, place: NestedPlace, json_only: bool = False) -> str:
    """A bare value as JSON: what it is as JSON, if the schema takes that, else a word, else the text."""
    kinds = place.kinds
    if kinds & {"integer", "number"} and _PADDED.fullmatch(text.strip()):
        text = re.sub("0+", "", text.strip(), count=1)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _WORDS.get(text.strip().lower(), text) if kinds & {"boolean", "null"} else text
        if isinstance(value, str) and (json_only or "string" not in kinds):
            raise fail(source, f"{text[:40]!r} is no value of this place") from None
        return json.dumps(value, ensure_ascii=False)
    taken = json_only or "string" not in kinds
    if not taken and (isinstance(value, str) or not satisfies(value, place.schema)):
        return json.dumps(text, ensure_ascii=False)
    return text.strip()
