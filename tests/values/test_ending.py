"""Whether a text ends or goes on in the one way that is left: the judge weighs both by plain passes."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.decoding.speculative.drafters.spelling import Spelling
from tokenform.decoding.speculative.ending import END, ON, Ending, ending

from .judge import generator, logprobs, shares, written_alike

FORCED = tf.regex('"[a-z]{1,3}"([ \n]*zx[0-9])*')
"""A text in quotes, and then as often as one likes a mark of two letters and a digit."""
GAPS = (b"", b"\n", b"\n\n", b" ")


def weights(gen: tf.Generator, before: list[int]) -> dict[bool, float]:
    """The log-probabilities of ending after some tokens, and of the mark behind whitespace."""
    tokens, eos = gen.vocabulary.tokens, gen.vocabulary.eos
    automaton = FORCED.compile(gen.vocabulary)
    ends: list[float] = [float(logprobs(gen.model, before)[-1][one]) for one in eos]
    more: list[float] = []
    for gap in GAPS:
        *path, last = gen.spell(gap + b"zx")
        table, state = logprobs(gen.model, [*before, *path])[len(before) - 1 :], automaton.start
        state = automaton.step_bytes(state, b'"a"' + b"".join(tokens[one] for one in path))
        reach = sum(float(table[place][one]) for place, one in enumerate(path))
        for token in automaton.allowed_tokens(state).tolist():
            if tokens[token].startswith(tokens[last]) and token not in eos:
                more.append(reach + float(table[len(path)][token]))
    return {False: float(np.logaddexp.reduce(ends)), True: float(np.logaddexp.reduce(more))}


def begun(gen: tf.Generator, result: tf.Result[Any]) -> list[int]:
    """The prompt's tokens and those of the text in quotes."""
    tokens, text = list[int](), b""
    for token in result.tokens:
        if text.count(b'"') < 2:
            tokens.append(token)
            text += gen.vocabulary.token(token)
    return [*gen.prompt_ids(PROMPT), *tokens]


PROMPT = "no newark"
SEEDS = (24, 31, 37)  # models that leave it open


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_a_greedy_text_ends_where_that_is_likelier_than_all_of_the_mark(drafter: Any) -> None:
    seen, by_token = collections.Counter[bool](), 0
    for seed in range(24):
        gen = generator(seed=seed, drafter=drafter)
        (result,) = gen.sample(PROMPT, FORCED, sampler=tf.Local(0.0), max_tokens=60)
        scores = weights(gen, begun(gen, result))
        goes_on = "z" in result.text[result.text.index('"', 1) :]
        assert goes_on == (scores[True] > scores[False]), seed
        seen[goes_on] += 1
        (other,) = gen.sample(PROMPT, FORCED, sampler=tf.Local(0.0, values="token"), max_tokens=60)
        by_token += other.text != result.text
    assert len(seen) == 2 and by_token  # the test can fail


def test_draws_have_the_probabilities_of_the_end_and_of_the_mark() -> None:
    grammar, count, local = tf.regex('"no"([ \n]*zx[0-9])*'), 300, tf.Local(1.0)
    for seed in SEEDS:
        gen = generator(seed=seed)
        wanted: dict[bool, float] = {False: 0.0, True: 0.0}
        drawn = gen.sample(PROMPT, grammar, n=count, seed=1, sampler=local, max_tokens=60)
        known: dict[tuple[int, ...], dict[bool, float]] = {}
        for result in drawn:  # the text in quotes may be cut into tokens in several ways
            before = begun(gen, result)
            if tuple(before) not in known:
                known[tuple(before)] = shares(weights(gen, before))
            for goes_on, share in known[tuple(before)].items():
                wanted[goes_on] += share / count
        found = sum("z" in result.text for result in drawn) / count
        assert 0.02 < wanted[True] < 0.98
        assert abs(found - wanted[True]) < 4 * (wanted[True] * wanted[False] / count) ** 0.5


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_seeds_batches_drafts_streams_and_schedulers_write_alike(temperature: float) -> None:
    written_alike(PROMPT, FORCED, temperature, max_tokens=60)


def place(grammar: tf.Grammar, text: str, vocabulary: tf.Vocabulary) -> Ending | None:
    automaton = grammar.compile(vocabulary)
    state = automaton.step_bytes(automaton.start, text.encode())
    spelling = Spelling(vocabulary.tokens, None, vocabulary.special)
    return ending(automaton, state, spelling, frozenset(vocabulary.eos))


BYTES = [bytes([byte]) for byte in range(256)]
VOCABULARY = tf.Vocabulary([*BYTES, b"<end>", b"<call>", b">\n", b"zz"], eos=[256], special=[256, 257])


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (tf.regex("a+"), "a"),  # one token: its draw decides
        (tf.regex("[a-z]+"), "a"),
        (tf.json_schema({"type": "array"}), "[]"),
        (FORCED, '"a'),
        (tf.regex("a(bcd|xyz)*"), "a"),  # two ways to go on
    ],
)
def test_other_places_are_none(grammar: tf.Grammar, text: str) -> None:
    assert place(grammar, text, VOCABULARY) is None


def test_a_token_that_holds_the_end_of_the_text_and_a_break_is_weighed_behind_the_break() -> None:
    found = place(tf.regex("<a>([ \\n]*<a>)*"), "<a", VOCABULARY)
    assert found is not None
    texts = {
        option: {
            b"".join(VOCABULARY.token(t) for t in found.tree.path(node)) for node in found.leaves[option]
        }
        for option in (END, ON)
    }
    assert texts[END] == {b">"} and texts[ON] == {b"><a", b">\n<a", b">\n\n<a", b"> <a"}
    assert found.begins(258) and found.begins(ord(">"))


def test_a_special_token_is_weighed_behind_whitespace() -> None:
    grammar = tf.lark('start: "a" (/[ \\n]*/ <[257]> "a")*', dialect="llguidance")
    found = place(grammar, "a", VOCABULARY)
    assert found is not None
    ends = {end.option: end.tokens.tolist() for end in found.ends(found.leaves[ON][1])}
    assert ends[ON] == [257]
    assert found.begins(10) and found.begins(257) and found.begins(256)


def test_other_whitespace_is_still_written() -> None:
    found = place(tf.regex("<a>([ \\t\\n]*<b>)*"), "<a>", VOCABULARY)
    assert found is not None and not found.begins(ord("\t")) and found.begins(ord("\n"))
