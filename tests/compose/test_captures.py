"""Named parts of a text: where `re` finds its groups, at the same places; lost nowhere in silence."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError

CLASSES = ["[ab]", "[bc]", "[a-c]", "é", "[^b]"]
PIECES = st.tuples(st.sampled_from(CLASSES), st.sampled_from(["", "*", "+", "?", "{1,2}"])).map("".join)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[tf.Grammar, str, str]:
    """A grammar with captures, the same as a pattern with groups, and a text that may be theirs."""
    grammar: Any = None
    pattern = ""
    for number in range(draw(st.integers(1, 4))):
        options = draw(st.lists(PIECES, min_size=1, max_size=2))
        part: Any = tf.regex(options[0])
        for other in options[1:]:
            part = part | tf.regex(other)
        said = "|".join(options)
        if draw(st.booleans()):
            if draw(st.booleans()) and len(options) == 2:  # the alternatives are kept apart inside
                part = tf.combinators.capture(f"i{number}", tf.regex(options[0])) | tf.regex(options[1])
                said = f"(?P<i{number}>{options[0]})|{options[1]}"
            elif len(options) == 2:
                continue  # a plain part takes the longest of its alternatives, `re` the first
            part, said = tf.combinators.capture(f"g{number}", part), f"(?P<g{number}>{said})"
        elif len(options) == 2:
            continue
        grammar = part if grammar is None else grammar + part
        pattern += f"(?:{said})"
    if grammar is None:
        grammar, pattern = tf.combinators.capture("g", tf.regex("a*")), "(?P<g>a*)"
    return grammar, pattern, draw(st.text("abcé", max_size=7))


@settings(max_examples=400, deadline=None)
@given(cut_texts())
def test_groups_are_those_of_re(case: tuple[tf.Grammar, str, str]) -> None:
    grammar, pattern, text = case
    match = re.fullmatch(pattern, text)
    if match is None:
        if grammar.parts is not None:
            with pytest.raises(OptionError, match="is no text"):
                grammar.captures(text)
        return
    expected = {name: match.span(name) for name, value in match.groupdict().items() if value is not None}
    found = grammar.captures(text)
    assert {name: one.span for name, one in found.items()} == expected
    assert all(one.text == one.value == match[name] for name, one in found.items())


def test_values_are_read_and_names_that_recur_are_lists() -> None:
    item = tf.combinators.capture(
        "item", tf.regex("[a-z]+") + tf.combinators.capture("n", tf.json_schema({"type": "integer"}))
    )
    grammar = (
        "< "
        + item
        + ", "
        + item
        + (" end" + tf.combinators.capture("last", tf.choice(["!", "?"])) | "")
        + " >"
    )
    found = grammar.captures("< ab12, c-3 end? >")
    assert [one.text for one in found["item"]] == ["ab12", "c-3"]
    assert [one.value for one in found["n"]] == [12, -3] and found["last"].value == "?"
    assert "last" not in grammar.captures("< a1, b2 >")
    again = pickle.loads(pickle.dumps(grammar))
    assert again.captures("< a1, b2 >") == grammar.captures("< a1, b2 >")
    assert tf.regex("a").captures("a") == {}
    moved = found["last"].moved(5)
    assert (moved.text, moved.span[0]) == ("?", found["last"].span[0] + 5)


def test_captures_change_no_text_and_are_lost_nowhere() -> None:
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])
    plain, named = tf.regex("a+") + "b", tf.combinators.capture("x", tf.regex("a+")) + "b"
    one, other = plain.compile(vocabulary), named.compile(vocabulary)
    for text in (b"ab", b"aab", b"b", b"a", b"abb"):
        assert one.matches(text) == other.matches(text)
    held = tf.combinators.capture("x", tf.regex("a+"))
    for lost in (
        lambda: ~held,
        lambda: held & tf.regex("a"),
        lambda: tf.lark("start: X", definitions={"X": held}),
        lambda: tf.json_schema({"type": "string"}, strings_in={"": held}),
    ):
        with pytest.raises(InvalidGrammar, match="captures"):
            lost()
    with pytest.raises(OptionError, match="needs a name"):
        tf.combinators.capture("", tf.regex("a"))


def test_work_is_bounded() -> None:
    anything = tf.combinators.any_text()
    grammar = (
        tf.combinators.capture("a", anything)
        + tf.combinators.capture("b", anything)
        + tf.combinators.capture("c", anything)
        + "z"
    )
    found = grammar.captures("y" * 100 + "z")
    assert (found["a"].span, found["b"].span, found["c"].span) == ((0, 100), (100, 100), (100, 100))
    with pytest.raises(LimitExceeded, match="steps"):
        grammar.captures("y" * 5_000 + "z")
