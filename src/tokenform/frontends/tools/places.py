"""What a schema says of the values in one place, while a call is read.

Purpose: formats that write values otherwise than JSON leave open what a text is; the schema of its place
tells.
Invariant: JSON that satisfies the schema comes before text; where lists or objects may stand in several ways,
each of them is a reading of its own (`readings`).
Complexity: each place is found once; at most `MOST` readings of each.
Rejected: the schema's `properties` alone (branches, patterns and references declare too); the members before
as what tells how one is read (in any order the one that tells may come last).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from tokenform.errors import TokenformError
from tokenform.frontends.tools.cases import MOST
from tokenform.frontends.tools.conjuncts import (
    ANNOTATIONS,
    DEFINITIONS,
    alone,
    conjuncts,
    first_items,
    further_items,
    types_of,
)
from tokenform.frontends.tools.judge import fault
from tokenform.frontends.tools.members import Case, all_of, member_cases
from tokenform.frontends.tools.read_values import fail
from tokenform.frontends.tools.source import Source

# A whole number with zeros before it, as Python's `int` takes it.
_PADDED = re.compile(r"-?0+[1-9][0-9]{0,400}")
WORDS = {"true": True, "false": False, "null": None, "none": None}


class Place:
    """A place and those inside it.

    schema: of its values, which stands alone.  declared: whether the schema around it names it; one that is
    not may come twice, and the last counts.  case: the only one of its objects' cases to be read by.
    """

    def __init__(self, schema: Any, declared: bool = True, case: Case | None = None) -> None:
        self.schema, self.declared, self._case = schema, declared, case
        self._inside: dict[str | int, Place] = {}

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
        return [self._case] if self._case else _cases_of(self._text)

    @property
    def declares(self) -> bool:
        """Whether it is said which members there are."""
        return any(case.names or case.others is not True for case in self._cases or ())

    @cached_property
    def readings(self) -> list[Place]:
        """The ways in which its lists and objects may be read, where the same text may mean several values;
        the place itself reads each member and item as what it may be in any of them."""
        if self._case is not None or not self.kinds & {"array", "object"}:
            return []
        found = [Place(alone(said, self._root)) for said in self._lists] if len(self._lists) > 1 else []
        cases = self._cases or []
        if any(_doubtful(self.member(key)) for key in _of_several(cases)):
            found += [Place(self.schema, case=case) for case in cases]
        return found

    def member(self, key: str) -> Place:
        """The place of a member's value."""
        if key not in self._inside:
            if self._cases is None:
                self._inside[key] = Place(True, key in self.schema.get("properties", {}))
            else:
                self._inside[key] = self._member(self._cases, key)
        return self._inside[key]

    def _member(self, cases: list[Case], key: str) -> Place:
        """What the cases say of a member."""
        schemas = [member.bare for case in cases for member in case.members if member.key == key]
        declared = any(key in case.names for case in cases)
        if not declared:
            schemas = [case.others for case in cases if case.others is not False]
        return Place(alone(_any_of(schemas), self._root), declared)

    @property
    def _root(self) -> Mapping[str, Any]:
        return self.schema if isinstance(self.schema, Mapping) else {}

    def item(self, index: int) -> Place:
        """The place of the item at this index."""
        lists = [[part for part, _ in conjuncts(said, self._root, "")] for said in self._lists]
        index = min(index, max((len(_firsts(part)) for parts in lists for part in parts), default=0))
        if index not in self._inside:
            said = [all_of([_item(part, index) for part in parts]) for parts in lists]
            self._inside[index] = Place(alone(_any_of([one for one in said if one is not False]), self._root))
        return self._inside[index]

    @cached_property
    def _lists(self) -> list[Any]:
        """The schemas of lists, one for each way to choose among branches."""
        try:
            return list(_lists(self.schema, self._root))[:MOST]
        except (TokenformError, RecursionError):
            return []


def _lists(schema: Any, root: Mapping[str, Any], followed: frozenset[str] = frozenset()) -> Iterator[Any]:
    """The schemas without branches, one for each way to choose among them, that a list may satisfy."""
    if "array" not in types_of(schema, "", root, followed):
        return
    parts = conjuncts(schema, root, "", followed)
    said = [{key: part[key] for key in part if key not in ("$ref", "allOf")} for part, _ in parts]
    for index, (part, trail) in enumerate(parts):
        key = next((key for key in ("anyOf", "oneOf") if key in part), None)
        values = part.get("enum", ())
        if key is None and len(values) < 2:
            continue
        branches = part[key] if key else [{"const": value} for value in values if isinstance(value, list)]
        rest = [
            {k: v for k, v in one.items() if index != i or k != (key or "enum")} for i, one in enumerate(said)
        ]
        for branch in branches:
            if not (isinstance(branch, Mapping) and branch.get("$ref") in trail):
                yield from _lists({"allOf": [*filter(None, rest), branch]}, root, trail)
        return
    yield schema


def _item(part: Mapping[str, Any], index: int) -> Any:
    """What one schema says of the item at this index."""
    firsts = _firsts(part)
    return firsts[index] if index < len(firsts) else further_items(part)


def _firsts(part: Mapping[str, Any]) -> list[Any]:
    """The schemas of a list's first items; of a list that is named whole, those of all items."""
    values = [part["const"]] if "const" in part else part.get("enum", ())
    lists = [value for value in values if isinstance(value, list)]
    return [{"const": item} for item in lists[0]] if lists else first_items(part)


def _any_of(schemas: list[Any]) -> Any:
    """The schema of what satisfies one of them; of no schemas, True."""
    distinct = schemas if len(schemas) < 2 else list({json.dumps(said): said for said in schemas}.values())
    if not distinct or True in distinct:
        return True
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _of_several(cases: list[Case]) -> list[str]:
    """The members of which the cases don't say the same."""
    said: dict[str, set[str]] = {}
    for case in cases:
        for member in case.members:
            said.setdefault(member.key, set()).add(json.dumps(member.bare))
    return [key for key, schemas in said.items() if len(schemas) > 1]


def _doubtful(place: Place) -> bool:
    """Whether a text in this place may mean several values, by the kinds of values alone."""
    kinds = place.kinds
    return bool(kinds & {"array", "object"}) or (len(kinds) > 1 and "string" in kinds)


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
