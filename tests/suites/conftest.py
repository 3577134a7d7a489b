"""Data for the judges' tests, or a skip that says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenform.errors import DataError
from tokenform_bench.data import MASKBENCH_FILE, SUITE_FILE, shared_file


def _found(name: str) -> Path:
    try:
        return shared_file(name)
    except DataError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def maskbench() -> Path:
    return _found(MASKBENCH_FILE)


@pytest.fixture(scope="session")
def official_suite() -> Path:
    return _found(SUITE_FILE)
