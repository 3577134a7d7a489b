"""What documents lack although the schema's reader would not think so is said in the report or the error."""

from __future__ import annotations

import datetime
import json

import jsonschema
import pytest

import tokenform as tf
from tokenform.errors import InvalidSchema, SchemaWarning, UnsatisfiableSchema, UnsupportedSchema

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
ZONELESS = {"type": "string", "format": "time", "pattern": r"^\d\d:\d\d:\d\d$"}
NOTHING = [
    (ZONELESS, ["format", "pattern"], True),
    ({"type": "null", "enum": ["S"]}, ["type", "enum"], False),
    ({"type": "integer", "minimum": 5, "maximum": 3}, ["minimum", "maximum"], False),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, ["allOf"], False),
    ({"type": "string", "format": "date", "minLength": 11}, ["format", "minLength"], True),
]


def accepts(grammar: tf.Grammar, value: object) -> bool:
    return grammar.compile(BYTES).matches(json.dumps(value).encode())


@pytest.mark.parametrize(("part", "keywords", "by_format"), NOTHING)
def test_a_property_that_nothing_satisfies_is_reported(part, keywords, by_format):
    schema = {"type": "object", "properties": {"when": part, "n": {"type": "integer"}}}
    grammar = tf.json_schema(schema)
    (line,) = grammar.report
    assert line.startswith(
        "unsatisfiable: nothing satisfies the schema at /properties/when, so that property is never"
    )
    assert all(f'"{keyword}"' in line for keyword in keywords)
    assert ('formats="annotate"' in line) == by_format
    if by_format:
        assert tf.json_schema(schema, formats="annotate").report == []
    assert accepts(grammar, {"n": 1})


@pytest.mark.parametrize(("part", "keywords", "by_format"), NOTHING)
def test_where_it_is_required_the_error_says_so(part, keywords, by_format):
    schema = {"type": "object", "properties": {"when": part}, "required": ["when"]}
    with pytest.raises(UnsatisfiableSchema) as caught:
        tf.json_schema(schema)
    error = caught.value
    assert (error.pointer, error.keyword) == ("/properties/when", "format" if by_format else keywords[-1])
    assert all(f'"{keyword}"' in str(error) for keyword in keywords)
    assert ('formats="annotate"' in str(error)) == by_format
    if by_format:
        tf.json_schema(schema, formats="annotate")


def test_grammars_made_of_others_say_it_too():
    grammar = tf.combinators.literal("x") + tf.json_schema(
        {"properties": {"a": {"type": "null", "enum": ["S"]}}}
    )
    assert ["/properties/a" in line for line in grammar.report] == [True]


def test_nullable_says_nothing_and_is_told():
    with pytest.warns(SchemaWarning, match="null"):
        grammar = tf.json_schema({"properties": {"a": {"type": "string", "nullable": True}}})
    assert "/properties/a/nullable" in grammar.report[0]
    assert tf.json_schema({"properties": {"a": {"nullable": False}}}).report == []


def test_draft_3():
    schema = {
        "$schema": "http://json-schema.org/draft-03/schema#",
        "type": "object",
        "properties": {"n": {"type": "integer", "divisibleBy": 5, "required": True}, "m": {"type": "null"}},
    }
    grammar = tf.json_schema(schema)
    judge = jsonschema.Draft3Validator(schema)
    for value in [{"n": 10}, {"n": 7}, {}, {"m": None}, {"n": 5, "m": None}, {"n": 5, "m": 1}]:
        assert accepts(grammar, value) == judge.is_valid(value), value
    with pytest.raises(UnsupportedSchema, match='"not"'):
        tf.json_schema(schema | {"disallow": "string"})


def test_a_flag_where_names_belong():
    with pytest.raises(InvalidSchema, match='"required" of its object') as caught:
        tf.json_schema({"properties": {"a": {"required": True}}})
    assert caught.value.pointer == "/properties/a/required"


def test_a_class_is_no_schema():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        a: int

    for wrong in [Model, int, datetime.date, pydantic.TypeAdapter(Model), list[int]]:
        with pytest.raises(InvalidSchema, match="from_type"):
            tf.json_schema(wrong)


@pytest.mark.parametrize(
    ("form", "text", "most"),
    [
        ("time", "12:00:00.{}Z", 9),
        ("date-time", "2024-02-03T23:59:60.{}Z", 9),
        ("duration", "P1DT{}S", 19),
        ("duration", "P{}W", 19),
    ],
)
def test_digits_of_moments_end(form, text, most):
    schema = {"type": "string", "format": form}
    few, any_number = tf.json_schema(schema), tf.json_schema(schema, numbers="any")
    for digits in (1, 2, most, most + 1, 500):
        value = text.format("7" * digits)
        assert accepts(few, value) == (digits <= most)
        assert accepts(any_number, value)
