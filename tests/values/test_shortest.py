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
    {"type": "number", "minimum": 0, "maximum": 65535},
    {"type": "number", "minimum": 10.5},
    {"type": "number", "maximum": -0.25},
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
    *("12.", "444.", "7.", "0.", "-7.", "444.50", "1155.", "1155.0", "1155.00", "1155.05", "-7.5", "7.5e+16"),
    *(
        "12.12345678901234",
        "1234567890123456.5",
        "0.00012",
        "0.000120",
        "444.e5",
        "-0.5",
        "-0.50",
        "12345.e+20",
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
