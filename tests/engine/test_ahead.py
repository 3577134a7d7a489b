"""Masks made ahead are those that are made when they are asked for, and cost no more than was said."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import LimitExceeded

WORDS = [
    '{"',
    '": ',
    '", "',
    '"}',
    '": "',
    '": [',
    "ab",
    "abc",
    "12",
    ", ",
    '"], "',
    "\n  ",
    "true",
    "é",
    ' "',
]
TOKENS = [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS] + [b"</s>"]
END = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[END], special=[END])
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "number", "minimum": 2},
        "tags": {"type": "array", "items": {"enum": ["ab", "abc", 12]}, "uniqueItems": True},
        "inner": {"$ref": "#"},
    },
    "required": ["name", "size"],
}
GRAMMARS = {
    "record": lambda: tf.json_schema(RECORD),
    "any spelling": lambda: tf.json_schema(RECORD, order="any", whitespace="any", numbers="any"),
    "all documents": lambda: tf.json_schema(True),
    "pattern": lambda: tf.regex("(ab|abc)+(12)?"),
    "rules": lambda: tf.lark('start: "ab" start "12" | "abc"'),
    "empty text": lambda: tf.regex(""),
}


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("states", [1, 7, 200])
def test_masks_are_those_of_an_automaton_that_nobody_prepared(name: str, states: int) -> None:
    core, rng = GRAMMARS[name]().core, random.Random(name)
    ready, plain = core.compile(VOCABULARY), core.compile(VOCABULARY)
    assert 1 <= ready.prepare(states) <= states
    assert ready.prepare(states) <= states  # and once more does no harm
    for _ in range(20):
        at, exact = ready.start, plain.start
        for place in range(30):
            assert ready.mask(at).tolist() == plain.mask(exact).tolist()
            assert ready.mask_within(at, 40).tolist() == plain.mask_within(exact, 40).tolist()
            assert ready.is_accepting(at) == plain.is_accepting(exact)
            if place % 10 == 0:
                assert np.flatnonzero(bits(ready.mask(at))).tolist() == sorted(ready.oracle(at))
            choices = [int(t) for t in ready.allowed_tokens(at) if t != END]
            if not choices:
                break
            token = rng.choice(choices)
            at, exact = ready.advance(at, token), plain.advance(exact, token)


def bits(mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.unpackbits(mask.view(np.uint8), bitorder="little")


def test_what_was_prepared_is_counted_and_let_go() -> None:
    automaton = tf.json_schema(RECORD).core.compile(VOCABULARY)
    before = automaton.stats()["bytes"]
    assert automaton.prepare(100) > 20
    assert automaton.stats()["bytes"] > before
    assert automaton.state_count > 20
    automaton.clear()
    assert automaton.state_count <= 1
    assert automaton.mask(automaton.start).any()


def test_a_limit_belongs_to_the_call() -> None:
    limits = tf.engine.Limits(work=30_000)
    automaton = tf.json_schema(RECORD).core.compile(VOCABULARY, limits)
    with pytest.raises(LimitExceeded):
        automaton.prepare(100_000)
    fresh = tf.json_schema(RECORD).core.compile(VOCABULARY)
    assert automaton.mask(automaton.start).tolist() == fresh.mask(fresh.start).tolist()


REFERENCES = [
    '"$ref": "http://json-schema.org/draft-07/schema#"',
    '"$ref"\n:\t"https:\\/\\/json-schema.org\\/draft/2020-12/schema"',
    '"$schema": "https://json-schema.org/draft/2020-12/schema"',
    '"$ref": "#/$defs/a"',
    '"$ref": "http://json-schema.org/draft/x json-schema.org/draft',
    '"description": "json-schema.org"',
    '"$ref"',
    ", ",
]


@given(st.lists(st.sampled_from(REFERENCES), max_size=14))
def test_official_schemas_are_found_as_one_search_would(parts: list[str]) -> None:
    text = "".join(parts)
    expected = {
        found
        for found in re.findall(r'"\$ref"\s*:\s*"(https?:\\?/\\?/json-schema\.org\\?/draft[^"#]*)', text)
    }
    from tokenform import _core

    assert set(_core.official_references(text)) == expected


@given(st.text(alphabet=st.sampled_from('ab "\\\n\x1f\x7fé\U0001f600~'), max_size=120))
def test_long_texts_are_written_as_json_writes_them(text: str) -> None:
    from tokenform import _core

    assert _core.json_text({"description": text}) == json.dumps({"description": text})
