"""MCMC: the proposal's probability against brute force, detailed balance of the exact kernel, the
distribution after k steps.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from toy import (
    EOS,
    TOKENS,
    StringsAutomaton,
    TableModel,
    local_distribution,
    toy_automaton,
    toy_complete,
    toy_prefix,
)

from tokenform.decoding.aligned.enumeration import enumerate_target, total_variation
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.mcmc import MCMC
from tokenform.decoding.aligned.potential import Score
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.smc import SMC
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


def test_runs_of_several_particles_keep_the_target():
    """Metropolis-Hastings over runs, each with its text and its Ẑ: what MCMC draws after two steps is what
    the kernel makes of the runs' own distribution, and that distribution weighted by Ẑ is the target."""
    automaton = StringsAutomaton([b"000", b"011", b"10", b"1011", b"11"])
    sampler = MCMC(0, tries=2)
    problem = sampler.bind(TableModel(8, scale=2.5), automaton)
    exact = enumerate_target(problem)
    texts, runs = list(exact.log_measure), 3000
    drawn = SMC(2).sample(problem, runs, seed=5).draws  # each with its run's log Ẑ
    z = np.exp(np.array([d.log_weight for d in drawn]) - exact.log_z)
    place = np.array([texts.index(d.tokens) for d in drawn])
    weighted = np.bincount(place, z, len(texts)) / z.sum()
    assert np.abs(weighted - [exact.probabilities[x] for x in texts]).max() <= 0.03
    order = np.sort(z)
    law = np.full(runs, 1 / runs)  # over the runs, of which each proposal is one
    for _ in range(2):
        moved = np.array([(law * np.minimum(1, one / z)).sum() for one in z]) / runs
        above = np.searchsorted(order, z, side="right")
        accept = (runs - above + np.cumsum(order)[above - 1] / z) / runs
        law = moved + law * (1 - accept)
    assert law.sum() == pytest.approx(1)
    expected = np.bincount(place, law, len(texts))
    seen = Counter(d.tokens for d in MCMC(2, tries=2).sample(problem, 1000, seed=0).draws)
    start = np.bincount(place, minlength=len(texts)) / runs
    assert np.abs(expected - start).sum() > 0.05  # the steps do something
    for x, p in zip(texts, expected, strict=True):
        assert abs(seen[x] / 1000 - p) <= 4.5 * math.sqrt(p * (1 - p) * (1 / 1000 + 1 / runs)) + 1e-9
    with pytest.raises(OptionError, match="tries"):
        MCMC(tries=0)
    with pytest.raises(OptionError, match="cut= is gone"):
        MCMC(cut="uniform")


def test_predicates_need_no_whole_masks():
    """A predicate is asked about few tokens, and the chains have the target."""
    sampler = MCMC(5, tries=8)
    factor = Predicate(TOKENS, [EOS], toy_prefix, toy_complete, on="bytes")
    problem = sampler.bind(TableModel(5, scale=1.0), factor)
    exact = enumerate_target(sampler.bind(TableModel(5, scale=1.0), toy_automaton()))
    seen = Counter(d.tokens for d in sampler.sample(problem, 150, seed=0).draws)
    distance = total_variation(exact.probabilities, {x: c / 150 for x, c in seen.items()})
    assert distance <= 0.05 + 1.3 * np.mean([sampled_noise(exact.probabilities, 150, i) for i in range(20)])


def test_chains_come_near_the_target_in_ten_steps(problem, exact):
    runs = 200
    sample = MCMC(10, tries=4).sample(problem, runs, seed=1)
    distribution = Counter(d.tokens for d in sample.draws)
    distance = total_variation(exact.probabilities, {x: c / runs for x, c in distribution.items()})
    noise = np.mean([sampled_noise(exact.probabilities, runs, i) for i in range(20)])
    assert distance <= 0.10 + noise
    assert distance < 0.5 * total_variation(exact.probabilities, local_distribution(problem))
    assert abs(sample.log_z.value - exact.log_z) <= 4.5 * sample.log_z.error


def sampled_noise(distribution, runs, seed):
    """Total variation between a distribution and an empirical one of its own draws."""
    p = np.array(list(distribution.values()))
    return 0.5 * np.abs(np.random.default_rng(seed).multinomial(runs, p / p.sum()) / runs - p).sum()


def test_potentials_and_batches(automaton):
    potential = Score(lambda text: -2.0 * text.count("1"))
    sampler = MCMC(8, tries=4, potential=potential)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    exact = enumerate_target(fresh)
    sample = sampler.sample(fresh, 250, seed=0)
    distribution = Counter(d.tokens for d in sample.draws)
    distance = total_variation(exact.probabilities, {x: c / 250 for x, c in distribution.items()})
    masked = Masked(potential=potential).sample(fresh, 250, seed=0)
    before = Counter(draw.tokens for draw in masked.draws)
    assert distance < 0.5 * total_variation(exact.probabilities, {x: c / 250 for x, c in before.items()})
    again = MCMC(8, tries=4, potential=potential, batch_size=3, fast_forward=False)
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
    sampler = MCMC(8, tries=4, top_k=3)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    exact = enumerate_target(fresh)
    sample = sampler.sample(fresh, 250, seed=0)
    distribution = Counter(d.tokens for d in sample.draws)
    assert set(distribution) <= set(exact.log_measure)
    noise = np.mean([sampled_noise(exact.probabilities, 250, i) for i in range(20)])
    assert total_variation(exact.probabilities, {x: c / 250 for x, c in distribution.items()}) <= noise + 0.08
