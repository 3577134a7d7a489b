"""Tools from JSON, models and functions; and what is wrong with a definition."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, Literal

import jsonschema
import pydantic
import pytest

from tokenform.errors import InvalidSchema, InvalidType, ToolError
from tokenform.frontends.tools import parse_tool_calls, read_tools, tool_shape
from tokenform.frontends.tools.judge import DRAFTS, is_schema

WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class Place(pydantic.BaseModel):
    """A place on the map."""

    city: str
    country: str | None = None


class Search(pydantic.BaseModel):
    """Search the archive."""

    query: str = pydantic.Field(description="words")
    near: Place | None = None
    limit: Annotated[int, pydantic.Field(ge=1, le=50)] = 10


def add(a: int, b: int = 2, mode: Literal["plain", "mod"] = "plain") -> int:
    """Add two numbers.

    More about it.

    Args:
        a: the first
            of them
        b (int): the second

    Returns:
        the sum
    """
    return a + b


def place_name(place: Place, loud: bool = False) -> str:
    """Name a place.

    :param place: which
    :param bool loud: in capitals
    :returns: a text
    """
    return place.city.upper() if loud else place.city


@pytest.mark.parametrize(
    "definition",
    [
        WEATHER,
        {"type": "function", "function": WEATHER},
        {"type": "function", **WEATHER, "strict": True},
        {"name": "get_weather", "input_schema": WEATHER["parameters"]},
        {"name": "get_weather", "inputSchema": WEATHER["parameters"]},
    ],
)
def test_json_definitions(definition: dict[str, Any]) -> None:
    (tool,) = read_tools([definition])
    assert (tool.name, dict(tool.parameters)) == ("get_weather", WEATHER["parameters"])
    assert tool.to_openai()["function"]["name"] == "get_weather"
    assert read_tools({"tools": [definition]})[0].name == "get_weather"


def test_a_tool_without_parameters_takes_none() -> None:
    (tool,) = read_tools([{"name": "now"}])
    tool.validate({})
    assert tool.parameters == {"type": "object", "properties": {}}


def test_a_model_is_a_tool_and_calls_give_instances() -> None:
    text = (
        '<tool_call>\n{"name": "Search", "arguments": {"query": "x", "near": {"city": "Ulm"}}}\n</tool_call>'
    )
    (call,) = parse_tool_calls(text, [Search], format="hermes")
    assert call.value == Search(query="x", near=Place(city="Ulm"))
    assert call.tool is not None and call.tool.description == "Search the archive."
    with pytest.raises(ToolError, match="no function"):
        call()


def test_a_dataclass_is_a_tool() -> None:
    @dataclasses.dataclass
    class Point:
        x: int
        y: int = 0

    (tool,) = read_tools([Point])
    assert tool.description == "" and tool.instance({"x": 1}) == Point(1, 0)


def test_a_function_is_a_tool_and_calls_can_be_made() -> None:
    (call,) = parse_tool_calls("[add(a=1, mode='mod')]", [add, place_name], format="llama3_pythonic")
    assert call.arguments == {"a": 1, "mode": "mod"} and call() == 3
    (call,) = parse_tool_calls(
        '[place_name(place={"city": "Ulm"}, loud=True)]', [add, place_name], format="llama3_pythonic"
    )
    assert call() == "ULM"


def test_docstrings_describe_functions_and_parameters() -> None:
    first, second = read_tools([add, place_name])
    assert first.description == "Add two numbers.\n\nMore about it."
    properties = first.parameters["properties"]
    assert properties["a"]["description"] == "the first of them"
    assert properties["b"]["description"] == "the second" and properties["b"]["default"] == 2
    assert first.parameters["required"] == ["a"]
    assert second.description == "Name a place."
    assert second.parameters["properties"]["loud"]["description"] == "in capitals"


def test_awkward_parameter_names() -> None:
    def odd(schema: str, _x: int, model_config: int = 1, **rest: int) -> str:
        return f"{schema}{_x}{model_config}"

    (tool,) = read_tools([odd])
    assert tool.call({"schema": "s", "_x": 2}) == "s21"


def no_annotations(a, b=1):  # type: ignore[no-untyped-def]
    return a


def positional(a: int, /) -> int:
    return a


@pytest.mark.parametrize(
    ("definitions", "error", "message"),
    [
        ([{"parameters": {}}], ToolError, "tool 0 has no name"),
        ([WEATHER, {"name": ""}], ToolError, "tool 1 has no name"),
        ([WEATHER, WEATHER], ToolError, "tools 0 and 1 have the same name 'get_weather'"),
        ([{"type": "function", "function": 3}], ToolError, "must be an object"),
        ([42], ToolError, "tool 0 is int"),
        ("get_weather", ToolError, "list of definitions"),
        ([lambda x: x], ToolError, "without a name"),
        ([positional], InvalidType, "positional-only"),
        ([{"name": "f", "parameters": "none"}], InvalidSchema, "'f' must be a JSON Schema object"),
        ([{"name": "f", "parameters": {"type": "string"}}], InvalidSchema, '"type": "object"'),
        (
            [{"name": "f", "parameters": {"properties": {"a": {"type": "int"}}}}],
            InvalidSchema,
            "no JSON Schema",
        ),
        ([{"name": "f", "parameters": {"minProperties": float("nan")}}], InvalidSchema, "not JSON"),
    ],
)
def test_wrong_definitions(definitions: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_tools(definitions)
    with pytest.raises(error, match=message):
        tool_shape(definitions, format="hermes")


def test_a_function_without_annotations_takes_anything() -> None:
    (tool,) = read_tools([no_annotations])
    tool.validate({"a": [1, {"x": None}]})
    assert tool.call({"a": 7}) == 7


FACETS: list[dict[str, Any]] = [
    {},
    {"type": ["string", "null"], "minLength": 2.0, "pattern": "(", "format": "nothing known"},
    {"type": ["string", "string"]},
    {"minLength": -1},
    {"minLength": 1.5},
    {"multipleOf": 0},
    {"multipleOf": 1e-300},
    {"required": ["a", "a"]},
    {"enum": []},
    {"items": [{"type": "string"}]},
    {"prefixItems": []},
    {"dependencies": {"a": ["b"], "c": {"type": 7}}},
    {"$defs": {"a": {"exclusiveMinimum": True, "minimum": 1}}, "definitions": {"b": True}},
    {"$ref": "#/$defs/a b", "$id": "a b", "$anchor": "1"},
    {"$id": "x#fragment"},
    {"title": 7},
    {"description": "ü\u2028\0\U0001f600"},
    {"unknown": {"type": 7}},
    {"not": {"if": {"then": {"type": "objekt"}}}},
    {"$schema": 7},
    {"$vocabulary": {"a": True}},
    {"const": [1, {"a": None}], "default": {"type": 7}},
]
SCHEMA = "json-schema.org/draft/2020-12/schema"
NAMED = [*DRAFTS, *(f"{uri}#" for uri in DRAFTS), "urn:their-own", "", f"https://example.org/{DRAFTS[2]}"]


@pytest.mark.parametrize("draft", NAMED)
def test_a_schema_is_one_to_the_engine_as_to_jsonschema(draft: str) -> None:
    for facet in FACETS:
        for schema in (facet, {"type": "object", "properties": {"a": facet, "b": {"allOf": [facet]}}}):
            kind = jsonschema.validators.validator_for(
                {"$schema": draft}, default=jsonschema.Draft202012Validator
            )
            judge = kind(kind.META_SCHEMA, format_checker=jsonschema.FormatChecker(formats=()))
            if draft.startswith("https://example"):  # near to an official name: left to jsonschema
                assert not is_schema(json.dumps(schema), draft)
            else:
                assert is_schema(json.dumps(schema), draft) is judge.is_valid(schema), schema


def test_what_is_a_schema_to_the_engine_is_looked_at_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    def tools(draft: Any) -> list[dict[str, Any]]:
        schemas = [{"type": "object", "properties": {f"p{i}": {}}, **draft} for i in range(300)]
        return [{"name": f"t{i}", "parameters": schema} for i, schema in enumerate(schemas)]

    asked: list[str] = []
    find = jsonschema.validators.validator_for
    monkeypatch.setattr(
        jsonschema.validators, "validator_for", lambda *a, **k: asked.append("") or find(*a, **k)
    )
    for draft in ({}, *({"$schema": uri} for uri in NAMED[:-1])):
        assert len(read_tools(tools(draft))) == 300
    assert not asked
    for unclear in (
        NAMED[-1],
        f"HTTPS://{SCHEMA}",
        f"http://{SCHEMA}",
        "http://json-schema.org/draft-03/schema",
    ):
        assert len(read_tools(tools({"$schema": unclear})[:3])) == 3
        assert asked
        asked.clear()
    for wrong in (7, None, ["a"], "http://["):
        with pytest.raises(InvalidSchema, match="no JSON Schema"):
            read_tools(tools({"$schema": wrong, "type": 7}))


def test_a_definition_that_its_caller_changes_is_his_own() -> None:
    (tool,) = read_tools([{"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}])
    shown = tool.to_openai()
    shown["function"]["name"] = "other"
    shown["function"]["parameters"]["properties"]["a"] = False
    assert tool.to_openai()["function"]["name"] == "add"
    assert tool.parameters["properties"] == {"a": {}}
