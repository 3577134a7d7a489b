"""msgspec's types: its schema, narrowed to what its reader then reads, and its reader.

Purpose: a `msgspec.Struct`, or a type with one in it, as a grammar; all of it is msgspec's, whose own rules
say what else may stand around a Struct.
Invariant: what the narrowed schema accepts is read without an error, but for what `__post_init__` refuses.
Source: msgspec's documentation, "Supported Types" and "JSON Schema".
"""

from __future__ import annotations

import re
import typing
from functools import cached_property
from typing import Any

from tokenform.errors import InvalidType, LimitExceeded
from tokenform.frontends.json_text import plain_integers, read_json
from tokenform.frontends.struct_schemas import read_schema


def holds_struct(tp: Any) -> bool:
    """Whether a type is a `msgspec.Struct`, or a generic, union or the like with one in it."""
    if any(
        isinstance(one, type) and hasattr(one, "__struct_fields__") for one in (tp, typing.get_origin(tp))
    ):
        return True
    return any(holds_struct(part) for part in typing.get_args(tp) if part is not tp)


class StructReader:
    """From a document to its value; the counterpart of `python_types.TypeReader`.

    Args:
        tp: what msgspec reads.
        label: what errors call it.
    """

    def __init__(self, tp: Any, label: str) -> None:
        import msgspec

        self._msgspec, self._tp, self.label, self.in_order = msgspec, tp, label, True
        self._decoder = msgspec.json.Decoder(tp)

    def __call__(self, text: str) -> Any:
        try:
            return self._decoder.decode(text)
        except self._msgspec.ValidationError as error:
            try:  # JSON Schema's integers may be written as 1e3, msgspec's may not
                return self._decoder.decode(plain_integers(text))
            except (self._msgspec.ValidationError, LimitExceeded):
                pass
            said, _, place = str(error).partition(" - at `$")
            refused = InvalidType(f"{self.label} refuses the document: {said}.", pointer=_pointer(place))
            refused.text, refused.partial = text, read_json(text, name="the document", kind=InvalidType)
            raise refused from None

    def __reduce__(self) -> tuple[Any, ...]:
        return StructReader, (self._tp, self.label), {"in_order": self.in_order}

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its documents."""
        return read_schema(self._tp)

    @cached_property
    def shapes(self) -> Whole:
        """Its documents are judged when they are complete."""
        return Whole(self.label, any(hasattr(one, "__post_init__") for one in self._structs()))

    def _structs(self) -> set[Any]:
        """The Structs in it."""
        found: set[Any] = set()
        todo = [self._tp]
        while todo:
            part = todo.pop()
            if isinstance(part, type) and hasattr(part, "__struct_fields__"):
                if part in found:
                    continue
                found.add(part)
                todo += typing.get_type_hints(part, include_extras=True).values()
            todo += [one for one in (typing.get_origin(part), *typing.get_args(part)) if one is not part]
        return found


class Whole:
    """What is known of a type whose documents are judged as a whole; see `value_shapes.Shapes`."""

    def __init__(self, label: str, coded: bool) -> None:
        self.label, self.coded = label, coded

    def typed(self) -> None:
        """Values that are being written are JSON's."""

    def checks(self) -> None:
        """Nothing is judged early."""


def _pointer(place: str) -> str | None:
    """msgspec's `.items[0].price` as a JSON Pointer; it does not name the keys of mappings."""
    parts = re.findall(r"[^.\[\]`]+", place.replace("[...]", ""))
    return None if "[...]" in place else "".join(f"/{part}" for part in parts)
