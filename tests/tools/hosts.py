"""Engines that serve models, from the folder that `make hosts` fills, or as installed."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

HOSTS = Path(os.environ.get("TOKENFORM_HOSTS", Path(__file__).parents[2] / ".hosts"))


def needs(name: str) -> Any:
    """The module, or the test is skipped."""
    if HOSTS.is_dir() and str(HOSTS) not in sys.path:
        sys.path.append(str(HOSTS))  # last: what the environment has comes before
    try:
        return import_module(name)
    except ImportError as error:
        pytest.skip(f"{name.partition('.')[0]} is not here ({error}); `make hosts` installs it")
