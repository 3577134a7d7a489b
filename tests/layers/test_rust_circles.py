"""Files of the core that name each other in a circle: few, known to the headers of their folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "rust" / "core" / "src"
INHERENT = {"cfg", "lexical", "mask", "schema"}
"""Folders whose subject is a mutual recursion; each has one circle, and its header says why."""
FOLDERS = INHERENT | {"automaton", "compose", "gbnf", "json", "regex", "vocab"}
LONGEST_HEADER = 20

pytestmark = pytest.mark.skipif(not CORE.is_dir(), reason="the sources of the core are not here")

Module = tuple[str, ...]


def module_of(path: Path) -> Module:
    parts = path.relative_to(CORE).with_suffix("").parts
    return () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts


def code_of(path: Path) -> str:
    """Without comments and tests."""
    text = re.split(r"#\[cfg\(test\)\]\nmod \w+ \{", path.read_text(encoding="utf-8"))[0]
    return re.sub(r"//[^\n]*", "", text)


def leaves(tree: str, prefix: Module = ()) -> Iterator[tuple[Module, str]]:
    """The paths of what stands behind `use`, each with the name that it gets."""
    tree = tree.strip()
    if group := re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree, re.S):
        inside, depth = [""], 0
        for letter in group[2]:
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                inside.append("")
            else:
                inside[-1] += letter
        for part in inside:
            if part.strip():
                yield from leaves(part, (*prefix, *group[1].split("::")[:-1]))
        return
    path, _, name = tree.partition(" as ")
    parts = (*prefix, *path.strip().split("::"))
    parts = parts[:-1] if parts[-1] == "self" else parts
    yield parts, name or parts[-1]


class Core:
    """Which module names which."""

    def __init__(self) -> None:
        files = [path for path in CORE.rglob("*.rs") if not re.search(r"tests?$|races$", path.stem)]
        self.code = {module_of(path): code_of(path) for path in files}
        self.exports: dict[Module, dict[str, Module]] = {module: {} for module in self.code}
        self.names: dict[Module, list[Module]] = {module: [] for module in self.code}
        use = re.compile(r"(?m)^\s*(pub(?:\([\w\s]+\))?\s+)?use\s+([^;]+);")
        for module, code in self.code.items():
            for public, tree in use.findall(code):
                for path, name in leaves(re.sub(r"\s+", " ", tree)):
                    if public:
                        self.exports[module][name] = path
                    else:
                        self.names[module].append(path)
            for written in re.findall(r"\b(?:crate|super)(?:::\w+)+", use.sub("", code)):
                self.names[module].append(tuple(written.split("::")))
        self.edges = {module: set(self.named_by(module)) for module in self.code}

    def named_by(self, module: Module) -> Iterator[Module]:
        for path in self.names[module]:
            found = self.home(module, path)
            if found and found != module:
                yield found

    def home(self, module: Module, path: Module) -> Module | None:
        """The file in which stands what a path leads to, through whatever re-exports it."""
        base, rest = list(module), list(path)
        if rest[0] == "crate":
            base, rest = [], rest[1:]
        elif rest[0] in ("self", "super"):
            while rest and rest[0] in ("self", "super"):
                base = base[:-1] if rest.pop(0) == "super" else base
        elif (*base, rest[0]) not in self.code:
            return None
        while rest and (*base, rest[0]) in self.code:
            base.append(rest.pop(0))
        onward = self.exports[tuple(base)].get(rest[0]) if rest else None
        return (onward and self.home(tuple(base), onward)) or tuple(base)

    def circles(self) -> list[set[Module]]:
        """Files that can reach each other (each file's reach by a search; a few hundred files)."""
        reach: dict[Module, set[Module]] = {}
        for module in self.code:
            seen, stack = set(), [module]
            while stack:
                for onward in self.edges[stack.pop()] - seen:
                    seen.add(onward)
                    stack.append(onward)
            reach[module] = seen
        circles: list[set[Module]] = []
        for module in self.code:
            circle = {other for other in reach[module] if module in reach[other]}
            if circle and circle not in circles:
                circles.append(circle)
        return circles


@cache
def core() -> Core:
    return Core()


def header_of(folder: str) -> list[str]:
    lines = (CORE / folder / "mod.rs").read_text(encoding="utf-8").split("\n")
    return lines[: next(at for at, line in enumerate(lines) if not line.startswith("//!"))]


def test_circles_are_few_and_known() -> None:
    circles = core().circles()
    folders = [{module[0] for module in circle} for circle in circles]
    assert all(len(names) == 1 for names in folders), folders
    assert sorted(min(names) for names in folders) == sorted(INHERENT), circles
    for folder in INHERENT:
        assert any(line.startswith("//! Circle:") for line in header_of(folder)), folder


def test_a_circle_would_be_found() -> None:
    edges = core().edges["json", "frames"]
    edges.add(("json",))
    try:
        assert any(("json",) in circle for circle in core().circles())
    finally:
        edges.remove(("json",))


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_headers_say_what_a_newcomer_needs(folder: str) -> None:
    header = header_of(folder)
    assert len(header) <= LONGEST_HEADER
    text = "\n".join(header)
    for part in ("In: ", "Out: ", "Data: ", "Invariant: ", "Start: "):
        assert f"//! {part}" in text or f"  {part}" in text, f"{folder}: {part}"
    assert re.search(r"//! (Papers?|Source|Complexity|Start): ", text), folder


def test_headers_name_files_that_are_there() -> None:
    for folder in FOLDERS:
        names = {path.stem for path in (CORE / folder).rglob("*")}
        code = code_of(CORE / folder / "mod.rs")
        said = set(re.findall(r"`([a-z_]+)`", "\n".join(header_of(folder))))
        assert [name for name in said - names if not re.search(rf"\b{name}\b", code)] == [], folder
