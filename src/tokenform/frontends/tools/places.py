"""What a schema says of the values in one place, while a call is read.

Purpose: formats that write values otherwise than JSON leave open what a text is; the schema of its place
tells.
Invariant: JSON that satisfies the schema comes before text; after each member that was read only those cases
are left in which the schema allows it.
Complexity: each place is found once for a schema and the cases that are left.
Rejected: the schema's `properties` alone (branches, patterns and references declare too).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from tokenform.errors import TokenformError, ToolError
from tokenform.frontends.tools.conjuncts import (
    ANNOTATIONS,
    DEFINITIONS,
    alone,
    conjuncts,
    first_items,
    further_items,
    types_of,
)
from tokenform.frontends.tools.judge import fault, satisfies
from tokenform.frontends.tools.members import Case, member_cases
from tokenform.frontends.tools.read_values import fail
from tokenform.frontends.tools.source import Source

# A whole number with zeros before it, as Python's `int` takes it.
_PADDED = re.compile(r"-?0+[1-9][0-9]{0,400}")
WORDS = {"true": True, "false": False, "null": None, "none": None}


class Place:
    """A place and those inside it.

    schema: of its values, which stands alone.  declared: whether the schema around it names it; one that is
    not may come twice, and the last counts.
    """

    def __init__(self, schema: Any, declared: bool = True) -> None:
        self.schema, self.declared = schema, declared
        self._inside: dict[tuple[Any, ...], Place] = {}
        self._left: list[Case] | None = None

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The types that a value may have."""
        return types_of(self.schema, "")

    @cached_property
    def silent(self) -> bool:
        """Whether everything is allowed, because nothing is said."""
        return not isinstance(self.schema, Mapping) or set(self.schema) <= {*ANNOTATIONS, *DEFINITIONS}

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.schema)

    def takes(self, value: Any) -> bool:
        """Whether the schema allows the value."""
        return self.schema is True or fault(value, self._text) is None

    @cached_property
    def _cases(self) -> list[Case] | None:
        return _cases_of(self._text)

    @property
    def declares(self) -> bool:
        """Whether it is said which members there are."""
        return any(case.names or case.others is not True for case in self._cases or ())

    def begin(self) -> None:
        """A value begins: none of its members was read."""
        self._left = None

    def member(self, key: str) -> Place:
        """The place of a member's value."""
        cases = self._left or self._cases
        at = (key, *map(id, self._left or ()))
        if at not in self._inside:
            if cases is None:
                self._inside[at] = Place(True, key in self.schema.get("properties", {}))
            else:
                self._inside[at] = self._member(cases, key)
        return self._inside[at]

    def _member(self, cases: list[Case], key: str) -> Place:
        """What the cases say of a member."""
        schemas = [member.bare for case in cases for member in case.members if member.key == key]
        declared = any(key in case.names for case in cases)
        if not declared:
            schemas = [case.others for case in cases if case.others is not False]
        distinct = (
            schemas if len(schemas) < 2 else list({json.dumps(said): said for said in schemas}.values())
        )
        if not distinct or True in distinct:
            return Place(True, declared)
        both = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        return Place(alone(both, self._root), declared)

    @property
    def _root(self) -> Mapping[str, Any]:
        return self.schema if isinstance(self.schema, Mapping) else {}

    def leave(self, key: str, text: str) -> None:
        """A member was read, as JSON: only some cases are left, which tell what the others are."""
        cases = self._left or self._cases
        if cases is None or len(cases) < 2:
            return
        try:
            value = json.loads(text)
            self._left = [
                case
                for case in cases
                if any(member.key == key and satisfies(value, member.schema) for member in case.members)
                or (key not in case.names and case.others is not False)
            ] or cases
        except (ToolError, ValueError):  # judged with the whole call
            self._left = None

    def item(self, index: int) -> Place:
        """The place of the item at this index."""
        index = min(index, max((len(_firsts(part)) for part in self._parts), default=0))
        if (index,) not in self._inside:
            firsts = [(_firsts(part), further_items(part)) for part in self._parts]
            schemas = [first[index] if index < len(first) else further for first, further in firsts]
            # by the first that is said; what is said besides is judged with the whole call
            said = next((one for one in schemas if one is not True), True)
            self._inside[(index,)] = Place(alone(said, self._root) if isinstance(said, Mapping) else True)
        return self._inside[(index,)]

    @cached_property
    def _parts(self) -> list[Mapping[str, Any]]:
        """The schemas that hold for a value, those of its branches too."""
        try:
            parts = [part for part, _ in conjuncts(self.schema, self._root, "")]
            for part in list(parts):
                for branch in [*part.get("anyOf", []), *part.get("oneOf", [])]:
                    parts += [inside for inside, _ in conjuncts(branch, self._root, "")]
        except TokenformError:
            return [self._root]
        return parts


def _firsts(part: Mapping[str, Any]) -> list[Any]:
    """The schemas of a list's first items; of lists that are named whole, those of all items."""
    values = [part["const"]] if "const" in part else part.get("enum", ())
    lists = [value for value in values if isinstance(value, list)]
    if not lists:
        return first_items(part)
    places = range(max(map(len, lists)))
    return [{"enum": [one[place] for one in lists if place < len(one)]} for place in places]


@lru_cache(maxsize=256)
def _cases_of(schema: str) -> list[Case] | None:
    """The members that may stand together; None: what the schema says is judged with the whole call.

    Kept, because readers come and go with the turns of the same tools.
    """
    try:
        return member_cases(json.loads(schema), "", strict=False)
    except (TokenformError, RecursionError):
        return None


def whole_numbers(value: Any, place: Place) -> Any:
    """The value with `5.0` as 5 where the schema asks for an integer: JSON Schema takes it for one."""
    if isinstance(value, float):
        asked = value.is_integer() and "integer" in place.kinds and "number" not in place.kinds
        return int(value) if asked else value
    if isinstance(value, dict):
        return {key: whole_numbers(inner, place.member(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_numbers(inner, place.item(index)) for index, inner in enumerate(value)]
    return value


def leaf(source: Source, text: str, place: Place, json_only: bool = False) -> str:
    """A bare value as JSON: what it is as JSON, if the schema takes that, else a word, else the text."""
    kinds = place.kinds
    if kinds & {"integer", "number"} and _PADDED.fullmatch(text.strip()):
        text = re.sub("0+", "", text.strip(), count=1)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = WORDS.get(text.strip().lower(), text) if kinds & {"boolean", "null"} else text
        if isinstance(value, str) and (json_only or "string" not in kinds):
            raise fail(source, f"{text[:40]!r} is no value of this place") from None
        return json.dumps(value, ensure_ascii=False)
    if not (json_only or "string" not in kinds) and (isinstance(value, str) or not place.takes(value)):
        return json.dumps(text, ensure_ascii=False)
    return text.strip()
