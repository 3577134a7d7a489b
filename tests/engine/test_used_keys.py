"""No key comes twice: the keys that an object has used are taken from the language of those to come.

Keys share beginnings and ends, so that each one used changes the states of others; masks are compared with
the oracle's, and the closing quotation mark with what Python's `re` and a set of the keys read so far say.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import TokenformError

JOINED = [
    *('{"', '{"a', '{"ab', '":', '":1', '":1,"', '":1,"a', '":1,"ab":1', ',"', ',"b', ',"a":', '1,"', '":1}'),
    *(
        'a"',
        'b":',
        'ab":1,"a',
        '1":1,"',
        '\\u0061"',
        '_1":',
        "}",
        "ab",
        "ba",
        "aa",
        "a_",
        "_1",
        "11",
        "é",
        "éa",
    ),
]
TOKENS = [*(bytes([b]) for b in range(256)), *(text.encode() for text in JOINED), b"</s>"]
EOS = len(TOKENS) - 1
PATTERNS = ["^[ab]{1,3}$", "^[a-b]{1,4}_[0-9]{1,2}$", "^(a|é)", "b$", "^(ab|ba|a|b)$", "^.{2}$"]
NAMES = ["", "a", "ab", "aba", "b", "é", "a_1"]

maps = st.builds(
    lambda pattern, more: {"patternProperties": {pattern: {"const": 1}}, "additionalProperties": more},
    st.sampled_from(PATTERNS),
    st.sampled_from([False, False, {"const": 1}]),
)
free = st.builds(
    lambda names, more, count: {
        "properties": {name: {"const": 1} for name in names},
        "additionalProperties": more,
        **count,
    },
    st.lists(st.sampled_from(NAMES), max_size=4, unique=True),
    st.sampled_from([False, {"const": 1}]),
    st.sampled_from(
        [{}, {"minProperties": 2}, {"maxProperties": 3}, {"required": ["ab"]}, {"required": ["zz"]}]
    ),
)
either = st.builds(lambda a, b: {"anyOf": [a, b]}, st.one_of(maps, free), st.one_of(maps, free))
objects = st.one_of(maps, free, either).map(lambda schema: {"type": "object", **schema})
options = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["declared", "any"]),
        "strings": st.sampled_from(["natural", "canonical", "any"]),
        "whitespace": st.just("compact"),
    }
)


def compiled(schema: Any, **chosen: Any) -> tf.TokenAutomaton:
    return tf.json_schema(schema, **chosen).compile(tf.Vocabulary(TOKENS, eos=[EOS]))


def allowed_by(automaton: tf.TokenAutomaton, state: Any) -> list[int]:
    mask = automaton.mask(state)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def draw(rng: random.Random, allowed: list[int]) -> int:
    """A token; joined ones and those that keys are made of more often than the rest."""
    likely = [t for t in allowed if 256 <= t < EOS or TOKENS[t] in (b"a", b"b", b'"', b",", b":", b"1", b"_")]
    if likely and rng.random() < 0.95:
        return rng.choice(likely)
    return rng.choice([t for t in allowed if t != EOS] or allowed)


@given(objects, options, st.integers(0, 10**6))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_masks_equal_the_oracle(schema: Any, chosen: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    try:
        automaton = compiled(schema, **chosen)
    except TokenformError:
        return
    state = automaton.start
    for _ in range(30):
        allowed = allowed_by(automaton, state)
        expected = sorted(automaton.oracle(state))
        odd = [TOKENS[t] for t in sorted(set(allowed) ^ set(expected))][:6]
        assert allowed == expected, f"{schema} at {automaton.describe(state)}: {odd}"
        token = draw(rng, allowed)
        if token == EOS:
            return
        state = automaton.advance(state, token)


@given(st.sampled_from(PATTERNS), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_key_is_closed_where_it_matches_and_is_new(pattern: str, seed: int) -> None:
    rng = random.Random(seed)
    schema = {"type": "object", "patternProperties": {pattern: {"const": 1}}, "additionalProperties": False}
    automaton = compiled(schema, whitespace="compact")
    state, text, closings = automaton.start, b"", 0
    for _ in range(60):
        allowed = allowed_by(automaton, state)
        begun = re.fullmatch(rb'\{(?:"[^"]*":1,)*"([^"\\]*)', text)
        if begun and is_text(begun[1]):
            used = set(re.findall(rb'"([^"\\]*)":', text))
            new = begun[1] not in used and re.search(pattern, begun[1].decode()) is not None
            assert (ord('"') in allowed) == new, (pattern, text)
            closings += 1
        token = draw(rng, allowed)
        if token == EOS or b"\\" in TOKENS[token]:
            break
        state, text = automaton.advance(state, token), text + TOKENS[token]
    assert closings or not text.startswith(b'{"') or text.startswith(b'{"\\')


def is_text(spelled: bytes) -> bool:
    try:
        spelled.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize(
    "schema",
    [
        {
            "patternProperties": {"^[a-z]{1,12}_[0-9]{1,4}$": {"type": "integer"}},
            "additionalProperties": False,
        },
        {"additionalProperties": {"type": "integer"}},
        {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
    ],
)
def test_of_a_thousand_keys_none_comes_again(schema: Any, order: str) -> None:
    automaton = compiled({"type": "object", **schema}, whitespace="compact", order=order)
    keys = [f"key_{i}" for i in range(1000)]
    random.Random(1).shuffle(keys)
    text = "{" + ",".join(f'"{key}":1' for key in keys)
    state = automaton.step_bytes(automaton.start, text.encode())
    for key in (keys[0], keys[500], keys[-1]):
        again = automaton.step_bytes(state, f',"{key}'.encode())
        assert not automaton.allows(again, ord('"')), key
    fresh = automaton.step_bytes(state, b',"key_1000')
    assert automaton.allows(fresh, ord('"'))
