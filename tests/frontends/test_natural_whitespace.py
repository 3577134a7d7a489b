"""`whitespace="natural"`: each gap holds what writers put there, and nothing else.

The judge writes every valid document of a small schema in every layout, by rules of its own; what may come
after each beginning of such a text is what stands there in one of them.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from benchmarks.suites.maskcheck import byte_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf

BYTES = byte_vocabulary()
GAPS = ["", " ", "\n", "\n  ", "\n\t", "\r\n", " \n", " \n ", "  ", "\t", "\n\n", "\n ", "\r"]
LINES = [gap for gap in GAPS if gap.lstrip("\r").startswith("\n") and gap.count("\n") == 1]


def allowed(before: str, after: str) -> list[str]:
    """The whitespace between two lexemes, of those in `GAPS`."""
    if after in ",:":
        return [""]
    if before == ":":
        return ["", " "]
    if before == ",":
        return ["", " ", *LINES, *(" " + line for line in LINES if " " + line in GAPS)]
    if before in "[{" or after in "]}":
        return ["", " ", *LINES]
    raise AssertionError((before, after))


def lexemes(data: Any) -> list[str]:
    if isinstance(data, dict):
        parts = [[json.dumps(key), ":", *lexemes(value)] for key, value in data.items()]
    elif isinstance(data, list):
        parts = [lexemes(item) for item in data]
    else:
        return [json.dumps(data)]
    ends = "{}" if isinstance(data, dict) else "[]"
    inside = [lexeme for part in parts for lexeme in [",", *part]][1:]
    return [ends[0], *inside, ends[1]]


documents = st.recursive(
    st.sampled_from([1, "a", None, "b, c: {"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@given(documents, st.data())
@settings(max_examples=300, deadline=None)
def test_each_gap_holds_what_writers_put_there(document: Any, data: st.DataObject) -> None:
    parts, natural, text = lexemes(document), True, ""
    odd = data.draw(st.integers(-1, len(parts) - 2))
    for i, (part, after) in enumerate(zip(parts, [*parts[1:], ""], strict=True)):
        text += part
        if after:
            usual = allowed(part, after)
            gap = data.draw(st.sampled_from(GAPS if i == odd else usual))
            natural, text = natural and gap in usual, text + gap
    assert json.loads(text) == document
    automaton = tf.json_schema(True).compile(BYTES)
    assert automaton.matches(text.encode()) is natural, repr(text)
    for edge in (" " + text, text + "\n"):
        assert not automaton.matches(edge.encode()), edge


def layouts(data: Any) -> Iterator[str]:
    """Every layout with no indentation."""
    parts = lexemes(data)
    gaps = [[g for g in allowed(a, b) if g in ("", " ", "\n", " \n")] for a, b in itertools.pairwise(parts)]
    for chosen in itertools.product(*gaps):
        yield "".join(part + gap for part, gap in zip(parts, [*chosen, ""], strict=True))


OBJECT = {
    "type": "object",
    "properties": {"a": {"const": 1}, "b": {"const": [2]}, "c": {"const": 3}},
    "required": ["a", "c"],
    "additionalProperties": False,
}
PAIR = {"type": "array", "items": {"enum": ["x", {}]}, "minItems": 2, "maxItems": 3}
EITHER = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"a": {"const": 1}},
            "required": ["a"],
            "additionalProperties": False,
        },
        {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": "y"}}, "required": ["b", "a"]},
    ],
    "additionalProperties": False,
    "properties": {"a": True, "b": True},
}
VALID: list[tuple[Any, list[Any]]] = [
    (OBJECT, [{"a": 1, "b": [2], "c": 3}, {"a": 1, "c": 3}]),
    (PAIR, [list(items) for n in (2, 3) for items in itertools.product(["x", {}], repeat=n)]),
    (EITHER, [{"a": 1}, {"a": 1, "b": "y"}]),
]


@pytest.mark.parametrize(("schema", "valid"), VALID, ids=["object", "array", "oneOf"])
def test_a_break_leads_to_what_may_come(schema: Any, valid: list[Any]) -> None:
    """No break behind a value where the bracket can't close, and only the bracket after it."""
    automaton = tf.json_schema(schema).compile(BYTES)
    following: dict[bytes, set[int]] = defaultdict(set)
    for document in valid:
        for text in layouts(document):
            raw = text.encode()
            for i, byte in enumerate(raw):
                following[raw[:i]].add(byte)
    states = {b"": automaton.start}
    for begun in sorted(following, key=len):
        if begun:
            states[begun] = automaton.advance(states[begun[:-1]], begun[-1])
        others = set(b"\t\r") | (set(b" ") if begun.endswith(b"\n") else set())  # an indentation
        found = {byte for byte in range(256) if automaton.allows(states[begun], byte)}
        assert found - others == following[begun] - others, begun
