"""The judge of the hosts' benchmark: patterns are those of JSON Schema, not of Python."""

from __future__ import annotations

import json

import pytest
from benchmarks.suites.hosts.texts import Text
from benchmarks.suites.hosts.verdicts import exactly, fate, is_valid


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^\s$", "\ufeff", True),  # Python's `re`: no
        (r"^\s$", "\x1c", False),  # Python's `re`: yes
        (r"^\w$", "é", False),
        (r"^\d$", "٣", False),
        (r"^a$", "a\n", False),
        (r"^[a-c]{2}", "abx", True),
    ],
)
def test_patterns_are_those_of_ecma_262(pattern, text, expected):
    assert is_valid({"pattern": pattern}, text) == expected
    keyed = {"patternProperties": {pattern: {"type": "integer"}}, "additionalProperties": False}
    assert is_valid(keyed, {text: 1}) == expected
    assert not is_valid(keyed, {text: "no"})
    assert is_valid({"properties": {"-": True}, **keyed}, {"-": "yes"})
    assert not is_valid(keyed, {"-": 1})


def test_the_schemas_own_draft_counts():
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}
    assert not is_valid(old, 3) and is_valid(old, 4)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("4582912968549E-002", True), ("4.9", True), ("4.905", False), ("1e300", True), ("7.00", True)],
)
def test_numbers_are_what_is_written(written, expected):
    assert is_valid(exactly('{"type": "number", "multipleOf": 0.01}'), exactly(written)) == expected
    assert is_valid({"type": "integer"}, exactly(written)) == (written in ("1e300", "7.00"))


def test_fates():
    class Tokenizer:
        def decode(self, tokens, skip_special_tokens):
            return "".join(map(chr, tokens))

    def text(written, reason="stop"):
        return Text(None, [*map(ord, written), 0] if reason == "stop" else list(map(ord, written)), reason)

    schema = {"type": "integer"}
    told = [text(json.dumps(3)), text('"3"'), text("{"), text("3", "length"), text("3", "error")]
    assert [fate(schema, one, Tokenizer()) for one in told] == [
        "valid",
        "invalid",
        "invalid",
        "cut",
        "failed",
    ]
    assert fate({"$ref": "#/nowhere"}, told[0], Tokenizer()) == "not judged"
    assert fate(True, text("1.5e99999999999999999999"), Tokenizer()) == "not judged"
