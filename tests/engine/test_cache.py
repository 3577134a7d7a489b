"""What was compiled before: one automaton for the same source, vocabulary and limits."""

from __future__ import annotations

import gc
import json
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenform as tf
import tokenform.frontends.lark as lark_module
from tokenform import _core
from tokenform.errors import InvalidSchema, LimitExceeded, UnsatisfiableSchema

TOKENS = [bytes([b]) for b in range(256)] + [b"</s>"]
TEXT = '{"type": "array", "items": {"enum": [1, 22, 333]}}'


def vocabulary() -> tf.Vocabulary:
    return tf.Vocabulary(TOKENS, eos=[256])


@pytest.fixture(autouse=True)
def _from_nothing() -> Iterator[None]:
    before = tf.engine.memory_held()["compiled"][1]
    tf.engine.set_limits(compiled=16 << 20)  # comparisons of engines keep nothing
    tf.engine.clear_cache()
    yield
    tf.engine.set_limits(compiled=before)
    tf.engine.clear_cache()


def held() -> int:
    return tf.engine.memory_held()["compiled"][0]


def compiled(text: str, vocab: tf.Vocabulary, **limits: int) -> tf.TokenAutomaton:
    return tf.json_schema(text).compile(vocab, limits=tf.engine.Limits(**limits) if limits else None)


def test_the_same_source_options_vocabulary_and_limits_share_their_states() -> None:
    vocab = vocabulary()
    first = compiled(TEXT, vocab)
    state = first.advance(first.start, ord("["))
    again = compiled(TEXT, vocab)
    assert again.start == first.start and again.advance(again.start, ord("[")) == state
    assert tf.json_schema(json.loads(TEXT)).compile(vocab).start == first.start
    others = [
        tf.json_schema(TEXT, whitespace="compact").compile(vocab),
        compiled(TEXT + " ", vocab),
        compiled(TEXT, vocab, depth=7),
        compiled(TEXT, vocabulary()),
        tf.json_schema(TEXT).core.compile(vocab),
    ]
    assert len({a.start for a in [first, *others]}) == 6
    assert tf.regex("ab").compile(vocab).start == tf.regex("ab").compile(vocab).start
    assert tf.regex("ab").compile(vocab).start != tf.choice(["ab"]).compile(vocab).start
    assert tf.choice(["a", "b"]).compile(vocab).start != tf.choice(["ab"]).compile(vocab).start


def test_a_grammar_in_larks_language_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text, other = 'start: "a" %json {"type": "integer"}\nother: "b"', "start: /c+/"
    first = tf.lark(text), tf.lark(text, start="other")
    assert first[0].to_bytes() != first[1].to_bytes()
    read = lark_module.read_lark
    monkeypatch.setattr(lark_module, "read_lark", None)  # nobody reads
    again = tf.lark(text), tf.lark(text, start="other")
    assert [g.to_bytes() for g in again] == [g.to_bytes() for g in first]
    assert [g.form for g in again] == [g.form for g in first]
    made = again[0].compile(vocabulary())
    assert again[0].source == text and made.matches(b"a12") and not made.matches(b"b")
    with pytest.raises(TypeError):  # what it would do
        tf.lark(other)
    tf.engine.clear_cache()
    with pytest.raises(TypeError):
        tf.lark(text)
    monkeypatch.setattr(lark_module, "read_lark", read)
    tf.engine.set_limits(compiled=0)
    assert tf.lark(text).to_bytes() == first[0].to_bytes() and held() == 0


def test_reports_are_remembered_and_failures_are_not() -> None:
    text = '{"type": "string", "format": "unheard-of"}'
    said = tf.json_schema(text).report
    assert said and tf.json_schema(text).report == said
    before = held()
    for wrong, error in [
        ('{"type": 1}', InvalidSchema),
        ("false", UnsatisfiableSchema),
    ]:
        for _ in range(2):
            with pytest.raises(error):
                tf.json_schema(wrong)
    usual = _core.Limits()
    tf.engine.set_limits(tf.engine.Limits(work=10))
    try:
        with pytest.raises(LimitExceeded):
            tf.regex("^(?=.*a.{9}b)(?=.*c.{8}d)(?!.*e).*$")
    finally:
        tf.engine.set_limits(usual)
    assert held() == before


def test_what_was_not_asked_for_longest_goes_first() -> None:
    vocab = vocabulary()
    compiled(TEXT, vocab)
    one = held()
    tf.engine.set_limits(compiled=10 * one)
    kept = compiled(TEXT, vocab).start
    for number in range(50):
        compiled(TEXT + " " * (number + 1), vocab)
        assert held() <= 10 * one + 500
        assert compiled(TEXT, vocab).start == kept
    tf.engine.set_limits(compiled=0)
    assert held() == 0
    assert compiled(TEXT, vocab).start != kept
    assert held() == 0


def test_a_vocabulary_takes_its_automata_along() -> None:
    vocab = vocabulary()
    before, gone = held(), weakref.ref(vocab)
    compiled(TEXT, vocab)
    state = compiled(TEXT, vocab).start
    with_automaton = held()
    del vocab
    gc.collect()
    assert gone() is None and before < held() < with_automaton
    assert state == state  # what is held stays


def test_what_is_forgotten_goes_on() -> None:
    vocab = vocabulary()
    automaton = compiled(TEXT, vocab)
    state = automaton.advance(automaton.start, ord("["))
    tf.engine.clear_cache()
    assert held() == 0
    assert automaton.allowed_tokens(state).tolist() == automaton.oracle(state)


def test_threads_that_compile_the_same_share_one() -> None:
    vocab, found = vocabulary(), set[Any]()
    gate = threading.Barrier(8)

    def ask() -> None:
        for number in range(40):
            gate.wait()
            found.add((number, compiled(TEXT + " " * number, vocab).start))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_compiles_while_its_parent_does() -> None:
    vocab, stop = vocabulary(), threading.Event()

    def ask() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            compiled(TEXT + " " * (number % 99), vocab)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                automaton = compiled(TEXT, vocab)
                os._exit(0 if automaton.allows(automaton.start, ord("[")) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_values_are_written_as_json_writes_them(value: Any) -> None:
    try:
        want = json.dumps(value, allow_nan=False)
    except ValueError:
        assert _core.json_text(value) is None
        return
    assert _core.json_text(value) in (want, None)


def test_plain_values_are_written_and_others_left_to_json() -> None:
    plain = {
        "a": [1, -2.5, 1e300, True, None, '\u00e9\U0001f600\x7f\x00"\\/\b\f\n\r\t'],
        "": {},
        "b": [],
        "c": (1, ((), {})),
    }
    assert _core.json_text(plain) == json.dumps(plain)
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for other in ({1: 2}, {1, 2}, 10**30, float("nan"), "\ud800", deep, object(), {"a": b""}):
        assert _core.json_text(other) is None
