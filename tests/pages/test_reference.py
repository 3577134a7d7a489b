"""The reference has every public name, described and in use; the examples of the docstrings run."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import tokenform as tf

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
DIRECTIVES = "\n".join(re.findall(r"^```\{eval-rst\}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
EXAMPLES = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
NAMES = [name for name in tf.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_described_and_used(name: str) -> None:
    described = {"TokenformError": "errors"}.get(name, name)  # with the module of all errors
    assert re.search(rf"^\.\. auto\w+:: tokenform\.(\w+\.)*{described}$", DIRECTIVES, re.MULTILINE)
    assert re.search(rf"\b(tf|tokenform)\.{name}\b", EXAMPLES), f"no block of the page uses tf.{name}"


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
