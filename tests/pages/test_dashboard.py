"""The dashboard tells each commit's table, and what moved between two."""

from __future__ import annotations

import importlib.util
import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
found = importlib.util.spec_from_file_location("docs_dashboard", ROOT / "docs" / "dashboard.py")
assert found is not None and found.loader is not None
dashboard = importlib.util.module_from_spec(found)
sys.modules["docs_dashboard"] = dashboard
found.loader.exec_module(dashboard)

TABLES: list[dict[str, Any]] = [
    {"a": ["10", "aa", 5], "b": ["1", "bb", 7], "c": ["InvalidSchema", "", 0]},
    {"a": ["11", "aa", 6], "b": ["1", "cc", 7], "d <x> | natural": ["1", "dd", 2]},
]
WANTED = [
    (3, 2, 1, 1, 12, 0, 0),
    (3, 4, 0, 0, 15, 1, 1),
]
FIGURES = ("rows", "accepted", "refused", "no schema", "states", "verdicts moved", "masks moved")


def kept(root: Path, table: dict[str, Any]) -> None:
    path = root / dashboard.TABLE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(json.dumps(table).encode()))


def test_a_row_for_each_commit_of_the_table(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not here")

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init", "-q")
    for number, table in enumerate(TABLES):
        kept(tmp_path, table)
        git("add", ".")
        git("commit", "-q", "-m", f"number {number}: a | b <c>")
    rows = list(dashboard.rows(tmp_path))
    assert [tuple(row[name] for name in FIGURES) for row in rows] == WANTED
    assert rows[0]["masks"] != rows[1]["masks"]
    text = dashboard.written(rows)
    first = text.splitlines()[2]
    assert rows[1]["commit"] in first and "number 1: a \\| b &lt;c>" in first and len(text.splitlines()) == 4
    assert dashboard.drawn(rows).count("<rect") == 2
    kept(tmp_path, TABLES[0])
    assert [row["what"] for row in dashboard.rows(tmp_path)][-1] == "not committed"


def test_without_a_history_the_table_is_one_row(tmp_path: Path) -> None:
    kept(tmp_path, TABLES[0])
    (row,) = dashboard.rows(tmp_path)
    assert (row["commit"], row["states"]) == ("here", 12)
