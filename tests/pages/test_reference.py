"""The reference has every public name, described and in use; the examples of the docstrings run."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import tokenform as tf

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference").glob("*.md"))}
PAGE = "\n".join(PAGES.values())
DIRECTIVES = "\n".join(re.findall(r"^```\{eval-rst\}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
EXAMPLES = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
NAMES = [name for name in tf.__all__ if name != "__version__"]

ROOMS = [name for name in NAMES if hasattr(getattr(getattr(tf, name), "__all__", None), "sort")]
"""Those that hold names: each of these is described."""


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_described_and_used(name: str) -> None:
    described = {"TokenformError": "errors"}.get(name, name)  # with the module of all errors
    found = re.search(rf"^\.\. auto\w+:: tokenform\.(\w+\.)*{described}$", DIRECTIVES, re.MULTILINE)
    assert found or name in ROOMS
    assert re.search(rf"\b(tf|tokenform)\.{name}\b", EXAMPLES), f"no block of the page uses tf.{name}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_is_described_as_programs_write_it(room: str) -> None:
    for name in getattr(tf, room).__all__:
        places = f"tokenform.({room}.)?{name}"
        whole = re.search(
            rf"^\.\. automodule:: tokenform\.{room}\n(?!   :no-members:)", DIRECTIVES, re.MULTILINE
        )
        assert whole or re.search(rf"^\.\. auto\w+:: {places}$", DIRECTIVES, re.MULTILINE), (
            f"tf.{room}.{name}"
        )


def test_names_are_those_that_programs_write() -> None:
    """Not where the code happens to stand."""
    named = re.findall(r"^\.\. auto(?!module)\w+:: (tokenform\.\S+)$", DIRECTIVES, re.MULTILINE)
    assert len(named) > 90 and len(named) == len(set(named))
    inner = [name for name in named if re.match(r"tokenform\.(decoding|frontends)\.", name)]
    assert inner == ["tokenform.decoding.debug.ExplainedToken"]


def test_each_page_is_listed() -> None:
    index = (DOCS / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^reference/(\w+)$", index, re.MULTILINE)
    assert sorted(listed) == sorted(PAGES) and all(f"(reference/{name}.md)" in index for name in listed)


WITH_EXAMPLES = [name for name in NAMES if ">>>" in (inspect.getdoc(getattr(tf, name)) or "")]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_docstring_run(name: str) -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for test in finder.find(getattr(tf, name), name, globs={"tf": tf}, module=False):
        assert runner.run(test).failed == 0


def test_a_program_needs_few_names() -> None:
    assert len(tf.__all__) <= 35


@pytest.mark.parametrize("name", sorted(tf._MOVED))
def test_names_that_stood_elsewhere_say_where_they_are(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"is tokenform\.\w+\.{name} now") as caught:
        old = getattr(tf, name)
    assert caught[0].filename == __file__
    assert old is getattr(getattr(tf, tf._MOVED[name]), name)


def test_an_absent_name_would_be_seen() -> None:
    assert not re.search(r"\btf\.no_such_name\b", EXAMPLES) and len(NAMES) > 25 and len(WITH_EXAMPLES) > 4
