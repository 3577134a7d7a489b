"""Formulas over patterns: what operands decide for each other never changes which strings satisfy them.

The engine drops operands of unions and intersections that others decide; the verdict of each pattern alone,
by Python's `re`, and of the formula, by its connectives, judges every short string.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.suites.maskcheck import byte_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import UnsatisfiableSchema

VOCABULARY = byte_vocabulary()
PATTERNS = ("^a*$", "^(ab)+$", "b", "^a.?b*$", "^[^b]{2}", "a$")
STRINGS = ["".join(letters) for length in range(5) for letters in itertools.product("ab", repeat=length)]

Formula = tuple[dict[str, Any], Callable[[str], bool]]


def of_pattern(pattern: str) -> Formula:
    return {"pattern": pattern}, lambda text: re.search(pattern, text) is not None


def denied(of: Formula) -> Formula:
    return {"not": of[0]}, lambda text: not of[1](text)


def joined(name: str, parts: list[Formula]) -> Formula:
    enough = {"allOf": len(parts).__eq__, "anyOf": bool, "oneOf": (1).__eq__}[name]
    return {name: [schema for schema, _ in parts]}, lambda text: bool(
        enough(sum(holds(text) for _, holds in parts))
    )


def grown(smaller: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    several = st.lists(smaller, min_size=2, max_size=4)
    return smaller.map(denied) | st.builds(joined, st.sampled_from(["allOf", "anyOf", "oneOf"]), several)


FORMULAS = st.recursive(st.sampled_from(PATTERNS).map(of_pattern), grown, max_leaves=10)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(FORMULAS)
def test_a_formula_holds_where_its_connectives_say(formula: Formula) -> None:
    schema, holds = formula
    expected = {text for text in STRINGS if holds(text)}
    try:
        automaton = tf.json_schema({"type": "string", **schema}).compile(VOCABULARY)
    except UnsatisfiableSchema:
        assert not expected
        return
    assert {text for text in STRINGS if automaton.matches(json.dumps(text).encode())} == expected


@pytest.mark.parametrize("name", ["regex", "uri", "idn-hostname", "email", "uri-template"])
def test_nothing_is_of_a_format_exactly_once_among_two(name: str) -> None:
    of = {"type": "string", "format": name}
    with pytest.raises(UnsatisfiableSchema):
        tf.json_schema({"oneOf": [of, of]})


@pytest.mark.parametrize("name", ["regex", "uri", "email", "uri-template"])
def test_a_format_without_its_long_texts_has_the_short_ones(name: str) -> None:
    of = {"type": "string", "format": name}
    short = {"allOf": [of, {"not": {**of, "minLength": 9}}]}
    automaton = tf.json_schema(short, strings="any").compile(VOCABULARY)
    assert automaton.matches(b'"a:@b.de"') is tf.json_schema(of, strings="any").compile(VOCABULARY).matches(
        b'"a:@b.de"'
    )
    assert not automaton.matches(b'"abcdefghi"')
