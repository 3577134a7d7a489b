"""GBNF that is written out: walked beside the grammar that it came from, state by state."""

from __future__ import annotations

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import InvalidGrammar, LimitExceeded

BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^\\w+ \\w+$", "maxLength": 20},
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "kind": {"enum": ["a", "ü", 3, None]},
        "more": {"type": "array", "items": {"type": "boolean"}},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
}
GRAMMARS = {
    "regex": tf.regex(r"[a-c]+(?:ä|€|😀|\d{2,3})?"),
    "any": tf.regex(r"(?s).*"),
    "not": ~tf.contains(["ab"]) & tf.regex("[abé]*"),
    "classes": tf.regex(r'[\]\[\\^"-]+[^a-y]\n'),
    "lookahead": tf.regex(r"(?=.*7)[0-9]+"),
    "choice": tf.choice(["yes", "no", "maybe", "ja, natürlich"]),
    "schema": tf.json_schema(SCHEMA, whitespace="compact", numbers="canonical"),
    "closed": tf.json_schema(
        {"properties": {"a": {"type": "integer"}}, "type": "object"}, additional="forbid"
    ),
    "date": tf.json_schema({"type": "string", "format": "date"}),
    "gbnf": tf.gbnf('root ::= "(" root ")" | my_rule{2}\nmy_rule ::= [x-z] # root\n'),
    "sequence": tf.gbnf('root ::= "(" root ")" | "x"') + "->" + tf.json_schema({"type": "integer"}),
    "either": tf.gbnf('root ::= "(" root ")" | "x"') | tf.json_schema({"type": "boolean"}),
    "lark": tf.lark('start: "a" B+\nB: /[bc]/'),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_same_language(name):
    one = GRAMMARS[name].compile(BYTES)
    other = tf.gbnf(GRAMMARS[name].to_gbnf()).compile(BYTES)
    seen = {(one.start, other.start)}
    waiting = list(seen)
    steps = 0
    while waiting and steps < 1500:
        first, second = waiting.pop()
        steps += 1
        assert one.is_accepting(first) == other.is_accepting(second)
        allowed = one.allowed_tokens(first)
        assert np.array_equal(allowed, other.allowed_tokens(second))
        for byte in allowed[allowed < 256].tolist():
            pair = one.advance(first, byte), other.advance(second, byte)
            if pair not in seen and len(seen) < 1500:
                seen.add(pair)
                waiting.append(pair)


@pytest.mark.parametrize(
    "grammar",
    [
        tf.json_schema({"type": "integer", "multipleOf": 7}),
        tf.json_schema(
            {"$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "type": "array"}}, "$ref": "#/$defs/t"}
        ),
        tf.json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        tf.json_schema({"type": "string", "maxLength": 100_000}),
    ],
)
def test_what_gbnf_cannot_say_is_refused(grammar):
    with pytest.raises(LimitExceeded, match="GBNF"):
        grammar.to_gbnf()


def test_control_tokens_are_refused():
    with pytest.raises(InvalidGrammar, match="control"):
        (tf.special_token("<x>") + "a").to_gbnf()


def test_names_are_those_that_llama_cpp_reads():
    import re

    for grammar in GRAMMARS.values():
        for line in grammar.to_gbnf().splitlines():
            assert re.match(r"[a-zA-Z][a-zA-Z0-9-]* ::=", line), line
