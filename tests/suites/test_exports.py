"""A sample of `python -m benchmarks.suites exports`: what other libraries export is kept."""

from __future__ import annotations

import pytest
from benchmarks.suites import exports


@pytest.mark.parametrize("library", exports.LIBRARIES)
def test_exported_schemas_are_kept(library: str) -> None:
    wrong = [found.wrong for found in exports.run(12, seed=3, libraries=[library]) if found.wrong]
    assert not wrong


@pytest.mark.slow
def test_two_thousand_exported_schemas_are_kept() -> None:
    wrong = [(found.schema, found.wrong) for found in exports.run(2000, seed=1) if found.wrong]
    assert not wrong
