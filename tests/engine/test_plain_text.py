"""Tokens of plain text are taken without a builder where the position stays, and only there."""

from __future__ import annotations

import random

import pytest

import tokenform as tf

WORDS = ["ab", "xyz", "é", "日本", "😀", "a b", "0", "-", "\x7f", "ü-1"]
PIECES = [b"\xc3", b"\xa9", b"\xf0\x9f", b"\x98\x80", b'a"', b'", "', b"\\n", b"\\u00", b"a\n"]
TOKENS = [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS] + PIECES + [b"</s>"]
TEXTS = tf.Vocabulary(TOKENS, eos=[len(TOKENS) - 1], special=[len(TOKENS) - 1])
BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b"</s>"], eos=[256], special=[256])
STRING = {"type": "string"}
SCHEMAS = {
    "free": STRING,
    "counted": STRING | {"maxLength": 6},
    "at least": STRING | {"minLength": 4},
    "pattern": STRING | {"pattern": "^[a-zé]+$"},
    "found": STRING | {"pattern": "xy"},
    "not found": {"type": "string", "not": {"pattern": "ab"}},
    "but one character": STRING | {"pattern": "^[^\U0001f600]*$"},
    "but one word": {"type": "string", "not": {"const": "abé"}},
    "words": {"enum": ["abab", "abé", "日本"]},
    "format": STRING | {"format": "date"},
    "keys": {"type": "object", "additionalProperties": STRING},
    "unlike": {"type": "array", "items": STRING, "uniqueItems": True},
    "several": {"anyOf": [STRING, STRING | {"maxLength": 3}]},
}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("forgets", [False, True])
def test_tokens_lead_where_their_bytes_do(name: str, forgets: bool) -> None:
    grammar, rng = tf.json_schema(SCHEMAS[name]), random.Random(name)
    automaton, exact = grammar.compile(TEXTS), grammar.compile(BYTES)
    for _ in range(30):
        state, plain = automaton.start, exact.start
        for place in range(25):
            allowed = automaton.allowed_tokens(state).tolist()
            assert [t for t in allowed if t < 256] == [
                t for t in exact.allowed_tokens(plain).tolist() if t < 256
            ]
            # tokens that end nothing come more often, so that texts grow
            texts = [
                t for t in allowed if t != TEXTS.eos[0] and not TOKENS[t].startswith((b'"', b" ", b"\t"))
            ]
            if not texts or (place > 20 and TEXTS.eos[0] in allowed):
                break
            token = rng.choice([t for t in texts if t >= 256] or texts if rng.random() < 0.6 else texts)
            state = automaton.advance(state, token)
            for byte in TOKENS[token]:
                plain = exact.advance(plain, byte)
            if forgets and rng.random() < 0.2:
                automaton.clear()


def test_text_in_a_free_string_is_no_new_state() -> None:
    automaton = tf.json_schema(STRING).compile(TEXTS)
    inside = automaton.advance(automaton.start, ord('"'))
    held = automaton.stats()["states"]
    for token, text in enumerate(TOKENS[256 : 256 + len(WORDS)], 256):
        assert automaton.advance(inside, token) == inside, text
    for other in (b"\xc3", b'a"', b"\\n", b"\\u00"):
        assert (automaton.advance(inside, TOKENS.index(other)) == inside) == (other == b"\\n")
    assert automaton.stats()["states"] == held + 3
