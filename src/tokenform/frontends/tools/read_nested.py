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
from collections.abc import Mapping
from typing import Any

from tokenform.errors import TokenformError
from tokenform.frontends.tools.elements import JSON, LIST, OBJECT, TEXT
from tokenform.frontends.tools.layout import Elements, Format, MarkedArguments
from tokenform.frontends.tools.members import alone, conjuncts, types_of
from tokenform.frontends.tools.read_values import DEPTH, Emit, fail, inside_string
from tokenform.frontends.tools.source import Reading, Source

ANNOTATIONS = {
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "$comment",
    "$defs",
    "definitions",
}
_WORDS = {"true": True, "false": False, "null": None, "none": None}


def marked_object(
    source: Source, layout: MarkedArguments, emit: Emit, schema: Any = True, depth: int = 0
) -> Reading[None]:
    """`{key:value,…}`, handed on as JSON."""
    yield from source.blank()
    if not (yield from source.accept("{")):
        raise fail(source, "the arguments must be an object in braces")
    seen: set[str] = set()
    emit("{")
    yield from source.blank()
    while not (yield from source.accept("}")):
        key = yield from _marked_key(source, layout)
        if not key or key in seen:
            raise fail(source, f"the member {key!r} is given twice" if key else "a member needs a name")
        emit((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
        seen.add(key)
        yield from source.blank()
        yield from _marked_value(source, layout, emit, inner(schema, key), depth + 1)
        yield from _comma(source, "}")
    emit("}")


def _marked_key(source: Source, layout: MarkedArguments) -> Reading[str]:
    """The name before `:`, with marks around it or without."""
    taken: list[str] = []
    if (yield from source.accept(layout.opened)):
        yield from source.until([layout.closed], taken.append)
        yield from source.accept(layout.closed)
        yield from source.blank()
    else:
        yield from source.until([":", "}"], taken.append)
    if not (yield from source.accept(":")):
        raise fail(source, "an object needs ':' after a key")
    return "".join(taken).strip()


def _comma(source: Source, closer: str) -> Reading[None]:
    yield from source.blank()
    if not (yield from source.accept(",")) and not (yield from source.matches(closer)):
        raise fail(source, f"',' or {closer!r} is needed here")
    yield from source.blank()


def _marked_value(
    source: Source, layout: MarkedArguments, emit: Emit, schema: Any, depth: int
) -> Reading[None]:
    if depth > DEPTH:
        raise fail(source, f"values are nested deeper than {DEPTH}")
    first = yield from source.peek()
    if (yield from source.accept(layout.opened)):
        yield from _marked_string(source, layout, emit, schema)
    elif first == "{":
        yield from marked_object(source, layout, emit, schema, depth)
    elif first == "[":
        source.take(1)
        yield from source.blank()
        between = "["
        while not (yield from source.accept("]")):
            emit(between)
            between = ", "
            yield from _marked_value(source, layout, emit, items(schema), depth + 1)
            yield from _comma(source, "]")
        emit("[]" if between == "[" else "]")
    else:
        taken: list[str] = []
        yield from source.until([",", "}", "]"], taken.append)
        text = "".join(taken).strip()
        if not text:
            raise fail(source, "a value is needed here")
        emit(leaf(source, text, schema))


def _marked_string(source: Source, layout: MarkedArguments, emit: Emit, schema: Any) -> Reading[None]:
    """The text up to the mark; JSON where the place takes no strings."""
    strings = "string" in _types(schema)
    taken: list[str] = []
    if strings:
        emit('"')
    stop = yield from source.until(
        [layout.closed], (lambda text: emit(inside_string(text))) if strings else taken.append
    )
    if stop is None:
        raise fail(source, f"a string needs {layout.closed!r}")
    yield from source.accept(layout.closed)
    emit('"' if strings else leaf(source, "".join(taken), schema))


class NestedReader:
    """Reads elements of one layout."""

    def __init__(self, source: Source, layout: Elements, form: Format) -> None:
        self.source, self.layout, self.form = source, layout, form

    def arguments(self, emit: Emit, schema: Any) -> Reading[None]:
        """All elements that stand here, as the members of one object."""
        yield from self._members(emit, schema, 0)

    def _members(self, emit: Emit, schema: Any, depth: int) -> Reading[None]:
        seen: set[str] = set()
        emit("{")
        while (head := (yield from self._opened(self.layout.member))) is not None:
            key, kind = head
            if not key or key in seen:
                raise fail(self.source, f"the member {key!r} is given twice" if key else "a name is needed")
            emit((", " if seen else "") + json.dumps(key, ensure_ascii=False) + ": ")
            seen.add(key)
            yield from self._value(emit, inner(schema, key), kind, self._closer(key), depth + 1)
        emit("}")

    def _items(self, emit: Emit, schema: Any, depth: int) -> Reading[None]:
        between = "["
        while (head := (yield from self._opened(self.layout.item))) is not None:
            emit(between)
            between = ", "
            yield from self._value(emit, items(schema), head[1], self.layout.close_item, depth + 1)
        emit("[]" if between == "[" else "]")

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
        there = there and not found["name"].startswith("/")
        if not there:
            self.source.back(mark)
        self.source.release(mark)
        return (found["name"].strip(), found["kind"]) if there else None

    def _value(self, emit: Emit, schema: Any, kind: str, closer: str, depth: int) -> Reading[None]:
        """What stands in an element, and its end."""
        if depth > DEPTH:
            raise fail(self.source, f"elements are nested deeper than {DEPTH}")
        meant = self.layout.kinds.index(kind) if self.layout.kinds and kind in self.layout.kinds else None
        if self.layout.kinds and meant is None:
            raise fail(self.source, f"{kind!r} is no kind of element")
        if meant is None:
            meant = yield from self._told(schema)
        if meant == OBJECT:
            yield from self._members(emit, schema, depth)
            yield from self.source.blank()
        elif meant == LIST:
            yield from self._items(emit, schema, depth)
            yield from self.source.blank()
        else:
            yield from self._text(emit, schema, meant, kind == "")
        if not (yield from self.source.accept(closer)):
            raise fail(self.source, f"{closer!r} is needed here")

    def _told(self, schema: Any) -> Reading[int]:
        """Whether elements follow, and of which kind."""
        mark = self.source.mark()
        yield from self.source.blank()
        kinds = _types(schema)
        opens = self.layout.marker + "<"
        child = (yield from self.source.matches(opens)) and not (yield from self.source.matches(opens + "/"))
        first_item = child and (yield from self.source.matches(self.layout.item))
        ends = (yield from self.source.matches(opens + "/")) and "string" not in kinds
        self.source.back(mark)
        self.source.release(mark)
        if child:
            return LIST if "array" in kinds and (first_item or "object" not in kinds) else OBJECT
        if ends and kinds & {"array", "object"} and not kinds & {"number", "integer", "boolean"}:
            return LIST if "array" in kinds else OBJECT
        return TEXT

    def _text(self, emit: Emit, schema: Any, meant: int, open_kind: bool) -> Reading[None]:
        """Raw text or JSON up to the next marker."""
        kinds = _types(schema)
        if meant == TEXT and ("string" in kinds if not open_kind else kinds == {"string"}):
            emit('"')
            yield from self.source.until([self.layout.marker], lambda text: emit(inside_string(text)))
            emit('"')
            return
        taken: list[str] = []
        yield from self.source.until([self.layout.marker], taken.append)
        text = "".join(taken)
        if open_kind and _silent(schema) and text.strip() not in _WORDS:
            emit(json.dumps(text, ensure_ascii=False))  # where no schema speaks, a text is a text
        else:
            emit(leaf(self.source, text, schema, json_only=meant == JSON))


def leaf(source: Source, text: str, schema: Any, json_only: bool = False) -> str:
    """A bare value as JSON: what it is as JSON, if the schema takes that, else a word, else the text."""
    kinds = _types(schema)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _WORDS.get(text.strip().lower(), text) if kinds & {"boolean", "null"} else text
        if isinstance(value, str) and (json_only or "string" not in kinds):
            raise fail(source, f"{text[:40]!r} is no value of this place") from None
        return json.dumps(value, ensure_ascii=False)
    if "string" in kinds and (isinstance(value, str) or not _satisfies(value, schema)) and not json_only:
        return json.dumps(text, ensure_ascii=False)
    return text.strip()


def inner(schema: Any, key: str) -> Any:
    """What a schema says of a member; true where it says nothing."""
    for part in _parts(schema):
        properties = part.get("properties", {})
        if key in properties:
            return _alone(properties[key], schema)
    extras = [part["additionalProperties"] for part in _parts(schema) if "additionalProperties" in part]
    return _alone(extras[0], schema) if extras and isinstance(extras[0], Mapping) else True


def items(schema: Any) -> Any:
    """What a schema says of the items of a list."""
    found = [part["items"] for part in _parts(schema) if "items" in part]
    return _alone(found[0], schema) if found else True


def _parts(schema: Any) -> list[Mapping[str, Any]]:
    """The objects that hold for a value of the schema, those of its branches too."""
    if not isinstance(schema, Mapping):
        return []
    try:
        parts = [part for part, _ in conjuncts(schema, schema, "")]
        for part in list(parts):
            for branch in [*part.get("anyOf", []), *part.get("oneOf", [])]:
                parts += [inside for inside, _ in conjuncts(branch, schema, "")]
    except TokenformError:
        return [schema]
    return parts


def _alone(sub: Any, root: Any) -> Any:
    return alone(sub, root, "") if isinstance(sub, Mapping) else True


def _types(schema: Any) -> frozenset[str]:
    return types_of(schema, "")


def _silent(schema: Any) -> bool:
    """Whether a schema allows everything, by saying nothing."""
    return not isinstance(schema, Mapping) or set(schema) <= ANNOTATIONS


def _satisfies(value: Any, schema: Any) -> bool:
    import jsonschema

    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
