"""Values of which there are few are decided as wholes: the judge scores each by a plain pass of its own."""

from __future__ import annotations

import collections
import json
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.scheduler import Scheduler
from tokenform.decoding.speculative.request import Request
from tokenform.errors import OptionError

from .judge import WORDS, backbones_write_alike, best, generator, logprobs, shares, text_logprob

PROMPT = "no newark"


def choice_scores(gen: tf.Generator, prompt: Any, options: list[str]) -> dict[str, float]:
    ids, eos = gen.prompt_ids(prompt), gen.vocabulary.eos
    return {o: text_logprob(gen.model, ids, gen.spell(o.encode()), eos) for o in options}


OPTIONS = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text("abn ewyo!ü", min_size=1, max_size=6)),
    min_size=2,
    max_size=12,
    unique=True,
)


@settings(max_examples=60, deadline=None)
@given(
    OPTIONS,
    st.integers(0, 3),
    st.sampled_from(["bytes", "marks"]),
    st.sampled_from([None, "auto"]),
    st.text("abno ", max_size=5),
)
def test_a_greedy_choice_is_the_likeliest_whole_one(options, seed, kind, drafter, more) -> None:
    gen = generator(kind, seed, drafter=drafter)
    scores = choice_scores(gen, PROMPT + more, options)
    (result,) = gen.sample(PROMPT + more, tf.choice(options))
    assert scores[result.text] >= max(scores.values()) - 1e-9


def test_token_by_token_is_another_law() -> None:
    """What is tested above can fail: over some prompts masks take another option."""
    differ = 0
    for seed in range(4):
        gen = generator(seed=seed)
        for number in range(10):
            prompt = f"{PROMPT} {number}"
            scores = choice_scores(gen, prompt, WORDS)
            (token,) = gen.sample(prompt, tf.choice(WORDS), sampler=tf.Local(0.0, values="token"))
            (whole,) = gen.sample(prompt, tf.choice(WORDS))
            assert whole.text == best(scores)
            differ += token.text != whole.text
    assert differ >= 10


@pytest.mark.parametrize("count", [300, 1500])
def test_many_options_need_few_passes(count: int) -> None:
    options = [f"{word}{number}" for number in range(count // 3) for word in ("no ", "new", "Zürich")]
    gen = generator(drafter=None)
    scores = choice_scores(gen, PROMPT, options[:300])
    for top in (options[:300], options):
        (result,) = gen.sample(PROMPT, tf.choice(top))
        if len(top) == 300:
            assert result.text == best(scores)
        assert result.stats.forwards <= 12


@pytest.mark.parametrize("mode", ["tree", "chain", "plain"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_models_that_score_no_trees_decide_alike(mode: str, temperature: float) -> None:
    gen = generator()
    sampler = MaskedSampler(tf.Local(temperature), gen.vocabulary.size, gen.vocabulary.eos)
    automaton = tf.choice(WORDS).compile(gen.vocabulary)
    eos = frozenset(gen.vocabulary.eos)
    requests = [
        Request(gen.prompt_ids(f"{PROMPT} {seed}"), sampler, automaton, eos=eos, seed=seed, encode=gen.spell)
        for seed in range(6)
    ]
    backbones_write_alike(gen, mode, requests)


SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"enum": ["new", "new york", "no", "no!", 'q"', None]},
        "b": {"type": "boolean"},
        "n": {"enum": [1, 10, 100, -1.5, "1"]},
        "z": {"anyOf": [{"const": "The Hague"}, {"const": "the"}]},
    },
    "required": ["a", "b", "n", "z"],
    "additionalProperties": False,
}
VALUES = {
    "a": SCHEMA["properties"]["a"]["enum"],
    "b": [True, False],
    "n": SCHEMA["properties"]["n"]["enum"],
    "z": ["The Hague", "the"],
}


@pytest.mark.parametrize("drafter", [None, "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_each_finite_value_of_a_document_is_the_likeliest_whole_one(seed: int, drafter: Any) -> None:
    gen, grammar = generator(seed=seed, drafter=drafter), tf.json_schema(SCHEMA, whitespace="compact")
    for number in range(4):
        prompt = f"{PROMPT} {number}"
        (result,) = gen.sample(prompt, grammar)
        for key, values in VALUES.items():
            field = result.field(f"/{key}")
            written = result.tokens[: field.tokens.start]
            ids = [*gen.prompt_ids(prompt), *written]
            begun = sum(len(gen.vocabulary.token(t)) for t in written)
            if begun != len(result.text[: field.start].encode()):
                continue  # a token holds the colon and the quote
            scores = scores_after(gen, grammar, ids, written, values)
            text = json.dumps(field.value, ensure_ascii=False)
            assert scores[text] >= max(scores.values()) - 1e-9, (key, scores)


def scores_after(gen, grammar, ids, written, values) -> dict[str, float]:
    automaton, tokens, eos = grammar.compile(gen.vocabulary), gen.vocabulary.tokens, gen.vocabulary.eos
    state, found = automaton.start, {}
    for token in written:
        state = automaton.advance(state, token)
    for value in values:
        text = json.dumps(value, ensure_ascii=False).encode()
        spelled, rest = gen.spell(text), b""
        if isinstance(value, str):
            spelled, rest = spelled[:-1], tokens[spelled[-1]]
        here = state
        for token in spelled:
            here = automaton.advance(here, token)
        allowed = automaton.allowed_tokens(here).tolist()
        if isinstance(value, str):
            ends = [t for t in allowed if t not in eos and tokens[t].startswith(rest)]
        else:
            ends = [t for t in allowed if t in eos or tokens[t][:1] in (b" ", b"\n", b",", b"]", b"}")]
        found[text.decode()] = text_logprob(gen.model, ids, spelled, ends)
    return found


def frequencies(
    gen: tf.Generator, grammar: Any, local: tf.Local, count: int, **options: Any
) -> dict[str, float]:
    results = gen.sample(PROMPT, grammar, n=count, seed=7, sampler=local, logprobs=False, **options)
    drawn = collections.Counter(one.text for one in results)
    return {text: number / count for text, number in drawn.items()}


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_draws_have_the_probabilities_of_whole_values(temperature: float) -> None:
    gen, count = generator(batch_size=64), 1500
    wanted = shares(choice_scores(gen, PROMPT, WORDS), temperature)
    drawn = frequencies(gen, tf.choice(WORDS), tf.Local(temperature), count)
    for word, share in wanted.items():
        assert abs(drawn.get(word, 0.0) - share) <= 4 * (share * (1 - share) / count) ** 0.5 + 1e-3


def test_truncation_is_of_values() -> None:
    gen = generator(batch_size=64)
    wanted = sorted(shares(choice_scores(gen, PROMPT, WORDS), 3.0).items(), key=lambda one: -one[1])
    for local, kept in [
        (tf.Local(3.0, top_k=3), {word for word, _ in wanted[:3]}),
        (tf.Local(3.0, top_k=1), {wanted[0][0]}),
        (tf.Local(3.0, min_p=0.5), {word for word, share in wanted if share >= 0.5 * wanted[0][1]}),
        (tf.Local(3.0, top_p=wanted[0][1] + 1e-6), {word for word, _ in wanted[:2]}),
    ]:
        assert set(frequencies(gen, tf.choice(WORDS), local, 200)) == kept, local


def test_seeds_batches_drafts_streams_and_schedulers_draw_alike() -> None:
    grammar, local = tf.json_schema(SCHEMA), tf.Local(1.5)
    gen, plain = generator(), generator(drafter=None)
    prompts = [f"{PROMPT} {number}" for number in range(5)]
    batch = [one[0].text for one in gen.sample(prompts, grammar, seed=3, sampler=local)]
    assert batch == [gen.sample(one, grammar, seed=3, sampler=local)[0].text for one in prompts]
    assert batch == [one[0].text for one in plain.sample(prompts, grammar, seed=3, sampler=local)]
    assert batch == ["".join(gen.stream(one, grammar, seed=3, sampler=local)) for one in prompts]
    with Scheduler(gen) as scheduler:
        jobs = [scheduler.submit(one, grammar, seed=3, sampler=local) for one in prompts]
        assert batch == [job.future.result()[0].text for job in jobs]


def test_probabilities_are_those_of_plain_passes() -> None:
    gen = generator()
    wanted = shares(choice_scores(gen, PROMPT, WORDS))
    for local in (tf.Local(0.0), tf.Local(0.0, values="token"), tf.Local(1.0)):
        (result,) = gen.sample(PROMPT, tf.choice(WORDS), sampler=local, seed=1)
        assert result.probabilities == pytest.approx(wanted)
    (result,) = gen.sample(PROMPT, Literal["new", "new york", "no"])
    assert set(result.probabilities) == {"new", "new york", "no"}
    assert sum(result.probabilities.values()) == pytest.approx(1)
    grammar = tf.json_schema(SCHEMA, whitespace="compact")
    for prompt in ("a", "b", "c"):
        (whole,) = gen.sample(prompt, grammar)
        for key in VALUES:
            known = whole.field(f"/{key}").probabilities
            assert next(iter(known)) == whole.value[key]
    with pytest.raises(OptionError, match="many values"):
        _ = gen.sample(PROMPT, tf.regex("[a-z]{5,9}"))[0].probabilities


def test_a_budget_leaves_the_values_that_fit() -> None:
    gen = generator()
    for number in range(6):
        prompt = f"{PROMPT} {number}"
        scores = choice_scores(gen, prompt, WORDS)
        fits = {word: score for word, score in scores.items() if len(gen.spell(word.encode())) <= 2}
        (result,) = gen.sample(prompt, tf.choice(WORDS), max_tokens=2)
        assert result.text == best(fits)


def test_transforms_and_mixtures_are_part_of_a_value() -> None:
    banned = set("z")

    def transform(tokens: Any, logits: Any) -> Any:
        logits = logits.clone()
        logits[: len(logits) // 2] -= 3.0
        return logits

    gen = generator(transforms=[transform])
    ids, eos = gen.prompt_ids(PROMPT), gen.vocabulary.eos
    scores = {}
    for word in WORDS:
        tokens, total = gen.spell(word.encode()), 0.0
        table = logprobs(gen.model, [*ids, *tokens])[len(ids) - 1 :].copy()
        table[:, : table.shape[1] // 2] -= 3.0
        table -= np.logaddexp.reduce(table, -1, keepdims=True)
        total = sum(table[at][token] for at, token in enumerate(tokens))
        scores[word] = total + np.logaddexp.reduce([table[-1][end] for end in eos])
    (result,) = gen.sample(PROMPT, tf.choice(WORDS))
    assert result.text == best(scores) and banned
    assert result.logprob == pytest.approx(sum(result.token_logprobs))


def test_listed_logits_change_no_value() -> None:
    gen, grammar = generator(), tf.json_schema(SCHEMA)
    for seed in range(4):
        told = gen.sample(PROMPT, grammar, seed=seed, sampler=tf.Local(1.0))[0].text
        assert gen.sample(PROMPT, grammar, seed=seed, sampler=tf.Local(1.0), logprobs=False)[0].text == told


def test_whole_values_need_no_more_passes() -> None:
    for drafter in (None, "auto"):
        gen, passes = generator(drafter=drafter), collections.Counter()
        for number in range(12):
            for values in ("token", "whole"):
                local = tf.Local(0.0, values=values)
                for grammar in (tf.choice(WORDS), tf.json_schema(SCHEMA, whitespace="compact")):
                    (result,) = gen.sample(f"{PROMPT} {number}", grammar, sampler=local)
                    passes[values] += result.stats.forwards
        assert passes["whole"] <= passes["token"], passes
