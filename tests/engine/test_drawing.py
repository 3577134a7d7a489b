"""Drawings: well-formed, bounded, and telling what the automaton does."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import tokenform as tf
from tokenform.engine import drawing

BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
GRAMMARS = {
    "small": tf.regex("[A-Z]{2}-[0-9]+(,x)?"),
    "schema": tf.json_schema({"type": "object", "properties": {"<a&b>": {"type": "string"}}}),
    "endless": tf.grammars.sql(),
    "control characters": tf.regex("[\\x00-\\x1f]{2}é*"),
    "empty text": tf.choice(["", "a"]),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_drawings_are_well_formed_and_bounded(name: str) -> None:
    automaton = GRAMMARS[name].compile(BYTES)
    picture = ElementTree.fromstring(drawing.automaton_svg(automaton))
    circles = [node for node in picture.iter() if node.tag.endswith("circle")]
    assert 0 < len(circles) <= 2 * drawing.STATES
    states, edges = drawing.explore(automaton)
    assert all(target == -1 or 0 <= target < len(states) for _, _, target in edges)
    ElementTree.fromstring(drawing.masks_svg(automaton, [("é<&\n\x00", state) for state in states]))


def test_a_way_without_a_choice_is_one_edge_and_ends_are_doubled() -> None:
    automaton = tf.choice(["lamp", "chair"]).compile(BYTES)
    states, edges = drawing.explore(automaton)
    assert edges == [(0, "chair | lamp", 1)] and automaton.is_accepting(states[1])
    assert drawing.automaton_svg(automaton).count("<circle") == 3


def test_masks_count_the_allowed_tokens() -> None:
    automaton = tf.regex("[a-j]").compile(BYTES)
    picture = drawing.masks_svg(automaton, [("", automaton.start)])
    assert re.search(r">10</text></svg>$", picture)


def test_notebooks_and_pages_show_grammars_and_automata() -> None:
    grammar = tf.json_schema({"description": "</script>", "properties": {"n": {"format": "unknown"}}})
    shown = grammar._repr_html_()  # type: ignore[attr-defined]
    assert "&lt;/script&gt;" in shown and "</script>" not in shown and "unknown" in shown
    assert "<svg" in GRAMMARS["small"].compile(BYTES)._repr_html_()  # type: ignore[attr-defined]


def test_a_drawing_is_one_call() -> None:
    """With less work to do, fewer ways are followed: all steps of a drawing share one allowance."""
    grammar = tf.regex("(.*a.{12}b.{3}c){2}.*")
    drawn = {}
    for work in (60_000, 50_000_000):
        automaton = grammar.compile(BYTES, limits=tf.engine.Limits(work=work))
        states, edges = automaton.drawn(automaton.start, 250)
        assert all(target == -1 or 0 <= target < len(states) for _, _, target in edges)
        drawn[work] = len({place for place, _, _ in edges})
    assert 0 < drawn[60_000] < drawn[50_000_000]
    plain = tf.regex("a*").compile(BYTES)
    assert plain.drawn(plain.advance(plain.start, 256), 10)[1] == []
