"""Groups of Lark's rules: named or multiplied out, the texts are the same, and no rule outgrows its text."""

from __future__ import annotations

import re
import string

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tokenform import Vocabulary, lark
from tokenform.frontends import lark_groups
from tokenform.frontends.lark_reader import read_lark

BYTES = Vocabulary([bytes([i]) for i in range(256)] + [b""], eos=[256])
CLAUSES = [f"clause{letter}" for letter in string.ascii_lowercase]

Piece = tuple[str, str]  # a part of a rule, and Python's pattern for it


def _joined(parts: list[Piece], symbol: str, between: str) -> Piece:
    return f"({between.join(p for p, _ in parts)})", f"(?:{symbol.join(p for _, p in parts)})"


_ATOMS = st.sampled_from(
    [('"a"', "a"), ('"bc"', "bc"), ("x", "(?:a|c)"), ('t{"b"}', "(?:b|c)?b"), ("C", "c")]
)
_SIGNS = st.sampled_from(
    [("?", "?"), ("*", "*"), ("+", "+"), ("~2", "{2}"), ("~0..2", "{0,2}"), ("~1..3", "{1,3}")]
)


def _larger(parts: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    several = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda found: _joined(found, "", " ")),
        several.map(lambda found: _joined(found, "|", " | ")),
        st.tuples(parts, _SIGNS).map(lambda p: (f"({p[0][0]}){p[1][0]}", f"(?:{p[0][1]}){p[1][1]}")),
        parts.map(lambda p: (f"[{p[0]}]", f"(?:{p[1]})?")),
    )


@given(st.recursive(_ATOMS, _larger, max_leaves=6), st.lists(st.text("abc", max_size=6), max_size=12))
@settings(max_examples=150, deadline=None)
def test_named_groups_mean_what_the_pattern_does(part: Piece, texts: list[str]) -> None:
    text = f'start: "<" {part[0]} ">"\nx: "a" | C\nt{{p}}: [(p | C)] p\nC: "c"\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lark_groups, "MOST", 0)
        named = lark(text, lexer="dynamic").compile(BYTES)
    for inner in {*texts, "", "a", "bc"}:
        accepted = named.matches(f"<{inner}>".encode())
        assert accepted == bool(re.fullmatch(part[1], inner)), (part, inner)


def test_optional_clauses_are_a_rule_each() -> None:
    text = "start: " + " ".join(f'["{clause} " value]' for clause in CLAUSES) + "\nvalue: /[0-9]+/\n"
    assert len(read_lark(text)["rules"]) <= 3 * len(CLAUSES) + 2
    automaton = lark(text).compile(BYTES)
    assert automaton.matches(b"") is True
    assert automaton.matches(b"".join(f"{clause} 7".encode() for clause in CLAUSES)) is True
    assert automaton.matches(b"clausea 1clausez 2") is True
    assert automaton.matches(b"clausez 1clausea 2") is False


@pytest.mark.parametrize(
    "rule",
    [
        " ".join(['("a" | "b")'] * 60),
        '("a" | "b")~0..40',
        '("a" | "b")~3..100000',
        '(("a" | "b")~10 | "c")~10',
        " ".join(['t{"a"}'] * 3) + "\nt{p}: " + " ".join(f'(p | "{i}")' for i in range(30)),
        "(" + " ".join(['"a"?'] * 40) + ' "x")+',
        " ".join('["a" item+ | item "," item]~0..3' for _ in range(8)) + '\nitem: "i"',
        " ".join(['"a"?'] * 1_000),
    ],
)
def test_groups_are_not_multiplied_out(rule: str) -> None:
    structure = read_lark(f"start: {rule}\n")
    assert sum(1 + len(entry["expansion"]) for entry in structure["rules"]) < 5_000
    automaton = lark(f"start: {rule}\n").compile(BYTES)
    assert automaton.distance(automaton.start) is not None


def test_small_rules_are_as_lark_writes_them() -> None:
    rules = read_lark('start: "a"? ("b" | "c") "d"?\n')["rules"]
    assert {rule["origin"] for rule in rules} == {"start"}
    assert len(rules) == 8
