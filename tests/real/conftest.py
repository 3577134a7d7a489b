"""A real chat model: what it writes decides the defaults.

The tests here judge what is *written* (right values, natural spelling), not only what is accepted. `make
real` brings the model; without it they are skipped. All carry the mark `real`, which this file sets.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tokenform as tf

FOLDER = Path(os.environ.get("TOKENFORM_REAL", Path(__file__).parents[2] / ".real"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def model_folder() -> str:
    """SmolLM2-135M-Instruct as a folder of transformers: 49,152 tokens, ChatML."""
    if not (FOLDER / "smollm2" / "tokenizer.json").exists():
        pytest.skip("SmolLM2-135M-Instruct is not here; `make real` brings it")
    return str(FOLDER / "smollm2")


@pytest.fixture(scope="session")
def model_file(model_folder: str) -> str:
    """The same as a GGUF file."""
    return str(FOLDER / "smollm2.gguf")


@pytest.fixture(scope="session")
def smol(model_folder: str) -> tf.Generator:
    """A generator of it, as a newcomer opens one."""
    return tf.Generator(model_folder)
