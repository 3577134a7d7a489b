"""Grammars travel as bytes: what is loaded accepts what was saved, combines, and damage is an error."""

from __future__ import annotations

import contextlib
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import InvalidGrammar, TokenformError

WORDS = [b"true", b'": ', b'", "', b"name", b'{"', b'"}', b"[[", b"SELECT", b", ", b"12", b"0.5"]
TOKENS = [bytes([b]) for b in range(256)] + WORDS + [b"<tool>", b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS, EOS - 1])
TREE = {
    "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}, "type": "object"}},
    "$ref": "#/$defs/n",
}
GRAMMARS: dict[str, Any] = {
    "schema": lambda: tf.json_schema({"type": "object", "properties": {"name": {"type": "string"}}}),
    "options": lambda: tf.json_schema(TREE, order="any", whitespace="any", strict=True),
    "registry": lambda: tf.json_schema({"$ref": "urn:a"}, registry={"urn:a": {"enum": [1, "é"]}}),
    "regex": lambda: tf.regex("(a|é)+[0-9]{2,3}"),
    "choice": lambda: tf.choice(["yes", "no", ""]),
    "gbnf": lambda: tf.gbnf('top ::= "(" top? ")"', start="top"),
    "lark": lambda: tf.lark('start: "SELECT" WORD ("," WORD)*\nWORD: /[a-z]+/\n%ignore " "'),
    "sql": lambda: tf.grammars.load("sql"),
    "python": lambda: tf.grammars.load("python"),
    "combined": lambda: (
        tf.regex("[0-9]+") + " " + tf.json_schema({"type": "boolean"})
        | tf.combinators.special_token("<tool>")
    ),
    "not": lambda: ~tf.combinators.contains("ab"),
    "in strings": lambda: tf.json_schema({"type": "string"}, strings_in={"": tf.regex("a+")}),
}


def masks_along(grammar: tf.Grammar, seed: int) -> list[bytes]:
    """Masks along a text that is drawn from them."""
    rng, matcher = np.random.default_rng(seed), tf.engine.Matcher(grammar.compile(VOCABULARY), max_tokens=60)
    out, masks = np.zeros((1, -(-len(TOKENS) // 32)), np.uint32), []
    while not matcher.is_terminated():
        matcher.fill_mask(out)
        masks.append(out.tobytes())
        matcher.accept_tokens([int(rng.choice(matcher.allowed_tokens()))])
    return masks


@pytest.mark.parametrize("name", GRAMMARS)
def test_what_is_loaded_accepts_what_was_saved(name: str) -> None:
    grammar = GRAMMARS[name]()
    data = grammar.to_bytes()
    loaded = tf.Grammar.from_bytes(data)
    assert loaded.to_bytes() == data and loaded.report == grammar.report
    assert pickle.loads(pickle.dumps(loaded)).to_bytes() == data
    again = tf.combinators.literal("x") + loaded  # the loaded one combines as the other does
    for seed in range(3):
        assert masks_along(loaded, seed) == masks_along(grammar, seed)
        assert masks_along(again, seed) == masks_along(tf.combinators.literal("x") + grammar, seed)


def test_a_schema_is_still_a_schema() -> None:
    loaded = tf.Grammar.from_bytes(GRAMMARS["schema"]().to_bytes())
    assert loaded.parse('{"name": "a"}') == {"name": "a"} and loaded.schema["type"] == "object"


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80), st.data())
def test_hostile_bytes_are_an_error_or_a_grammar(noise: bytes, data: Any) -> None:
    good = bytearray(GRAMMARS["gbnf"]().to_bytes()[:-8])
    at = data.draw(st.integers(0, len(good)))
    good[at : at + data.draw(st.integers(0, 8))] = noise
    total = 0xCBF29CE484222325
    for byte in good:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    for hostile in (noise, bytes(good), bytes(good) + struct.pack("<Q", total)):
        with contextlib.suppress(TokenformError):
            tf.Grammar.from_bytes(hostile).compile(VOCABULARY)


@pytest.mark.parametrize("cut", [0, 1, 17, 18, 21, 25, 40, -8, -1])
def test_bytes_that_lack_their_end_are_refused(cut: int) -> None:
    with pytest.raises(InvalidGrammar):
        tf.Grammar.from_bytes(GRAMMARS["lark"]().to_bytes()[:cut])


def test_a_later_version_says_so() -> None:
    data = bytearray(GRAMMARS["choice"]().to_bytes())
    data[18] = 9
    with pytest.raises(InvalidGrammar, match="version 9"):
        tf.Grammar.from_bytes(bytes(data))
