"""Thirty examples of other libraries' documentation, written here: each runs, and is no longer than theirs.

Each file says in words what the example does, where it stands, and how many lines of code it has there
(without blank lines, comments and what is printed).  Lines that only check (`assert`) are not counted here.
"""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

PORTS = sorted((Path(__file__).parent / "ports").rglob("*.py"))


def lines_of(source: str) -> int:
    """Lines with code, without the docstring, comments and assertions."""
    tree = ast.parse(source)
    left = {
        line
        for node in tree.body
        if isinstance(node, ast.Assert) or node is tree.body[0]
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    texts = enumerate(source.splitlines(), 1)
    return sum(number not in left and bool(text.partition("#")[0].strip()) for number, text in texts)


def test_ten_of_each() -> None:
    assert [sum(path.parent.name == name for path in PORTS) for name in NAMES] == [10, 10, 10]


NAMES = ("outlines", "instructor", "pydantic_ai")


@pytest.mark.parametrize("path", PORTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_port_runs_and_is_no_longer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = path.read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(source)) or ""
    theirs = re.search(r"Source: .*: (\d+) lines", said)
    assert theirs is not None
    assert lines_of(source) <= int(theirs[1])
    runpy.run_path(str(path))
