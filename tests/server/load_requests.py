"""Requests of all kinds for load tests, and independent judges of their answers."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema
import lark
from jsonschema.validators import validator_for

from tokenform_bench.data import read_maskbench, sample

SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"id": {"type": "integer", "multipleOf": 7}, "tag": {"enum": ["a", "b", "c"]}},
        "required": ["id", "tag"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5},
    {"type": "array", "items": {"enum": [1, 2, 3, 4]}, "uniqueItems": True, "minItems": 2},
    {"anyOf": [{"const": "yes"}, {"type": "integer", "minimum": 3, "maximum": 99}]},
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 8}, "of": {"$ref": "#"}},
        "required": ["name"],
        "additionalProperties": False,
    },
]
PATTERNS = ["[a-f]{3,9}", "(ab|cd)+x", "[0-9]{4}-[0-9]{2}"]
GRAMMARS = [
    'start: NAME ("," NAME)~1..3\nNAME: /[a-z]{1,5}/',
    'start: sum\nsum: item (("+" | "-") item)*\nitem: /[0-9]{1,3}/ | "(" sum ")"',
    'start: "<" TAG ">" text "</" TAG ">"\nTAG: "b" | "i"\ntext: /[a-z ]{0,12}/',
]
MESSAGES = [{"role": "user", "content": "a"}]
HOSTILE: list[Any] = [
    b"{",
    {"guided_regex": "((a*)*)*b{99999}"},
    {"guided_json": {"$ref": "http://a/b"}},
    {"guided_grammar": "start: start start"},
    {"n": 100000},
    {"max_tokens": 1, "guided_regex": "[ab]{99}"},
    {"logit_bias": {"-1": 3}},
    b"[" * 3000,
    {"guided_json": {"allOf": [{"$ref": "#"}]}},
    {"structured_outputs": {"grammar": 'root ::= root "a" | root'}},
    {"guided_jsonn": {}},
]


def hostile(number: int) -> bytes:
    """A body that nobody should send."""
    body = HOSTILE[number % len(HOSTILE)]
    return body if isinstance(body, bytes) else json.dumps({"messages": MESSAGES, **body}).encode()


def maskbench_schemas(count: int) -> list[Any]:
    """Random schemas of real use; `DataError` where they are not there."""
    return [case.schema for case in sample(read_maskbench(), count, seed=25)]


def bodies(schemas: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """What requests may be bound to: each schema as a form, and the objects among them as a tool as well."""
    for place, schema in enumerate(schemas):
        form = {"name": "it", "schema": schema}
        yield {"response_format": {"type": "json_schema", "json_schema": form}}
        if isinstance(schema, dict) and schema.get("type") == "object":
            function = {"name": f"tool_{place}", "parameters": schema}
            tools = [{"type": "function", "function": function}]
            yield {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
    yield from ({"guided_regex": pattern} for pattern in PATTERNS)
    yield from ({"guided_grammar": grammar} for grammar in GRAMMARS)
    yield {"structured_outputs": {"choice": ["new", "paid", "lost"]}}


def request(number: int, bound: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The body of a request that must succeed."""
    picked = random.Random(number)
    temperature = picked.choice([0.0, 0.7, 1.0])
    messages = [{"role": "user", "content": f"Item {number}, please."}]
    return {**picked.choice(bound), "messages": messages, "seed": number, "temperature": temperature}


def judged(body: dict[str, Any], message: dict[str, Any], reason: str) -> str:
    """The answer as text, after an independent judge has found it valid.

    Args:
        reason: why it ended; a call that the budget cut short is not given.
    """
    if "tools" in body and reason == "length":
        return ""
    if "tools" in body:
        (call,) = message["tool_calls"]
        written: str = call["function"]["arguments"]
        valid(body["tools"][0]["function"]["parameters"], written)
        return written
    text: str = message["content"]
    if "guided_regex" in body:
        assert re.fullmatch(body["guided_regex"], text), text
    elif "guided_grammar" in body:
        lark.Lark(body["guided_grammar"]).parse(text)
    elif "structured_outputs" in body:
        assert text in body["structured_outputs"]["choice"]
    else:
        valid(body["response_format"]["json_schema"]["schema"], text)
    return text


def valid(schema: Any, text: str) -> None:
    """`jsonschema` finds the document valid."""
    judge = validator_for(schema, default=jsonschema.Draft202012Validator)
    judge(schema).validate(json.loads(text))
