"""Masks that are told from the top of the stack: tokens of several lexemes that push, pop and do both.

Random grammars with brackets and optional parts, over a vocabulary of every text of up to four of their
characters, so that what is left of tokens behind a lexeme is a large set; the judge is the slow walk of each
token (`oracle`), which knows no top.
"""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tokenform import Vocabulary
from tokenform.errors import TokenformError
from tokenform.frontends.lark import lark

TOKENS = ["".join(t).encode() for n in range(1, 5) for t in itertools.product("a+()[] ;", repeat=n)]
VOCABULARY = Vocabulary([*TOKENS, b""], eos=[len(TOKENS)])

ATOMS = ["NAME", '"+"', '"++"', "e", "f", '"(" e ")"', '"[" f "]"', '"(" f? ")"', '"..." | "."']
ITEMS = st.builds("({}){}".format, st.sampled_from(ATOMS), st.sampled_from(["", "", "", "?", "*", "+"]))
BODIES = st.lists(ITEMS, min_size=1, max_size=3).map(" ".join)
RULES = st.lists(BODIES, min_size=1, max_size=3).map(" | ".join)
EXPRESSIONS = (
    'e ";" | "[" start "]"',
    'e "+" f | f',
    'NAME "[" e "]" | NAME | "(" e ")" | f "(" e? ")"',
)


def ids(row: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.tuples(RULES, RULES, RULES), st.lists(st.integers(0, 10**6), min_size=6, max_size=6))
@example(EXPRESSIONS, [7, 77, 777, 7_777, 77_777, 777_777])
@example(EXPRESSIONS, [4_095, 511, 2_047, 31, 900_001, 12])
def test_masks_are_those_of_every_token_by_itself(rules: tuple[str, str, str], draws: list[int]) -> None:
    start, e, f = rules
    text = f'start: {start}\ne: {e} | NAME\nf: {f} | NAME\nNAME: /a+/\n%ignore " "\n'
    try:
        automaton = lark(text, lexer="contextual").compile(VOCABULARY)
    except TokenformError:
        return
    # two texts in turns: what one has found serves the other
    for ahead in (draws, draws[::-1]):
        state = automaton.start
        for draw in ahead:
            allowed = ids(automaton.mask(state))
            assert allowed == list(automaton.oracle(state)), text
            tokens = [token for token in allowed if token < len(TOKENS)]
            if not tokens:
                break
            state = automaton.advance(state, tokens[draw % len(tokens)])
