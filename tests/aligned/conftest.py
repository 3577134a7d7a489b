"""Fixtures of the aligned samplers' tests: the reference toy and twenty random ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy import TableModel, toy_automaton

from tokenform.decoding.aligned.enumeration import enumerate_target
from tokenform.decoding.aligned.masked import Masked


@pytest.fixture(scope="session")
def automaton():
    return toy_automaton()


@pytest.fixture()
def problem(automaton):
    """The reference toy: local masking is 0.55 off the target, plain rejection needs 72 tries a text."""
    return Masked().bind(TableModel(5, scale=1.0), automaton)


@pytest.fixture(scope="session")
def exact(automaton):
    return enumerate_target(Masked().bind(TableModel(5, scale=1.0), automaton))
