"""Faithful samplers through the public calls: predicates, products, canonical targets, tries of a problem."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from test_backbone_lm import VOCABULARY, plain, tiny  # noqa: E402
from toy import EOS, TOKENS, toy_complete, toy_prefix  # noqa: E402

import tokenform as tf  # noqa: E402
from tokenform import errors  # noqa: E402
from tokenform.decoding.aligned.backbone_lm import SLOTS, BackboneLM  # noqa: E402
from tokenform.decoding.aligned.enumeration import enumerate_target  # noqa: E402

BYTES = [*TOKENS[:5], b"", *(b"%c" % (97 + i) for i in range(7))]
PROMPT = [0, 3]


@pytest.fixture(scope="module")
def writer():
    model = tiny("llama", seed=3)
    return tf.Generator(model, tf.Vocabulary(BYTES, eos=[EOS], special=[EOS]))


@pytest.fixture(scope="module")
def grammar():
    return tf.regex("00000|1[01]{4}")


def asked(name):
    return tf.predicate(toy_prefix, toy_complete, on="bytes", name=name)


def test_a_predicate_is_a_constraint_like_any_other(writer, grammar):
    exact = enumerate_target(writer.problem(PROMPT, grammar, sampler=tf.SMC(), max_tokens=8))
    lazy = enumerate_target(writer.problem(PROMPT, asked("toy"), sampler=tf.SMC(), max_tokens=8))
    both = enumerate_target(writer.problem(PROMPT, grammar & asked("toy"), sampler=tf.SMC(), max_tokens=8))
    assert exact.log_measure.keys() == lazy.log_measure.keys() == both.log_measure.keys()
    assert exact.log_z == pytest.approx(lazy.log_z) == pytest.approx(both.log_z)


@pytest.mark.parametrize(
    "sampler",
    [tf.ASAp(), tf.CARS(), tf.AWRS(), tf.SMC(4), tf.MCMC(2), tf.Beam()],
    ids=lambda s: type(s).__name__,
)
def test_every_sampler_takes_predicates_and_products(writer, grammar, sampler):
    odd = tf.predicate(complete=lambda text: text.count("1") % 2 == 1, name="odd")
    for constraint in (asked("toy") & odd, grammar & odd, odd & grammar):
        for result in writer.sample(PROMPT, constraint, n=2, seed=1, max_tokens=8, sampler=sampler):
            assert toy_complete(result.text.encode()) and result.text.count("1") % 2 == 1
            assert result.estimates.evaluations > 0


def test_generate_takes_samplers_and_predicates(writer):
    options = {"model": writer.model, "tokenizer": writer.vocabulary, "seed": 2, "max_tokens": 8}
    one = tf.generate(PROMPT, schema=asked("toy"), sampler=tf.SMC(4), **options)
    assert toy_complete(one.text.encode())
    texts = tf.generate([PROMPT, [1]], schema=asked("toy"), sampler=tf.CARS(), **options)
    assert len(texts) == 2 and all(toy_complete(result.text.encode()) for result in texts)
    with pytest.raises(errors.OptionError, match="its own temperature"):
        tf.generate(PROMPT, schema=asked("toy"), sampler=tf.SMC(4), temperature=0.5, **options)
    with pytest.raises(errors.OptionError, match="Local needs the mask"):
        tf.generate(PROMPT, schema=asked("toy"), **options)


def test_batched_and_async_predicates(writer):
    sizes = []

    def many(texts):
        sizes.append(len(texts))
        return [toy_prefix(text) for text in texts]

    async def later(text):
        await asyncio.sleep(0)
        return toy_complete(text)

    constraint = tf.predicate(many, on="bytes", batch=True) & tf.predicate(complete=later, on="bytes")
    results = writer.sample(PROMPT, constraint, n=3, seed=0, max_tokens=8, sampler=tf.SMC(8))
    assert all(toy_complete(result.text.encode()) for result in results)
    assert max(sizes) > 1


def test_conditions_are_refused_where_they_make_no_sense(writer):
    with pytest.raises(errors.OptionError, match="prefix function"):
        tf.predicate()
    with pytest.raises(errors.OptionError, match="on="):
        tf.predicate(toy_prefix, on="words")
    with pytest.raises(TypeError):
        asked("toy") & 3
    with pytest.raises(errors.OptionError, match="Local has no problem"):
        writer.problem(PROMPT, asked("toy"))
    with pytest.raises(errors.OptionError, match="canonical"):
        writer.problem(PROMPT, asked("toy"), sampler=tf.SMC(canonical=True))


def test_a_trie_of_a_problem_is_kept_and_used_by_others(writer, grammar, tmp_path):
    problem = writer.problem(PROMPT, grammar, sampler=tf.ASAp(), max_tokens=8)
    trie = tf.samplers.Trie(problem)
    tf.ASAp(trie=trie).sample(problem, 40, seed=0)
    tf.samplers.save_trie(trie, tmp_path / "trie.npz")
    again = writer.problem(PROMPT, grammar, sampler=tf.ASAp(), max_tokens=8)
    loaded = tf.samplers.load_trie(tmp_path / "trie.npz", again)
    assert loaded.certificate() == trie.certificate()
    exact = enumerate_target(again)
    log_z = tf.SMC(5, twist=loaded).sample(again, 60, seed=0).log_z
    assert abs(log_z.value - exact.log_z) <= 4.5 * log_z.error + 1e-6


@pytest.mark.parametrize("kind", ["llama", "gpt2", "sliding"])
def test_the_backbone_gives_the_distributions_of_plain_passes(kind, monkeypatch):
    model = tiny(kind)
    monkeypatch.setattr("tokenform.decoding.aligned.backbone_lm.SLOTS", 24)
    shared = BackboneLM(model, eos=[EOS])
    rng = np.random.default_rng(0)
    known = [tuple(rng.integers(0, VOCABULARY, 7).tolist())]
    for _ in range(12):
        batch = []
        for _ in range(int(rng.integers(1, 5))):
            base = known[int(rng.integers(len(known)))]
            base = base[: int(rng.integers(1, len(base) + 1))]
            batch.append((*base, *rng.integers(0, VOCABULARY, int(rng.integers(0, 4))).tolist()))
        known += batch
        for prefix, row in zip(batch, shared.logprobs(batch), strict=True):
            assert np.abs(row - plain(model, prefix)).max() < 2e-5
    assert shared.forwards <= 12
    assert SLOTS > 24 and shared._backbone.held_slots < 24 + sum(map(len, batch))


def test_particles_share_the_prompt_and_one_pass_a_step(writer, grammar):
    """16 particles after a prompt of 40 tokens: the prompt is there once, each step is one forward pass."""
    sampler = tf.SMC(16)
    problem = writer.problem([0, 3] * 20, grammar, sampler=sampler, max_tokens=8)
    sample = sampler.particles(problem, seed=0)
    steps = max(len(draw.tokens) for draw in sample.draws) + 1
    assert problem.model.forwards <= steps
    assert problem.model._backbone.held_slots <= 1 + 40 + sample.counts.rows
    assert isinstance(writer.language_model(), BackboneLM)
