"""Data of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenform.errors import DataError
from tokenform_bench.data import MASKBENCH_FILE, shared_file


@pytest.fixture(scope="session")
def maskbench() -> Path:
    try:
        return shared_file(MASKBENCH_FILE)
    except DataError as error:
        pytest.skip(str(error))
