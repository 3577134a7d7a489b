"""Predicates, potentials, canonical tokenisation: what functions see, how often, and how they fail."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest
from toy import EOS, TOKENS, TableModel, toy_complete, toy_prefix

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.canonical import Canonical
from tokenform.decoding.aligned.enumeration import enumerate_target
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.potential import Score
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.product import Product
from tokenform.decoding.aligned.smc import SMC
from tokenform.decoding.aligned.utf8 import split_characters
from tokenform.errors import OptionError, PredicateError

BYTES = [b"a", b"\xc3", b"\xa9", b"\xe2\x82", b"\xac", b"\xff", b"<eos>"]


def test_predicates_never_see_half_a_character():
    seen: list[str] = []

    def prefix(text):
        assert isinstance(text, str)
        seen.append(text)
        return True

    constraint = Predicate(BYTES, [6], prefix)
    state = constraint.start
    assert constraint.check([state] * 6, range(6)).tolist() == [True, True, False, True, False, False]
    state = constraint.advance(constraint.start, 1)
    assert constraint.check([state] * 6, range(6)).tolist() == [False, False, True, False, True, False]
    assert constraint.accepts([state]).tolist() == [False]
    assert constraint.accepts([constraint.advance(state, 2)]).tolist() == [True]
    assert set(seen) == {"", "a", "é", "ì"}


def test_bytes_and_tokens_are_shown_to_those_who_ask():
    raw: list[bytes] = []
    constraint = Predicate(BYTES, [6], lambda data: raw.append(data) or True, on="bytes")
    assert constraint.check([constraint.start] * 2, [1, 5]).tolist() == [True, True]
    assert raw == [b"\xc3", b"\xff"]
    ids: list[tuple[int, ...]] = []
    constraint = Predicate(BYTES, [6], lambda tokens: ids.append(tokens) or True, on="tokens")
    constraint.check([constraint.advance(constraint.start, 0)], [3])
    assert ids == [(0, 3)]


@pytest.mark.parametrize(
    ("data", "text", "rest"),
    [
        (b"", "", b""),
        ("aé".encode(), "aé", b""),
        (b"a\xc3", "a", b"\xc3"),
        (b"\xf0\x9f\x98", "", b"\xf0\x9f\x98"),
        (b"\xff", None, b""),
        (b"\xc3\xc3", None, b""),
        (b"\xed\xa0", None, b""),
        (b"\xed", "", b"\xed"),
        (b"\xe0\x80", None, b""),
        (b"\xf4\x90", None, b""),
        (b"a\xe2\x82", "a", b"\xe2\x82"),
    ],
)
def test_splitting_characters(data, text, rest):
    assert split_characters(data) == (text, rest)


def test_the_same_text_is_asked_about_once_and_batches_are_whole():
    calls: list[list[str]] = []

    def prefix(texts):
        calls.append(list(texts))
        return [len(t) <= 2 for t in texts]

    constraint = Predicate([b"a", b"aa", b"b", b"<eos>"], [3], prefix, batch=True)
    one = constraint.advance(constraint.start, 0)
    assert constraint.check([constraint.start, one, one, constraint.start], [1, 0, 1, 2]).tolist() == [
        True,
        True,
        False,
        True,
    ]
    assert calls == [["aa", "aaa", "b"]]
    assert constraint.check([one], [0]).tolist() == [True]
    assert constraint.evaluations == 3
    assert len(calls) == 1


def test_a_small_cache_forgets_but_stays_right():
    constraint = Predicate([b"a", b"b", b"<eos>"], [2], lambda t: "b" not in t, cache=1)
    for _ in range(2):
        assert constraint.check([constraint.start] * 2, [0, 1]).tolist() == [True, False]
    assert constraint.evaluations >= 3


def test_async_predicates_run_side_by_side_inside_and_outside_a_loop():
    running, most = 0, 0

    async def prefix(text):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return text != "b"

    def ask():
        constraint = Predicate([b"a", b"b", b"c", b"<eos>"], [3], prefix)
        return constraint.check([constraint.start] * 3, [0, 1, 2]).tolist()

    assert ask() == [True, False, True]

    async def inside():
        return ask()

    assert asyncio.run(inside()) == [True, False, True]
    assert most == 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda text: 1 / 0, "ZeroDivisionError"),
        (lambda text: None, "must return True or False"),
        (lambda text: 1, "must return True or False"),
    ],
)
def test_failing_predicates_are_reported(function, message):
    constraint = Predicate([b"a", b"<eos>"], [1], function)
    with pytest.raises(PredicateError, match=message):
        constraint.check([constraint.start], [0])


def test_batches_of_the_wrong_length_are_reported():
    constraint = Predicate([b"a", b"b", b"<eos>"], [2], lambda texts: [True], batch=True)
    with pytest.raises(PredicateError, match="got 2 items and returned 1"):
        constraint.check([constraint.start] * 2, [0, 1])


def test_scores_are_checked():
    assert Score(lambda t: -1.0).complete([b"x"]).tolist() == [-1.0]
    assert Score(lambda t: -math.inf).complete([b"x"]).tolist() == [-math.inf]
    for bad in (math.nan, math.inf, "high"):
        with pytest.raises(PredicateError):
            Score(lambda t, bad=bad: bad).complete([b"x"])
    with pytest.raises(PredicateError, match="above its log_bound"):
        Score(lambda t: 1.0, log_bound=0.5).complete([b"x"])
    with pytest.raises(OptionError):
        Score()
    with pytest.raises(OptionError):
        Predicate([b"a"], [], None, None)


def test_products_agree_with_their_factors(automaton):
    def no_triple(text):
        return "000" not in text

    exact, lazy = AutomatonConstraint(automaton), Predicate(TOKENS, [EOS], no_triple)
    both = Product(lazy, exact)
    assert not both.exact
    assert Product(exact, exact).exact
    walk = [(both.start, exact.start, lazy.start)]
    for state, a, b in walk:
        tokens = list(range(5))
        expected = exact.check([a] * 5, tokens) & lazy.check([b] * 5, tokens)
        assert both.check([state] * 5, tokens).tolist() == expected.tolist()
        assert set(np.flatnonzero(expected)) <= set(both.candidates([state])[0].tolist())
        assert both.accepts([state])[0] == (exact.accepts([a])[0] and lazy.accepts([b])[0])
        walk += [
            (both.advance(state, t), exact.advance(a, t), lazy.advance(b, t))
            for t in np.flatnonzero(expected).tolist()
        ]
    assert len(walk) > 20
    with pytest.raises(OptionError):
        Product()
    with pytest.raises(OptionError):
        Product(exact, Predicate([b"a"], [], lambda t: True))


def greedy(data):
    """The canonical tokenisation of the toy: longest match from the left."""
    out = []
    while data:
        token = max((t for t in range(5) if data.startswith(TOKENS[t])), key=lambda t: len(TOKENS[t]))
        out.append(token)
        data = data[len(TOKENS[token]) :]
    return out


def test_the_canonical_target_has_one_sequence_a_text(automaton):
    constraint = Product(AutomatonConstraint(automaton), Canonical(TOKENS, [EOS], greedy))
    sampler = SMC(20)
    problem = sampler.bind(TableModel(5, scale=1.0), constraint)
    exact = enumerate_target(problem)
    everything = enumerate_target(Masked().bind(TableModel(5, scale=1.0), automaton)).log_measure
    expected = {x: v for x, v in everything.items() if tuple(greedy(problem.bytes_of(x))) == x}
    assert len(expected) == 17
    assert exact.log_measure == pytest.approx(expected)
    assert {d.tokens for d in sampler.sample(problem, 20, seed=0).draws} <= set(expected)


def test_fingerprints_tell_languages_apart(automaton):
    from toy import StringsAutomaton

    prints = [
        AutomatonConstraint(a).fingerprint
        for a in (automaton, StringsAutomaton([b"0"]), StringsAutomaton([b"1"]))
    ]
    assert len(set(prints)) == 3
    assert (
        Predicate(TOKENS, [EOS], toy_prefix, toy_complete).fingerprint
        != Predicate(TOKENS, [EOS], toy_prefix).fingerprint
    )
