"""Spans of a document, phrases, free text up to a trigger, special tokens."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compose.walks import TOKENS, VOCABULARY, accepts, walk

import tokenform as tf
from tokenform.errors import OptionError, TokenRejected

TEXTS = ["".join(t) for n in range(6) for t in itertools.product("ab", repeat=n)]


@settings(max_examples=60, deadline=None)
@given(st.text("ab", max_size=12))
def test_substring(document: str) -> None:
    grammar = tf.substring(document)
    for text in TEXTS:
        assert accepts(grammar, text) == (text in document)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["a", "ab", "abc", " ", ",", "b"]), max_size=10), st.integers(0, 99))
def test_spans_of_words(words: list[str], seed: int) -> None:
    document = " ".join(words)
    grammar = tf.substring(document, by="word")
    pieces = [piece for word in words for piece in (word, " ")][:-1]
    spans = {"".join(pieces[i:j]) for i in range(len(pieces) + 1) for j in range(i, len(pieces) + 1)}
    for text in spans | set(TEXTS) | {document[1:], document[:-1]}:
        assert accepts(grammar, text) == (text in spans), (text, document)
    assert walk(grammar, seed).decode() in spans


def test_long_documents_and_lines() -> None:
    rng = random.Random(1)
    document = "\n".join("".join(rng.choices("abc é", k=60)) for _ in range(400))
    grammar, lines = tf.substring(document), tf.substring(document, by="line")
    kept = document.splitlines(keepends=True)
    assert accepts(grammar, document[1000:9000]) and not accepts(grammar, document[1000:9000] + "x")
    assert accepts(lines, "".join(kept[3:7])) and not accepts(lines, "".join(kept[3:7])[1:])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
def test_contains(phrases: list[str]) -> None:
    grammar = tf.combinators.contains(phrases)
    for text in TEXTS:
        assert accepts(grammar, text) == all(phrase in text for phrase in phrases)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=2), st.integers(0, 99))
def test_until(triggers: list[str], seed: int) -> None:
    grammar = tf.until(triggers)
    for text in TEXTS:
        first = min((text.find(t) + len(t) for t in triggers if t in text), default=-1)
        assert accepts(grammar, text) == (first == len(text) > 0), (triggers, text)
    after = tf.until(triggers, then=tf.json_schema({"type": "integer"}))
    text = walk(after, seed).decode("utf-8")
    first = min(text.find(t) + len(t) for t in triggers if t in text)
    assert text[first:].lstrip("-").replace(".0", "").isdigit()


def test_special_tokens_are_steps() -> None:
    open_, close, other = (TOKENS.index(t) for t in (b"<tool>", b"</tool>", b"<s>"))
    document = tf.json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    grammar = (
        tf.combinators.special_token("<tool>")
        + document
        + tf.combinators.special_token("</tool>")
        + tf.regex("a*")
    )
    auto = grammar.compile(VOCABULARY)
    assert auto.allowed_tokens(auto.start).tolist() == [open_] == auto.oracle(auto.start)
    with pytest.raises(TokenRejected):
        auto.step_bytes(auto.start, b"<tool>")
    state = auto.step_bytes(auto.advance(auto.start, open_), b'{"a": 12')
    assert not auto.allows(state, close)
    state = auto.step_bytes(state, b"}")
    assert auto.allows(state, close) and not auto.allows(state, other) and auto.distance(state) == 1
    assert auto.is_accepting(auto.advance(state, close))
    for seed in range(5):
        walk(grammar, seed)


def test_a_vocabulary_without_the_special_token_spells_it() -> None:
    plain = tf.Vocabulary([*(bytes([b]) for b in range(256)), b""], eos=[256])
    grammar = tf.combinators.special_token("<tool>") + tf.regex("a")
    assert grammar.compile(plain).check(b"<tool>a") is None
    assert grammar.compile(VOCABULARY).check(b"<tool>a") is not None


def test_special_tokens_between_lexemes() -> None:
    source = 'start: (NAME TOOL)* NAME\nNAME: /[a-z]+/\n%ignore " "'
    grammar = tf.lark(source, definitions={"TOOL": tf.combinators.special_token("<tool>")})
    auto, tool = grammar.compile(VOCABULARY), TOKENS.index(b"<tool>")
    state = auto.advance(auto.step_bytes(auto.start, b"ab "), tool)
    assert not auto.allows(state, tool) and auto.is_accepting(auto.step_bytes(state, b" x"))
    for seed in range(5):
        walk(grammar, seed)


def test_mistakes() -> None:
    for wrong in ([], [""], [1], ""):
        with pytest.raises(OptionError):
            tf.combinators.contains(wrong)  # type: ignore[arg-type]
        with pytest.raises(OptionError):
            tf.until(wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError):
        tf.substring("a", by="page")  # type: ignore[arg-type]
    with pytest.raises(OptionError):
        tf.combinators.special_token("")


@pytest.mark.parametrize(
    "rules",
    [
        'start: y "c" | "." | PART\ny: /b?c/ z "b"\nz: /[a-c]+/',  # what begins with b needs a b behind z
        'start: y "c" | /(ab|a|c)+/ | PART\ny: /b?c/ z* "b"\nz: /[a-c]+/',
    ],
)
def test_a_lexeme_that_leads_nowhere_is_in_no_mask_beside_parts(rules: str) -> None:
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b"bc", b"xy", b""], eos=[258])
    automaton = tf.lark(rules, definitions={"PART": tf.regex("xy")}).compile(vocabulary)
    assert automaton.allowed_tokens(automaton.start).tolist() == list(automaton.oracle(automaton.start))
    assert not automaton.allows(automaton.start, ord("b")) and automaton.allows(automaton.start, 257)
