"""Engines that serve models: their own classes, from a folder that `make hosts` fills, or as installed.

What is missing is skipped with a line that says how to install it.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("TOKENFORM_HOSTS", ROOT / ".hosts"))
if FOLDER.is_dir() and str(FOLDER) not in sys.path:
    sys.path.append(str(FOLDER))  # last: what the environment has comes before

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


@pytest.fixture(scope="session")
def needs() -> Callable[[str], ModuleType]:
    """`needs("vllm.v1.structured_output")`: the module, or the test is skipped."""

    def found(name: str) -> ModuleType:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(f"{name.partition('.')[0]} is not here ({error}); `make hosts` installs it")

    return found


@pytest.fixture(scope="session")
def model_folder() -> str:
    """The built-in model as a folder of transformers."""
    from tokenform.builtin.loading import WEIGHTS

    return str(WEIGHTS / "model")


@pytest.fixture(scope="session")
def thinking_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The built-in tokenizer with tokens that open and close a thought."""
    from tokenform.builtin.loading import WEIGHTS, read_tokenizer

    tokenizer = read_tokenizer(WEIGHTS / "model")
    tokenizer.add_tokens(["<think>", "</think>"])
    folder = str(tmp_path_factory.mktemp("thinking"))
    tokenizer.save_pretrained(folder)
    return folder
