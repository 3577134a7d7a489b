"""Rules with a parameter: lists that are counted or repeat nothing, judged on all short texts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf
from tokenform.errors import InvalidGrammar, LimitExceeded, TokenformError, UnsatisfiableGrammar

BYTES = byte_vocabulary()
ONCE = """
start    :  perm::0x0 END
perm::_  :  ""                       %if is_ones([0:3])
         |  "a" perm::set_bit(0)     %if bit_clear(0)
         |  b perm::set_bit(1)       %if bit_clear(1)
         |  "c" perm::set_bit(2)     %if not(bit_set(2))
b: "b"
END: "."
"""
PICK = """
start: pick::0 "."
pick::_ : ""                     %if bit_count_ge(_, 1)
        | "a" pick::bit_or(1)    %if and(bit_clear(0), bit_count_lt(_, 2))
        | "b" pick::set_bit(1)   %if and(bit_clear(1), bit_count_le(_, 1))
        | "c" pick::set_bit(40)  %if and(bit_clear(40), bit_count_ne(_, 2))
"""
COUNTED = """
start: list::0x0 "."
list::_ : "a" list::incr([0:2]) %if lt([0:2], 3)
        | "b" list::incr([2:4]) %if or(eq([2:4], 0), eq([2:4], 1))
        | "c" tail::bit_and(3)  %if ge([0:2], 1)
tail::_ : "c" tail::decr([0:2]) %if gt(_, 0)
        | ""                    %if and(is_zeros([0:2]), true)
        | "" %if not(true())
"""
LEFT = """
start: s::1 "."
s::_ : s::set_bit(1) "a" %if bit_clear(1)
     | s::set_bit(2) "b" %if bit_clear(2)
     | "c"
"""
LONG = """
start: a::0 "."
a::_ : "a" a::incr(_) %if lt(_, 900) | b::_
b::_ : "b" b::incr(_) %if lt(_, 900) | ""
"""


def counted(text: str) -> bool:
    head, _, tail = text.partition("c")
    a, b = head.count("a"), head.count("b")
    return "c" in text and 1 <= a <= 3 and b <= 2 and tail == "c" * a


JUDGED: list[tuple[str, Callable[[str], bool]]] = [
    (ONCE, lambda text: sorted(text) == ["a", "b", "c"]),
    (PICK, lambda text: 1 <= len(text) <= 2 and len(set(text)) == len(text)),
    (COUNTED, counted),
    (LEFT, lambda text: text in ("c", "ca", "cb", "cab", "cba")),
]


@pytest.mark.parametrize(("grammar", "right"), JUDGED, ids=["once", "pick", "counted", "left"])
def test_texts_are_those_that_the_conditions_let_through(grammar: str, right: Callable[[str], bool]) -> None:
    automaton = tf.lark(grammar).compile(BYTES)
    for length in range(7):
        for letters in product("abc", repeat=length):
            text = "".join(letters)
            assert automaton.matches(f"{text}.".encode()) == right(text), text


def test_a_long_list_is_counted() -> None:
    automaton = tf.lark(LONG).compile(BYTES)
    assert automaton.matches(b"a" * 600 + b"b" * 300 + b".")
    assert not automaton.matches(b"a" * 600 + b"b" * 301 + b".")


@pytest.mark.parametrize(
    ("grammar", "line", "column"),
    [
        ('start: foo\nfoo:: "a"', 2, 7),
        ('start: foo\nfoo: a::1\na: "a"', 2, 6),
        ('start: foo::0\nfoo::_: "a" %if eq([3:3], 0)', 2, 20),
        ('start: foo::0\nfoo::_: "a" %if eq([64:65], 0)', 2, 21),
        ('start: foo::0\nfoo::_: "a" %if eq([0:65], 0)', 2, 23),
        ('start: foo::0\nfoo::_: "a" %if eq(0, 0)', 2, 20),
        ('start: foo::0\nfoo::_: "a" %if foo([0:1], 0)', 2, 17),
        ("start: foo::0\nfoo::_: foo::bar(1)", 2, 14),
        ("start: BAR\nBAR: qux::0\nqux::_: qux::_", 2, 6),
        ('start: BAR\nBAR: "b" %if true', 2, 6),
        ('start: foo::0\nfoo::_: bar\nbar: "a"', 2, 1),
        ('start: foo\nfoo: bar::_\nbar::_: "a" %if true | bar::_', 2, 6),
        ('start: foo\nfoo::_: "a" %if bit_set(1)', 1, 8),
        ('start::_: "a" %if bit_set(1)', 1, 1),
        ('start: foo::0\nfoo::_[stop="x"]: "a" %if bit_set(1)', 2, 1),
        ('start: foo::0\nfoo::_[max_tokens=3]: "a" %if bit_set(1)', 2, 1),
        ("start: foo::99999999999999999999\nfoo::_: foo::_", 1, 13),
    ],
)
def test_mistakes_are_told_where_they_stand(grammar: str, line: int, column: int) -> None:
    with pytest.raises(InvalidGrammar) as caught:
        tf.lark(grammar)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_what_derives_nothing_and_what_grows_without_end() -> None:
    with pytest.raises(UnsatisfiableGrammar):
        tf.lark('start: p::0\np::_: "a" %if bit_set(0)')
    with pytest.raises(LimitExceeded):
        tf.lark('start: p::0\np::_: "a" p::incr(_) | "" %if le(_, 3)')
    with pytest.raises(TokenformError):
        tf.lark("start: p::0\np::_: p::_ %if " + "not(" * 5_000)


def test_a_text_with_two_colons_is_no_rule() -> None:
    grammar = tf.lark('start: s::0\ns::_ : "a::b" s::1 %if eq(_, 0) | "." %if eq(_, 1)')
    automaton = grammar.compile(BYTES)
    assert automaton.matches(b"a::b.") and not automaton.matches(b".")
