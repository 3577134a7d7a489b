"""`strings="natural"`: the spellings of a text that some writer of JSON writes, and no other.

The judge lists the spellings of each character by a definition of its own, and all that JSON has beside them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from benchmarks.suites.maskcheck import byte_vocabulary
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tokenform as tf

BYTES = byte_vocabulary()
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
CHARACTERS = 'aZ09_ /"\\\n\t\b\x00\x1f\x7f<>&=é\u00ff\u2028日\ud7ff\ue000\uffff😀\U0010ffff'
PIECES = [
    "a",
    "/",
    '"',
    "<",
    "é",
    "é".encode()[:1],
    "日",
    "😀",
    "\\",
    "\\u",
    "\\u00",
    "\\u00e",
    "00",
    "e9",
    "E9",
    "\\n",
    "\\/",
]
PIECES += ["\\ud83d", "\\ude00", "\\uDE00", "0a", "3c", "\\u003", "u", "d8", '",', '"}', 'a"', '\\"']


def digits(character: str) -> str:
    """The character as json.dumps escapes what is not ASCII."""
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def natural(character: str) -> set[str]:
    """What writers write for one character."""
    ways = {SHORT[character]} if character in SHORT else set()
    code = ord(character)
    if code >= 0x20 and character not in '"\\':
        ways.add(character)  # every writer that does not escape it
    if code < 0x20 or code > 0x7E:
        ways.add(digits(character))  # json.dumps
    if character in "<>&":
        ways.add(digits(character))  # Go
    if character == "/":
        ways.add("\\/")  # PHP
    return ways


def every(character: str) -> set[str]:
    """What JSON allows, by its grammar: the digits in either case."""
    lower = digits(character)
    parts = [part for part in lower.split("\\u") if part]
    cases = itertools.product(*({part, part.upper(), part.capitalize()} for part in parts))
    ways = {"".join(f"\\u{part}" for part in case) for case in cases} | natural(character)
    return ways | ({"\\/"} if character == "/" else set())


def spelled(text: str, ways: Any) -> set[str]:
    return {"".join(parts) for parts in itertools.product(*(sorted(ways(c)) for c in text))}


def accepted(schema: Any, texts: set[str]) -> set[str]:
    automaton = tf.json_schema(schema).compile(BYTES)
    return {text for text in texts if automaton.matches(text.encode("utf-8"))}


@pytest.mark.parametrize("character", CHARACTERS)
def test_each_character_has_the_spellings_that_writers_give_it(character: str) -> None:
    found = accepted({"type": "string"}, {f'"{way}"' for way in every(character)})
    assert found == {f'"{way}"' for way in natural(character)}


@given(st.lists(st.text(st.sampled_from(CHARACTERS), max_size=3), min_size=1, max_size=3, unique=True))
@settings(max_examples=60, deadline=None)
@example(["a/b", "é", "<b"])
def test_constants_names_and_free_strings_are_spelled_alike(words: list[str]) -> None:
    texts = {f'"{way}"' for word in words for way in spelled(word, every)}
    right = {f'"{way}"' for word in words for way in spelled(word, natural)}
    assert {json.loads(text) for text in texts} == set(words)
    assert accepted({"enum": words}, texts) == right
    assert accepted({"type": "string"}, texts) == right
    names = {"type": "object", "properties": dict.fromkeys(words, True), "additionalProperties": False}
    assert accepted(names, {f"{{{text}:1}}" for text in texts}) == {f"{{{text}:1}}" for text in right}
    assert accepted({"type": "object"}, {f"{{{text}:1}}" for text in texts}) == {
        f"{{{text}:1}}" for text in right
    }


def pieces() -> Iterator[bytes]:
    yield from (bytes([byte]) for byte in range(256))
    for piece in dict.fromkeys(PIECES):
        token = piece if isinstance(piece, bytes) else piece.encode()
        if len(token) > 1:
            yield token


def masked(automaton: tf.TokenAutomaton, state: Any) -> set[int]:
    row = np.ascontiguousarray(automaton.mask(state)).view(np.uint8)
    return set(np.flatnonzero(np.unpackbits(row, bitorder="little")[: automaton.vocabulary.size]).tolist())


@given(
    st.lists(st.text(st.sampled_from(CHARACTERS), max_size=3), min_size=1, max_size=4, unique=True),
    st.sampled_from(["enum", "names", "free", "bounded"]),
    st.integers(0, 5),
)
@settings(max_examples=80, deadline=None)
def test_masks_are_those_of_the_spellings(words: list[str], kind: str, at: int) -> None:
    """A token is allowed where some natural spelling of a word of the language goes on with it."""
    tokens = [*pieces(), b"</s>"]
    vocabulary = tf.Vocabulary(tokens, eos=[len(tokens) - 1])
    schemas: dict[str, Any] = {
        "enum": {"enum": words},
        "names": {"type": "object", "properties": dict.fromkeys(words, True), "additionalProperties": False},
        "free": {"type": "string"},
        "bounded": {"type": "string", "maxLength": 3},
    }
    automaton = tf.json_schema(schemas[kind], whitespace="compact").compile(vocabulary)
    opening = b'{"' if kind == "names" else b'"'
    texts = sorted(way.encode() for word in words for way in spelled(word, natural))
    begun = texts[at % len(texts)][:at]
    state = automaton.step_bytes(automaton.start, opening + begun)
    assert masked(automaton, state) == set(automaton.oracle(state))
    if kind not in ("enum", "names"):
        return
    whole = [text + b'"' for text in texts]
    right = {t for t, token in enumerate(tokens[:-1]) if any(w.startswith(begun + token) for w in whole)}
    assert masked(automaton, state) == right
