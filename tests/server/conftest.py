"""A playground behind a test client."""

from __future__ import annotations

import pytest

import tokenform as tf


@pytest.fixture(scope="session")
def generator() -> tf.Generator:
    return tf.Generator()
