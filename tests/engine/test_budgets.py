"""Budgets: what `distance` promises, `mask_within` keeps, token by token, whatever was written before.

The tokens are bytes and what real vocabularies are awkward with: half code points, escapes that are cut,
quotes with what follows them.
"""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import jsonschema
import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import BudgetTooSmall

AWKWARD = [
    b'":',
    b'": "',
    b'","',
    b'": true',
    b", ",
    b'{"',
    b"\xc3",
    b"\xe2\x82",
    b"a\xf0\x9f",
    b"x\\",
    b"\\u00",
    b"key",
]
TOKENS = [bytes([b]) for b in range(256)] + AWKWARD + [b"true", b"false", b"config", b"e+1", b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS])

NAMES = ["Get Reco", "Study Name", "key", "config", "Ke"]
OBJECT = {"type": "object", "properties": {n: {"type": "boolean"} for n in NAMES}, "required": NAMES}
SCHEMAS: list[dict[str, Any]] = [
    OBJECT,
    {**OBJECT, "minProperties": 7},
    {**OBJECT, "additionalProperties": False},
    {
        "type": "object",
        "properties": {"a": OBJECT, "b": {"type": "array", "items": OBJECT}},
        "required": ["a", "b"],
    },
    {"type": "array", "items": {"type": ["object", "string"]}, "uniqueItems": True, "minItems": 3},
    {"enum": ["1"]},
    {"type": "string", "minLength": 2, "pattern": "^[a-c]+$"},
    {"anyOf": [{"type": "string", "minLength": 3}, {"type": "array", "minItems": 30}]},
    {"type": "number", "minimum": 10.5},
    {"type": "number", "multipleOf": 7, "minimum": 1000000007},
    {"type": "number", "exclusiveMaximum": -0.001, "multipleOf": 0.0005},
    {"type": "number", "maximum": 0, "multipleOf": 0.5, "not": {"multipleOf": 1}},
]


def ids(row: Any) -> Any:
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little"))


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("spellings", ["canonical", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_a_budget_that_is_promised_is_kept(schema: dict[str, Any], spellings: str, order: str) -> None:
    grammar = tf.json_schema(schema, order=order, whitespace="any", numbers=spellings, strings=spellings)
    automaton = grammar.compile(VOCABULARY)
    for seed in range(4):
        rng = random.Random(seed)
        state, text = automaton.start, b""
        left = automaton.distance(state) + (0, 3, 20, 60)[seed]
        while True:
            near = ids(automaton.mask_within(state, left))
            accepting = automaton.is_accepting(state)
            near = near[near != EOS]
            if accepting and (left == 0 or near.size == 0 or rng.random() < 0.2):
                break
            assert near.size, (seed, left, automaton.distance(state), text)
            token = int(rng.choice(near))
            state, text, left = automaton.advance(state, token), text + TOKENS[token], left - 1
        rest = {key: value for key, value in schema.items() if key not in ("multipleOf", "not")}
        jsonschema.validate(json.loads(text), rest)
        assert "not" not in schema or Fraction(text.decode()) % 1 != 0, text
        if "multipleOf" in schema:
            assert Fraction(text.decode()) % Fraction(str(schema["multipleOf"])) == 0, text


def test_a_text_of_one_token_is_found_where_another_has_fewer_characters() -> None:
    tokens = [bytes([b]) for b in range(256)] + [b"string", b""]
    automaton = tf.choice(["qzx", "string"]).compile(tf.Vocabulary(tokens, eos=[257], special=[257]))
    assert list(ids(automaton.mask_within(automaton.start, 1))) == [256]
    assert not automaton.mask_within(automaton.start, 0).any()
    matcher = tf.engine.Matcher(automaton, max_tokens=1)
    assert list(matcher.allowed_tokens()) == [256]
    matcher.accept_tokens([256, 257])
    assert matcher.is_terminated()
    with pytest.raises(BudgetTooSmall):
        tf.engine.Matcher(automaton, max_tokens=0)


NAMED = {
    f"{name}{i}": {"type": kind} for i, kind in enumerate(("string", "integer", "boolean")) for name in NAMES
}
FORGETFUL: list[dict[str, Any]] = [
    OBJECT,
    {"type": "object", "properties": NAMED, "required": sorted(NAMED)[::2], "additionalProperties": False},
    {"type": "array", "items": {"enum": ["true", "config e+1", "configconfig", "key: true"]}, "minItems": 3},
    {"type": "string", "pattern": "^(true|con(fig)*|[a-z]{4}){3}$"},
    {"anyOf": [{"type": "string", "minLength": 12}, {"type": "array", "minItems": 9, "items": OBJECT}]},
]


@pytest.mark.parametrize("schema", FORGETFUL, ids=range(len(FORGETFUL)))
def test_what_a_mask_has_promised_holds_whatever_was_forgotten(schema: dict[str, Any]) -> None:
    """Memory is let go between a mask and its token, and others write meanwhile."""
    automaton = tf.json_schema(schema).compile(VOCABULARY)
    least = automaton.distance(automaton.start)
    row = np.zeros((1, (len(TOKENS) + 31) // 32), np.uint32)
    for seed in range(24):
        rng = random.Random(seed)
        matcher = tf.engine.Matcher(automaton, max_tokens=least + (0, 1, 2, 5, 12, 40)[seed % 6])
        while not matcher.is_terminated():
            matcher.fill_mask(row)
            near = ids(row)
            assert near.size, (seed, matcher.tokens, matcher.budget)
            if rng.random() < 0.5:
                automaton.clear()
            if rng.random() < 0.5:
                other = automaton.advance(automaton.start, int(automaton.allowed_tokens(automaton.start)[0]))
                automaton.mask_within(other, 20)
            matcher.accept_tokens([int(rng.choice(near))])
        jsonschema.validate(json.loads(b"".join(TOKENS[token] for token in matcher.tokens[:-1])), schema)
