"""The built-in masked-diffusion model: every text is valid in every order, and it copies facts."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import tokenform as tf
from tokenform.builtin import load
from tokenform.decoding.diffusion import (
    AdaptiveParallel,
    Blocks,
    Confidence,
    Credit,
    EarlyAnswer,
    EntropyBound,
    LeftToRight,
    LocalDeterminism,
    SelfDraft,
    Threshold,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "born": {"type": "integer"},
        "city": {"type": "string"},
        "height": {"type": "number"},
    },
    "required": ["name", "born", "city"],
}
PROMPT = "Ada Moreau, born 1975, lives in Lisbon."
POLICIES = [
    Confidence(4),
    Threshold(0.9),
    EntropyBound(0.5),
    Blocks(16),
    LeftToRight(4),
    EarlyAnswer(Confidence(4)),
    Credit(),
    LocalDeterminism(),
    SelfDraft(Confidence(4), 2),
    AdaptiveParallel(load()[0]),
]


@pytest.fixture(scope="module")
def writer() -> Any:
    return tf.DiffusionGenerator(length=64)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("temperature", [0.0, 1.0, 5.0])
def test_every_text_is_valid(writer: Any, policy: Any, temperature: float) -> None:
    result = writer.generate(PROMPT, SCHEMA, policy=policy, temperature=temperature, seed=1)
    jsonschema.validate(json.loads(result.text), SCHEMA)
    assert result.value == json.loads(result.text)
    assert result.stats.forwards <= 64


def test_facts_are_copied_in_few_passes(writer: Any) -> None:
    result = writer.generate(PROMPT, SCHEMA)
    assert result.value["born"] == 1975 and result.value["city"] == "Lisbon"
    assert result.stats.forwards < len(result.tokens) / 2


def test_numbers_are_written_where_a_canvas_is_long() -> None:
    own = tf.DiffusionGenerator(length=128)
    numbers = {key: {"type": "number"} for key in "abc"}
    schema = {"type": "object", "properties": numbers, "required": ["a", "b", "c"]}
    jsonschema.validate(own.generate("a 1.5, b 2, c 0.25", schema).value, schema)


def test_a_model_needs_its_tokenizer() -> None:
    with pytest.raises(tf.errors.ModelError):
        tf.DiffusionGenerator(lambda tokens: tokens)
