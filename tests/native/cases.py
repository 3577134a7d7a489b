"""Texts of 500 schemas and 50 grammars, and the masks along them as Python has them."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import TokenformError
from tokenform_bench.data import read_maskbench, sample

ROOT = Path(__file__).parents[2]
TOKENS = [bytes([b]) for b in range(256)]
TOKENS += [b'": ', b'", "', b'{"', b'"}', b"}, ", b"type", b"name", b"true", b"null", b"12", b"0.", b"SELECT"]
TOKENS += [a + b for a in (b"a", b"e", b"st", b"in", b" ") for b in (b"n", b"r", b"s", b"te", b"\n")] + [b""]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS])
LENGTH = 24
"""Tokens of a text."""


def built(name: str) -> Path:
    """A library that `make capi` or `make wasm` has built; TOKENFORM_NATIVE: another folder to look in."""
    folders = [ROOT / "rust/target" / place for place in ("release", "wasm32-unknown-unknown/release")]
    for folder in [*map(Path, filter(None, [os.environ.get("TOKENFORM_NATIVE")])), *folders]:
        if (folder / name).is_file():
            return folder / name
    pytest.skip(f"{name} is not built: `make capi`, `make wasm`")


def options_of(number: int) -> dict[str, Any]:
    """Options of a case: a third has the defaults."""
    chosen: list[dict[str, Any]] = [
        {},
        {"order": "any", "whitespace": "any"},
        {"numbers": "canonical", "strings": "canonical"},
    ]
    return {"unsupported": "report", **chosen[number % 3]}


def fifty_grammars() -> Iterator[tf.Grammar]:
    yield from map(tf.grammars.load, tf.grammars.names())
    for n in range(1, 9):
        yield tf.regex(f"([a-z]{{{n}}}|[0-9]+(\\.[0-9]{{1,{n}}})?)( [A-Z]é*)*")
        yield tf.gbnf(f'root ::= x{{1,{n}}} "."\nx ::= [a-f]+ | "(" x ")"')
        yield tf.choice([f"w{i}" * i for i in range(n + 1)])
        yield tf.combinators.literal("<") + tf.json_schema({"type": "array", "maxItems": n}) + ">" | tf.regex(
            f"b{{{n}}}"
        )


def walk(grammar: tf.Grammar, seed: int) -> tuple[list[int], str]:
    """Tokens drawn from the masks, and the sum over those masks."""
    rng, drawn = random.Random(seed), list[int]()
    matcher, total = tf.engine.Matcher(grammar.compile(VOCABULARY)), 0xCBF29CE484222325
    out = np.zeros((1, -(-len(TOKENS) // 32)), np.uint32)
    while True:
        matcher.fill_mask(out)
        for word in out[0].tolist():
            total = (total ^ word) * 0x100000001B3 % 2**64
        allowed = matcher.allowed_tokens().tolist()
        if len(drawn) == LENGTH or not allowed:
            return drawn, f"{total:016x}"
        drawn.append(rng.choice(allowed))
        matcher.accept_tokens(drawn[-1:])


def cases(maskbench: Path, count: int = 500) -> Iterator[tuple[str, bytes, list[int], str]]:
    """(kind, text, tokens, sum or error); "j": a schema, its options after a zero; "b": a grammar."""
    for number, case in enumerate(sample(read_maskbench(maskbench), count, seed=7)):
        text, options = json.dumps(case.schema), options_of(number)
        data = text.encode() + b"\0" + json.dumps(options).encode()
        try:
            yield "j", data, *walk(tf.json_schema(text, **options), number)
        except TokenformError as error:
            yield "j", data, [], type(error).__name__
    for number, grammar in enumerate(fifty_grammars()):
        yield "b", grammar.to_bytes(), *walk(grammar, number)


def packed_vocabulary() -> bytes:
    """As `masks.c` reads it."""
    tokens = b"".join(struct.pack("=I", len(token)) + token for token in TOKENS)
    return struct.pack("=II", len(TOKENS), EOS) + tokens


def packed(kind: str, text: bytes, tokens: list[int]) -> bytes:
    count = len(tokens)
    return kind.encode() + struct.pack(f"=I{len(text)}sI{count}I", len(text), text, count, *tokens)
