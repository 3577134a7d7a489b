"""A schema that comes as text is the same as one that comes as a mapping; what neither says is told."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

import tokenform as tf
from tokenform import errors
from tokenform.builtin import format_prompt
from tokenform.cli import app
from tokenform.decoding.speculative.drafters import Hints

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "born": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "born", "city"],
}
BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])


def accepts(grammar: tf.Grammar, document: str) -> bool:
    return grammar.compile(BYTES).check(document.encode()) is None


def test_the_prompt_the_hints_and_the_value_see_the_same_schema() -> None:
    text, mapping = tf.json_schema(json.dumps(PERSON)), tf.json_schema(PERSON)
    assert text.schema == mapping.schema == PERSON
    assert text.schema is text.schema
    assert format_prompt("Who?", text.schema) == format_prompt("Who?", mapping.schema)
    assert '"city": string' in format_prompt("Who?", text.schema)
    assert Hints(text).names == Hints(mapping).names == (b'"name":', b'"born":', b'"city":')


@pytest.mark.parametrize("who", ["Ada Lovelace, born 1815, lives in London.", "Max, 1990, Rome."])
def test_a_model_writes_the_same_for_text_and_mapping(who: str) -> None:
    results = [tf.generate(who, schema=schema) for schema in (PERSON, json.dumps(PERSON))]
    assert results[0].text == results[1].text
    assert results[0].logprob == pytest.approx(results[1].logprob, rel=1e-4)


def test_a_text_that_nests_deeper_than_python_reads_makes_a_grammar_and_a_typed_error_for_its_value() -> None:
    deep = '{"items": ' * 1200 + "{}" + "}" * 1200
    grammar = tf.json_schema(deep)
    with pytest.raises(errors.LimitExceeded, match="nested too deeply"):
        _ = grammar.schema


def test_a_mapping_that_nests_deeper_than_python_writes_says_the_way_out() -> None:
    deep: dict[str, Any] = {}
    for _ in range(1200):
        deep = {"items": deep}
    with pytest.raises(errors.LimitExceeded, match="give its text"):
        tf.json_schema(deep)


@pytest.mark.parametrize(
    ("schema", "pointer", "key", "meant"),
    [
        ({"propertys": {"a": {}}}, "/propertys", "propertys", "properties"),
        ({"properties": {"a": {"requird": ["b"]}}}, "/properties/a/requird", "requird", "required"),
        ({"items": {"anyOf": [{"min_length": 3}]}}, "/items/anyOf/0/min_length", "min_length", "minLength"),
    ],
)
def test_a_slip_is_told_with_its_place_and_refused_when_strict(
    schema: dict[str, Any], pointer: str, key: str, meant: str
) -> None:
    for given in (schema, json.dumps(schema)):
        (line,) = tf.json_schema(given).report
        assert key in line and f" {pointer} " in line and f'did you mean "{meant}"?' in line
        with pytest.raises(errors.InvalidSchema, match=meant) as caught:
            tf.json_schema(given, strict=True)
        assert (caught.value.pointer, caught.value.keyword) == (pointer, key)
    composed = tf.lark(f"start: %json {json.dumps(schema)}")
    assert composed.report == tf.json_schema(schema).report
    with pytest.raises(errors.InvalidSchema):
        tf.lark(f"start: %json {json.dumps(schema)}", json_options={"strict": True})


def test_keys_of_other_engines_are_told() -> None:
    schema = {"x-guidance": {"whitespace_flexible": False}, "type": "integer"}
    assert "x-guidance" in tf.json_schema(schema).report[0]
    with pytest.raises(errors.InvalidSchema, match="x-guidance"):
        tf.json_schema(schema, strict=True)


def test_a_slip_warns_once_at_the_callers_line() -> None:
    slipped = {"type": "object", "propertys": {"a": {}}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"minLenght": 3}}}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            tf.json_schema(slipped)
        for name in ("hermes", "qwen3_coder"):
            grammar = tf.tools([tool], format=name)
            assert [line.partition(": ")[0] for line in grammar.report] == ["tool 'f'"]
    assert [one.category for one in caught] == [errors.SchemaWarning] * 2
    assert all(one.filename == __file__ for one in caught)
    assert "/propertys" in str(caught[0].message) and "strict=True" in str(caught[0].message)
    assert str(caught[1].message).startswith("tool 'f': \"minLenght\" at /properties/a/minLenght")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.json_schema({"note": "n", "format": "of-mine", "properties": {"propertys": {}}})
        with pytest.raises(errors.SchemaWarning, match="requird"):
            tf.tool_formats.structural_tag(
                {"format": {"type": "json_schema", "json_schema": {"requird": ["a"]}}}
            )


def test_annotations_and_what_somebody_put_out_of_force_are_not_told() -> None:
    quiet = {"title": "t", "note": "n", "x-order": 1, "_format": "date", "example": 3, "unit": "cm"}
    named = {"properties": {"propertys": {}, "requird": {}}, "default": {"tpye": 1}, "enum": [{"tpye": 1}]}
    for schema in (quiet, named):
        assert tf.json_schema(schema, strict=True).report == []


@pytest.mark.parametrize("command", ["generate", "check"])
def test_the_command_tells_slips_on_standard_error(command: str, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"enum": [1], "requird": ["a"]}))
    result = CliRunner().invoke(app, [command, "--schema", str(file)], input="1")
    assert (result.exit_code, result.stdout) == (0, "accepted\n" if command == "check" else "1\n")
    assert "note: unknown:" in result.stderr and '"required"' in result.stderr
    refused = CliRunner().invoke(app, [command, "--schema", str(file), "--strict"], input="1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "/requird" in refused.stderr and "SchemaWarning" not in result.stderr


LISTED = [
    {"items": [{"type": "integer"}, {"type": "string"}]},
    {"items": [{"type": "integer"}], "additionalItems": False},
    {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}, "minItems": 2},
    {"items": [{"type": "integer"}], "unevaluatedItems": False},
    {"properties": {"a": {"items": [{"const": 1}], "additionalItems": False}}},
    {"allOf": [{"items": [{"type": "integer"}]}], "unevaluatedItems": {"type": "boolean"}},
]
DOCUMENTS = [
    "[]",
    "[1]",
    '["a"]',
    '[1, "a"]',
    "[1, 2]",
    '[1, "a", 3]',
    "[1, true]",
    '{"a": [1]}',
    '{"a": [1, 1]}',
]


@pytest.mark.parametrize("schema", LISTED, ids=json.dumps)
def test_a_list_as_items_without_a_draft_is_read_as_the_drafts_that_have_it(schema: dict[str, Any]) -> None:
    grammar = tf.json_schema(schema, order="any", whitespace="any", numbers="any", strings="any")
    judge = jsonschema.Draft201909Validator(schema)
    for document in DOCUMENTS:
        assert accepts(grammar, document) == judge.is_valid(json.loads(document)), document


def test_a_draft_that_is_stated_counts() -> None:
    newest = "https://json-schema.org/draft/2020-12/schema"
    with pytest.raises(errors.InvalidSchema, match="prefixItems"):
        tf.json_schema({"$schema": newest, "items": [{}]})
    with pytest.raises(errors.InvalidSchema, match="prefixItems"):
        tf.json_schema({"prefixItems": [{}], "items": [{}]})


def test_numbers_beyond_a_float_come_back_as_what_they_say() -> None:
    grammar = tf.json_schema(True, numbers="any")
    digits = "9" * 5000
    assert grammar.parse(digits) == int("9" * 2500) * 10**2500 + int("9" * 2500)
    assert grammar.parse(f"-{digits}") == -grammar.parse(digits)
    assert grammar.parse("1.50e400") == 15 * 10**399
    for text in ("1e999999999", "1" * 200_000, "[" * 5000 + "]" * 5000):
        with pytest.raises(errors.LimitExceeded):
            grammar.parse(text)
    with pytest.raises(errors.InvalidSchema):
        tf.json_schema({"const": 10**5000})
    with pytest.raises(errors.LimitExceeded):
        tf.json_schema('{"const": 1' + "0" * 5000 + "}")


@pytest.mark.parametrize("as_text", [False, True])
def test_a_schema_of_too_many_values_is_refused_before_it_is_read(as_text: bool) -> None:
    values: dict[str, Any] = {"enum": [f"{i:0100}" for i in range(70_000)]}  # seven million bytes
    usual = tf.engine.Limits()
    tf.engine.set_limits(tf.engine.Limits(work=10**6))
    try:
        with pytest.raises(errors.LimitExceeded, match="more than 62500 values"):
            tf.json_schema(json.dumps(values) if as_text else values)
        # commas inside of strings are no values
        tf.json_schema({"$comment": ', \\",' * (2 << 20), "type": "null"})
    finally:
        tf.engine.set_limits(usual)
