"""The Python blocks of docs/faithful.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
PAGE = Path(__file__).parents[2] / "docs" / "faithful.md"


def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), names)
    assert 0 <= names["bound"] <= 0.5  # what `until` asked for
    assert names["few"].log_z.error < 1
