"""The loader finds every file, and has a function for each."""

from __future__ import annotations

import pytest

from tokenform.errors import OptionError
from tokenform.frontends import grammars

from .judge import GRAMMARS, NAMES, text_of


def test_names_and_texts() -> None:
    assert grammars.names() == NAMES
    assert grammars.text("sql") == text_of("sql")
    assert grammars.folder() == GRAMMARS or grammars.folder().name == "_grammars"


def test_every_grammar_has_a_function() -> None:
    helpers = {"folder", "load", "names", "text"}
    assert set(grammars.__all__) == {*NAMES, *helpers}
    assert all(callable(getattr(grammars, name)) for name in grammars.__all__)


def test_unknown_name() -> None:
    with pytest.raises(OptionError, match="no grammar 'cobol'; the library holds: arithmetic, c,"):
        grammars.text("cobol")
