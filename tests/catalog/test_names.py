# ruff: noqa: E501
"""`tf.names`: what is accepted is there, by Python's own word, and nothing runs."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sqlite3
import subprocess
import sys
from functools import reduce
from types import ModuleType
from typing import Any

import pytest

import tokenform as tf
from tokenform.errors import LimitExceeded, OptionError

from .walks import BYTES


def listed(*given: Any, **options: Any) -> list[str]:
    words: list[str] = tf.names(*given, **options).form["language"]["words"]
    return words


@pytest.mark.parametrize(
    "source",
    [json, pathlib, pathlib.Path, tf.engine, json.JSONDecoder(), dict],
    ids=["module", "other module", "class", "package", "object", "built-in class"],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_name_is_there(source: Any, depth: int) -> None:
    found = listed(source, depth=depth)
    assert len(found) > 3 and len(set(found)) == len(found)
    for name in found:
        parts = name.split(".")
        assert len(parts) <= depth
        reduce(getattr, parts, source)


def test_depths_of_a_module() -> None:
    grammar = tf.names(json, depth=2).compile(BYTES)
    accepted = [text for text in ("dumps", "JSONDecoder.decode", "JSONDecoder", "dump.x", "codecs", "_default_decoder")
                if grammar.matches(text)]  # fmt: skip
    assert accepted == ["dumps", "JSONDecoder.decode", "JSONDecoder"]


def test_nothing_is_read_or_made() -> None:
    class Trap:
        name = 1

        @property
        def explodes(self) -> int:
            raise AssertionError

    assert listed(Trap()) == ["explodes", "name"]
    module = ModuleType("made")
    module.__dict__.update(
        __all__=["later", "here", 3], here=1, hidden=2, __getattr__=Trap().__getattribute__
    )
    assert listed(module) == ["later", "here"]


def test_mappings_lists_and_databases() -> None:
    tables = {"city": ["name"], "visit": {"year": int, "place": {"x": 1}}}
    assert listed(tables) == ["city", "visit"]
    assert listed(tables, depth=2) == ["city", "city.name", "visit", "visit.year", "visit.place"]
    assert listed(tables, depth=2, match=r".*\..*")[-1] == "visit.place"
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE city (name, "a b")')
    assert listed(connection, depth=2) == ["city", "city.name", "city.a b"]
    assert listed(iter(["x", "y", "x"])) == ["x", "y"]


def test_modules_that_can_be_imported() -> None:
    top = listed()
    assert {"json", "sys", "numpy", "pytest"} <= set(top) and "_json" not in top
    assert all(importlib.util.find_spec(name) for name in top if name in sys.stdlib_module_names)
    inner = listed(depth=3, match=r"(email|json|xml)\..*")
    assert {"email.mime.text", "json.decoder"} <= set(inner)
    assert all(importlib.util.find_spec(name) for name in inner)


def test_finding_modules_imports_none() -> None:
    code = (
        "import sys, tokenform as tf; before = set(sys.modules); tf.names(depth=2); tf.names(tf); "
        "print([name for name in set(sys.modules) - before if not name.startswith(('tokenform', 'importlib', 'sqlite3', '_'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout.replace("'", '"'))) <= {"pkgutil", "zipimport", "datetime", "time"}


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        ([], {}, OptionError, "no such name"),
        (["a"], {"match": "b"}, OptionError, "matches 'b'"),
        (["a"], {"match": "("}, OptionError, "no pattern"),
        ([1], {}, OptionError, "not 1"),
        ([""], {}, OptionError, "not ''"),
        ("json", {}, OptionError, "the module itself"),
        (["a"], {"depth": 0}, OptionError, "least is 1"),
        ((str(i) for i in range(100_001)), {}, LimitExceeded, "match="),
    ],
)
def test_mistakes_are_told(given: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tf.names(given, **options)
