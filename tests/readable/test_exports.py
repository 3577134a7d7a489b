"""Schemas as other libraries export them: all compile, and documents are those of another validator."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import tokenform as tf

from .exports import DJANGO, FASTAPI, ZOD
from .test_random_types import BYTES, quick
from .values import KEYS, SCALARS, Kind, whole

DRAFT = "http://json-schema.org/draft-07/schema#"
"""What zod-to-json-schema names by default; zod's own export is of 2020-12."""
OLD = [
    (name, {"$schema": DRAFT, **schema} if '"items": [' in json.dumps(schema) else schema, documents)
    for name, schema, documents in ZOD
]


def accepts(schema: dict[str, Any], document: Any, **options: Any) -> bool:
    automaton = tf.json_schema(schema, order="any", **options).compile(BYTES)
    return automaton.matches(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("schema", "documents"),
    [pytest.param(schema, documents, id=name) for name, schema, documents in [*OLD, *DJANGO, *FASTAPI]],
)
def test_documents_are_those_of_the_validator(schema: dict[str, Any], documents: list[Any]) -> None:
    if schema.get("not") == {}:
        with pytest.raises(tf.errors.UnsatisfiableSchema):
            tf.json_schema(schema)
        return
    judge = jsonschema_rs.validator_for(schema, validate_formats=True)
    for document in documents:
        assert accepts(schema, document) == judge.is_valid(document), document


@pytest.mark.parametrize("mode", ["validation", "serialization"])
@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: str(kind[0])[:50])
@quick
@given(data=st.data())
def test_what_pydantic_exports(kind: Kind, mode: Any, data: Any) -> None:
    exported(*kind, mode, data)


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: str(kind[0])[:50])
@quick
@given(data=st.data())
def test_what_pydantic_exports_of_mappings(kind: Kind, data: Any) -> None:
    exported(dict[kind[0], int], st.dictionaries(kind[1], whole, max_size=2), "validation", data)


def exported(tp: Any, values: st.SearchStrategy[Any], mode: Any, data: Any) -> None:
    """Documents of the type, judged by its exported schema; formats are annotations to both."""
    adapter: TypeAdapter[Any] = TypeAdapter(tp)
    schema = adapter.json_schema(mode=mode)
    try:
        judge = jsonschema_rs.validator_for(schema, validate_formats=False)
        document = json.loads(adapter.dump_json(data.draw(values), warnings=False))
    except ValueError:
        return
    assert accepts(schema, document, formats="annotate") == judge.is_valid(document), document
