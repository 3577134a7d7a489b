"""A tool's schema costs itself: shapes of zod, pydantic, MCP servers and BFCL, in every format."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

import tokenform as tf
from tokenform.errors import ToolError, UnsatisfiableSchema
from tokenform.frontends.tools import FORMATS, find_format
from tokenform.frontends.tools.judge import byte_vocabulary
from tokenform.frontends.tools.shown import written_call

TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}


def of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


CAT = of({"kind": {"const": "cat"}, "lives": WHOLE}, "kind", "lives")
DOG = of({"kind": {"const": "dog"}, "name": TEXT}, "kind", "name")
AB = {"a": TEXT, "b": WHOLE}
# Each with a value that satisfies it.
SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "optional with an example": (
        of({"q": {"anyOf": [TEXT, {"type": "null"}], "example": "x", "x-order": 1, "readOnly": True}}),
        {"q": None},
    ),
    "nullable beside anyOf": (of({"q": {"anyOf": [TEXT, WHOLE], "nullable": True}}, "q"), {"q": 3}),
    "union by oneOf": (of({"pet": {"oneOf": [CAT, DOG]}}, "pet"), {"pet": {"kind": "cat", "lives": 9}}),
    "union by discriminator": (
        of(
            {
                "pet": {
                    "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat"}},
                    "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
                }
            },
            "pet",
            **{"$defs": {"Cat": CAT, "Dog": DOG}},
        ),
        {"pet": {"kind": "dog", "name": "Rex"}},
    ),
    "union by anyOf, zod": (
        of(
            {
                "pet": {
                    "anyOf": [{**CAT, "additionalProperties": False}, {**DOG, "additionalProperties": False}]
                }
            }
        ),
        {"pet": {"kind": "dog", "name": "Rex"}},
    ),
    "allOf around a reference": (
        of(
            {"c": {"allOf": [{"$ref": "#/$defs/C"}], "default": "r"}},
            **{"$defs": {"C": {"enum": ["r", "g"]}}},
        ),
        {"c": "g"},
    ),
    "tuple of zod": (of({"at": {"type": "array", "items": [WHOLE, TEXT]}}, "at"), {"at": [1, "x"]}),
    "tuple with bounds": (
        of({"at": {"type": "array", "items": [WHOLE, WHOLE], "minItems": 2, "maxItems": 2}}, "at"),
        {"at": [1, 2]},
    ),
    "tuple of pydantic": (
        of({"at": {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2}}, "at"),
        {"at": [1, "x"]},
    ),
    "tuple with a rest": (
        of({"at": {"type": "array", "prefixItems": [TEXT], "items": WHOLE}}, "at"),
        {"at": ["x", 1, 2]},
    ),
    "one of two": (of(AB, anyOf=[{"required": ["a"]}, {"required": ["b"]}]), {"b": 2}),
    "exactly one of two": (of(AB, oneOf=[{"required": ["a"]}, {"required": ["b"]}]), {"a": "x"}),
    "not both": (of(AB, **{"not": {"required": ["a", "b"]}}), {"a": "x"}),
    "at least one": (of(AB, minProperties=1), {"a": "x"}),
    "at most one": (of(AB, maxProperties=1), {"b": 1}),
    "dependentRequired": (of(AB, dependentRequired={"a": ["b"]}), {"a": "x", "b": 1}),
    "dependencies": (of(AB, dependencies={"a": ["b"]}), {"a": "x", "b": 1}),
    "dependentSchemas": (
        of(AB, dependentSchemas={"a": {"properties": {"b": {"minimum": 5}}, "required": ["b"]}}),
        {"a": "x", "b": 7},
    ),
    "if and then": (
        of(
            {"mode": {"enum": ["fast", "slow"]}, "n": WHOLE},
            "mode",
            **{"if": {"properties": {"mode": {"const": "slow"}}}, "then": {"required": ["n"]}},
        ),
        {"mode": "slow", "n": 1},
    ),
    "union of whole arguments": (
        {"type": "object", "oneOf": [CAT, DOG]},
        {"kind": "cat", "lives": 9},
    ),
    "anyOf of whole arguments": (
        {
            "type": "object",
            "properties": {"id": WHOLE},
            "anyOf": [of({"a": TEXT}, "a"), of({"b": WHOLE}, "b")],
        },
        {"id": 1, "b": 2},
    ),
    "undeclared and required": (of({"a": TEXT}, "a", "zz"), {"a": "x", "zz": "y"}),
    "nothing declared": ({"type": "object", "required": ["zz"]}, {"zz": "y"}),
    "propertyNames": (of(AB, propertyNames={"pattern": "^[a-z]$"}), {"a": "x"}),
    "unique items": (
        of({"tags": {"type": "array", "items": TEXT, "uniqueItems": True}}),
        {"tags": ["x", "y"]},
    ),
    "contains": (of({"n": {"type": "array", "items": WHOLE, "contains": {"const": 1}}}), {"n": [1]}),
    "not a value": (of({"n": {"type": "integer", "not": {"const": 0}}}, "n"), {"n": 4}),
    "if in a value": (of({"n": {"type": "integer", "if": {"minimum": 5}, "then": {"maximum": 9}}}), {"n": 7}),
    "one of inside": (
        of({"by": of(AB, oneOf=[{"required": ["a"]}, {"required": ["b"]}])}, "by"),
        {"by": {"a": "x"}},
    ),
    "record": (
        of({"m": {"type": "object", "additionalProperties": WHOLE, "minProperties": 1}}),
        {"m": {"k": 1}},
    ),
    "unevaluatedProperties": (
        {"allOf": [of({"a": TEXT}), of({"b": WHOLE})], "unevaluatedProperties": False, "type": "object"},
        {"a": "x", "b": 1},
    ),
    "intersection": (
        {"type": "object", "allOf": [of({"a": TEXT}, "a"), of({"b": WHOLE}, "b")]},
        {"a": "x", "b": 1},
    ),
    "string or number of a bound": (
        of({"v": {"type": ["string", "integer"], "minLength": 1, "minimum": 0}}, "v"),
        {"v": 5},
    ),
    "oneOf that may overlap": (
        of({"v": {"oneOf": [{"type": "number"}, {"type": "integer", "minimum": 5}]}}),
        {"v": 1},
    ),
    "assertion beside anyOf": (of({"v": {"minimum": 3, "anyOf": [WHOLE, {"type": "null"}]}}, "v"), {"v": 4}),
    "recursive": (
        of(
            {"node": {"$ref": "#/$defs/N"}},
            **{
                "$defs": {
                    "N": of({"v": WHOLE, "next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}}, "v")
                }
            },
        ),
        {"node": {"v": 1, "next": {"v": 2}}},
    ),
    "draft-07, definitions": (
        of(
            {"c": {"$ref": "#/definitions/C"}},
            "c",
            definitions={"C": TEXT},
            **{"$schema": "http://json-schema.org/draft-07/schema#"},
        ),
        {"c": "x"},
    ),
    "BFCL": (
        of(
            {
                "x": {"type": "string", "enum": ["a", "b"], "optional": True},
                "y": {"type": "integer", "default": 1},
            },
            "x",
        ),
        {"x": "a"},
    ),
}


def judge(schema: dict[str, Any]) -> Any:
    lists = '"items": [' in tf.json_schema(schema).source.replace('"items":[', '"items": [')
    kind = jsonschema.Draft201909Validator if lists else jsonschema.Draft202012Validator
    return jsonschema.validators.validator_for(schema, default=kind)(schema)


CHOSEN: dict[str, Any] = {"tool_choice": "required", "parallel": False, "reasoning": "none"}
# minimax_m3 can't write arguments that are not named, nor members of no name beside others.
UNWRITABLE = {("minimax_m3", "record")}


def walked(automaton: Any, draws: random.Random, steps: int) -> str:
    """A random text: so many free steps, and from there the nearest end."""
    state, text = automaton.start, bytearray()
    for _ in range(4000):
        allowed = automaton.allowed_tokens(state).tolist()
        if steps <= 0:
            if automaton.is_accepting(state):
                break
            row = automaton.mask_within(state, automaton.distance(state))
            allowed = [token for token in allowed if row[token >> 5] >> (token & 31) & 1]
        forced = automaton.forced_bytes(state)
        token = forced[0] if forced else draws.choice(allowed)
        if token == 256:
            break
        steps -= not forced
        text.append(token)
        state = automaton.advance(state, token)
    return text.decode()


def tried(name: str, title: str) -> None:
    """The shape is taken, its value can be written, a text drawn reads back to valid arguments, or the report
    says what is left to the reader."""
    schema, value = SHAPES[title]
    judge(schema).validate(value)
    grammar = tf.tools([{"name": "f", "parameters": schema}], format=name, **CHOSEN)
    automaton = grammar.core.compile(byte_vocabulary())
    left = [line for line in grammar.report if "is checked when a call is read" in line]
    if (name, title) not in UNWRITABLE:
        text = written_call("f", value, find_format(name))
        assert automaton.matches(text.encode()), text
        (call,) = grammar.parse(text)
        assert call.arguments == value, text
    text = walked(automaton, random.Random(title + name), 12)
    try:
        (call,) = grammar.parse(text)
    except ToolError as error:
        assert left, (text, str(error))
    else:
        judge(schema).validate(call.arguments)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_shape_is_refused(name: str) -> None:
    for title in sorted(SHAPES)[sorted(FORMATS).index(name) % 8 :: 8]:
        tried(name, title)


@pytest.mark.slow
@pytest.mark.parametrize("title", sorted(SHAPES))
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_shape_in_every_format(name: str, title: str) -> None:
    tried(name, title)


BAD: dict[str, Any] = {"name": "bad", "parameters": of({"q": {"type": "string", "pattern": "(a"}}, "q")}
NO_SCHEMA: dict[str, Any] = {
    "name": "bad",
    "parameters": {"type": "object", "properties": {"q": {"type": 3}}},
}
GOOD: dict[str, Any] = {"name": "good", "parameters": of({"n": WHOLE}, "n")}


@pytest.mark.parametrize("bad", [BAD, NO_SCHEMA])
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "gemma4", "llama3_pythonic", "command_a"])
def test_one_bad_tool_costs_itself(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(tf.errors.TokenformError, match="'bad'"):
        tf.tools([bad, GOOD], format=name)
    for chosen in ({"on_bad_tool": "any"}, {"json_options": {"unsupported": "report"}}):
        grammar = tf.tools([bad, GOOD], format=name, **CHOSEN, **chosen)
        assert any("'bad' takes any JSON object" in line for line in grammar.report)
        assert grammar.tools[0]["function"]["parameters"] == bad["parameters"]
        for tool, arguments in (("bad", {"q": "x"}), ("good", {"n": 1})):
            text = written_call(tool, arguments, find_format(name))
            assert grammar.core.compile(byte_vocabulary()).matches(text.encode())
            assert grammar.parse(text)[0].arguments == arguments
        refused = written_call("good", {"n": "x"}, find_format(name))
        assert not grammar.core.compile(byte_vocabulary()).matches(refused.encode())
    grammar = tf.tools([bad, GOOD], format=name, **CHOSEN, on_bad_tool="omit")
    assert any("'bad' is left out" in line for line in grammar.report)
    assert [tool["function"]["name"] for tool in grammar.tools] == ["good"]


def test_the_choice_is_checked() -> None:
    with pytest.raises(tf.errors.OptionError, match="on_bad_tool"):
        tf.tools([GOOD], format="hermes", on_bad_tool="drop")  # type: ignore[arg-type]
    with pytest.raises(tf.errors.OptionError, match="unsupported"):
        tf.tools([GOOD], format="hermes", json_options={"unsupported": "ignore"})


@pytest.mark.parametrize("name", ["qwen3_coder", "glm45", "minimax", "deepseek_v4", "kimi_k3"])
@pytest.mark.parametrize("value", [{"kind": "a", "x": "5"}, {"kind": "b", "x": 5}])
def test_what_was_read_tells_the_types_of_the_rest(name: str, value: dict[str, Any]) -> None:
    branches = [
        of({"kind": {"const": kind}, "x": said}, "kind", "x") for kind, said in (("a", TEXT), ("b", WHOLE))
    ]
    tools = [{"name": "f", "parameters": {"type": "object", "oneOf": branches}}]
    grammar = tf.tools(tools, format=name, **CHOSEN)
    text = written_call("f", value, find_format(name))
    assert grammar.core.compile(byte_vocabulary()).matches(text.encode()), text
    assert grammar.parse(text)[0].arguments == value


NOTHING: list[dict[str, Any]] = [
    {"not": {}},
    {"enum": []},
    {"type": "integer", "enum": ["a"]},
    {"allOf": [TEXT, WHOLE]},
    of({"inside": {"enum": []}}, "inside"),
    {"type": "array", "items": {"enum": []}, "minItems": 1},
]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_nothing_satisfies_is_left_out_and_where_it_is_required_named(name: str, order: str) -> None:
    form = FORMATS[name]
    options: dict[str, Any] = {"format": form, "tool_choice": "required", "json_options": {"order": order}}
    for schema in NOTHING:
        tool = {"name": "f", "parameters": of({"no": schema, "n": WHOLE})}
        grammar = tf.tools([tool], **options)
        assert schema == {"not": {}} or any("never written" in line for line in grammar.report), schema
        auto = grammar.compile(byte_vocabulary())
        for value in ({"n": 3}, {}):
            assert auto.matches(written_call("f", value, form).encode()), (schema, value)
        for value in ({"no": "a"}, {"no": 1}, {"no": {}}, {"no": [1]}):
            assert not auto.matches(written_call("f", value, form).encode()), (schema, value)
        tool["parameters"]["required"] = ["no"]
        good = {"name": "g", "parameters": of({"n": WHOLE})}
        with pytest.raises(UnsatisfiableSchema, match=r"tool 'f': .*satisfies") as told:
            tf.tools([good, tool], **options)
        assert told.value.pointer.startswith("/properties/no")
        (line, *_) = tf.tools([good, tool], on_bad_tool="omit", **options).report
        assert line.startswith("tool 'f' is left out")
