"""Schemas made here, for a first run without a benchmark's data.

Purpose: `tokenform evaluate` works as installed.  Half of the schemas are forms, those of the extraction
tasks; half put keywords of JSON Schema together at random, few of which a model would meet, so that engines
that leave keywords out are seen.
Invariant: a seed names the cases; each schema has documents, judged by the package `jsonschema`, at least one
of them valid.
Rejected: a benchmark's own schemas within the package: 20 MB, under licences of their own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import jsonschema

from tokenform_bench.data import Case, Document
from tokenform_bench.evaluate.tasks.extraction import KINDS, Draw, object_schema
from tokenform_bench.random_schemas import SchemaMaker, changed, documents

COUNT = 500
"""Cases where no limit is given."""
_DOCUMENTS = 12
_KEPT = 4


def generated_cases(count: int | None, seed: int = 0) -> Iterator[Case]:
    """So many cases (500 for None): `forms` and `keywords` in turns."""
    maker = SchemaMaker(random.Random(f"{seed}/keywords"))
    for number in range(COUNT if count is None else count):
        made = _keywords(maker) if number % 2 else _form(number // 2, seed, maker)
        yield Case(f"{'keywords' if number % 2 else 'forms'}---{number:05}", *made)


def _form(number: int, seed: int, maker: SchemaMaker) -> tuple[dict[str, Any], tuple[Document, ...]]:
    kinds = list(KINDS.values())
    _, properties, answer = kinds[number % len(kinds)](Draw(random.Random(f"{seed}/forms/{number}"), True))
    schema = object_schema(properties, closed=number // len(kinds) % 2 == 0)
    others = [changed(maker, answer) for _ in range(_KEPT - 1)]
    return schema, _judged(schema, [answer, *others])


def _keywords(maker: SchemaMaker) -> tuple[dict[str, Any], tuple[Document, ...]]:
    while True:
        schema = maker.schema()
        try:
            found = _judged(schema, documents(maker, schema, _DOCUMENTS))
        except RecursionError:  # a reference to itself: of no use here
            continue
        if any(document.valid for document in found):
            return schema, tuple(sorted(found, key=lambda document: not document.valid)[:_KEPT])


def _judged(schema: Any, values: list[Any]) -> tuple[Document, ...]:
    validator = jsonschema.Draft202012Validator(schema)
    return tuple(Document(value, validator.is_valid(value)) for value in values)
