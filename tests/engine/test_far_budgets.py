"""Budgets that are far from every end: a bound by the schema's form answers, and it is never too small.

Schemas are drawn over all keywords; from each state of a random text the farthest end after one token is
found by asking for the distance after each of them.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import TokenformError
from tokenform_bench.random_schemas import SchemaMaker

PIECES = [
    b'":',
    b'": "',
    b'","',
    b'": true',
    b", ",
    b'{"',
    b'{"a": {"',
    b"[[[",
    b'": [{"',
    b"\xe2\x82",
    b"\\u00",
    b"\\ud83d",
]
TOKENS = [bytes([b]) for b in range(256)] + PIECES + [b"true", b"foo", b"e+1", b"1.5", b"}}", b"]}", b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS])
OPTIONS: list[dict[str, Any]] = [
    {},
    {"order": "any", "whitespace": "any", "numbers": "any"},
    {"whitespace": "indent", "strings": "canonical"},
    {"whitespace": "spaced", "numbers": "canonical"},
]
CHOSEN: list[Any] = [
    {"properties": {"a": {"type": "string", "minLength": 70}, "b": {"minimum": 10**30}}},
    {"type": "object", "patternProperties": {"^[ab]$": {"minItems": 40}, "x": False}, "minProperties": 3},
    {"type": "object", "patternProperties": {"^a+$": {}}, "additionalProperties": False, "minProperties": 5},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"pattern": "^(ab|c{20})*d$"}}}]},
    {
        "type": "array",
        "prefixItems": [{}, {"const": "x" * 50}],
        "items": {"enum": ["y" * 60, 1]},
        "minItems": 1,
    },
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 2, "maxItems": 5}]},
    {"oneOf": [{"required": ["a"]}, {"properties": {"a": {"const": 1}, "b": {"const": "z" * 80}}}]},
    {"dependentSchemas": {"a": {"required": ["b" * 90]}}},
    {"dependentRequired": {"foo": ["c" * 90]}, "type": "object"},
    {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": ["a", "b", "c" * 70, "d"]}},
    {"type": "array", "contains": {"const": "f" * 50}, "minContains": 0, "maxContains": 2},
    {"type": "string", "format": "date-time"},
    {"type": "number", "multipleOf": 7, "minimum": 1000000007},
    {"type": "number", "exclusiveMaximum": -0.001, "multipleOf": 0.0005},
    {"type": "number", "minimum": 1000, "not": {"multipleOf": 0.5}},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 0.001, "not": {"multipleOf": 0.0001}},
    {"propertyNames": {"pattern": "^[a-c]{2,9}z$"}, "minProperties": 2},
    {
        "type": "object",
        "properties": {"k" * 60: {}, "k" * 59 + "j": {"type": "string"}},
        "additionalProperties": False,
    },
]


def ids(row: Any) -> Any:
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little"))


def check_walk(automaton: Any, rng: random.Random, tokens: int) -> None:
    """At each state of a random text: what a mask of a budget allows, ends within it."""
    state = automaton.start
    for _ in range(tokens):
        allowed = [int(t) for t in ids(automaton.mask(state)) if t != EOS]
        if not allowed:
            return
        ends = {token: automaton.distance(automaton.advance(state, token)) for token in allowed}
        known = [end for end in ends.values() if end is not None]
        for budget in (
            {max(known, default=0), max(known, default=0) // 2} if None not in ends.values() else {4000}
        ):
            for token in ids(automaton.mask_within(state, budget)):
                end = 0 if token == EOS else ends[int(token)]
                assert end is not None and end < max(budget, 1), (budget, TOKENS[token], end)
        state = automaton.advance(state, rng.choice(allowed))


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("schema", CHOSEN, ids=range(len(CHOSEN)))
def test_no_end_is_farther_than_a_mask_of_a_budget_says(schema: Any, options: dict[str, Any]) -> None:
    automaton = tf.json_schema(schema, **options).compile(VOCABULARY)
    for seed in range(3):
        check_walk(automaton, random.Random(seed), 12)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 40).map(random.Random), st.sampled_from(OPTIONS))
def test_no_end_is_farther_under_any_schema(rng: random.Random, options: dict[str, Any]) -> None:
    try:
        automaton = tf.json_schema(SchemaMaker(rng).schema(), **options).compile(VOCABULARY)
        check_walk(automaton, rng, 10)
    except TokenformError:
        return  # refused, or beyond a limit


FAR: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["a"]},
    {
        "type": "array",
        "items": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "maxLength": 9}]},
    },
    {"type": "object", "patternProperties": {"^x-": {"type": "boolean"}}, "minProperties": 1},
    True,
]


@pytest.mark.parametrize("schema", FAR, ids=range(len(FAR)))
def test_a_budget_that_is_far_costs_no_try_of_each_token(schema: Any) -> None:
    """Nothing is remembered of the tokens' ends: what is held stays nearly what the masks hold."""
    held = []
    for budget in (None, 100_000):
        tf.engine.clear_cache()
        automaton = tf.json_schema(schema).compile(VOCABULARY)
        row = np.zeros((1, (len(TOKENS) + 31) // 32), np.uint32)
        for seed in range(5):  # some texts end at once
            rng = random.Random(seed)
            matcher = tf.engine.Matcher(automaton, max_tokens=budget)
            for _ in range(40):
                matcher.fill_mask(row)
                allowed = [int(t) for t in ids(row) if t != EOS]
                if not allowed:
                    break
                matcher.accept_tokens([rng.choice(allowed)])
        held.append(automaton.stats()["bytes"])
    assert held[1] < 1.5 * held[0], held
