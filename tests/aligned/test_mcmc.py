"""MCMC: the proposal's probability against brute force, detailed balance of the exact kernel, the
distribution after k steps.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from toy import StringsAutomaton, TableModel, local_distribution

from tokenform.decoding.aligned.enumeration import enumerate_target, total_variation
from tokenform.decoding.aligned.masked import Masked, first_paths
from tokenform.decoding.aligned.mcmc import MCMC
from tokenform.decoding.aligned.potential import Score
from tokenform.errors import OptionError


def test_the_kernel_keeps_the_target():
    """The whole transition matrix: π·K = π, to 1e-12."""
    automaton = StringsAutomaton([b"000", b"011", b"10", b"1011", b"11"])
    problem = MCMC().bind(TableModel(8, scale=1.5), automaton)
    exact = enumerate_target(problem)
    texts = list(exact.log_measure)
    pi = np.array([exact.probabilities[x] for x in texts])
    start = np.array([local_distribution(problem)[x] for x in texts])
    q = np.tile(start, (len(texts), 1))
    kernel = q * np.minimum(1, (pi[None, :] * q.T) / (pi[:, None] * q))
    np.fill_diagonal(kernel, 0)
    np.fill_diagonal(kernel, 1 - kernel.sum(1))
    assert np.abs(pi @ kernel - pi).max() <= 1e-12
    # and the code's chains follow this kernel: the distribution after two steps, from the distribution of
    # local masking
    expected = start @ kernel @ kernel
    runs = 1000
    seen = Counter(d.tokens for d in MCMC(2, tries=1).sample(problem, runs, seed=0).draws)
    for x, p in zip(texts, expected, strict=True):
        assert abs(seen[x] / runs - p) <= 4.5 * math.sqrt(p * (1 - p) / runs) + 1e-9


def test_several_tries_keep_the_target():
    """All pairs of proposals: π·K = π to 1e-12, and the code's chains follow K."""
    automaton = StringsAutomaton([b"000", b"011", b"10", b"1011", b"11"])
    problem = MCMC().bind(TableModel(8, scale=1.5), automaton)
    exact = enumerate_target(problem)
    texts = list(exact.log_measure)
    pi = np.array([exact.probabilities[x] for x in texts])
    start = np.array([local_distribution(problem)[x] for x in texts])
    w, kernel = pi / start, np.zeros((len(texts),) * 2)
    for x, _ in enumerate(texts):
        for y, _ in enumerate(texts):
            for z, _ in enumerate(texts):  # y is picked beside z
                total = w[y] + w[z]
                chance = 2 * start[y] * start[z] * w[y] / total
                kernel[x, y] += chance * min(1, total / (w[z] + w[x]))
    np.fill_diagonal(kernel, 0)
    np.fill_diagonal(kernel, 1 - kernel.sum(1))
    assert np.abs(pi @ kernel - pi).max() <= 1e-12
    runs = 1000
    seen = Counter(d.tokens for d in MCMC(2, tries=2).sample(problem, runs, seed=0).draws)
    for x, p in zip(texts, start @ kernel @ kernel, strict=True):
        assert abs(seen[x] / runs - p) <= 4.5 * math.sqrt(p * (1 - p) / runs) + 1e-9
    with pytest.raises(OptionError, match="tries"):
        MCMC(tries=0)
    with pytest.raises(OptionError, match="cut= is gone"):
        MCMC(cut="uniform")


def test_restart_comes_near_the_target_in_ten_steps(problem, exact):
    runs = 400
    sample = MCMC(10).sample(problem, runs, seed=1)
    distribution = Counter(d.tokens for d in sample.draws)
    distance = total_variation(exact.probabilities, {x: c / runs for x, c in distribution.items()})
    noise = np.mean([sampled_noise(exact.probabilities, runs, i) for i in range(20)])
    assert distance <= 0.10 + noise
    assert distance < 0.4 * total_variation(exact.probabilities, local_distribution(problem))
    assert abs(sample.log_z.value - exact.log_z) <= 4.5 * sample.log_z.error


def sampled_noise(distribution, runs, seed):
    """Total variation between a distribution and an empirical one of its own draws."""
    p = np.array(list(distribution.values()))
    return 0.5 * np.abs(np.random.default_rng(seed).multinomial(runs, p / p.sum()) / runs - p).sum()


def test_potentials_and_batches(automaton):
    potential = Score(lambda text: -2.0 * text.count("1"))
    sampler = MCMC(20, potential=potential)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    exact = enumerate_target(fresh)
    sample = sampler.sample(fresh, 250, seed=0)
    distribution = Counter(d.tokens for d in sample.draws)
    distance = total_variation(exact.probabilities, {x: c / 250 for x, c in distribution.items()})
    before = Counter(p.tokens for p in first_paths(fresh, 250, 0)[0])
    assert distance < 0.5 * total_variation(exact.probabilities, {x: c / 250 for x, c in before.items()})
    again = MCMC(20, potential=potential, batch_size=3, fast_forward=False)
    assert (
        again.sample(again.bind(TableModel(5, scale=1.0), automaton), 10, seed=0).draws == sample.draws[:10]
    )


def test_local_masking_has_the_distribution_computed_by_brute_force(problem, exact):
    runs = 2000
    sample = Masked().sample(problem, runs, seed=0)
    seen = Counter(d.tokens for d in sample.draws)
    distribution = local_distribution(problem)
    for x, p in distribution.items():
        assert abs(seen[x] / runs - p) <= 4.5 * math.sqrt(p * (1 - p) / runs) + 1e-9
    for draw in sample.draws[:50]:
        assert draw.log_weight == pytest.approx(draw.logprob - math.log(distribution[draw.tokens]))
    assert abs(sample.log_z.value - exact.log_z) <= 4.5 * sample.log_z.error


def test_dead_ends_are_rejected_moves(automaton):
    """top-k empties some masks; the chain stays among the texts that are left and keeps their
    distribution."""
    sampler = MCMC(25, top_k=3)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    exact = enumerate_target(fresh)
    sample = sampler.sample(fresh, 250, seed=0)
    distribution = Counter(d.tokens for d in sample.draws)
    assert set(distribution) <= set(exact.log_measure)
    noise = np.mean([sampled_noise(exact.probabilities, 250, i) for i in range(20)])
    assert total_variation(exact.probabilities, {x: c / 250 for x, c in distribution.items()}) <= noise + 0.08
