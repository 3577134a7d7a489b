"""Fixtures of the engine's tests."""

from __future__ import annotations

import pytest

import tokenform as tf


@pytest.fixture(scope="session")
def tekken() -> tf.Vocabulary:
    """The 131,072 tokens of Mistral's Tekken."""
    pytest.importorskip("mistral_common", reason="the PyPI package mistral-common carries the vocabulary")
    from tokenform_bench.vocabulary import tekken as read

    found = read()
    return tf.Vocabulary(found.tokens, eos=[found.eos], special=found.special)
