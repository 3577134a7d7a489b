"""Which keys may come where a count must be reached: all sequences of a few keys, judged by `jsonschema`.

A key can be closed if and only if some valid object begins with it and those before it: neither a dead end
nor an object lost.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import tokenform as tf
from tokenform.errors import UnsatisfiableSchema

NAMES = ["a", "ab", "b"]
OTHERS = ["w", "x", "y", "z"]
LONGEST = 5
Keys = tuple[str, ...]

subschemas = st.sampled_from([{"const": 1}, {"const": 1}, {"enum": [1, 2]}, False])
objects = st.builds(
    lambda properties, required, more, least, most, pattern: {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": more,
        "minProperties": least,
        "maxProperties": most,
        **pattern,
    },
    st.dictionaries(st.sampled_from(NAMES), subschemas),
    st.lists(st.sampled_from([*NAMES, "x"]), max_size=2, unique=True),
    st.booleans(),
    st.integers(0, 4),
    st.integers(2, 5),
    st.sampled_from(
        [{}, {}, {}, {"patternProperties": {"^[aw-z]": {"const": 1}}}, {"not": {"required": ["b"]}}]
    ),
)


def viable(schema: dict[str, Any], order: str) -> set[Keys]:
    """The sequences of keys that a valid object, all of whose values are 1, begins with."""
    validator = Draft202012Validator(schema)
    declared = list(schema["properties"])
    found: set[Keys] = set()
    for length in range(LONGEST + 1):
        for keys in permutations([*NAMES, *OTHERS], length):
            ranks = [declared.index(key) if key in declared else len(declared) for key in keys]
            if order == "declared" and ranks != sorted(ranks):
                continue
            if validator.is_valid(dict.fromkeys(keys, 1)):
                found.update(keys[:i] for i in range(length + 1))
    return found


def read(automaton: tf.TokenAutomaton, state: Any, text: str) -> Any:
    """The state after a text, or `None` where a mask refuses a byte of it."""
    for byte in text.encode():
        if not automaton.allows(state, byte):
            return None
        state = automaton.advance(state, byte)
    return state


@given(objects, st.sampled_from(["declared", "any"]))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_key_is_offered_where_an_object_begins_with_it(schema: dict[str, Any], order: str) -> None:
    tokens = [*(bytes([b]) for b in range(256)), b"</s>"]
    expected = viable(schema, order)
    try:
        automaton = tf.json_schema(schema, order=order, whitespace="compact").compile(
            tf.Vocabulary(tokens, eos=[256])
        )
    except UnsatisfiableSchema:
        assert not expected
        return
    for before in sorted(expected, key=len):
        if len(before) > 3:
            break
        text = "{" + "".join(f'"{key}":1,' for key in before)
        state = automaton.step_bytes(automaton.start, text[:-1].encode() if before else b"{")
        closes = automaton.allows(state, ord("}"))
        assert closes == Draft202012Validator(schema).is_valid(dict.fromkeys(before, 1)), (schema, before)
        if before and not automaton.allows(state, ord(",")):
            assert not any(longer[: len(before)] == before and longer != before for longer in expected)
            continue
        state = automaton.step_bytes(automaton.start, text.encode())
        for key in [*NAMES, *OTHERS]:
            at = read(automaton, state, f'"{key}"')
            assert (at is not None) == ((*before, key) in expected), (schema, order, before, key)
        if not schema["additionalProperties"] and "patternProperties" not in schema:
            # nor is a key begun that can't be closed
            for begun in ["", "a", "ab", "b"]:
                going_on = any((*before, key) in expected for key in NAMES if key.startswith(begun))
                assert (read(automaton, state, f'"{begun}') is not None) == going_on, (
                    schema,
                    order,
                    before,
                    begun,
                )
