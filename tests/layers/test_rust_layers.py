"""Who names whom in the core: lower folders know nothing of those above, and there are no circles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "rust" / "core" / "src"
LAYERS = (
    ("error", "limits", "heap_size", "hash", "text_memo", "sync"),
    ("lock",),
    ("process",),
    ("work",),
    ("lists",),
    ("regex",),
    ("lexical",),
    ("vocab",),
    ("automaton",),
    ("mask", "schema"),
    ("json", "cfg", "canvas"),
    ("gbnf",),
    ("compose",),
    ("source",),
    ("cache",),
    ("grammar",),
    ("saved",),
    ("lib",),
)
"""From the lowest to the highest; parts of one layer do not name each other."""
REEXPORTED = {"Error": "error", "Kind": "error", "Result": "error", "Limits": "limits"}
"""What `lib.rs` names for everybody, and where it stands."""

pytestmark = pytest.mark.skipif(not CORE.is_dir(), reason="the sources of the core are not here")


def part_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".rs")


def names_in(path: Path) -> Iterator[tuple[str, int]]:
    """Parts that the code of a file names, with their lines; tests and comments may name any."""
    text = re.split(r"#\[cfg\(test\)\]\nmod ", path.read_text(encoding="utf-8"))[0]
    for number, line in enumerate(text.split("\n"), 1):
        code = line.split("//")[0]
        for name in re.findall(r"\bcrate::(\w+)", code):
            yield REEXPORTED.get(name, name), number
        for listed in re.findall(r"\bcrate::\{([^}]*)\}", code):
            for name in listed.split(","):
                first = name.strip().split("::")[0]
                yield REEXPORTED.get(first, first), number


def is_only_tests(path: Path) -> bool:
    """Whether a file is a module of tests, which the file above it says."""
    above = [path.parent / "mod.rs", path.parent.with_suffix(".rs"), CORE / "lib.rs"]
    said = rf"#\[cfg\(test\)\]\nmod {path.stem};"
    return any(re.search(said, other.read_text(encoding="utf-8")) for other in above if other.is_file())


def breaches(path: Path) -> list[str]:
    rank = {part: level for level, parts in enumerate(LAYERS) for part in parts}
    part, wrong = part_of(path), []
    for name, line in names_in(path):
        if name != part and rank[name] >= rank[part]:
            wrong.append(f"{path.relative_to(CORE)}:{line}: {part} names {name}, which is not below it")
    return wrong


FILES = [path for path in sorted(CORE.rglob("*.rs")) if not is_only_tests(path)]


def test_nobody_names_what_is_above() -> None:
    assert [breach for path in FILES for breach in breaches(path)] == []


def test_every_part_has_one_layer() -> None:
    listed = [part for parts in LAYERS for part in parts]
    assert sorted({part_of(path) for path in FILES}) == sorted(listed)


def test_the_check_sees_a_breach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.CORE", tmp_path)
    file = tmp_path / "lexical" / "term.rs"
    file.parent.mkdir()
    file.write_text(
        "use crate::{mask::State, Error};\n"
        "fn f() { crate::json::g() } // crate::cfg\n"
        "use crate::regex::Lang;\n"
    )
    assert len(breaches(file)) == 2
