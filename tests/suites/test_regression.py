"""No verdict and no mask of the development schemas is another than the table says that is kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

found = importlib.util.spec_from_file_location("regression", ROOT / "benchmarks" / "regression.py")
assert found is not None and found.loader is not None
regression = importlib.util.module_from_spec(found)
found.loader.exec_module(regression)


def test_a_twentieth_of_the_schemas_is_as_it_was(maskbench: Path) -> None:
    now = regression.table(20)
    assert len(now) > 600
    assert regression.changed(now, regression.read()) == []


def test_the_table_is_small_and_whole() -> None:
    kept = regression.read()
    assert regression.KEPT.stat().st_size <= 2 << 20 and len(kept) > 13_000
    assert all(isinstance(verdicts, str) and states >= 0 for verdicts, _, states in kept.values())


def test_what_changes_is_named() -> None:
    kept = {"a": ["10", "00", 5], "b": ["1", "11", 5], "c": ["1", "22", 5], "d": ["1", "33", 5]}
    now = {"a": ["11", "00", 5], "b": ["1", "12", 5], "c": ["1", "22", 9], "e": ["1", "", 1]}
    told = regression.changed(now, kept)
    assert [line.partition(":")[0] for line in told] == ["a", "b", "e"]
    assert regression.work(now, kept) == ["states: 15 -> 19 (+26.67 %)", "  c: 5 -> 9"]


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "no such"}])
def test_a_row_is_the_same_each_time(schema: object) -> None:
    vocabulary = regression.tf.Vocabulary(
        [bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256]
    )
    rows = [regression.row(schema, [1, "a"], {}, vocabulary) for _ in range(2)]
    other = regression.row({"type": "string"}, [1, "a"], {}, vocabulary)
    assert rows[0] == rows[1] != other
    assert other[0] == "01"
