"""The library's grammars in the engine: examples, masks against the oracle, random walks that Lark reads.

The masks are compared on a small vocabulary of bytes and of pieces of the grammar's own examples, so that
tokens begin, end and cross lexemes in every way.
"""

from __future__ import annotations

import random
import re
from functools import cache

import numpy as np
import pytest
from tests.grammars.judge import NAMES, Example, accepts, examples, judge, text_of

from tokenform import TokenAutomaton, Vocabulary
from tokenform.frontends.lark import lark

# A lexeme that has gone past one end must reach another: these texts need Lark's way back to the last end.
BACKTRACKING = {
    ("yaml", "comments and document marks"),
}
# Lark's LALR tables merge contexts, so its lexer may see more terminals than can come (`1 ORx` as one name).
MERGED = {"sql"}
WALKED = ["arithmetic", "chess_pgn", "csv", "iso_dates", "json", "pddl_plan", "python", "smiles", "sql"]


@cache
def vocabulary(name: str) -> Vocabulary:
    pieces = {bytes([i]) for i in range(256)}
    for example in examples(name):
        text = example.text.encode()
        words = re.findall(rb"\w+|\W+", text)
        pieces.update(words[:60])
        pieces.update(text[i : i + 3] for i in range(0, min(len(text), 90), 2))
    tokens = sorted(pieces)
    return Vocabulary([*tokens, b""], eos=[len(tokens)])


@cache
def automaton(name: str) -> TokenAutomaton:
    return lark(text_of(name)).compile(vocabulary(name))


def ids(row: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    def agrees(example: Example) -> bool:
        return (automaton(name).check(example.text.encode()) is None) == example.accepted

    wrong = {(name, e.remark) for e in examples(name) if not agrees(e)}
    assert wrong == {pair for pair in BACKTRACKING if pair[0] == name}


@pytest.mark.parametrize("name", WALKED)
def test_masks_and_walks(name: str) -> None:
    auto, vocab = automaton(name), vocabulary(name)
    rng = random.Random(7)
    for _ in range(6):
        state, text = auto.start, b""
        for step in range(30):
            allowed = ids(auto.mask(state))
            assert allowed, f"dead end after {text!r}"
            if step % 3 == 0:
                assert allowed == list(auto.oracle(state)), text
            token = rng.choice(allowed)
            if token in vocab.eos:
                break
            text += vocab.token(token)
            state = auto.advance(state, token)
        text += finish(auto, vocab, state)
        assert auto.check(text) is None
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            pytest.fail(f"not UTF-8: {text!r}")
        assert name in MERGED or accepts(judge(name), decoded), decoded


def finish(auto: TokenAutomaton, vocab: Vocabulary, state: int) -> bytes:
    """The bytes of a way to an accepted end within the distance that the automaton gives."""
    out = b""
    while not auto.is_accepting(state):
        distance = auto.distance(state)
        assert distance is not None
        token = ids(auto.mask_within(state, distance))[0]
        out += vocab.token(token)
        state = auto.advance(state, token)
    return out
