"""Validators in Python guide what is drawn: every result is valid and comes as often as it should."""

from __future__ import annotations

import math
import time
from typing import Annotated, Any

import pytest
from benchmarks.suites.validators import (
    TYPES,
    Distance,
    Divided,
    Even,
    Palindrome,
    Seven,
    distance,
    grammar_of,
    only,
    valid,
)
from pydantic import BaseModel, Field, field_validator

import tokenform as tf
from tokenform import errors

PROMPT = "A number"


HARD = {"Counted", "Quarter", "Exactly", "Twins"}  # one text in thousands is valid
TWENTY = [pytest.param(tp, marks=[pytest.mark.slow] * (tp.__name__ in HARD), id=tp.__name__) for tp in TYPES]


@pytest.mark.parametrize("tp", TWENTY)
def test_every_result_is_valid(small: tf.Generator, tp: Any) -> None:
    results = small.sample(PROMPT, grammar_of(tp), n=3, seed=5, sampler=tf.Local(), max_tries=20_000)
    greedy = small.sample(PROMPT, grammar_of(tp), max_tries=20_000)
    for result in (*results, *greedy):
        assert valid(tp, result.text) and result.error is None
        assert grammar_of(tp).parse(result.text) == result.value
        assert math.isclose(sum(result.token_logprobs), result.logprob)
    assert results[0].valid_share is not None and 0 < results[0].valid_share <= 1


@pytest.mark.parametrize("tp", [Even, Palindrome], ids=lambda tp: tp.__name__)
def test_valid_texts_come_as_often_as_the_conditional_says(small: tf.Generator, tp: Any) -> None:
    as_exact_as_it_says(distance(small, PROMPT, tp, 700))


@pytest.mark.slow
@pytest.mark.parametrize("tp", TYPES, ids=lambda tp: tp.__name__)
def test_all_twenty_come_as_often_as_the_conditional_says(bytewise: tf.Generator, tp: Any) -> None:
    found = distance(bytewise, list(PROMPT.encode()), tp)
    print(f"{tp.__name__}: {found.distance:.4f} of {found.draws} draws, share {found.share:.2g}")
    as_exact_as_it_says(found)


def as_exact_as_it_says(found: Distance) -> None:
    assert found.distance <= 0.05
    known = found.estimates
    assert known.exact and known.log_z is not None and known.log_z_error is not None
    assert abs(known.log_z - math.log(found.share)) < 5 * known.log_z_error


def test_a_valid_text_costs_less_than_asking_again(small: tf.Generator) -> None:
    for tp in (Seven, Divided):
        results = small.sample(PROMPT, grammar_of(tp), n=10, seed=2, sampler=tf.Local(), max_tries=50_000)
        passes = sum(result.stats.forwards for result in results) / 10
        share = results[0].valid_share
        again = (len(results[0].tokens) + 1) / (share or 1.0)
        assert passes < again / 4


def test_a_field_asked_alone_again_would_come_too_often() -> None:
    """What "exact" means: beginnings that seldom lead to a valid field must become rare."""
    distribution = {("a", 0): 0.5 * 0.9, ("a", 1): 0.5 * 0.1, ("b", 0): 0.5 * 0.1, ("b", 1): 0.5 * 0.9}
    mass = sum(p for (_, bit), p in distribution.items() if bit)
    assert math.isclose(distribution["a", 1] / mass, 0.1)  # drawing the bit alone again would leave 0.5


def test_greedy_text_that_is_valid_stays(small: tf.Generator) -> None:
    class Loose(BaseModel):
        n: Annotated[int, Field(ge=0, le=99)]

    plain = small.sample(PROMPT, grammar_of(Loose))[0].text

    class Kept(Loose):
        @field_validator("n")
        @classmethod
        def same(cls, value: int) -> int:
            assert value == Loose.model_validate_json(plain).n
            return value

    class Barred(Loose):
        @field_validator("n")
        @classmethod
        def other(cls, value: int) -> int:
            assert value != Loose.model_validate_json(plain).n
            return value

    assert small.sample(PROMPT, grammar_of(Kept))[0].text == plain
    other = small.sample(PROMPT, grammar_of(Barred))[0]
    assert other.text != plain and valid(Barred, other.text)


class Picky(BaseModel):
    n: Annotated[int, Field(ge=0, le=9)]

    @field_validator("n")
    @classmethod
    def small_one(cls, value: int) -> int:
        if value > 4:
            raise ValueError(f"{value} is too large")
        return value


def test_one_refusal_does_not_lose_the_batch(small: tf.Generator) -> None:
    local = tf.Local(values="token")  # the law from which texts are drawn again
    options: dict[str, Any] = {"n": 12, "seed": 4, "sampler": local}
    back = small.sample(PROMPT, grammar_of(Picky), on_invalid="return", **options)
    refused = [result for result in back if result.error is not None]
    assert 0 < len(refused) < 12
    for result in refused:
        assert result.error.text == result.text and result.value == result.error.partial
        assert result.error.pointer == "/n" and "too large" in str(result.error)
    with pytest.raises(errors.InvalidType) as caught:
        small.sample(PROMPT, grammar_of(Picky), on_invalid="raise", **options)
    assert [one is None for one in caught.value.results] == [one.error is not None for one in back]
    mixed = small.sample(PROMPT, grammar_of(Picky), on_invalid="raise", on_error="return", **options)
    assert sum(isinstance(one, errors.InvalidType) for one in mixed) == len(refused)
    again = small.sample(PROMPT, grammar_of(Picky), **options)
    kept = [(a.text, b.text) for a, b in zip(again, back, strict=True) if b.error is None]
    assert all(a == b for a, b in kept) and all(one.value.n <= 4 for one in again)


def test_tries_are_bounded(small: tf.Generator) -> None:
    class Never(BaseModel):
        n: Annotated[int, Field(ge=0, le=9), only(lambda value: False)]

    class Rare(BaseModel):
        n: Annotated[int, Field(ge=0, le=10**9), only(lambda value: value == 123_456_789)]

    with pytest.raises(errors.InvalidType, match="no text that the masks allow is left") as caught:
        small.sample(PROMPT, grammar_of(Never))
    assert caught.value.text is not None
    with pytest.raises(errors.InvalidType, match="none of 5 tries passed"):
        small.sample(PROMPT, grammar_of(Rare), max_tries=5, sampler=tf.Local(), seed=0)


def test_the_callers_own_mistakes_are_raised_as_they_are(small: tf.Generator) -> None:
    calls = []

    class Broken(BaseModel):
        n: Annotated[int, Field(ge=0, le=9)]

        @field_validator("n")
        @classmethod
        def broken(cls, value: int) -> int:
            calls.append(value)
            return 1 // (value - value)

    for sampler in (tf.Local(), tf.CARS()):
        calls.clear()
        with pytest.raises(ZeroDivisionError) as caught:
            small.sample(PROMPT, grammar_of(Broken), seed=0, sampler=sampler)
        assert any(entry.name == "broken" for entry in caught.traceback) and len(calls) == 1


@pytest.mark.parametrize("sampler", [tf.CARS(), tf.SMC(64), tf.AWRS()], ids=lambda s: type(s).__name__)
def test_faithful_samplers_know_validators_too(small: tf.Generator, sampler: Any) -> None:
    for result in small.sample(PROMPT, grammar_of(Picky), n=3, seed=0, sampler=sampler):
        assert result.value.n <= 4
    if isinstance(sampler, tf.CARS):
        back = small.sample(PROMPT, grammar_of(Picky), n=40, seed=0, sampler=sampler, on_invalid="return")
        assert any(result.error is not None for result in back)


def test_results_do_not_depend_on_the_rest_of_the_batch(small: tf.Generator) -> None:
    alone = small.sample(PROMPT, grammar_of(Picky), n=3, seed=9, sampler=tf.Local())
    other = small.sample(["Another", PROMPT], grammar_of(Picky), n=5, seed=9, sampler=tf.Local())
    assert [one.text for one in alone] == [one.text for one in other[1][:3]]


def test_streams_raise_what_validators_refuse(small: tf.Generator) -> None:
    class Never(BaseModel):
        n: Annotated[int, Field(ge=0, le=9), only(lambda value: False)]

    with pytest.raises(errors.InvalidType, match="/n"):
        "".join(small.stream(PROMPT, grammar_of(Never)))


class Shouted(BaseModel):
    word: Annotated[str, Field(pattern="^[a-z]{1,4}$")]

    @field_validator("word")
    @classmethod
    def never(cls, value: str) -> str:
        raise ValueError(f"{value} is not shouted")


@pytest.mark.parametrize("sampler", [None, tf.Local()], ids=["greedy", "drawn"])
def test_what_always_refuses_ends_soon_and_says_what_was_tried(small: tf.Generator, sampler: Any) -> None:
    with pytest.raises(errors.InvalidType, match="none of 50 tries passed") as caught:
        small.sample(PROMPT, grammar_of(Shouted), sampler=sampler, seed=0)
    said = str(caught.value)
    assert "at most" in said and "is not shouted" in said and repr(caught.value.text) in said
    for way in ("feedback=True", "max_tries", "on_invalid"):
        assert way in said
    assert caught.value.pointer == "/word"


def test_no_more_is_said_of_the_share_than_is_known(small: tf.Generator) -> None:
    """With a validator that none of N draws passes the share is at most 3 / N, 19 times of 20."""

    class Rare(BaseModel):
        n: Annotated[int, Field(ge=0, le=9), only(lambda value: value == 7)]

    share = small.sample(PROMPT, grammar_of(Rare), n=40, seed=1, sampler=tf.Local())[0].valid_share
    assert share is not None
    wrong = tried = 0
    for seed in range(60):
        try:
            small.sample(PROMPT, grammar_of(Rare), seed=seed, sampler=tf.Local(), max_tries=2)
        except errors.InvalidType as error:
            tried += 1
            bound = float(str(error).partition("at most ")[2].partition(" ")[0])
            wrong += share > bound * 1.01
    assert tried == 0 or wrong <= max(3, 0.15 * tried)


def test_time_is_limited(small: tf.Generator) -> None:
    began = time.monotonic()
    with pytest.raises(errors.InvalidType, match="max_seconds"):
        small.sample(PROMPT, grammar_of(Shouted), max_tries=10**6, max_seconds=0.5)
    assert time.monotonic() - began < 30  # no time of the machine's: a hang would be an hour
    with pytest.raises(errors.OptionError, match="max_seconds"):
        small.sample(PROMPT, grammar_of(Shouted), max_seconds=0)


class Chat:
    """What a generator reads, written down."""

    def __init__(self, generator: tf.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[Any] = []
        own = generator.rows
        monkeypatch.setattr(generator, "rows", lambda prompt, *more, **rest: (
            self.read.append(prompt), own(prompt, *more, **rest))[1])  # fmt: skip


def test_feedback_shows_the_text_and_what_is_wrong(
    small: tf.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Chat(small, monkeypatch)
    with pytest.raises(errors.InvalidType, match="none of 3 turns") as caught:
        small.sample(PROMPT, grammar_of(Shouted), feedback=True, seed=0)
    first, *turns = seen.read
    assert first == PROMPT and len(turns) == 3
    for turn in turns:  # no chat template: as text
        assert turn.startswith(PROMPT) and "word: Value error, " in turn and "is not shouted" in turn
        assert "https://" not in turn and '{"word"' in turn
    assert "is not shouted" in str(caught.value) and caught.value.text
    monkeypatch.setattr(
        small.tokenizer, "chat_template", "{% for m in messages %}{{ m.content }} {% endfor %}"
    )
    seen.read.clear()
    with pytest.raises(errors.InvalidType, match="none of 1 turns"):
        small.sample(PROMPT, grammar_of(Shouted), feedback=True, max_tries=1)
    messages = seen.read[1].prompt
    assert [one["role"] for one in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"].endswith(PROMPT) and "is not shouted" in messages[2]["content"]
    with pytest.raises(errors.OptionError, match="feedback"):
        small.sample([1, 2], grammar_of(Shouted), feedback=True)


def test_a_turn_that_helps_is_the_result(small: tf.Generator) -> None:
    local = tf.Local(values="token")
    results = small.sample(
        PROMPT, grammar_of(Picky), n=12, seed=4, sampler=local, feedback=True, max_tries=40
    )
    back = small.sample(PROMPT, grammar_of(Picky), n=12, seed=4, sampler=local, on_invalid="return")
    assert all(one.value.n <= 4 for one in results) and any(one.error for one in back)
    assert all(a.text == b.text for a, b in zip(results, back, strict=True) if b.error is None)


def test_a_text_drawn_again_says_that_the_budget_cut_in(small: tf.Generator) -> None:
    class Longer(BaseModel):
        word: Annotated[str, Field(pattern="^[a-z]+$"), only(lambda value: "a" in value)]

    reasons = set()
    for seed in range(8):
        for tokens in (14, 200):
            try:
                (one,) = small.sample(
                    PROMPT, grammar_of(Longer), seed=seed, max_tokens=tokens, sampler=tf.Local()
                )
            except errors.InvalidType:
                continue
            assert (one.reason == "length") == (one.cut_at is not None)
            reasons.add((tokens, one.reason))
    assert (14, "length") in reasons


class Labelled(BaseModel):
    n: Annotated[int, Field(ge=0, le=9999)]
    label: str

    @field_validator("n")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


@pytest.mark.parametrize("truncation", [{"top_k": 5}, {"top_p": 0.3}, {}], ids=str)
@pytest.mark.parametrize("budget", range(8, 13))
def test_texts_are_drawn_again_within_a_tight_budget(budget: int, truncation: dict[str, Any]) -> None:
    for seed in range(3):
        options: Any = {"max_tokens": budget, "seed": seed, "on_error": "return", **truncation}
        for temperature in (0.0, 1.0) if not truncation else (1.0,):
            result: Any = tf.generate("Ada 1815", Labelled, temperature=temperature, **options)
            if isinstance(result, errors.InvalidType):  # what truncation leaves is odd
                assert "no text that the masks allow is left" in str(result)
            else:
                assert result.value.n % 2 == 0 and len(result.tokens) <= budget
