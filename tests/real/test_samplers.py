"""Samplers of whole texts under a real model keep the law that they say, on languages that are enumerated."""

from __future__ import annotations

import pytest
from benchmarks.laws import measured, supports

import tokenform as tf

RUNS = 40
HELD = 34  # of 40; what 95 of 100 stays above with a chance of .985


@pytest.fixture(scope="module")
def laws(model_folder: str):  # type: ignore[no-untyped-def]
    return list(supports(tf.Generator(model_folder, drafter=None)))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("sampler", "draws"), [(tf.SMC(16), 20), (tf.MCMC(10), 5), (tf.AWRS(), 200)], ids=["SMC", "MCMC", "AWRS"]
)
def test_draws_have_the_law_and_two_stated_errors_hold(laws, sampler, draws) -> None:  # type: ignore[no-untyped-def]
    for name, bind, exact in laws:
        row = measured(type(sampler).__name__, name, sampler, bind, exact, RUNS, draws)
        assert row.weighted <= 0.05 + row.noise, (name, row)
        assert row.held >= HELD, (name, row)


def test_local_masking_is_a_control_that_is_off(laws) -> None:  # type: ignore[no-untyped-def]
    for name, bind, exact in laws:
        assert measured("Masked", name, tf.samplers.Masked(), bind, exact, RUNS, 20).plain > 0.3
