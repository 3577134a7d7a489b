"""The rejection step: proper weighting by enumeration of all orders, counts of tests, tiny valid masses."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from tokenform.decoding.aligned import rejection_step
from tokenform.decoding.aligned.rejection_step import (
    estimator,
    geometric,
    race,
    recursive,
    run_steps,
    spaced,
    two_loops,
)
from tokenform.decoding.aligned.results import LogZ

WEIGHTS = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def orders(weights):
    """All orders of sampling without replacement, with their probabilities (Plackett, Luce)."""
    for order in itertools.permutations(range(len(weights))):
        rest, p = weights.sum(), 1.0
        for i in order:
            p *= weights[i] / rest
            rest -= weights[i]
            rest = max(rest, weights[list(order[order.index(i) + 1 :])].sum())
        yield p, order


def scripted(monkeypatch, queue):
    """Makes `race` follow given orders of all indices, skipping those of weight zero."""
    calls = iter(queue)

    def fake(log_weights, generator):
        return iter([i for i in next(calls) if log_weights[i] > -np.inf])

    monkeypatch.setattr(rejection_step, "race", fake)


def run(step, valid):
    return run_steps([step], lambda _, asked: [[i in valid for i in block] for block in asked])[0]


VALID = [{4}, {1, 3}, {0, 1, 2, 3, 4}]


@pytest.mark.parametrize(("valid", "total"), [({4}, 1.0), ({1, 3}, 0.37)])
def test_two_loops_is_properly_weighted_by_enumeration(monkeypatch, valid, total):
    weights = WEIGHTS * total
    mean = np.zeros(5)
    # the second loop's distribution is that of a full order restricted to what remains
    everything = list(orders(weights))
    for (p, first), (q, second) in itertools.product(everything, everything):
        scripted(monkeypatch, [first, second])
        outcome = run(two_loops(np.log(weights), np.random.default_rng(0)), valid)
        mean[outcome.index] += p * q * math.exp(outcome.log_mass)
    expected = [weights[a] if a in valid else 0.0 for a in range(5)]
    assert np.abs(mean - expected).max() <= 1e-12


@pytest.mark.parametrize("valid", VALID)
def test_recursive_is_properly_weighted_by_enumeration(monkeypatch, valid):
    mean = np.zeros(5)
    for p, order in orders(WEIGHTS):
        scripted(monkeypatch, [order])
        outcome = run(recursive(np.log(WEIGHTS), np.random.default_rng(0)), valid)
        mean[outcome.index] += p * math.exp(outcome.log_mass)
    expected = [WEIGHTS[a] if a in valid else 0.0 for a in range(5)]
    assert np.abs(mean - expected).max() <= 1e-12


@pytest.mark.parametrize(("valid", "accepts"), [({4}, 2), ({1, 3}, 3)])
def test_geometric_has_the_distribution_of_inverse_sampling(valid, accepts):
    """accepts + rejects is negative binomial: the mean of (m-1)/(n-1) over it is Z, and x is independent of
    it.
    """
    runs = 5_000
    z = sum(WEIGHTS[a] for a in valid)
    total, total_squares, hits = np.zeros(5), np.zeros(5), np.zeros(5)
    for i in range(runs):
        outcome = run(geometric(np.log(WEIGHTS), np.random.default_rng([7, i]), accepts), valid)
        value = math.exp(outcome.log_mass)
        total[outcome.index] += value
        total_squares[outcome.index] += value**2
        hits[outcome.index] += 1
    for a in range(5):
        expected = WEIGHTS[a] if a in valid else 0.0
        error = math.sqrt(max(total_squares[a] / runs - (total[a] / runs) ** 2, 0.0) / runs)
        assert abs(total[a] / runs - expected) <= 4 * error + 1e-12
        chance = expected / z
        assert abs(hits[a] / runs - chance) <= 4 * math.sqrt(chance * (1 - chance) / runs) + 1e-12


@pytest.mark.parametrize("valid", VALID)
def test_expected_tests_of_the_first_loop(monkeypatch, valid):
    """1 + Σ over invalid r of w_r/(w_r + Z)."""
    z = sum(WEIGHTS[a] for a in valid)
    expected = 1 + sum(WEIGHTS[r] / (WEIGHTS[r] + z) for r in range(5) if r not in valid)
    mean = 0.0
    for p, order in orders(WEIGHTS):
        scripted(monkeypatch, [order])
        outcome = rejection_step.Outcome(None, -math.inf)
        run(rejection_step._first_valid(rejection_step.race(np.log(WEIGHTS), None), outcome), valid)
        mean += p * outcome.tests
    assert mean == pytest.approx(expected, abs=1e-12)


def test_the_race_draws_without_replacement_by_weight():
    runs = 5_000
    firsts = np.zeros(5)
    for i in range(runs):
        order = list(race(np.log(WEIGHTS), np.random.default_rng([1, i])))
        assert sorted(order) == [0, 1, 2, 3, 4]
        firsts[order[0]] += 1
    error = np.sqrt(WEIGHTS * (1 - WEIGHTS) / runs)
    assert (np.abs(firsts / runs - WEIGHTS) <= 4 * error).all()


def test_the_race_over_a_large_vocabulary_is_a_sorted_order_and_skips_weight_zero():
    logits = np.random.default_rng(3).normal(size=5000) * 4
    logits[::7] = -np.inf
    generator = np.random.default_rng(9)
    keys = np.log(np.random.default_rng(9).standard_exponential(5000)) - logits
    assert list(race(logits, generator)) == [
        i for i in np.argsort(keys, kind="stable") if logits[i] > -np.inf
    ]


@pytest.mark.parametrize("mass", [1e-5, 1e-12, 1e-40])
@pytest.mark.parametrize("make", [two_loops, recursive, geometric])
def test_tiny_valid_mass_is_found(make, mass):
    """One valid token of this mass beside a thousand invalid ones is always found, and its mass is not lost
    to rounding.
    """
    weights = np.concatenate([np.full(1000, (1 - mass) / 1000), [mass]])
    for i in range(10):
        outcome = run(make(np.log(weights), np.random.default_rng(i)), {1000})
        assert outcome.index == 1000
        assert math.isfinite(outcome.log_mass)
        if make is not geometric and mass < 1e-9:
            # all others were refused first; what remains is summed, not 1 - rejected
            trials = 1001 if make is two_loops else 1
            assert outcome.log_mass == pytest.approx(math.log(mass) - math.log(trials), abs=1e-9)


@pytest.mark.parametrize("make", [two_loops, recursive, geometric])
def test_no_valid_token_gives_weight_zero(make):
    outcome = run(make(np.log(WEIGHTS), np.random.default_rng(0)), set())
    assert outcome.index is None
    assert outcome.log_mass == -math.inf
    assert sorted(outcome.rejected) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", [two_loops, recursive, geometric])
def test_spaced_draws_stay_proper(make):
    """Each of several draws has E[Ẑ·1(x=a)] = w(a), and together they vary less than independent ones."""
    valid, runs = {1, 3}, 3_000
    total, squares, sums = np.zeros((3, 5)), np.zeros((3, 5)), np.zeros((2, runs))
    for i in range(runs):
        generators = [np.random.default_rng([i, j]) for j in range(3)]
        for j, step in enumerate(spaced(make, np.log(WEIGHTS), generators)):
            outcome = run(step, valid)
            total[j, outcome.index] += math.exp(outcome.log_mass)
            squares[j, outcome.index] += math.exp(outcome.log_mass) ** 2
            sums[0, i] += outcome.index == 1
            sums[1, i] += run(make(np.log(WEIGHTS), np.random.default_rng([i, 7, j])), valid).index == 1
    mean = total / runs
    error = np.sqrt(np.maximum(squares / runs - mean**2, 0) / runs)
    expected = np.array([WEIGHTS[a] if a in valid else 0.0 for a in range(5)])
    assert (np.abs(mean - expected) <= 4.5 * error + 1e-12).all()
    assert sums[0].var() < 0.9 * sums[1].var()


def test_spaced_draws_find_tiny_masses_and_end():
    weights = np.concatenate([np.full(50, 0.02), [1e-300]])
    for step in spaced(recursive, np.log(weights), [np.random.default_rng(j) for j in range(3)]):
        outcome = run(step, {50})
        assert outcome.index == 50
        assert outcome.log_mass == pytest.approx(math.log(1e-300))
    for step in spaced(two_loops, np.log(WEIGHTS), [np.random.default_rng(j) for j in range(3)]):
        assert run(step, set()).index is None


@pytest.mark.parametrize("weights", [[0.8, 0.12, 0.05, 0.03], [0.4, 0.3, 0.2, 0.1]])
@pytest.mark.parametrize("valid", [{0}, {1, 3}, {0, 2}])
def test_the_choice_of_the_estimator_keeps_weights_proper(weights, valid):
    """The geometric one where a token is above two thirds, else the recursive one, which tests no less."""
    runs, total, squares, tests = 4_000, np.zeros(4), np.zeros(4), [0, 0]
    for i in range(runs):
        outcome = run(estimator("auto")(np.log(weights), np.random.default_rng(i)), valid)
        total[outcome.index] += math.exp(outcome.log_mass)
        squares[outcome.index] += math.exp(outcome.log_mass) ** 2
        tests[0] += outcome.tests
        tests[1] += run(recursive(np.log(weights), np.random.default_rng(i)), valid).tests
    mean = total / runs
    error = np.sqrt(np.maximum(squares / runs - mean**2, 0) / runs)
    expected = np.array([w if a in valid else 0.0 for a, w in enumerate(weights)])
    assert (np.abs(mean - expected) <= 4 * error + 1e-12).all()
    assert tests[0] <= 1.02 * tests[1]


def test_side_by_side_equals_alone():
    rng_weights = [np.log(np.random.default_rng(i).dirichlet(np.ones(20))) for i in range(6)]
    valid = {3, 9, 15}
    alone = [run(two_loops(w, np.random.default_rng(i)), valid) for i, w in enumerate(rng_weights)]
    rounds = []

    def test(which, asked):
        rounds.append(len(which))
        return [[i in valid for i in block] for block in asked]

    together = run_steps([two_loops(w, np.random.default_rng(i)) for i, w in enumerate(rng_weights)], test)
    assert together == alone
    assert rounds[0] == 6
    assert len(rounds) <= max(outcome.tests for outcome in alone)


@pytest.mark.parametrize("make", [two_loops, recursive, geometric])
def test_long_runs_of_rejects_are_tested_in_blocks(make):
    """Few questions, at most a quarter more tests than one by one, and the same outcome."""
    weights, questions = np.log(np.random.default_rng(0).dirichlet(np.ones(3000))), []

    def test(_, asked):
        questions.append(len(asked[0]))
        return [[i >= 2990 for i in block] for block in asked]

    [outcome] = run_steps([make(weights, np.random.default_rng(1))], test)
    assert outcome.index >= 2990 and len(questions) < 80 and sum(questions) == outcome.tests
    assert all(i < 2990 for i in outcome.rejected)
    assert outcome.tests <= 1.25 * len(outcome.rejected) + 4


STEPS, DRAWS, TRIALS = 30, 400, 400
BEYOND = 0.08, 0.05, 0.05  # share of trials more than three stated errors off, with 20, 60 and 400 runs


@functools.cache
def drawn_masses(name):
    """Estimates [STEPS, DRAWS] of the valid mass of random distributions over 24 tokens, and these masses
    [STEPS]."""
    generator, estimates, masses = np.random.default_rng(0), [], []
    while len(masses) < STEPS:
        weights, valid = generator.dirichlet(np.ones(24) * 0.1) + 1e-300, generator.random(24) < 0.5
        if (mass := weights[valid].sum()) < 0.02:
            continue
        chosen, make = set(np.flatnonzero(valid)), estimator(name)
        steps = (make(np.log(weights), np.random.default_rng([len(masses), i])) for i in range(DRAWS))
        estimates.append([run(step, chosen).log_mass for step in steps])
        masses.append(mass)
    return np.array(estimates), np.array(masses)


@pytest.mark.parametrize("name", ["recursive", "two_loops", "geometric", "auto"])
def test_estimates_of_a_mass_have_that_mean(name):
    """|z| <= 4.5 for each of 30 distributions: by chance, 2e-4 for all of them."""
    estimates, masses = drawn_masses(name)
    found = np.exp(estimates)
    error = found.std(1, ddof=1) / math.sqrt(DRAWS) + 1e-12
    assert (np.abs(found.mean(1) - masses) <= 4.5 * error).all()


@pytest.mark.parametrize("name", ["recursive", "two_loops", "geometric", "auto"])
@pytest.mark.parametrize("length", [3, 8, 30])
def test_the_stated_error_of_log_z_covers_products_of_many_steps(name, length):
    """Runs are products of draws from pools, so the mean of runs is known exactly: that of the pools.

    The relative variance of a run is up to 10^6 here: the mean of 400 runs misses the rare great ones, and
    the stated error has to say so.  It may not do so by being large everywhere: few steps, many runs.
    """
    pools = drawn_masses(name)[0][:length]
    truth = np.log(np.exp(pools).mean(1)).sum()
    for runs, beyond in zip((20, 60, 400), BEYOND, strict=True):
        generator = np.random.default_rng([runs, length])
        missed, errors, gaps = 0, [], []
        for _ in range(TRIALS):
            picked = generator.integers(0, DRAWS, (length, runs))
            found = LogZ.mean(np.take_along_axis(pools, picked, 1).sum(0))
            gaps.append(found.value - truth)
            errors.append(found.error)
            missed += abs(gaps[-1]) > 3 * found.error
        assert missed <= beyond * TRIALS
        if length == 3:
            spread = math.sqrt(np.mean(np.square(gaps)))
            assert 0.7 * spread <= np.median(errors) <= 2.2 * spread


def test_the_stated_error_of_enough_runs_is_that_of_their_mean():
    logs = np.log(np.array([0.1, 1.0] * 500))
    found = LogZ.mean(logs)
    assert found.value == pytest.approx(math.log(0.55))
    few = 1 + math.sqrt(2 / 4000) + 2 / 999  # what few runs make wider
    assert found.error == pytest.approx(np.exp(logs).std(ddof=1) / 0.55 / math.sqrt(1000) * few)
