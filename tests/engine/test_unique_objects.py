"""Unique arrays of objects: masks beside the oracle's along random texts, and arrays that are long."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf

WORDS = [b'{"', b'":', b"},", b"}]", b'{"a":', b"1}", b"2},{", b'"a":1}']
VOCABULARY = tf.Vocabulary([*(bytes([b]) for b in range(256)), *WORDS, b"</s>"], eos=[264], special=[264])
BOOLEAN = {"type": "boolean"}
ONE_TWO = {"enum": [1, 2]}
OBJECTS: list[dict[str, Any]] = [
    {"properties": {"a": BOOLEAN, "b": BOOLEAN}, "required": ["a", "b"], "additionalProperties": False},
    {"properties": {"a": ONE_TWO, "b": BOOLEAN}, "required": ["a"], "additionalProperties": False},
    {"properties": {"a": ONE_TWO}, "additionalProperties": False},
    {"properties": {"a": {"const": 1}}, "required": ["a"]},
    {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"properties": {"a": {"const": 1}}, "additionalProperties": BOOLEAN},
    {"maxProperties": 1, "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": ONE_TWO},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": ONE_TWO, "b": ONE_TWO}}
    | {"additionalProperties": False},
    {"enum": [{"a": 1}, {"a": 2}, {"a": 1, "b": 1}, {}, {"b": {"a": 1}}, {"b": {"a": 2}}]},
    {"properties": {"a": {"type": "array", "items": BOOLEAN, "maxItems": 1}}, "required": ["a"]}
    | {"additionalProperties": False},
    {"properties": {"a": {"const": 1}, "b": {"const": 1}}, "additionalProperties": False}
    | {"minProperties": 1, "maxProperties": 2},
    {"patternProperties": {"^[ab]$": ONE_TWO}, "additionalProperties": False, "minProperties": 1},
]
LIKELY = {*b'"{},:12ab', *range(256, 264)}


@pytest.mark.parametrize("items", OBJECTS, ids=json.dumps)
@pytest.mark.parametrize("least", [0, 3])
def test_masks_are_the_oracles(items: dict[str, Any], least: int) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "object", **items}, "minItems": least}
    automaton = tf.json_schema(schema, order="any" if least else "declared", whitespace="compact").compile(
        VOCABULARY
    )
    judge = jsonschema.Draft202012Validator(schema)
    for seed in range(4):
        rng, state, text = random.Random(seed), automaton.start, b""
        for step in range(60):
            allowed = automaton.allowed_tokens(state).tolist()
            assert allowed, text
            if step % 3 == seed % 3:
                assert allowed == sorted(automaton.oracle(state)), text
            if automaton.is_accepting(state):
                assert judge.is_valid(json.loads(text)), text
            tokens = [t for t in allowed if t in LIKELY] or [t for t in allowed if t != 264]
            if not tokens:
                break
            token = rng.choice(tokens)
            state = automaton.advance(state, token)
            text += VOCABULARY.tokens[token]


@pytest.mark.parametrize("closed", [True, False])
def test_an_array_of_many_objects(closed: bool) -> None:
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id", "name"],
        "additionalProperties": not closed,
    }
    automaton = tf.json_schema({"type": "array", "uniqueItems": True, "items": item}).compile(
        byte_vocabulary()
    )
    values = [{"id": i % 100, "name": f"n{i // 100}"} for i in range(600)]
    text = json.dumps(values).encode()
    assert automaton.matches(text)
    for again in (values[0], values[417]):
        twice = json.dumps([*values, dict(reversed(again.items())) if not closed else again]).encode()
        refused = automaton.check(twice)
        assert refused is not None
        assert refused[0] > len(text)
