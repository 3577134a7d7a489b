"""What longest match makes unreachable is masked where it begins, several lexemes ahead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import TokenformError, UnsatisfiableGrammar

LETTERS = b"abc()"
VOCABULARY = tf.Vocabulary(
    [bytes([c]) for c in LETTERS] + [b"ab", b"(a", b"cb)", b"</s>"], eos=[8], special=[8]
)
# no two begin alike: which it is, is known from the first byte on
TERMINALS = ["/a+/", "/b+/", "/b/", "/c[ab]*/", "/c(ab)*/", "/a/", '"("', '")"', "/\\((a|bb)?/"]


def allowed(automaton: tf.Automaton, state: tf.engine.State) -> list[int]:
    mask = automaton.mask(state)
    return [t for t in range(VOCABULARY.size) if int(mask[t // 32]) >> (t % 32) & 1]


def texts_without_an_end(automaton: tf.Automaton, longest: int) -> list[bytes]:
    """Texts that masks lead to and after which nothing may come, up to so many tokens."""
    stuck, todo = [], [(automaton.start, b"")]
    for _ in range(longest):
        following = []
        for state, text in todo:
            tokens = allowed(automaton, state)
            if not tokens:
                stuck.append(text)
            following += [
                (automaton.advance(state, t), text + VOCABULARY.token(t))
                for t in tokens
                if t != VOCABULARY.eos[0]
            ]
        todo = following[:200]
    return stuck


def test_two_names_that_are_read_as_one_are_no_way():
    names = "NAME: /[ab]+/\n"
    automaton = tf.lark('start: "(" NAME NAME ")" | ")"\n' + names).compile(VOCABULARY)
    assert [VOCABULARY.token(t) for t in allowed(automaton, automaton.start)] == [b")"]
    with pytest.raises(UnsatisfiableGrammar):
        tf.lark('start: "(" NAME NAME ")"\n' + names).compile(VOCABULARY)
    spaced = tf.lark('start: "(" NAME NAME ")"\n%ignore "b"\nNAME: /a+/\n').compile(VOCABULARY)
    assert not texts_without_an_end(spaced, 5)


@pytest.mark.parametrize(
    "rules",
    [
        'start: "(" start NAME NAME | ")"',
        'start: "(" start pair | ")"\npair: NAME last\nlast: NAME',
        'start: inner | ")"\ninner: "(" inner NAME NAME | "c"',
        'start: "(" start ")" NAME many | ")"\nmany: NAME many | NAME',
    ],
)
def test_a_rule_that_goes_on_without_an_end_is_no_way(rules: str):
    """However many brackets are opened, two names must follow that are read as one."""
    automaton = tf.lark(rules + "\nNAME: /[ab]+/\n").compile(VOCABULARY)
    begun = {VOCABULARY.token(t)[:1] for t in allowed(automaton, automaton.start)}
    assert begun == ({b")", b"c"} if "inner" in rules else {b")"})


def test_what_is_never_read_to_its_end_still_wins_its_lexemes():
    """`a` is the NAME of two in a row, as Lark's lexer says, and no LETTER."""
    names = "NAME.2: /[ab]+/\nLETTER.1: /a/\n"
    automaton = tf.lark('start: "(" start NAME NAME | NAME NAME | LETTER | ")"\n' + names).compile(VOCABULARY)
    assert [VOCABULARY.token(t) for t in allowed(automaton, automaton.start)] == [b")"]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_no_mask_leads_where_nothing_may_follow(data: st.DataObject):
    count = data.draw(st.integers(2, 4))
    first = {"a": "a", "b": "b", "c": "c", "\\": "(", "(": "(", ")": ")"}
    unlike = st.lists(
        st.sampled_from(TERMINALS), min_size=count, max_size=count, unique_by=lambda t: first[t[1]]
    )
    chosen = data.draw(unlike)
    symbol = st.sampled_from([f"T{i}" for i in range(count)] + ["r"])
    alternative = st.lists(symbol, min_size=1, max_size=4).map(" ".join)
    bodies = [data.draw(st.lists(alternative, min_size=1, max_size=3)) for _ in range(2)]
    rules = zip(("start", "r"), (bodies[0], [*bodies[1], "T0"]), strict=True)
    text = "\n".join(f"{name}: {' | '.join(dict.fromkeys(body))}" for name, body in rules)
    text += "\n" + "\n".join(f"T{i}: {terminal}" for i, terminal in enumerate(chosen)) + "\n"
    try:
        automaton = tf.lark(text).compile(VOCABULARY)
    except TokenformError:
        return  # a grammar that matches no text, or none that was found within the limit on work
    assert texts_without_an_end(automaton, 5) == [], text
