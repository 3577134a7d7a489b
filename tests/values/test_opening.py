"""Whether a bracket is a token of its own: the judge sums the model's own probabilities by plain passes."""

from __future__ import annotations

import collections
import re
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.decoding.speculative.drafters.spelling import Spelling
from tokenform.decoding.speculative.opening import APART, JOINED, Opening, opening
from tokenform.decoding.speculative.tree import ROOT

from .judge import generator, logprobs, shares, written_alike

BRACKET = tf.regex(r'\[("[a-z]{1,9}"|\n[a-z]{1,9})\]')
"""Behind the bracket stands a quote, which the judge's tokenizer joins with it, or a line break."""
LETTERS = re.compile(rb"[a-z]{1,9}\]?")
PROMPT = "newark"
OPEN = (12, 100, 158, 191)
"""Models that leave it open."""


def weights(gen: tf.Generator, before: list[int]) -> dict[bool, float]:
    """The log-probabilities of the bracket joined with a quote, and of one with a line break and letters."""
    tokens = [gen.vocabulary.token(one) for one in range(gen.vocabulary.size)]
    path, row = gen.spell(b"[\n"), logprobs(gen.model, before)[-1]
    joined = [row[one] for one, data in enumerate(tokens) if data.startswith(b'["')]
    (bracket, line), table = path, logprobs(gen.model, [*before, *path])
    reach = row[bracket] + table[-2][line]
    apart = [reach + table[-1][one] for one, data in enumerate(tokens) if LETTERS.fullmatch(data)]
    assert joined and apart and not any(data.startswith(b"\n") and data != b"\n" for data in tokens)
    return {True: float(np.logaddexp.reduce(joined)), False: float(np.logaddexp.reduce(apart))}


def is_joined(gen: tf.Generator, result: tf.Result[Any]) -> bool:
    return gen.vocabulary.token(result.tokens[0]) == b'["'


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_a_greedy_bracket_is_joined_where_that_is_likelier(drafter: Any) -> None:
    seen, by_token = collections.Counter[bool](), 0
    for seed in (*range(6), *OPEN):
        gen = generator("lists", seed=seed, drafter=drafter)
        (result,) = gen.sample(PROMPT, BRACKET, sampler=tf.Local(0.0), max_tokens=40)
        scores = weights(gen, gen.prompt_ids(PROMPT))
        assert is_joined(gen, result) == (scores[True] > scores[False]), seed
        assert result.text[1] == ('"' if is_joined(gen, result) else "\n")
        seen[is_joined(gen, result)] += 1
        (other,) = gen.sample(PROMPT, BRACKET, sampler=tf.Local(0.0, values="token"), max_tokens=40)
        by_token += is_joined(gen, other) != is_joined(gen, result)
    assert len(seen) == 2 and by_token  # the test can fail


def test_draws_have_the_probabilities_of_both() -> None:
    count = 400
    for seed in OPEN[:3]:
        gen = generator("lists", seed=seed)
        wanted = shares(weights(gen, gen.prompt_ids(PROMPT)))[True]
        assert 0.05 < wanted < 0.95
        drawn = gen.sample(PROMPT, BRACKET, n=count, seed=1, sampler=tf.Local(1.0), max_tokens=40)
        found = sum(is_joined(gen, one) for one in drawn) / count
        assert abs(found - wanted) < 4 * (wanted * (1 - wanted) / count) ** 0.5


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_seeds_batches_drafts_streams_and_schedulers_write_alike(temperature: float) -> None:
    written_alike(PROMPT, BRACKET, temperature, max_tokens=40, kind="lists")


@pytest.mark.parametrize("budget", range(4, 12))
def test_a_text_ends_within_its_budget(budget: int) -> None:
    for seed in range(6):
        (result,) = generator("lists", seed=seed).sample(
            PROMPT, BRACKET, sampler=tf.Local(0.0), max_tokens=budget
        )
        assert result.text.endswith("]") and len(result.tokens) <= budget


BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = tf.Vocabulary([*BYTES, b"<end>", b'["', b"[]", b"[1", b'a["'], eos=[256], special=[256])


def place(grammar: tf.Grammar, text: str = "") -> Opening | None:
    automaton = grammar.compile(VOCABULARY)
    state = automaton.step_bytes(automaton.start, text.encode())
    return opening(automaton, state, Spelling(VOCABULARY.tokens, None, [256]), frozenset([256]))


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (tf.regex(r"\[[a-z]+\]"), ""),  # nothing joins it with a letter
        (tf.regex(r"\[1?\]|a"), ""),  # it is not forced
        (tf.regex(r'\["[a-z]+"\]'), "["),
        (tf.json_schema({"type": "object"}), ""),
    ],
)
def test_other_places_are_none(grammar: tf.Grammar, text: str) -> None:
    assert place(grammar, text) is None


def test_what_the_tokenizer_joins_does_not_stand_alone() -> None:
    found = place(tf.json_schema({"type": "array", "items": {"type": "string"}}))
    assert found is not None
    data, bracket = VOCABULARY.tokens, found.leaves[APART][0]
    behind = {
        b"".join(map(data.__getitem__, [*found.tree.path(leaf), one]))
        for leaf in found.leaves[APART]
        for end in found.ends(leaf)
        if end.option == APART
        for one in end.tokens
    }
    assert {b'[ "', b'[\n"', b'[\n  "', b"[\n  ]", b"[\r"} <= behind
    assert not behind & {b'["', b"[]", b"[ ", b"[\n"}  # the tokenizer joins these, or more is known of them
    assert found.tree.path(bracket) == [ord("[")]
    (joined,) = [end for end in found.ends(ROOT) if end.option == JOINED]
    assert sorted(map(data.__getitem__, joined.tokens)) == [b'["', b"[]"]


def test_a_bracket_that_is_always_joined_is_not_written_alone() -> None:
    compact = tf.json_schema({"type": "array", "items": {"type": "string"}}, whitespace="compact")
    found = place(compact)
    assert found is not None and not found.leaves[APART] and found.begins(ord("["))
