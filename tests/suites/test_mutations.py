"""Mutated sources end in a grammar or in an error of the library, in every frontend."""

from __future__ import annotations

import pytest
from benchmarks.suites.mutations import FRONTENDS, examples


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_every_error_is_one_of_the_library(frontend: str) -> None:
    outcome = examples(frontend, seed=1, count=60)
    assert outcome.findings == ()
    assert outcome.worked + outcome.refused == 60 and outcome.worked and outcome.refused
