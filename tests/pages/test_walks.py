"""The walks of CONTRIBUTING.md name files and things in them that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(not (ROOT / "rust").is_dir(), reason="the sources of the core are not here")


def walks() -> str:
    text = GUIDE.read_text(encoding="utf-8")
    return text.split("## Three walks through the core")[1].split("\n## ")[0]


def file_named(name: str) -> Path:
    inside = ROOT / "rust" / "core" / "src" / name
    return inside if inside.exists() else ROOT / name


def named() -> Iterator[tuple[str, str]]:
    """Each file that the walks name, with each name that is said to stand in it."""
    for file, names in re.findall(r"`([\w./-]+\.(?:rs|py|md|ebnf))`(?::\s+((?:`\w+`(?:,\s+)?)+))?", walks()):
        for name in re.findall(r"`(\w+)`", names) or [""]:
            yield file, name


def test_there_are_three_walks_with_steps() -> None:
    titles = re.findall(r"(?m)^\*\*([^*]+)\*\*", walks())
    assert len(titles) == 3
    assert len(re.findall(r"(?m)^\d\. ", walks())) >= 10


@pytest.mark.parametrize(("file", "name"), sorted(set(named())))
def test_what_a_walk_names_is_there(file: str, name: str) -> None:
    path = file_named(file)
    assert path.is_file()
    text = path.read_text(encoding="utf-8")
    made = rf"(?m)^\s*(pub(\([\w\s]+\))? )?(fn|struct|enum|trait|const|static|def) {name}\b"
    if path.suffix == ".ebnf":
        made = rf"(?m)^{name} ="
    assert not name or re.search(made, text), f"{file} has no {name}"


def test_enough_is_named() -> None:
    assert len(set(named())) > 35
