"""Drafts of texts whose grammar leaves the manner of writing to the model.

The judge of a draft is the text that `json.dumps` writes; that of a narrower grammar is the grammar itself.
"""

from __future__ import annotations

import functools
import json
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.suites.replay import replay

import tokenform as tf
from tokenform.decoding.speculative.drafters import Forced, Hints, Merge, Names, forced
from tokenform.decoding.speculative.drafters.continuations import Continuations
from tokenform.decoding.speculative.drafters.hints import LAYOUTS
from tokenform.frontends import forms

PIECES = [
    b'{"',
    b'": ',
    b'": "',
    b'", "',
    b'","',
    b'"}',
    b'":',
    b"name",
    b"age",
    b"true",
    b", ",
    b"red",
    b'"]',
]
TOKENS = [*(bytes([i]) for i in range(256)), *PIECES, b""]
VOCABULARY = tf.Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "home": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]},
        "name": {"type": "string"},
        "age": {"type": "integer"},
    },
    "required": ["home", "name", "age"],
}
DOCUMENT = {"home": {"city": "Rome"}, "name": "Ada", "age": 36}
WRITERS: dict[str, Callable[[Any], str]] = {
    "spaced": json.dumps,
    "compact": lambda value: json.dumps(value, separators=(",", ":")),
    "indent": lambda value: json.dumps(value, indent=2),
}
CLOSED: dict[str, Any] = {"additional": "forbid", "numbers": "canonical", "strings": "canonical"}


@functools.cache
def default() -> tf.Grammar:
    return tf.json_schema(SCHEMA)


def passes(text: str, grammar: tf.Grammar, drafter: object, hints: bool = True) -> int:
    tokens = VOCABULARY.greedy(text.encode())
    assert tokens is not None
    automaton = grammar.compile(VOCABULARY)
    told = Hints(grammar, VOCABULARY) if hints else None
    report = replay(tokens, drafter, VOCABULARY.size, automaton, hints=told)
    assert not report.notes
    return report.forwards


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_followed_as_if_it_were_demanded(layout: Any) -> None:
    """Once a text has shown its layout, the default grammar's drafts are those of the narrow one."""
    text = WRITERS[layout](DOCUMENT)
    demanded = passes(text, tf.json_schema(SCHEMA, whitespace=layout, **CLOSED), Forced())
    assert demanded < passes(text, default(), Forced(), hints=False)
    drafter = Forced()
    assert passes(text, default(), drafter) <= demanded + 2 * (layout != LAYOUTS[0])
    assert drafter.layout == layout
    assert passes(text, default(), drafter) == demanded, "the next text begins with the same layout"


@pytest.mark.parametrize(
    "text",
    [
        '{"home": {"city": "Rome"}, "name": "Ada","age": 36}',  # mixed
        '{"home": {"city": "Rome", "more": [1, 2]}, "name": "Ada", "age": 36}',  # a property of its own
        '{"home": {"city": "Rome"}, "name": "Ad\\u00e0", "age": 36}',  # an escape that JSON does not demand
    ],
)
def test_a_text_that_leaves_a_manner_is_followed_on_a_wider_one(text: str) -> None:
    assert passes(text, default(), Forced()) < passes(text, default(), Forced(), hints=False)


def test_a_name_is_drafted_with_what_follows_it() -> None:
    """In an object of undeclared names too, the key is one guess with its quote, colon and space."""
    text = '{"home": {"city": "Oslo", "x": {"name": "Ada", "age": 3}}, "name": "Ada", "age": 36}'
    grammar = default()
    assert passes(text, grammar, Merge(Forced(), Names())) < passes(text, grammar, Forced())


@pytest.mark.parametrize("narrowing", range(15))
def test_a_narrower_grammar_admits_nothing_new(narrowing: int) -> None:
    """Random walks on each manner's automaton stay allowed in the request's own (but for `36.0`)."""
    no_numbers = {**SCHEMA["properties"], "age": {"type": "boolean"}}
    grammar = tf.json_schema({**SCHEMA, "properties": no_numbers})
    manners = list(Hints(grammar, VOCABULARY).manners())
    assert len(manners) == 15
    automaton, own, rng = manners[narrowing][1], grammar.compile(VOCABULARY), random.Random(narrowing)
    for _ in range(20):
        state, at = automaton.start, own.start
        for _ in range(60):
            allowed = [token for token in automaton.allowed_tokens(state).tolist() if token < 256]
            if not allowed:
                break
            token = rng.choice(allowed)
            state, at = automaton.advance(state, token), own.advance(at, token)
            assert own.is_accepting(at) or not automaton.is_accepting(state)


def test_narrowing_keeps_what_the_caller_chose() -> None:
    chosen = tf.json_schema(SCHEMA, whitespace="compact", numbers="any")
    form = forms.narrowed(chosen.form, {"whitespace": "spaced", "numbers": "canonical"})
    assert form is not None and form["options"]["whitespace"] == "compact"
    assert form["options"]["numbers"] == "canonical"
    assert forms.narrowed(tf.regex("a|b").form, {"whitespace": "spaced"}) is None


def test_schemas_inside_of_other_grammars_are_narrowed_too() -> None:
    grammar = tf.regex("call [0-9]: ") + default()
    text = "call 1: " + json.dumps(DOCUMENT)
    assert passes(text, grammar, Forced()) < passes(text, grammar, Forced(), hints=False)


def test_grammars_without_a_manner_are_followed_as_they_are() -> None:
    assert list(Hints(tf.regex("[a-z]+"), VOCABULARY).manners()) == []
    impossible = tf.json_schema({"type": "object", "required": ["x"], "properties": {"y": {}}})
    assert passes('{"x": 1}', impossible, Forced()) > 0


def test_narrower_grammars_that_need_too_much_are_given_up_for_good() -> None:
    """A sixteenth of the request's limits is theirs; the first call that needs more is the last one."""
    text = WRITERS["compact"](DOCUMENT)
    grammar = tf.json_schema(SCHEMA)
    tokens = VOCABULARY.greedy(text.encode())
    assert tokens is not None
    hints = Hints(grammar, VOCABULARY, tf.engine.Limits(work=16))
    report = replay(
        tokens, Merge(Forced(), Names()), VOCABULARY.size, grammar.compile(VOCABULARY), hints=hints
    )
    assert not report.notes, "the drafters go on with the request's own grammar"
    assert report.forwards <= passes(text, grammar, Forced(), hints=False)
    assert list(Hints(grammar, VOCABULARY).manners()) == []


def test_a_grammar_made_anew_is_drafted_by_what_is_known_of_its_states(monkeypatch: Any) -> None:
    """A server makes a grammar of each request's schema: what follows a state is found out once for all."""
    planned, plan = [], Continuations.plan

    def counted(self: Any, *place: Any) -> Any:
        planned.append(place)
        return plan(self, *place)

    monkeypatch.setattr(Continuations, "plan", counted)
    drafter, text, counts = Forced(), json.dumps(DOCUMENT), []
    before = tf.engine.memory_held()
    # other tests' limits and memory take no state away here
    tf.engine.set_limits(memory=4 << 30, compiled=16 << 20)
    try:
        for _ in range(3):
            passes(text, tf.json_schema(json.dumps({"title": "anew", **SCHEMA})), drafter)
            counts.append(len(planned))
    finally:
        tf.engine.set_limits(memory=before["automata"][1], compiled=before["compiled"][1])
    assert counts[0] > 0 and counts[2] == counts[1]  # the first has learnt how white space is written


def test_all_grammars_together_hold_few_states(monkeypatch: Any) -> None:
    """A held state holds its mask, so that many grammars in turn must not each keep as many as one may."""
    monkeypatch.setattr(forced, "_PLANS", 40)
    drafter, text, held = Forced(), json.dumps(DOCUMENT), []
    for i in range(12):
        passes(text, tf.json_schema(json.dumps({"title": f"grammar {i}", **SCHEMA})), drafter)
        held.append(drafter._states())
    assert 12 * held[0] > 100 and max(held[1:]) <= 40 + held[0], held


def test_calls_of_many_threads_share_what_follows_a_state(monkeypatch: Any) -> None:
    monkeypatch.setattr(forced, "_AUTOMATA", 8)
    monkeypatch.setattr(forced, "_PLANS", 40)
    drafter, spelling, wrong = Forced(), forced.Spelling(TOKENS, list), list[Exception]()
    automata = [tf.regex(f"{number}x").compile(VOCABULARY) for number in range(16)]

    def ask(first: int) -> None:
        try:
            for i in range(5000):
                drafter.plans_of(automata[(i * 7 + first * 3 + i // 5) % 16], spelling).texts[i % 9] = []
        except Exception as error:
            wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(first,)) for first in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == [] and len(drafter._plans) <= 8
