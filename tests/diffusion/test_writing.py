"""`tf.DiffusionGenerator` with small models of random weights: every text is valid, whatever they say."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
from torch import nn

import tokenform as tf
from tokenform.decoding.diffusion import (
    Blocks,
    Confidence,
    Credit,
    EarlyAnswer,
    EntropyBound,
    FillStep,
    LeftToRight,
    LocalDeterminism,
    SelfDraft,
    Threshold,
)

SIZE, MASK = 270, 269
WORDS = [b'{"', b'":', b"name", b"true", b'", "', b"age", b"ab", b"12", b"}}", b'"}']
VOCABULARY = tf.Vocabulary(
    [bytes([b]) for b in range(256)] + WORDS + [b"</s>", b"<pad>", b"", b""],
    eos=[266, 267],
    special=[266, 267, 268, 269],
)
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
}
POLICIES = [
    Confidence(2),
    Threshold(0.5),
    EntropyBound(2.0),
    Blocks(8, Confidence(3)),
    Blocks(5),
    LeftToRight(),
    EarlyAnswer(first=0.3, last=0.1),
    Credit(0.6),
    LocalDeterminism(0.5, 0.2),
    SelfDraft(Confidence(2), 3),
]


class TinyDenoiser(nn.Module):
    """A bidirectional transformer of one layer with random weights."""

    def __init__(self, seed: int, scale: float) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.tokens, self.places = nn.Embedding(SIZE, 32), nn.Embedding(128, 32)
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        self.head, self.scale, self.passes = nn.Linear(32, SIZE), scale, 0

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        places = torch.arange(tokens.shape[1])
        return self.scale * self.head(self.layer(self.tokens(tokens) + self.places(places)))


def writer(seed: int = 0, scale: float = 5.0, **options: Any) -> tf.DiffusionGenerator:
    return tf.DiffusionGenerator(
        TinyDenoiser(seed, scale).eval(), VOCABULARY, mask=MASK, length=48, **options
    )


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("temperature", [0.0, 0.7, 3.0])
def test_every_text_is_valid(policy: Any, temperature: float) -> None:
    own = writer(policy=policy, temperature=temperature)
    results = own.generate([65, 66], SCHEMA, n=2, seed=3)
    for result in results:
        jsonschema.validate(json.loads(result.text), SCHEMA)
        assert result.value == json.loads(result.text)
        assert b"".join(VOCABULARY.token(t) for t in result.tokens).decode() == result.text
        assert result.stats.forwards <= 48 and result.logprob < 0
    assert own.denoiser.model.passes == max(result.stats.forwards for result in results)


@pytest.mark.parametrize(
    "grammar",
    [
        tf.regex(r"(ab)+c{2,5}"),
        tf.choice(["new", "paid", "shipped"]),
        tf.lark('start: "(" start ")" | "x"'),
        tf.from_type(list[int]),
    ],
    ids=["regex", "choice", "lark", "type"],
)
def test_other_constraints(grammar: tf.Grammar) -> None:
    automaton = grammar.compile(VOCABULARY)
    for seed in range(3):
        result = writer(seed).generate([65], grammar, length=16, temperature=1.0, seed=seed)
        assert automaton.matches(result.text)


def test_a_seed_makes_a_text() -> None:
    texts = [writer().generate([65], SCHEMA, temperature=1.0, seed=seed).text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_left_to_right_and_all_at_once_need_as_many_passes_as_they_say() -> None:
    assert writer(policy=LeftToRight(6)).generate([65], SCHEMA).stats.forwards == 8
    assert writer(policy=Threshold(0.0)).generate([65], SCHEMA).stats.forwards == 1


def test_tokens_of_one_step_are_accepted_together() -> None:
    """Two positions that are each sure of what can't stand together."""

    def model(tokens: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*tokens.shape, SIZE)
        logits[:, -2, ord("a")] = logits[:, -1, ord("a")] = 5.0
        return logits

    own = tf.DiffusionGenerator(model, VOCABULARY, mask=MASK, policy=Threshold(0.0))
    assert own.generate([65], tf.choice(["ab", "ba"]), length=2).text in ("ab", "ba")


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(tf.errors.BudgetTooSmall):
        writer().generate([65], tf.choice(["a long text"]), length=4)
    with pytest.raises(tf.errors.ModelError):
        tf.DiffusionGenerator(lambda tokens: tokens, VOCABULARY)
    with pytest.raises(tf.errors.OptionError):
        writer().generate([65], SCHEMA, n=0)


def test_policies_choose_by_their_laws() -> None:
    step = FillStep(
        [1, 4, 5, 9],
        np.array([7, 8, 9, 7], np.int32),
        np.array([0.9, 0.2, 0.95, 0.5]),
        np.array([0.1, 2.0, 0.05, 0.7]),
        np.array([0.8, 0, 0.9, 0.3]),
        12,
    )
    assert sorted(Confidence(2).choose(step)) == [1, 5]
    assert Threshold(0.9).choose(step) == [1, 5] and Threshold(1.0).choose(step) == []
    assert sorted(EntropyBound(0.2).choose(step)) == [1, 5, 9]  # 0, 0.05, 0.15, 0.85
    assert LeftToRight(2).choose(step) == [1, 4]
    assert Blocks(5, Threshold(0.9)).choose(step) == [1] and Blocks(5, Confidence(9)).choose(step) == [1, 4]
    assert EarlyAnswer(first=0.4, last=0.4).choose(step) == [1, 4, 5, 9]
    assert EarlyAnswer(first=0.99, last=0.99).choose(step) == [5]
    assert LocalDeterminism(0.9, 0.2, radius=1).choose(step) == [1, 4, 5]
    credit = Credit(0.7)
    assert credit.choose(step) == [1, 5]  # 0.5 counts 0.5 * 1.5 / (0.5 * 1.5 + 0.5) = 0.6 at the second pass
    assert credit.choose(step) == [1, 5] and credit.choose(step) == [1, 5]
    credit = Credit(0.6)
    assert credit.choose(step) == [1, 5] and credit.choose(step) == [1, 5, 9]


@pytest.mark.parametrize(
    "make", [Confidence, LeftToRight, Blocks, lambda count: SelfDraft(Confidence(), count)]
)
@pytest.mark.parametrize("count", [0, 1.5, True])
def test_counts_of_policies_are_whole_numbers(make: Any, count: Any) -> None:
    with pytest.raises(tf.errors.OptionError, match="whole number of at least 1"):
        make(count)
