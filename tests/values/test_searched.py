"""Short strings are written in their likeliest way: the judge tries all ways, by plain passes of its own."""

from __future__ import annotations

from typing import Any

import pytest

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative import places, searching
from tokenform.decoding.speculative.request import Request

from .judge import backbones_write_alike, generator, logprobs

PATTERNS = ["^[0-3]{2}-[ab]$", "^[a-d]{1,3}$", "^(x|yy)[0-4]{2}z?$"]


@pytest.fixture(autouse=True)
def _few(monkeypatch) -> None:
    """Languages that enumeration can judge are searched, not listed."""
    monkeypatch.setattr(places, "MOST", 8)


GREEDY, BY_TOKEN = tf.Local(0.0), tf.Local(0.0, values="token")


def string(pattern: str) -> tf.Grammar:
    return tf.json_schema({"type": "string", "pattern": pattern})


def likeliest(gen: tf.Generator, prompt: Any, grammar: tf.Grammar) -> tuple[str, float]:
    """The text of the likeliest way to write the string behind its quote, and that way's log-probability."""
    automaton, tokens = grammar.compile(gen.vocabulary), gen.vocabulary.tokens
    ids = list(gen.prompt_ids(prompt))
    quote = gen.vocabulary.tokens.index(b'"')
    best: tuple[str, float] = "", float("-inf")
    todo: list[tuple[float, list[int], Any]] = [(0.0, [], automaton.advance(automaton.start, quote))]
    while todo:
        reach, path, state = todo.pop()
        row = logprobs(gen.model, [*ids, quote, *path])[-1]
        for token in automaton.allowed_tokens(state).tolist():
            score = reach + float(row[token])
            if score <= best[1]:
                continue
            if b'"' in tokens[token]:  # this vocabulary closes a string with one token alone
                best = b"".join(tokens[one] for one in path).decode(), score
            else:
                todo.append((score, [*path, token], automaton.advance(state, token)))
        todo.sort(key=lambda one: one[0])  # the likeliest is looked at first
    return best


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("drafter", [None, "auto"])
def test_a_short_string_is_written_in_its_likeliest_way(monkeypatch, pattern: str, drafter: Any) -> None:
    monkeypatch.setattr(searching, "LIMIT", 1 << 20)
    monkeypatch.setattr(searching, "_KIDS", 1 << 20)
    differ = 0
    for seed in range(4):
        gen = generator(seed=seed, drafter=drafter)
        text, _ = likeliest(gen, "no newark", string(pattern))
        (result,) = gen.sample("no newark", string(pattern), sampler=GREEDY, max_tokens=40)
        assert result.value == text
        (token,) = gen.sample("no newark", string(pattern), sampler=BY_TOKEN, max_tokens=40)
        differ += token.text != result.text
        assert [len(one.value) for one in result.decided] == [len(text) + 1]
        ids = list(gen.prompt_ids("no newark"))
        table = logprobs(gen.model, [*ids, *result.tokens])[len(ids) - 1 :]
        alone = sum(float(table[place][one]) for place, one in enumerate(result.tokens))
        assert result.logprob == pytest.approx(alone + float(table[len(result.tokens)][1]), abs=1e-6) or (
            result.logprob == pytest.approx(alone, abs=1e-6)
        )
    assert differ  # the test can fail


def test_what_is_searched_little_is_written_by_token(monkeypatch) -> None:
    """After one node the likeliest token is followed: greedy decoding, where one token closes a string."""
    monkeypatch.setattr(searching, "LIMIT", 1)
    for seed in range(6):
        gen = generator(seed=seed)
        texts = {gen.sample("no", string(PATTERNS[0]), sampler=s)[0].text for s in (GREEDY, BY_TOKEN)}
        assert len(texts) == 1


DATES = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "format": "date"},
        "codes": {"type": "array", "items": {"type": "string", "pattern": "^[0-9]{4}z?$"}, "maxItems": 3},
        "at": {"type": "string", "format": "date-time"},
    },
    "required": ["day", "codes", "at"],
    "additionalProperties": False,
}


def test_drafts_batches_and_streams_write_alike() -> None:
    grammar = tf.json_schema(DATES)
    gen, plain = generator(drafter="auto"), generator(drafter=None)
    prompts = [f"no {number}" for number in range(5)]
    options: Any = {"sampler": GREEDY, "max_tokens": 150}
    batch = [one[0].text for one in gen.sample(prompts, grammar, **options)]
    assert batch == [gen.sample(one, grammar, **options)[0].text for one in prompts]
    assert batch == [one[0].text for one in plain.sample(prompts, grammar, **options)]
    assert batch == ["".join(plain.stream(one, grammar, **options)) for one in prompts]
    automaton = grammar.compile(gen.vocabulary)
    assert all(automaton.check(text) is None for text in batch)


@pytest.mark.parametrize("mode", ["chain", "plain"])
def test_models_that_score_no_trees_write_alike(mode: str) -> None:
    gen = generator()
    sampler = MaskedSampler(GREEDY, gen.vocabulary.size, gen.vocabulary.eos)
    automaton = string(PATTERNS[0]).compile(gen.vocabulary)
    eos = frozenset(gen.vocabulary.eos)
    requests = [
        Request(gen.prompt_ids(f"no {seed}"), sampler, automaton, eos=eos, seed=seed, encode=gen.spell)
        for seed in range(4)
    ]
    backbones_write_alike(gen, mode, requests)


def test_a_temperature_draws_token_by_token() -> None:
    gen = generator()
    for seed in range(4):
        texts = {
            gen.sample("no", string(PATTERNS[0]), seed=seed, sampler=tf.Local(0.9, values=values))[0].text
            for values in ("whole", "token")
        }
        assert len(texts) == 1


@pytest.mark.parametrize("budget", [4, 5, 6, 8, 12])
def test_a_budget_leaves_the_ways_that_fit(budget: int) -> None:
    gen = generator()
    for pattern in PATTERNS[1:2]:
        (result,) = gen.sample("no", string(pattern), sampler=GREEDY, max_tokens=budget)
        assert len(result.tokens) <= budget
        assert string(pattern).compile(gen.vocabulary).check(result.text) is None


def test_long_and_open_strings_are_written_by_token() -> None:
    gen = generator()
    for schema in ({"type": "string", "maxLength": 9}, {"type": "string", "pattern": "^[a-z]+$"}):
        (result,) = gen.sample("no", tf.json_schema(schema), sampler=GREEDY, max_tokens=30)
        assert not result.decided
