"""Samplers of whole texts under a real model keep the law that they say, on languages that are enumerated."""

from __future__ import annotations

from benchmarks.laws import measured, supports

import tokenform as tf

RUNS = 40
HELD = 34  # of 40; what 95 of 100 stays above with a chance of .985


def test_draws_have_the_law_and_two_stated_errors_hold(model_folder: str) -> None:
    todo = {"SMC": (tf.SMC(16), 20), "MCMC": (tf.MCMC(10), 10), "AWRS": (tf.AWRS(), 200)}
    for name, bind, exact in supports(tf.Generator(model_folder, drafter=None)):
        for label, (sampler, draws) in todo.items():
            row = measured(label, name, sampler, bind, exact, RUNS, draws)
            assert row.weighted <= 0.05 + row.noise, (name, row)
            assert row.held >= HELD, (name, row)
        local = measured("Masked", name, tf.samplers.Masked(), bind, exact, RUNS, 20)
        assert local.plain > 0.3  # the control
