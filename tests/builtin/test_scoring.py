"""The score of the evaluation: what counts as a matched field."""

from __future__ import annotations

import pytest
from benchmarks.training.data import Example
from benchmarks.training.evaluate import equal, score
from benchmarks.training.records import Record

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"properties": {"c": {"type": "array"}}}},
    "required": ["a", "b"],
}
EXAMPLE = Example("", "", Record("", SCHEMA, {"a": 1, "b": {"c": ["x", "y"]}}))


@pytest.mark.parametrize(
    ("text", "matched", "parsed", "valid", "exact"),
    [
        ('{"a": 1, "b": {"c": ["x", "y"]}}', 2, 1, 1, 1),
        ('{"b": {"c": ["x", "y"]}, "a": 1.0}', 2, 1, 1, 1),
        ('{"a": 1, "b": {"c": ["y", "x"]}}', 1, 1, 1, 0),
        ('{"a": true, "b": 3}', 0, 1, 0, 0),
        ('{"a": 1, "b": {', 0, 0, 0, 0),
        ("[1]", 0, 1, 0, 0),
    ],
)
def test_score(text: str, matched: int, parsed: int, valid: int, exact: int) -> None:
    total = score([text], [EXAMPLE])
    assert (total.matched, total.parsed, total.valid, total.exact) == (matched, parsed, valid, exact)
    assert total.fields == 2


def test_booleans_are_no_numbers() -> None:
    assert equal(1, 1.0) and not equal(1, True) and not equal([0], [False]) and equal([True], [True])
