"""The samplers that stay faithful to the model, as samplers of a generator."""

from __future__ import annotations

import math

import pytest
import torch

import tokenform as tf
from tokenform import errors

TEXTS = ["yes", "no", "perhaps"]
GRAMMAR = tf.choice(TEXTS)
SAMPLERS = [tf.ASAp(), tf.CARS(), tf.AWRS(), tf.SMC(4), tf.MCMC(), tf.Beam()]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_draws_are_results(model, tokenizer, sampler):
    writer = tf.Generator(model, tokenizer, sampler=sampler)
    results = writer.sample("Ada", GRAMMAR, n=2, seed=5, max_tokens=12)
    assert results and all(r.text in TEXTS and r.value == r.text for r in results)
    for result in results:
        assert math.isfinite(result.logprob) and not math.isnan(result.log_weight)
        assert b"".join(writer.vocabulary.tokens[t] for t in result.tokens).decode() == result.text
        assert result.stats.tokens == len(result.tokens)
        assert result.estimates is results[0].estimates and result.estimates.target
    assert sum(r.stats.forwards for r in results) == results[0].estimates.forwards > 0
    assert sum(r.stats.evaluations for r in results) == results[0].estimates.evaluations
    again = writer.sample("Ada", GRAMMAR, n=2, seed=5, max_tokens=12)
    assert [(r.tokens, r.log_weight) for r in again] == [(r.tokens, r.log_weight) for r in results]


def test_logprob_is_of_the_text_and_its_end(model, tokenizer):
    (result,) = tf.Generator(model, tokenizer).sample("Ada", GRAMMAR, seed=1, sampler=tf.CARS())
    prompt = tokenizer.encode("Ada")
    with torch.inference_mode():
        distribution = model(torch.tensor([prompt + result.tokens])).logits[0].double().log_softmax(-1)
    path = [*result.tokens, tokenizer.eos_token_id]
    expected = sum(float(distribution[len(prompt) - 1 + i, token]) for i, token in enumerate(path))
    assert result.logprob == pytest.approx(expected, abs=1e-8)


def test_batches_and_schemas(model, tokenizer):
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    schema["additionalProperties"] = False
    writer = tf.Generator(model, tokenizer)
    both = writer.sample(["x", "y"], [tf.json_schema(schema), GRAMMAR], n=3, seed=2, sampler=tf.SMC(4))
    assert {type(r.value["a"]) for r in both[0]} == {bool}
    assert {r.text for r in both[1]} <= set(TEXTS)


def test_what_does_not_fit_is_refused(model, tokenizer):
    writer = tf.Generator(model, tokenizer)
    with pytest.raises(errors.OptionError, match="streams need a Local"):
        writer.stream("x", GRAMMAR, sampler=tf.SMC(4))
    with pytest.raises(errors.OptionError, match="is no sampler"):
        writer.sample("x", GRAMMAR, sampler="greedy")
    twisted = tf.Generator(model, tokenizer, transforms=[lambda tokens, logits: logits])
    with pytest.raises(errors.OptionError, match="transforms, mixtures and penalties are for Local"):
        twisted.sample("x", GRAMMAR, sampler=tf.SMC(4))
    with pytest.raises(errors.BudgetTooSmall):
        writer.sample("x", tf.regex("a{40}"), sampler=tf.SMC(4), max_tokens=3)
