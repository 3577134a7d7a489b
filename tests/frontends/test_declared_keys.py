"""What a model writes of a schema has the keys that it declares, and is one of the schema's documents."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.frontends.declared_keys import closed

A = {"properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (A, ""),
        ({"type": "object", "properties": {}}, ""),
        ({"properties": {"x": A}, "required": ["x"]}, "/ /properties/x"),
        ({"items": A, "type": "array"}, "/items"),
        ({"prefixItems": [A, True]}, "/prefixItems/0"),
        ({"additionalProperties": A}, "/additionalProperties"),
        ({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "$defs": {"A": A}}, "/$defs/A"),
        ({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": A}}, "/$defs/A"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"n": {"$ref": "#/$defs/A"}}}}}, "/$defs/A"),
    ],
)
def test_objects_that_name_keys_and_say_nothing_of_others_are_closed(schema: Any, where: str) -> None:
    text = closed(json.dumps(schema))
    assert text is not None
    made, found = json.loads(text), set[str]()

    def walk(node: Any, place: str) -> None:
        if isinstance(node, dict):
            if node.get("additionalProperties") is False:
                found.add(place)
            for name, one in node.items():
                walk(one, f"{place}/{name}")
        for number, one in enumerate(node if isinstance(node, list) else ()):
            walk(one, f"{place}/{number}")

    walk(made, "")
    assert found == {"" if place == "/" else place for place in where.split()} or found == {where}


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [A, {"properties": {"b": {}}}]},
        {"not": {"properties": {"a": {"properties": {"b": {"type": "null"}}, "required": ["b"]}}}},
        {"allOf": [A, {"properties": {"b": {}}}]},
        {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]},
        {"contains": A, "type": "array", "maxContains": 1},
        {"properties": {"a": {}}, "required": ["z"]},
        {"properties": {"a": {}}, "additionalProperties": True},
        {"properties": {"a": {}}, "patternProperties": {"^x": True}},
        {"properties": {"a": {}}, "minProperties": 2},
        {"$ref": "other.json", "$id": "http://example.com/"},
        {"if": A, "then": {"properties": {"c": {}}}},
    ],
)
def test_where_closing_says_more_than_that_nothing_is_closed(schema: Any) -> None:
    assert closed(json.dumps(schema)) is None


LEAVES = st.sampled_from(
    [{}, True, {"type": "integer"}, {"const": "x"}, A, {"$ref": "#/$defs/A"}, {"$ref": "#"}]
)


def deeper(inner: Any) -> Any:
    several, name = st.lists(inner, min_size=1, max_size=2), st.sampled_from("abc")
    parts = {
        "properties": st.dictionaries(name, inner, min_size=1, max_size=2),
        "required": st.lists(name, max_size=1),
        "items": inner,
        "not": inner,
        "contains": inner,
        "maxContains": st.just(1),
        "if": inner,
        "then": inner,
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), several),
    }
    return st.fixed_dictionaries({}, optional=parts) | st.fixed_dictionaries(
        {"properties": parts["properties"]}, optional={"required": parts["required"], "items": inner}
    )


SCHEMAS = st.recursive(LEAVES, deeper, max_leaves=8).map(
    lambda one: {**one, "$defs": {"A": A}} if isinstance(one, dict) else {"properties": {"a": one}}
)
DOCUMENTS = st.recursive(
    st.sampled_from([1, "x", None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.lists(DOCUMENTS, min_size=4, max_size=10))
def test_every_document_of_the_closed_schema_is_one_of_the_schema(schema: Any, documents: list[Any]) -> None:
    text = closed(json.dumps(schema))
    assume(text is not None)
    narrow, wide = jsonschema.Draft202012Validator(json.loads(text)), jsonschema.Draft202012Validator(schema)
    for document in documents:
        with contextlib.suppress(RecursionError):  # {"$ref": "#"} alone has no end
            assert not narrow.is_valid(document) or wide.is_valid(document)


def test_a_model_writes_declared_keys_and_masks_say_what_the_schema_says() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    extra = b'{"a":1,"b":2}'
    vocabulary = tf.Vocabulary([bytes([i]) for i in range(256)] + [b"<eos>"], eos=[256], special=[256])
    for additional, masks, written in (
        ("auto", True, False),
        ("schema", True, True),
        ("forbid", False, False),
    ):
        grammar = tf.json_schema(schema, additional=additional)  # type: ignore[arg-type]
        assert grammar.compile(vocabulary).matches(extra) is masks
        assert grammar.for_writing.compile(vocabulary).matches(extra) is written
        assert grammar.for_writing.schema == schema
