"""Random grammars: the engine takes the texts that Lark takes, and its masks are the oracle's.

Grammars over a few letters whose terminals may be prefixes of each other, with and without a lexer: those
without are folded into patterns or get a lexer where that makes no difference, and every such change shows.
"""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError
from tests.grammars.judge import accepts

from tokenform import Vocabulary
from tokenform.errors import TokenformError
from tokenform.frontends.lark import lark

TEXTS = ["".join(t) for n in range(5) for t in itertools.product("ab,", repeat=n)]
PIECES = [b"a", b"b", b",", b"ab", b"aa", b"a,", b",b", b"ba,", b"abab", b",a,b", b"bb,aa", b"aab,b"]
VOCABULARY = Vocabulary([*PIECES, b""], eos=[len(PIECES)])

ATOMS = ['"a"', '"b"', '","', '"ab"', "A", "B", "x", "y"]
ITEMS = st.builds("{}{}".format, st.sampled_from(ATOMS), st.sampled_from(["", "", "", "?", "*", "+"]))
BODIES = st.lists(ITEMS, min_size=1, max_size=3).map(" ".join)
RULES = st.lists(BODIES, min_size=1, max_size=3).map(" | ".join)


def source(rules: tuple[str, str, str], ignored: bool) -> str:
    start, x, y = rules
    text = f'start: {start}\nx: {x} | "a"\ny: {y} | "b"\nA: /a+/\nB: /b(,b)*/\n'
    return text + ('%ignore ","\n' if ignored else "")


def ids(row: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


def check_masks(grammar_source: str, lexer: str) -> None:
    """Every state within two tokens of the start."""
    auto = lark(grammar_source, lexer=lexer).compile(VOCABULARY)
    states = [auto.start]
    for _ in range(2):
        reached = []
        for state in dict.fromkeys(states):
            allowed = ids(auto.mask(state))
            assert allowed == list(auto.oracle(state)), grammar_source
            reached += [auto.advance(state, t) for t in allowed if t < len(PIECES)]
        states = reached


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.tuples(RULES, RULES, RULES))
def test_every_segmentation(rules: tuple[str, str, str]) -> None:
    text = source(rules, ignored=False)
    judge = Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    try:
        auto = lark(text, lexer="dynamic").compile(VOCABULARY)
    except TokenformError:
        return
    for candidate in TEXTS:
        assert (auto.check(candidate.encode()) is None) == accepts(judge, candidate), (text, candidate)
    check_masks(text, "dynamic")


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.tuples(RULES, RULES, RULES), st.booleans())
# the same terminals before a lexeme and in the middle of one: where it begins, it must be able to end
@example(('B | x ","', '"a" "a" "a" | "a" "a" B', '"a"'), False)
def test_masks_of_a_contextual_lexer(rules: tuple[str, str, str], ignored: bool) -> None:
    text = source(rules, ignored)
    try:
        check_masks(text, "contextual")
    except TokenformError:
        return


def lexed(parser: Lark, text: str) -> bool | None:
    """Whether Lark's LALR parser takes the text."""
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


SEPARATED = ['"a"', '"b"', '"("', '")"', "NAME", "x", "y"]
SEPARATED_ITEMS = st.builds("{}{}".format, st.sampled_from(SEPARATED), st.sampled_from(["", "", "?"]))
SEPARATED_RULES = st.lists(
    st.lists(SEPARATED_ITEMS, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=2
).map(" | ".join)


@settings(deadline=None, max_examples=80, suppress_health_check=list(HealthCheck))
@given(st.tuples(SEPARATED_RULES, SEPARATED_RULES, SEPARATED_RULES))
def test_contextual_lexer_beside_lark(rules: tuple[str, str, str]) -> None:
    """Terminals that are no prefixes of each other: nothing that is read may hang on backtracking."""
    start, x, y = rules
    text = f'start: {start}\nx: {x} | "a"\ny: {y} | "b"\nNAME: /c+/\n%ignore " "\n'
    try:
        judge = Lark(text, parser="lalr", lexer="contextual", strict=True)
        auto = lark(text).compile(VOCABULARY)
    except (LarkError, TokenformError):
        return  # not LALR (strict: Lark would settle a conflict in silence), or it derives nothing
    for n in range(5):
        for letters in itertools.product("ab(c", repeat=n):
            candidate = "".join(letters)
            assert (auto.check(candidate.encode()) is None) == lexed(judge, candidate), (text, candidate)
