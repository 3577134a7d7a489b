"""Holes in documents, in the tokens of the packaged model, against every token tried one by one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import tokenform as tf
from tokenform.builtin.loading import WEIGHTS, read_tokenizer

CASES: list[tuple[dict[str, Any], Any]] = [
    (
        {
            "properties": {
                "name": {"type": "string", "maxLength": 20},
                "mail": {"type": "string", "format": "email"},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "role": {"enum": ["admin", "user", "guest"]},
            },
            "required": ["name", "age"],
        },
        {"name": "Ada Lovelace", "mail": "ada@example.org", "age": 36, "role": "admin"},
    ),
    (
        {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 1}},
        [[1, 2.5], [-3e4], [0]],
    ),
    (
        {
            "$defs": {
                "tree": {
                    "properties": {
                        "label": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                    },
                    "required": ["label"],
                    "additionalProperties": False,
                }
            },
            "$ref": "#/$defs/tree",
        },
        {"label": "a b", "children": [{"label": 'x "y"'}, {"label": "z", "children": []}]},
    ),
    (
        {"oneOf": [{"properties": {"k": {"const": "a"}, "v": {"type": "null"}}, "required": ["k", "v"]},
                   {"properties": {"k": {"const": "b"}, "v": {"type": "boolean"}}, "required": ["k", "v"]}]},
        {"k": "b", "v": True},
    ),
]  # fmt: skip


def accepted(automaton: tf.TokenAutomaton, state: tf.engine.State, tokens: list[int]) -> bool:
    """Whether tokens lead from a state to an accepted end."""
    for token in tokens:
        if automaton.is_finished(state):
            if token not in automaton.vocabulary.eos:
                return False
            continue
        if not automaton.allows(state, token):
            return False
        state = automaton.advance(state, token)
    return automaton.is_accepting(state)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_single_holes(number: int) -> None:
    schema, document = CASES[number]
    tokenizer = read_tokenizer(WEIGHTS / "model")
    vocabulary = tf.Vocabulary.from_tokenizer(tokenizer)
    automaton = tf.json_schema(schema).for_writing.compile(vocabulary)
    tokens = tokenizer.encode(json.dumps(document), add_special_tokens=False) + [vocabulary.eos[0]] * 2
    states = [automaton.start]
    for token in tokens:
        finished = automaton.is_finished(states[-1])
        states.append(states[-1] if finished else automaton.advance(states[-1], token))
    canvas = tf.Canvas(automaton, tokens)
    rng = random.Random(number)
    for at in rng.sample(range(len(tokens)), min(8, len(tokens))):
        canvas.erase(at)
        state, rest = states[at], tokens[at + 1 :]
        own = vocabulary.eos if automaton.is_finished(state) else automaton.allowed_tokens(state).tolist()
        expected = [token for token in own if accepted(automaton, state, [token, *rest])]
        assert canvas.allowed(at).tolist() == sorted(expected), at
        canvas.fill(at, tokens[at])
