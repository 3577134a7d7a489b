"""numbers="shortest": what both "natural" and "canonical" write."""

from __future__ import annotations

import pytest

import tokenform as tf

VOCABULARY = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b"</s>"], eos=[256])
SCHEMAS = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "integer", "minimum": -3, "maximum": 450},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
    {"type": "number", "multipleOf": 0.5},
    {"type": "integer", "multipleOf": 3},
    {"enum": [1, 2.5, 444, -7]},
    {"type": "number", "not": {"type": "integer"}},
]
TEXTS = [
    *(
        "0",
        "-0",
        "-0.0",
        "0.0",
        "1",
        "1.0",
        "-7",
        "2.5",
        "2.50",
        "444",
        "444.0",
        "444.5",
        "12.5",
        "450",
        "451",
    ),
    *("1e2", "1e+16", "1e16", "1.5e+300", "1e-7", "0.0001", "0.00001", "1e400", "100000000000000000000"),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_shortest_is_what_natural_and_canonical_write(schema) -> None:
    natural, shortest, canonical = (
        tf.json_schema(schema, numbers=numbers).compile(VOCABULARY)
        for numbers in ("natural", "shortest", "canonical")
    )
    taken = 0
    for text in map(str.encode, TEXTS):
        both = natural.matches(text) and canonical.matches(text)
        assert shortest.matches(text) == both, text
        taken += both
    assert taken
