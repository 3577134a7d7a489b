"""Invariant 3: a mask equals what the slow oracle says, token by token, byte by byte.

Schemas, patterns, vocabularies and walks are drawn by Hypothesis; the walk goes by tokens that the oracle
allows, so that a mask that is too tight can't hide.  The 131,072-token vocabulary is held against schemas
that reach the shortcuts of the mask engine: bounded strings, keys of open objects, several branches at once,
numbers.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import TokenformError

PIECES = [
    *[bytes([b]) for b in range(256)],
    *[
        p.encode()
        for p in (
            '"',
            '":',
            '": "',
            '", "',
            '"}',
            '"},{"',
            "[[",
            "]]",
            '["',
            "true",
            "null",
            "\\n",
            "\\u00",
            "\\u006",
            "\\/",
            "\\ud83d",
            "E9",
            "ab",
            "aa",
            '":"',
            '","',
            "12",
            "00",
            ".0",
            "e+",
            "e3",
            "08",
            "  ",
            "\n  ",
            ",\n",
            "\r\n\t",
            '{ "',
            " :",
            'a"',
            'a": ',
            'name"',
            "é",
            "日本",
            "😀",
            'b","a":',
        )
    ],
    "日".encode()[:2],
    "😀".encode()[1:],
    b"a",
    b"",
]


def vocabulary(seed: int) -> tf.Vocabulary:
    """All bytes, some joined tokens, and random joins of those; empty, special and end tokens."""
    rng = random.Random(seed)
    joined = [b"".join(rng.choices(PIECES, k=rng.randint(2, 4))) for _ in range(60)]
    tokens = [*PIECES, *joined, b"<s>", b"</s>", b"<end>"]
    n = len(tokens)
    return tf.Vocabulary(tokens, eos=[n - 2, n - 1], special=[n - 3])


scalars: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda lo, hi: {"type": "string", "minLength": min(lo, hi), "maxLength": max(lo, hi)},
        st.integers(0, 4),
        st.integers(0, 6),
    ),
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "pattern": "^a+b?$"},
            {"type": "string", "pattern": "b"},
            {"type": "string", "pattern": "^[a-c]{2,5}$", "maxLength": 4},
            {"type": "string", "format": "date"},
            {"enum": ["a", "ab", "é", 1, None, {"a": 1}]},
            {"const": 'na"me'},
            {"type": "boolean"},
            {"type": "number"},
            {"type": "integer", "minimum": -3, "maximum": 120},
            {"type": "number", "multipleOf": 0.5, "maximum": 3},
            {"not": {"type": "string"}},
            {"type": ["string", "null"], "not": {"const": "a"}},
            True,
            {"type": "integer", "exclusiveMinimum": 9},
        ]
    ),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "ab", "name", "b", "é"])
    return st.one_of(
        st.builds(
            lambda props, need, more, count: {
                "type": "object",
                "properties": props,
                "required": [k for k in props if k in need],
                "additionalProperties": more,
                **count,
            },
            st.dictionaries(names, inner, max_size=3),
            st.sets(names),
            st.one_of(st.booleans(), inner),
            st.sampled_from([{}, {}, {"minProperties": 1}, {"maxProperties": 2}]),
        ),
        st.builds(
            lambda p, s: {"type": "object", "patternProperties": {p: s}},
            st.sampled_from(["^a", "b$", "."]),
            inner,
        ),
        st.builds(
            lambda items, extra: {"type": "array", "items": items, **extra},
            inner,
            st.sampled_from([{}, {"maxItems": 2}, {"minItems": 1}, {"uniqueItems": True, "maxItems": 3}]),
        ),
        st.builds(lambda a, b: {"prefixItems": [a], "items": b, "type": "array"}, inner, inner),
        st.builds(
            lambda op, branches: {op: branches},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda s: {"type": "array", "contains": s, "maxItems": 3}, inner),
    )


schemas = st.recursive(scalars, nested, max_leaves=6)
options = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["declared", "any"]),
        "whitespace": st.sampled_from(["natural", "natural", "compact", "spaced", "indent", "any"]),
        "numbers": st.sampled_from(["natural", "natural", "canonical", "any"]),
        "strings": st.sampled_from(["natural", "natural", "any", "canonical"]),
    }
)


def bits(row: np.ndarray, size: int) -> list[int]:
    unpacked = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")[:size]
    return np.flatnonzero(unpacked).tolist()


def walk(automaton: tf.TokenAutomaton, seed: int, steps: int) -> int:
    """Compares mask and oracle along a walk; returns how many states were compared."""
    vocab, rng, state = automaton.vocabulary, random.Random(seed), automaton.start
    for step in range(steps):
        allowed = automaton.oracle(state)
        assert bits(automaton.mask(state), vocab.size) == allowed, automaton.describe(state)
        assert allowed, f"no way on from {automaton.describe(state)}"
        assert any(t in allowed for t in vocab.eos) == automaton.is_accepting(state)
        ends = set(vocab.eos)
        onward = [t for t in allowed if t not in ends]
        if not onward:
            return step + 1
        token = rng.choice(onward)
        assert automaton.allows(state, token)
        state = automaton.advance(state, token)
    return steps


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(schema=schemas, chosen=options, seed=st.integers(0, 2**16))
def test_masks_of_random_schemas(schema: Any, chosen: dict[str, Any], seed: int) -> None:
    try:
        automaton = tf.json_schema(schema, **chosen).compile(vocabulary(seed))
    except TokenformError:
        return
    walk(automaton, seed, 12)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    pattern=st.recursive(
        st.sampled_from(["a", "b", "[a-c]", ".", "é", r"\d", "(?!ab)"]),
        lambda p: st.one_of(
            st.builds("{}{}".format, p, p),
            st.builds("(?:{}|{})".format, p, p),
            st.builds("(?:{})*".format, p),
            st.builds("(?:{}){{1,3}}".format, p),
        ),
        max_leaves=6,
    ),
    seed=st.integers(0, 2**16),
)
def test_masks_of_random_patterns(pattern: str, seed: int) -> None:
    try:
        automaton = tf.regex(pattern).compile(vocabulary(seed))
    except TokenformError:
        return
    walk(automaton, seed, 10)


LARGE: dict[str, Any] = {
    "bounded strings": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 3, "maxLength": 9},
            "b": {"type": "string", "pattern": "^[a-z ]{1,20}$"},
            "c": {"type": "string", "pattern": "^(?:\\S+\\s+){0,3}\\S+$", "maxLength": 30},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    },
    "open objects": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "na": {"type": "integer"}},
        "additionalProperties": {"type": ["string", "number"]},
        "minProperties": 3,
    },
    "several branches": {
        "oneOf": [
            {"properties": {"kind": {"const": "user"}, "id": {"type": "string"}}, "required": ["kind", "id"]},
            {
                "properties": {"kind": {"const": "username"}, "id": {"type": "integer", "maximum": 900}},
                "required": ["kind", "id"],
            },
        ]
    },
    "patterns of keys": {
        "type": "object",
        "patternProperties": {"^x-": {"type": "integer"}, "y$": {"type": "string"}},
        "minProperties": 2,
        "additionalProperties": False,
    },
    "distinct items": {
        "type": "array",
        "items": {"enum": ["one", "two", "three", 4]},
        "uniqueItems": True,
        "minItems": 3,
    },
    "far counters": {
        "type": "array",
        "items": {
            "anyOf": [
                {"type": "string", "format": "email"},
                {"type": "string", "format": "hostname", "maxLength": 90},
                {"type": "string", "pattern": "^([a-z]+-){0,40}$"},
            ]
        },
        "minItems": 2,
    },
    "runs of one character": {"type": "string", "pattern": "^(=|--){24,30}[a-z ]{0,33}(\\n|x){1,40}$"},
    "words": {
        "type": "object",
        "properties": {
            "open": {"enum": ["a", "ab", "abc", "日本語", "日本", "a b"]},
            "opened": {"const": "über"},
        },
        "additionalProperties": False,
        "required": ["open", "opened"],
    },
}


@pytest.mark.parametrize("name", LARGE)
def test_masks_of_the_large_vocabulary(name: str, tekken: tf.Vocabulary) -> None:
    for seed, chosen in enumerate(
        [{}, {"whitespace": "any"}, {"order": "any", "whitespace": "any", "numbers": "any"}]
    ):
        automaton = tf.json_schema(LARGE[name], **chosen).compile(tekken)
        assert walk(automaton, seed, 7) > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", LARGE)
def test_longer_walks_of_the_large_vocabulary(name: str, seed: int, tekken: tf.Vocabulary) -> None:
    chosen = {"order": ["declared", "any"][seed % 2], "whitespace": ["natural", "any"][seed // 2 % 2]}
    walk(tf.json_schema(LARGE[name], **chosen).compile(tekken), seed, 30)


# a string's keywords and texts that it may begin with
CLASSES: list[tuple[dict[str, Any], list[str]]] = [
    ({"pattern": "[0-9]{10}", "minLength": 10, "maxLength": 10}, ["", "0", "012345", "01234567"]),
    ({"pattern": "^[a-zA-Z0-9](-?[a-zA-Z0-9])*$", "maxLength": 5}, ["", "a", "ab-", "abcd"]),
    ({"pattern": "^\\d+\\.\\d+.*$", "maxLength": 7}, ["", "1.", "1.2", "1.2abc"]),
    ({"pattern": "^[A-Za-z0-9_.-]+$"}, ["", "ab"]),
    ({"pattern": "^[ -~]*x[ -~]*$", "maxLength": 40}, ["", "ab", "abx"]),
    ({"pattern": "^[^ ]+@[^ ]+$", "maxLength": 6}, ["", "ab", "ab@", "abcd"]),
    ({"pattern": "é+[^a-z]{3}", "maxLength": 7}, ["", "é", "éé1"]),
    ({"format": "uri"}, ["", "http://a"]),
    ({"format": "hostname"}, ["", "a"]),
    # what may follow is open, and the length is not: near the bound, and too near for an end
    ({"pattern": "[0-9a-f]+", "minLength": 12, "maxLength": 12}, ["", "xy", "0abcdefgh", "ghijklmnopq"]),
    # words of a bounded length that count inside, and end soon or late
    ({"format": "email", "maxLength": 60}, ["", "ab", "a" * 40, "ab@", "ab@[IPv6:1", "a@" + "b" * 50]),
    ({"pattern": "^([a-z]{1,40}-)*x{30}$", "maxLength": 50}, ["", "ab-", "x" * 12, "a-" * 9 + "x"]),
    ({"format": "regex", "maxLength": 30}, ["", "(?<a>b)(", "[a", "\\\\0"]),
]

# names that say which kind an object is, beside kinds of any name: some end within a token, some in none
KINDS = {"common": ["car", "care", "é", "boat", " and", ""], "rare": ["qzv1", "qzv2", "qzv3", "zvq4", "zvq5"]}
OTHERS: dict[str, dict[str, Any]] = {
    "any other": {"kind": {"type": "string"}, "x": {"type": "boolean"}},
    "another pattern": {"kind": {"pattern": "^[^k]*$"}, "x": {"type": "boolean"}},
    "a short one": {"kind": {"type": "string", "maxLength": 5}, "x": {"type": "boolean"}},
}


@pytest.mark.parametrize("strings", ["natural", "canonical", "any"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("names", KINDS)
def test_words_beside_a_language_of_many(names: str, other: str, strings: str, tekken: tf.Vocabulary) -> None:
    kinds = [{"kind": {"const": name}, "x": {"const": i}} for i, name in enumerate(KINDS[names])]
    closed = {"type": "object", "required": ["kind", "x"], "additionalProperties": False}
    schema = {"anyOf": [{**closed, "properties": own} for own in [*kinds, OTHERS[other]]]}
    automaton = tf.json_schema(schema, strings=strings, whitespace="compact").compile(tekken)
    for text in ["", "c", "car", "b", "z", " an", "\\"]:
        state = automaton.step_bytes(automaton.start, f'{{"kind":"{text}'.encode())
        assert automaton.allowed_tokens(state).tolist() == automaton.oracle(state), text


@pytest.mark.parametrize("keywords, begun", CLASSES, ids=lambda part: str(part))
def test_classes_of_characters_and_bounds(
    keywords: dict[str, Any], begun: list[str], tekken: tf.Vocabulary
) -> None:
    automaton = tf.json_schema({"type": "string", **keywords}).compile(tekken)
    for text in begun:
        state = automaton.step_bytes(automaton.start, f'"{text}'.encode())
        assert automaton.allowed_tokens(state).tolist() == automaton.oracle(state)


@pytest.mark.parametrize("order", ["declared", "any"])
def test_tokens_that_hold_a_whole_key_know_which_key_it_is(order: str) -> None:
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    whole = [f'"{x}{y}":1'.encode() for x in letters for y in ["", "k", "l"]]
    tokens = [*(bytes([b]) for b in range(256)), *whole, b"</s>"]
    vocab = tf.Vocabulary(tokens, eos=[len(tokens) - 1])
    text = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {"a": text, "bk": text, "c": {"type": "integer"}},
        "additionalProperties": {"type": "integer"},
    }
    automaton = tf.json_schema(schema, order=order).compile(vocab)
    for begun in ["{", "{ ", '{"a":"",']:
        state = automaton.start
        for byte in begun.encode():
            state = automaton.advance(state, byte)
        assert bits(automaton.mask(state), vocab.size) == automaton.oracle(state), begun


def test_threads_get_the_masks_that_one_gets(tekken: tf.Vocabulary) -> None:
    """Eight threads on one automaton: the same rows as one thread alone."""
    from concurrent.futures import ThreadPoolExecutor

    schema = LARGE["bounded strings"]
    alone = tf.json_schema(schema).core.compile(tekken)
    text = json.dumps({"a": "abcdef", "b": "some words here", "c": "x y"}).encode()
    cuts = range(0, len(text), 2)
    want = [alone.mask(alone.step_bytes(alone.start, text[:cut])) for cut in cuts]
    shared = tf.json_schema(schema).core.compile(tekken)

    def run(worker: int) -> bool:
        order = list(enumerate(cuts))
        random.Random(worker).shuffle(order)
        return all(
            np.array_equal(shared.mask(shared.step_bytes(shared.start, text[:cut])), want[i])
            for i, cut in order
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_rows_are_written_into_a_batch(tekken: tf.Vocabulary) -> None:
    torch = pytest.importorskip("torch")
    automaton = tf.json_schema(LARGE["open objects"]).compile(tekken)
    states = [
        automaton.start,
        automaton.step_bytes(automaton.start, b'{"name'),
        automaton.step_bytes(automaton.start, b'{"name": "'),
    ]
    want = np.stack([automaton.mask(s) for s in states])
    for threads in (1, 2):
        rows = np.zeros_like(want)
        automaton.fill_masks(states, rows, threads)
        assert np.array_equal(rows, want)
    tensor = torch.zeros(want.shape, dtype=torch.int32)
    automaton.fill_masks(states, tensor)
    assert np.array_equal(tensor.numpy().view(np.uint32), want)
    with pytest.raises(TokenformError, match="shape"):
        automaton.fill_masks(states, np.zeros((1, 3), np.uint32))
