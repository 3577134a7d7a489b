"""`oneOf` and `anyOf` of constants: what jsonschema says, and no limit met by how many there are."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from benchmarks.suites.maskcheck import byte_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import UnsatisfiableSchema

VOCABULARY = byte_vocabulary()
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    1.0,
    2,
    -3,
    2.5,
    1e2,
    100,
    "",
    "a",
    "ab",
    "1",
    "null",
    [1],
    {"a": 1},
    7,
]

branches = st.one_of(
    st.sampled_from(VALUES).map(lambda value: {"const": value}),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=4).map(lambda values: {"enum": values}),
    st.sampled_from(
        [{"type": "integer"}, {"type": "string", "maxLength": 1}, {"minimum": 2}, {"type": "object"}]
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(branches, min_size=4, max_size=9), st.sampled_from(["oneOf", "anyOf"]))
def test_constants_count_once_each(parts: list[dict[str, Any]], keyword: str) -> None:
    schema = {keyword: parts}
    judge = jsonschema.Draft202012Validator(schema)
    allowed = [json.dumps(value) for value in VALUES if judge.is_valid(value)]
    try:
        automaton = tf.json_schema(schema, numbers="any").compile(VOCABULARY)
    except UnsatisfiableSchema:
        assert not allowed
        return
    for value in VALUES:
        text = json.dumps(value)
        state = automaton.start
        for byte in text.encode():
            if not automaton.allows(state, byte):
                break
            state = automaton.advance(state, byte)
        else:
            assert automaton.is_accepting(state) == (text in allowed), (text, schema)
            continue
        assert text not in allowed, (text, schema)


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
@pytest.mark.parametrize(
    "value", [str, int, lambda i: {"kind": f"k{i}"}], ids=["texts", "numbers", "objects"]
)
def test_many_constants_are_within_the_usual_limits(keyword: str, value: Any) -> None:
    parts = [{"const": value(i), "title": f"the {i}th"} for i in range(3_000)]
    automaton = tf.json_schema({keyword: parts}).compile(VOCABULARY)
    assert automaton.allows(automaton.start, json.dumps(value(0)).encode()[0])


def test_many_lists_of_numbers_are_within_the_usual_limits() -> None:
    parts = [{"enum": list(range(100 * i, 100 * i + 150))} for i in range(100)]
    automaton = tf.json_schema({"anyOf": parts}).compile(VOCABULARY)
    assert automaton.allows(automaton.start, ord("1"))
    twice = tf.json_schema({"oneOf": parts}).compile(VOCABULARY)
    state = twice.start
    for byte in b"12":
        state = twice.advance(state, byte)
    # 12 and 1250 are in one list alone, 120 and 1200 in two
    assert twice.is_accepting(state)
    assert twice.allows(state, ord("5"))
    assert not twice.allows(state, ord("0"))
