"""Whether a text ends behind a word, or this gets longer: the judge sums the model's own probabilities."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.decoding.speculative.drafters.spelling import Spelling
from tokenform.decoding.speculative.word_end import WordEnd, word_end

from .judge import generator, logprobs, written_alike

WORD = tf.regex("no [a-z]+")
MARKED = tf.regex("no [a-z]+!")
"""A word that something must follow."""
PROMPT = "newark"


def longer(gen: tf.Generator, before: list[int]) -> float:
    """The model's probability of a token of letters alone."""
    row = np.exp(logprobs(gen.model, before)[-1])
    tokens = [gen.vocabulary.token(one) for one in range(gen.vocabulary.size)]
    return float(sum(row[one] for one, data in enumerate(tokens) if re.fullmatch(b"[a-z]+", data)))


def places(gen: tf.Generator, result: tf.Result[Any]) -> list[tuple[float, bool]]:
    """At each place behind a letter: the probability of a longer word, and whether it got longer."""
    found, ids, text = list[tuple[float, bool]](), gen.prompt_ids(PROMPT), b""
    for token in result.tokens:
        data = gen.vocabulary.token(token)
        if len(text) > len(b"no "):
            found.append((longer(gen, ids), not data.startswith(b"!")))
        if data.startswith(b"!"):
            return found
        ids.append(token)
        text += data
    return found if result.reason == "length" else [*found, (longer(gen, ids), False)]


@pytest.mark.parametrize("drafter", [None, "auto"])
@pytest.mark.parametrize("grammar", [WORD, MARKED], ids=["ends", "marked"])
def test_a_greedy_word_gets_longer_where_that_is_likelier_than_all_else(
    grammar: tf.Grammar, drafter: Any
) -> None:
    seen, by_token = set[bool](), 0
    for seed in range(16):
        gen = generator(seed=seed, drafter=drafter)
        (result,) = gen.sample(PROMPT, grammar, sampler=tf.Local(0.0), max_tokens=24)
        for chance, grew in places(gen, result):
            assert grew == (chance > 0.5), seed
            seen.add(grew)
        (other,) = gen.sample(PROMPT, grammar, sampler=tf.Local(0.0, values="token"), max_tokens=24)
        by_token += other.text != result.text
    assert False in seen and by_token  # the test can fail


def test_draws_get_longer_with_the_models_probability() -> None:
    count, wanted, found = 400, 0.0, 0
    gen = generator(seed=5)
    for result in gen.sample(PROMPT, WORD, n=count, seed=1, sampler=tf.Local(1.0), max_tokens=24):
        (chance, grew), *_ = places(gen, result)
        wanted, found = wanted + chance, found + grew
    assert 0.01 < wanted / count < 0.99
    assert abs(found - wanted) < 4 * (wanted * (1 - wanted / count)) ** 0.5


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("grammar", [WORD, MARKED], ids=["ends", "marked"])
def test_seeds_batches_drafts_streams_and_schedulers_write_alike(
    grammar: tf.Grammar, temperature: float
) -> None:
    written_alike(PROMPT, grammar, temperature, max_tokens=24)


SHORT = tf.json_schema({"type": "string", "maxLength": 24}, whitespace="compact")


def near_ends(gen: tf.Generator, result: tf.Result[Any]) -> list[tuple[float, float, bool]]:
    """At each place behind a word, with few characters left: the probability of all that goes on and of the
    likeliest of it, and whether the string went on."""
    automaton, ids, found = SHORT.compile(gen.vocabulary), gen.prompt_ids(PROMPT), list[Any]()
    state, text, last = automaton.start, b"", b""
    for token in result.tokens:
        data = gen.vocabulary.token(token)
        left = 24 - len(text.decode(errors="ignore")) + 1
        if text and left <= 16 and re.fullmatch(rb"\s.*[\w\x80-\xff]", last, re.DOTALL):
            on = [t for t in automaton.allowed_tokens(state) if gen.vocabulary.token(int(t))[:1] != b'"']
            row = np.exp(logprobs(gen.model, ids)[-1])[on]
            if len(row):
                found.append((float(row.sum()), float(row.max()), data[:1] != b'"'))
        ids.append(token)
        text, last, state = text + data, data, automaton.advance(state, token)
    return found


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_a_string_without_room_ends_behind_a_word_where_no_token_has_more(drafter: Any) -> None:
    seen, by_token = set[bool](), 0
    for seed in range(24):
        gen = generator(seed=seed, drafter=drafter)
        (result,) = gen.sample(PROMPT, SHORT, sampler=tf.Local(0.0), max_tokens=40)
        for total, likeliest, went_on in near_ends(gen, result):
            assert went_on == (likeliest > 1 - total), seed
            seen.add(went_on)
        (other,) = gen.sample(PROMPT, SHORT, sampler=tf.Local(0.0, values="token"), max_tokens=40)
        by_token += other.text != result.text
    assert False in seen and by_token


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_strings_without_room_are_written_alike(temperature: float) -> None:
    written_alike(PROMPT, SHORT, temperature, max_tokens=40)


BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = tf.Vocabulary([*BYTES, b"<end>", b"12", b"1 "], eos=[256], special=[256])


def place(pattern: str, text: str) -> WordEnd | None:
    automaton = tf.regex(pattern).compile(VOCABULARY)
    state = automaton.step_bytes(automaton.start, text.encode())
    return word_end(
        automaton, state, Spelling(VOCABULARY.tokens, None, VOCABULARY.special), frozenset(VOCABULARY.eos)
    )


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("move [0-9]+", "move 3"),
        (r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", "12"),
        (r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", "12.5"),
        (r"\w+", "Zürich"),
        ("[a-z]{1,8}", "oslo"),
    ],
)
def test_a_word_that_can_only_get_longer_is_weighed(pattern: str, text: str) -> None:
    found = place(pattern, text)
    assert found is not None and found.after[ord("3")] and found.after[0xBC] and not found.after[ord(" ")]
    ends, longer = found.parts()
    assert set(ends.tolist()) == {256} and 256 not in longer and len(longer)


def test_a_low_temperature_takes_the_likelier_of_the_two() -> None:
    found = place("[a-z]+", "pen")
    assert found is not None
    for temperature in (1e-3, 1e-2, 0.1):
        local = tf.Local(temperature)
        for seed in range(20):
            assert not found.ends(1 - 1e-12, 0.5, local, (seed, 0, 0))
            assert found.ends(1e-12, 1e-12, local, (seed, 0, 0))


def test_a_word_that_one_character_must_follow_is_weighed_against_it() -> None:
    found = place("[a-z]+=[0-9]", "pen")
    assert found is not None
    ends, longer = found.parts()
    assert set(ends.tolist()) == {ord("=")} and set(longer.tolist()) == set(range(ord("a"), ord("z") + 1))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[a-z]+[=:][0-9]", "pen"),
        ("[a-z ]*", "the capital of"),  # a refused "F" says nothing of the end
        (r"[0-9]+(\+[0-9]+)*", "3"),
        ("[0-9]{4}", "123"),  # it may not end
        ("[0-9]{4}", "1234"),  # it ends
        ("[0-9]+ ?", "1"),
    ],
)
def test_other_places_are_none(pattern: str, text: str) -> None:
    assert place(pattern, text) is None
