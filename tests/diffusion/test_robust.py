"""What models and callers get wrong, and the ends of what canvases can be."""

from __future__ import annotations

import json
import threading
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch

import tokenform as tf
from tokenform.decoding.diffusion import (
    AdaptiveParallel,
    Blocks,
    Confidence,
    Credit,
    EntropyBound,
    LeftToRight,
    LocalDeterminism,
    MaskedDenoiser,
    SelfDraft,
    Threshold,
)
from tokenform.decoding.diffusion.generator import written_on_canvases

from .test_writing import MASK, SCHEMA, SIZE, VOCABULARY, TinyDenoiser, writer

FREE = {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}


@pytest.mark.parametrize(
    "within",
    [
        Confidence(1), Confidence(3), Threshold(0.5), LeftToRight(2), EntropyBound(1.0), Blocks(8),
        Credit(0.6), LocalDeterminism(0.5, 0.2),
    ],
    ids=lambda policy: type(policy).__name__,
)  # fmt: skip
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafted_passes_lose_nothing(within: Any, temperature: float) -> None:
    for seed in range(3):
        told = {"temperature": temperature, "seed": seed, "n": 2}
        plain = writer(seed, 1.0).generate([65], SCHEMA, policy=within, **told)
        drafted = writer(seed, 1.0).generate([65], SCHEMA, policy=SelfDraft(within, 3), **told)
        for one, other in zip(plain, drafted, strict=True):
            assert one.tokens == other.tokens and abs(one.logprob - other.logprob) < 1e-3
            assert other.stats.forwards + other.stats.accepted == one.stats.forwards


def test_drafts_of_the_built_in_model_save_passes() -> None:
    own, prompt = tf.DiffusionGenerator(length=48), "Ada Moreau, born 1975, lives in Lisbon."
    schema = {"type": "object", "properties": {"born": {"type": "integer"}, "city": {"type": "string"}}}
    schema["required"] = ["born", "city"]
    plain = own.generate(prompt, schema, policy=Confidence(1))
    drafted = own.generate(prompt, schema, policy=SelfDraft(Confidence(1), 4))
    assert plain.text == drafted.text and drafted.stats.forwards < plain.stats.forwards / 2


def causal(tokens: torch.Tensor) -> torch.Tensor:
    """After a token, the one that follows it in the alphabet; one token fewer than the other model has."""
    return 3.0 * torch.nn.functional.one_hot((tokens + 1) % (SIZE - 1), SIZE - 1).float()


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_a_causal_model_agrees_or_not(temperature: float) -> None:
    told = {"policy": AdaptiveParallel(causal, 0.2), "temperature": temperature, "seed": 1}
    jsonschema.validate(writer().generate([65], SCHEMA, **told).value, SCHEMA)

    def flat(tokens: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*tokens.shape, SIZE)

    own = tf.DiffusionGenerator(flat, VOCABULARY, mask=MASK)
    agreed = own.generate([65], tf.choice(["BCDE"]), length=4, policy=AdaptiveParallel(causal))
    assert agreed.stats.forwards == 1
    other = own.generate([65], tf.regex("(B[A-D]){2}"), length=4, policy=AdaptiveParallel(causal))
    assert (
        other.stats.forwards > 1
    )  # of equally likely fillings the first is BABA; the causal model says BCBC


def test_a_window_sees_what_is_near() -> None:
    lengths: list[int] = []

    def model(tokens: torch.Tensor) -> torch.Tensor:
        lengths.append(tokens.shape[1])
        return TinyDenoiser(0, 5.0).eval()(tokens)

    own = tf.DiffusionGenerator(MaskedDenoiser(model, MASK, "cpu", window=8), VOCABULARY)
    result = own.generate([65], SCHEMA, length=40, policy=LeftToRight(4))
    jsonschema.validate(result.value, SCHEMA)
    assert lengths == sorted(lengths) and lengths[0] == 1 + 8 and max(lengths) == 1 + 40


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("schema", [SCHEMA, FREE], ids=["canvas", "left to right"])
def test_a_model_that_gives_no_numbers(wrong: float, schema: Any) -> None:
    own = tf.DiffusionGenerator(
        lambda tokens: torch.full((*tokens.shape, SIZE), wrong), VOCABULARY, mask=MASK
    )
    with pytest.raises(tf.errors.SamplingError):
        own.generate([65], schema, length=32)


def test_tokens_that_the_model_rules_out_are_not_written() -> None:
    def model(tokens: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*tokens.shape, SIZE)
        logits[:, :, ord("a")] = -torch.inf
        return logits

    own = tf.DiffusionGenerator(model, VOCABULARY, mask=MASK)
    for seed in range(5):
        text = own.generate([65], tf.regex("[ab]{3}"), length=3, temperature=1.0, seed=seed).text
        assert text in ("bbb", "bab", "abb", "aab") or "a" not in text.replace("ab", "")
    with pytest.raises(tf.errors.SamplingError, match="probability"):
        own.generate([65], tf.regex("aa"), length=3, policy=Threshold(0.0), temperature=1.0)


@pytest.mark.parametrize("policy", [Threshold(), SelfDraft(), LeftToRight()], ids=lambda p: type(p).__name__)
def test_no_position_and_one(policy: Any) -> None:
    empty = writer(policy=policy).generate([65], tf.regex("a*"), length=0)
    assert (empty.text, empty.tokens, empty.stats.forwards) == ("", [], 0)
    assert writer(policy=policy).generate([65], tf.regex("a?b"), length=1).text in ("b", "ab")
    for length, least in ((0, 1), (1, 2)):
        with pytest.raises(tf.errors.BudgetTooSmall) as caught:
            writer(policy=policy).generate([65], tf.regex("[xy]" * least), length=length)
        assert caught.value.least == least and str(least) in str(caught.value)
        assert len(writer().generate([65], tf.regex("[xy]" * least), length=least).text) == least
    with pytest.raises(tf.errors.OptionError):
        writer().generate([65], tf.regex("a"), length=-1)


def test_no_special_token_is_written() -> None:
    def model(tokens: torch.Tensor) -> torch.Tensor:  # one that likes them best
        logits = torch.zeros(*tokens.shape, SIZE)
        logits[..., [268, MASK]] = 9.0
        return logits

    own = tf.DiffusionGenerator(model, VOCABULARY, mask=MASK)
    for schema in (None, tf.regex("[ -~]{4,12}"), FREE):
        for result in own.generate([65], schema, length=24, temperature=1.0, seed=1, n=3):
            assert not {266, 267, 268, MASK} & set(result.tokens)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_no_canvas_holds_is_written_from_left_to_right(temperature: float) -> None:
    limits = tf.engine.Limits(work=200_000)
    for result in writer().generate([65], FREE, n=3, seed=2, temperature=temperature, limits=limits):
        value = json.loads(result.text)
        jsonschema.validate(value, FREE)
        assert result.value == value and result.logprob < 0
        assert 0 < result.stats.forwards <= 48 and len(result.tokens) <= 48
    with pytest.raises(tf.errors.LimitExceeded):
        writer().generate([65], FREE, policy=LeftToRight(), temperature=1.0, weigh=True, limits=limits)
    with pytest.raises(tf.errors.BudgetTooSmall):
        writer().generate([65], FREE, length=8, limits=limits)


def test_forks_are_filled_by_threads_at_once() -> None:
    automaton = written_on_canvases(tf.json_schema(SCHEMA)).compile(VOCABULARY)
    shared, rng = tf.Canvas(automaton, 40), np.random.default_rng(0)
    logits = rng.normal(size=(40, SIZE)).astype(np.float32)
    wanted = [fill(shared.fork(), logits, seed) for seed in range(4)]
    found: dict[int, Any] = {}
    cold = tf.Canvas(automaton, 40)
    threads = [
        threading.Thread(target=lambda seed=seed: found.update({seed: fill(cold.fork(), logits, seed)}))
        for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [found[seed] for seed in range(4)] == wanted


def fill(canvas: tf.Canvas, logits: Any, seed: int) -> list[int | None]:
    """A canvas filled position by position in a random order."""
    rng = np.random.default_rng(seed)
    while canvas.open:
        at = int(rng.choice(canvas.open))
        allowed = canvas.allowed(at)
        canvas.fill(at, int(allowed[logits[at, allowed].argmax()]))
        if rng.random() < 0.2:
            assert canvas.feasible()
    return canvas.tokens


def test_a_prompt_and_a_canvas_that_are_too_long_together() -> None:
    own = tf.DiffusionGenerator(length=64)
    with pytest.raises(tf.errors.PromptTooLong, match="canvas"):
        own.generate("a b " * 330, {"type": "integer"})


def test_who_watches_sees_every_pass_and_may_end_it() -> None:
    seen: list[tuple[int, int]] = []

    def watch(number: int, tokens: Any) -> None:
        seen.append((number, sum(token is not None for token in tokens)))
        if len(seen) > 4:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        writer(policy=LeftToRight(4)).generate([65], SCHEMA, n=2, watch=watch)
    assert seen == [(0, 4), (1, 4), (0, 8), (1, 8), (0, 12)]


def test_models_that_remember_are_not_drafted() -> None:
    class Remembering(MaskedDenoiser):
        remembers = True

    own = tf.DiffusionGenerator(Remembering(TinyDenoiser(0, 1.0).eval(), MASK, "cpu"), VOCABULARY)
    with pytest.raises(tf.errors.OptionError, match="drafted"):
        own.generate([65], SCHEMA, policy=SelfDraft())
