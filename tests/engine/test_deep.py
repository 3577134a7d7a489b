"""Masks of deep positions are shared by what one token can reach: they equal the oracle's at every depth."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tokenform as tf

MARKUP = [
    b"]]",
    b"]]]",
    b"}}",
    b"},",
    b"],[",
    b"]}",
    b"}]",
    b'{"a":',
    b"[[",
    b"[[[[",
    b"  ",
    b"        ",
    b"]\n  ",
    b"1]",
]
TOKENS = [bytes([b]) for b in range(256)] + MARKUP + [b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS])

LIST = {"type": "array", "items": {"$ref": "#/$defs/n"}, "maxItems": 3}
OBJECT = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
SCHEMAS: list[dict[str, Any]] = [
    {"anyOf": [LIST, OBJECT, {"type": "integer"}]},
    {"anyOf": [{**LIST, "minItems": 2}, {**OBJECT, "additionalProperties": True}, {"const": 1}]},
    {"anyOf": [{**LIST, "uniqueItems": True}, {"type": "boolean"}]},
]


def ids(row: Any) -> Any:
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little"))


@pytest.mark.parametrize("whitespace", ["compact", "spaced", "indent", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_masks_at_every_depth(schema: dict[str, Any], whitespace: str) -> None:
    recursive = {"$ref": "#/$defs/n", "$defs": {"n": schema}}
    automaton = tf.json_schema(recursive, whitespace=whitespace).compile(VOCABULARY)
    for seed in range(6):
        rng, state = random.Random(seed), automaton.start
        for step in range(160):
            allowed = ids(automaton.mask(state))
            assert allowed.tolist() == automaton.oracle(state), (seed, step)
            allowed = allowed[allowed != EOS]
            if allowed.size == 0:
                break
            wanted = b"[{" if step < 90 else b"]}"
            towards = [t for t in allowed if any(b in wanted for b in TOKENS[t])]
            token = int(rng.choice(towards if towards and rng.random() < 0.6 else allowed))
            state = automaton.advance(state, token)
