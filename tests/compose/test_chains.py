"""Grammars put together in long chains: counted work, typed errors, the same texts as in one piece."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.compose.walks import accepts

import tokenform as tf
from tokenform import _core
from tokenform.errors import LimitExceeded
from tokenform.frontends import joined


def chain(steps: int, step: Callable[[Any, int], Any], first: Any = None) -> Any:
    grammar = tf.regex("[a-z]+") if first is None else first
    for i in range(steps):
        grammar = step(grammar, i)
    return grammar


STEPS: dict[str, Callable[[Any, int], Any]] = {
    "words": lambda g, i: g | tf.regex(f"a{{{i}}}1"),
    "letters": lambda g, i: g + tf.regex("[0-9]?"),
    "schemas": lambda g, i: g | tf.json_schema({"const": i}),
    "in front": lambda g, i: tf.json_schema({"type": "integer"}) + g,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_chain_is_read_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core reads nothing at a step, and at the end as much as of a grammar that was made at once."""
    read: list[str] = []
    composite = _core.composite
    monkeypatch.setattr(_core, "composite", lambda form, *more: read.append(form) or composite(form, *more))
    small, large = chain(200, STEPS[name]), chain(400, STEPS[name])
    assert not read
    assert large.core.work <= 3 * small.core.work
    assert len(read) == 2 and len(read[1]) <= 3 * len(read[0])


def test_what_is_put_together_step_by_step_is_what_it_says() -> None:
    parts = ["a+", "b?", "[ab]1", "", "ba*"]
    either = chain(len(parts), lambda g, i: g | tf.regex(parts[i]), tf.regex("1"))
    after = chain(len(parts), lambda g, i: g + tf.regex(parts[i]), tf.regex("1"))
    turns = chain(4, lambda g, i: (g | tf.regex("b")) + tf.regex("a?"), tf.regex("1"))
    mixed = (tf.regex("a") | "b") + (tf.regex("b") + "a" | ("1" | tf.regex("a*")))
    cases = [
        (either, "1|" + "|".join(parts)),
        (after, "1" + "".join(f"(?:{part})" for part in parts)),
        (turns, "(?:(?:(?:(?:1|b)a?|b)a?|b)a?|b)a?"),
        (mixed, "[ab](?:ba|1|a*)"),
        (mixed & ~(tf.regex("a") | "b1"), "(?!(?:a|b1)$)[ab](?:ba|1|a*)"),
    ]
    for grammar, pattern in cases:
        again = pickle.loads(pickle.dumps(grammar))
        for text in ("", "1", "a", "b", "aa", "ab", "a1", "b1", "ba", "bba", "1aa1b", "1ab1b", "1aaa", "b1a"):
            expected = re.fullmatch(pattern, text) is not None
            assert accepts(grammar, text) is accepts(again, text) is expected, (pattern, text)
    assert mixed.source == "((a) | ('b')) + (((b) + ('a')) | (('1') | (a*)))"


def test_a_chain_of_checks_is_bounded_as_one_call() -> None:
    """Each `&` reads the whole, since it may leave nothing; together they stay within the limit of work."""
    before = _core.Limits()
    few = chain(20, lambda g, i: g & ~tf.regex(f".*{chr(97 + i)}z.*"))
    tf.engine.set_limits(tf.engine.Limits(work=60 * few.core.work))
    try:
        assert chain(20, lambda g, i: g & ~tf.regex(f".*{chr(97 + i)}z.*")).core.work == few.core.work
        with pytest.raises(LimitExceeded, match="chain of & and ~"):
            chain(400, lambda g, i: g & ~tf.regex(f".*{chr(97 + i % 26)}{i}.*"))
        # side by side nothing adds up
        both = [tf.regex("[ab]+") & tf.regex(f"a.*|b{{{i}}}") for i in range(100)]
        assert chain(100, lambda g, i: g | both[i], both[0]).core.report == []
    finally:
        tf.engine.set_limits(before)
    assert accepts(chain(501, lambda g, i: ~g), "1") and not accepts(chain(500, lambda g, i: ~g), "1")


@pytest.mark.parametrize("part", [tf.regex("a+"), tf.json_schema({"const": 1})], ids=["pattern", "schema"])
def test_too_many_and_too_deep_have_their_error(part: tf.Grammar) -> None:
    with pytest.raises(LimitExceeded, match="parts"):
        chain(40, lambda g, i: g + g, part)
    assert chain(joined.DEPTH // 2 - 1, lambda g, i: (g | "x") + "y", part).compile(BYTES).start
    with pytest.raises(LimitExceeded, match="levels"):
        chain(joined.DEPTH, lambda g, i: (g | "x") + "y", part)
    with pytest.raises(LimitExceeded, match="inside one another"):
        _core.composite('{"language": ' + '{"not": ' * 2000 + '{"any": true}' + "}" * 2001, "deep")


def test_captures_of_long_chains() -> None:
    long = chain(1500, lambda g, i: g + tf.regex("b?"), tf.combinators.capture("a", tf.regex("a+")))
    assert long.captures("aabb")["a"].text == "aa"
    turns = chain(
        90, lambda g, i: (g | tf.regex("x")) + tf.regex("b?"), tf.combinators.capture("a", tf.regex("a+"))
    )
    assert turns.captures("aabb")["a"].text == "aa"
    document = "<" + tf.combinators.capture("v", tf.json_schema({"type": "array"})) + ">"
    assert document.captures("<[1]>")["v"].value == json.loads("[1]")


BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])
