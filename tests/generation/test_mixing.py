"""Second models, second prompts and penalties as options of a generator."""

from __future__ import annotations

import pytest
import torch
from tests.generation.conftest import small_llama

import tokenform as tf
from tokenform import errors

GRAMMAR = tf.regex(r"[a-z]{2,6}( [a-z]{2,6}){0,3}")
MIXTURES = {
    "contrastive": lambda: tf.targets.Contrastive(0.6, 0.05),
    "context-aware": lambda: tf.targets.ContextAware(0.8),
    "safety": lambda: tf.targets.Safety(0.5),
    "anchored": lambda: tf.targets.Anchored(0.1),
}


@pytest.fixture(scope="module")
def other(tokenizer):
    return small_llama(len(tokenizer) + 5, seed=7)


def first_distribution(model, other, tokenizer, mixture, prompts) -> torch.Tensor:
    """The mixture's scores of the first token, from plain forward passes."""
    from tokenform.decoding.speculative.node import Node

    automaton = GRAMMAR.compile(tf.Generator(model, tokenizer).vocabulary)
    size = automaton.vocabulary.size
    rows = []
    for net, prompt in zip((model, other), prompts, strict=True):
        with torch.inference_mode():
            rows.append(net(torch.tensor([tokenizer.encode(prompt)])).logits[0, -1, :size])
    scores = mixture(rows, Node([0], (), 1, automaton, automaton.start))
    allowed = torch.zeros(size, dtype=torch.bool)
    allowed[torch.from_numpy(automaton.allowed_tokens(automaton.start)).long()] = True
    return scores.masked_fill(~allowed, float("-inf"))


@pytest.mark.parametrize("second", ["model", "prompt"])
@pytest.mark.parametrize("kind", MIXTURES)
def test_drafts_change_no_text_of_a_mixture(model, tokenizer, other, kind, second):
    mixture, texts = MIXTURES[kind](), []
    options = {"companion": other} if second == "model" else {}
    for drafter in (None, "auto", tf.drafters.NGram()):
        writer = tf.Generator(
            model, tokenizer, sampler=tf.Local(1.2), drafter=drafter, mixture=mixture, **options
        )
        results = writer.sample(["Ada", "x"], GRAMMAR, n=2, seed=3, max_tokens=24, companion_prompt="Grace")
        texts.append([r.tokens for group in results for r in group])
        assert all(GRAMMAR.compile(writer.vocabulary).matches(r.text.encode()) for g in results for r in g)
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("kind", MIXTURES)
def test_greedy_takes_the_best_token_of_the_mixture(model, tokenizer, other, kind):
    mixture = MIXTURES[kind]()
    writer = tf.Generator(model, tokenizer, mixture=mixture, companion=other)
    result = writer.sample("Ada", GRAMMAR, max_tokens=30, companion_prompt="Grace")[0]
    scores = first_distribution(model, other, tokenizer, mixture, ("Ada", "Grace"))
    assert result.tokens[0] == int(scores.argmax())


def test_penalties_change_the_text_and_drafts_do_not(model, tokenizer):
    letters, liked = tf.regex("[a-z]{12}"), tokenizer.encode("q")[0]

    def favour(tokens, logits):
        logits[liked] += 1e3
        return logits

    texts = [
        tf.Generator(model, tokenizer, drafter=d, penalties=p, transforms=[favour]).sample("Ada", letters)[0]
        for d in (None, "auto")
        for p in (None, tf.targets.Penalties(frequency=1e4))
    ]
    assert texts[0].text == texts[2].text == 12 * "q"
    assert texts[1].tokens == texts[3].tokens and len(set(texts[1].tokens)) == len(texts[1].tokens)


def test_generate_takes_the_same_options(model, tokenizer, other):
    mixture = tf.targets.Safety(0.9)
    options = {"grammar": GRAMMAR, "max_tokens": 24, "model": model, "tokenizer": tokenizer}
    result = tf.generate("Ada", mixture=mixture, companion=other, companion_prompt="x", **options)
    writer = tf.Generator(model, tokenizer, mixture=mixture, companion=other)
    assert result.tokens == writer.sample("Ada", GRAMMAR, max_tokens=24, companion_prompt="x")[0].tokens
    assert result.tokens != tf.generate("Ada", **options).tokens


def test_a_budget_that_the_mixture_would_miss_is_kept(model, tokenizer, other):
    writer = tf.Generator(model, tokenizer, mixture=tf.targets.Contrastive(0.9, 1.0), companion=other)
    automaton = GRAMMAR.compile(writer.vocabulary)
    for budget in range(automaton.distance(automaton.start), 5):
        result = writer.sample("Ada", GRAMMAR, max_tokens=budget)[0]
        assert len(result.tokens) <= budget and automaton.matches(result.text.encode())


def test_options_that_do_not_fit_are_refused(model, tokenizer, other):
    with pytest.raises(errors.OptionError, match="mixture="):
        tf.Generator(model, tokenizer, companion=other)
    with pytest.raises(errors.OptionError, match="mixture="):
        tf.Generator(model, tokenizer).sample("x", GRAMMAR, companion_prompt="y")
    writer = tf.Generator(model, tokenizer, mixture=tf.targets.Safety())
    with pytest.raises(errors.OptionError, match="paired"):
        writer.sample(["x", "y"], GRAMMAR, companion_prompt=["z"])
    with pytest.raises(errors.OptionError, match="mixtures"):
        writer.sample("x", GRAMMAR, sampler=tf.CARS())


def test_a_prompt_that_fills_the_companion_is_refused(model, tokenizer):
    short = small_llama(len(tokenizer) + 5, seed=7)
    short.config.max_position_embeddings = 4
    writer = tf.Generator(model, tokenizer, companion=short, mixture=tf.targets.Safety(0.5))
    with pytest.raises(errors.PromptTooLong, match="companion reads and writes 4 at most"):
        writer.sample("Ada", GRAMMAR, companion_prompt=[1] * 9)
