"""Arrays of unique items: one position stands for nearly all texts, and masks are the oracle's all the same.

The vocabulary holds tokens that close a string, the item and the array, or begin the next item, so that every
way of going beyond the closed text within one token occurs; items share strings and keys with earlier ones.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import TokenformError

TAILS = [
    *('"', '",', '","', '"]', '"}', '"},', '"},{"', '"}]', '":', '":"', '": "', '["', '{"', '[["', '"],["'),
    *(
        'a"',
        'b"',
        'a","',
        'ab"',
        'a"]',
        'a"}',
        'a","b',
        'a"},{"a',
        '","a":"',
        '","a":"b"}',
        '"],[],["',
        '",1,"',
    ),
    *("ab", "aa", "ba", "\\n", '\\"', "\\\\", 'b\\n"', "]", "},{}", ",1", ",{", ",[", "[]", "{}", " ", "\n"),
]

FREE: list[Any] = [
    {"type": "string"},
    {"type": "string", "not": {"const": "a"}},
    {"type": "string", "maxLength": 300},
    {"type": ["string", "integer"]},
    True,
]
TIGHT: list[Any] = [
    {"enum": ["a", "b", "ab", "ba", "aa"]},
    {"type": "string", "pattern": "^[ab]*$", "maxLength": 2},
    {"type": "string", "pattern": "^a*$"},
    {"const": "a"},
    {"anyOf": [{"enum": ["a", "aa"]}, {"type": "string", "minLength": 5}]},
]
strings = st.sampled_from(FREE + TIGHT)

items: st.SearchStrategy[Any] = st.one_of(
    strings,
    st.builds(lambda a: {"type": "object", "properties": {"a": a}, "additionalProperties": False}, strings),
    st.builds(lambda a: {"type": "object", "additionalProperties": a}, strings),
    st.builds(lambda a: {"type": "object", "properties": {"a": a, "b": True}, "required": ["a"]}, strings),
    st.builds(lambda a: {"type": "array", "items": a}, strings),
    st.builds(lambda a: {"type": "array", "items": a, "uniqueItems": True}, strings),
)


def array(item: Any, first: Any, more: dict[str, Any], nested: bool, negated: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": item, "uniqueItems": True, **more}
    if first is not None:
        schema["prefixItems"] = [first]
    if negated:
        del schema["uniqueItems"]
        schema["not"] = {"uniqueItems": True}
    return {"type": "array", "items": schema, "maxItems": 2} if nested else schema


arrays = st.builds(
    array,
    items,
    st.none() | strings,
    st.sampled_from([{}, {"minItems": 2}, {"maxItems": 2}, {"minItems": 2, "maxItems": 3}]),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)


@given(arrays, st.integers(0, 10**6), st.sampled_from(["canonical", "any"]))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_masks_equal_the_oracle(schema: dict[str, Any], seed: int, spelling: str) -> None:
    rng = random.Random(seed)
    tokens = [*(bytes([b]) for b in range(256)), *(t.encode() for t in TAILS), b"</s>"]
    vocabulary = tf.Vocabulary(tokens, eos=[len(tokens) - 1])
    try:
        automaton = tf.json_schema(schema, strings=spelling, whitespace="compact").compile(vocabulary)
    except TokenformError:
        return
    state = automaton.start
    for _ in range(24):
        mask = automaton.mask(state)
        found = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
        expected = sorted(automaton.oracle(state))
        assert found == expected, (
            f"{json.dumps(schema)} at {automaton.describe(state)}: "
            f"{[tokens[t] for t in sorted(set(found) ^ set(expected))][:6]}"
        )
        # joined tokens and the few letters that items share, more often than the rest
        likely = [t for t in found if 256 <= t < len(tokens) - 1 or tokens[t] in (b"a", b"b", b'"', b",")]
        if not found or found == [len(tokens) - 1]:
            return
        token = rng.choice(likely) if likely and rng.random() < 0.9 else rng.choice(found)
        if token == len(tokens) - 1:
            return
        state = automaton.advance(state, token)


def test_equal_items_are_refused_however_they_are_cut() -> None:
    tokens = [*(bytes([b]) for b in range(256)), b'","', b'a"', b'"a","a"', b"</s>"]
    automaton = tf.json_schema({"type": "array", "uniqueItems": True}, whitespace="compact").compile(
        tf.Vocabulary(tokens, eos=[len(tokens) - 1])
    )
    assert automaton.matches(b'["a","b","\\n"]')
    assert not automaton.matches(b'["a","b","a"]')
    state = automaton.step_bytes(automaton.start, b'["a","')
    assert 257 not in automaton.allowed_tokens(state)
    assert 258 not in automaton.allowed_tokens(automaton.step_bytes(automaton.start, b"["))
