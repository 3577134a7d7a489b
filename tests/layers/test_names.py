"""Names and imports of the package, read from the syntax trees: no circles, and one class a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "tokenform"
IN_CIRCLES = {
    f"tokenform.decoding.{name}"
    for name in (
        "aligned.problem",
        "aligned.results",
        "aligned.trie",
        "alternatives",
        "debug",
        "decoders",
        "generator",
        "options",
        "partial",
        "redraw",
        "result_field",
        "result_of",
        "results",
        "tracing",
        "validated",
        "weighted",
        "writing",
    )
}
"""Modules that still import each other, most of them for types alone; the set may shrink only."""
SEVERAL = {
    # a generator with a model of its own beside the one that loads it by name
    "AsyncGenerator": 2,
    "DiffusionGenerator": 2,
    "Generator": 2,
}
"""Names of several classes, and of how many; numbers may shrink only."""


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def imports_of(tree: ast.AST) -> set[str]:
    """The package's modules that a tree imports anywhere: at its top, in functions, for types alone."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in TREES or inner == "tokenform._core" else str(node.module))
    return found & set(TREES)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected parts of more than one module: each reaches each."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for module in graph[waiting.pop()] - seen:
                seen.add(module)
                waiting.append(module)
        reached[start] = seen
    parts = {frozenset(other for other in reached[one] if one in reached[other]) for one in graph}
    return [set(part) for part in parts if len(part) > 1]


def test_the_finder_of_circles_finds_them() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert circles(graph) == [{"a", "b", "c"}]
    assert imports_of(ast.parse("def f():\n    from tokenform.errors import DataError")) == {
        "tokenform.errors"
    }


def test_no_module_imports_one_that_imports_it() -> None:
    graph = {module: imports_of(tree) - {module} for module, tree in TREES.items()}
    found = set().union(*circles(graph))
    assert found <= IN_CIRCLES, sorted(found - IN_CIRCLES)


def test_a_name_is_the_name_of_one_class() -> None:
    classes = defaultdict(list)
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{module}:{node.lineno}")
    several = {name: places for name, places in classes.items() if len(places) > SEVERAL.get(name, 1)}
    assert not several, several
