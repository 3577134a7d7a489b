"""SMC and AWRS: unbiased Ẑ, distributions near the target, twists, critics, resampling, independence of
batching."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from toy import (
    EOS,
    STRINGS,
    TOKENS,
    StringsAutomaton,
    TableModel,
    local_distribution,
    toy_automaton,
    toy_complete,
    toy_prefix,
)

from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.awrs import AWRS
from tokenform.decoding.aligned.enumeration import enumerate_target, sampling_noise, total_variation
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.population import branches, systematic
from tokenform.decoding.aligned.potential import Score
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.product import Product
from tokenform.decoding.aligned.results import LogZ, normalised
from tokenform.decoding.aligned.smc import SMC
from tokenform.errors import OptionError, SamplingError


def distribution_of_draws(sampler, problem, runs, seed=0):
    """The distribution of one draw, estimated with all particles of each run; and the estimates of Z relative
    to the truth.
    """
    distribution, estimates = Counter(), []
    for population in sampler._runs(problem, list(range(runs)), seed):
        estimates.append(population.log_z)
        texts, _, weights = population.texts
        for tokens, weight in zip(texts, normalised(weights), strict=True):
            distribution[tokens] += weight / runs
    return {x: p for x, p in distribution.items() if p > 0}, np.array(estimates)


def z_score(estimates, log_z):
    relative = np.exp(estimates - log_z)
    return (relative.mean() - 1) / (relative.std() / math.sqrt(len(relative)))


def test_mask_weights_give_an_unbiased_z_and_a_distribution_near_the_target(problem, exact):
    distribution, estimates = distribution_of_draws(SMC(20), problem, 200)
    assert abs(z_score(estimates, exact.log_z)) <= 4
    assert (
        total_variation(exact.probabilities, distribution) <= 0.14
    )  # 0.10 and the noise of 200 runs; the slow test has the bound


class Shy(TableModel):
    """Ends about once in e^12 times, wherever it stands: every text pays for its end, a short one early."""

    def row(self, prefix):
        if prefix not in self.table:
            row = super().row(prefix).copy()
            row[EOS] -= 12.0
            self.table[prefix] = row - np.logaddexp.reduce(row)
        return self.table[prefix]


LENGTHS = [b"0", b"01", b"0010", b"11", b"10101", b"1100110", b"000111000"]


@pytest.mark.parametrize("weights", ["mask", "rejection"])
def test_texts_of_other_lengths_are_not_lost_to_those_that_have_not_paid_for_their_end(weights):
    problem = SMC(16).bind(Shy(3000), StringsAutomaton(LENGTHS))
    target = enumerate_target(problem)
    distribution, estimates = distribution_of_draws(SMC(16, weights=weights), problem, 40)
    assert abs(z_score(estimates, target.log_z)) <= 4
    local = total_variation(target.probabilities, local_distribution(problem))
    assert local > 0.5 and total_variation(target.probabilities, distribution) <= 0.3 * local


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [SMC(16), SMC(16, weights="rejection"), AWRS(always_reject=True)])
def test_log_z_is_within_two_stated_errors_in_95_runs_of_100(sampler):
    """200 runs on each toy; 183 is what 95 of 100 stays above with a chance of .99."""
    shy = Shy(3000), StringsAutomaton(LENGTHS)
    for model, automaton in ((TableModel(2000, scale=1.0), toy_automaton()), shy):
        problem = sampler.bind(model, automaton)
        true = enumerate_target(problem).log_z
        found = [sampler.sample(problem, 20, seed=seed).log_z for seed in range(200)]
        assert sum(abs(one.value - true) <= 2 * one.error for one in found) >= 183


def test_an_error_that_is_not_known_is_infinite():
    """A hundred estimates of which one is e^40 times the others: nothing says what was missed."""
    assert LogZ.mean(np.array([0.0] * 99 + [40.0])).error == math.inf
    assert LogZ.mean(np.array([-1.0])).error == math.inf
    even = LogZ.mean(np.log(np.linspace(0.9, 1.1, 50)))
    assert 0.005 < even.error < 0.02


@pytest.mark.slow
def test_the_distribution_with_twenty_particles(problem, exact):
    distribution, estimates = distribution_of_draws(SMC(20), problem, 2000)
    assert abs(z_score(estimates, exact.log_z)) <= 4
    assert total_variation(exact.probabilities, distribution) <= 0.10


@pytest.mark.parametrize("estimator", ["two_loops", "recursive", "geometric"])
def test_rejection_weights_give_an_unbiased_z(problem, exact, estimator):
    distribution, estimates = distribution_of_draws(
        SMC(20, weights="rejection", estimator=estimator), problem, 60
    )
    assert abs(z_score(estimates, exact.log_z)) <= 4
    assert total_variation(exact.probabilities, distribution) < 0.75 * total_variation(
        exact.probabilities, local_distribution(problem)
    )


def predicate():
    return Predicate(TOKENS, [EOS], toy_prefix, toy_complete, on="bytes")


def properly_weighted(draws, exact, runs):
    """E[w·1(x)] = f(x), on the likeliest texts; `draws` holds one of each run."""
    for tokens in sorted(exact.log_measure, key=exact.log_measure.get)[-5:]:
        values = np.array(
            [math.exp(d.log_weight - exact.log_measure[tokens]) * (d.tokens == tokens) for d in draws]
        )
        assert abs(values.mean() - 1) <= 4.5 * values.std() / math.sqrt(runs)


@pytest.mark.parametrize("estimator", ["recursive", "auto"])
def test_awrs_draws_are_properly_weighted(exact, estimator):
    """The first draws of fresh tries, and the twelfth, whose tries know eleven texts."""
    sampler, runs = AWRS(estimator), 800
    problem = sampler.bind(TableModel(5, scale=1.0), predicate())
    samples = [sampler.sample(problem, 12, seed=seed) for seed in range(runs)]
    for place in (0, 11):
        properly_weighted([sample.draws[place] for sample in samples], exact, runs)


def test_awrs_learns_what_leads_nowhere(exact):
    """Later draws come as the target has them, and ask less."""
    sampler = AWRS()
    problem = sampler.bind(TableModel(5, scale=1.0), predicate())
    sample = sampler.sample(problem, 2000, seed=0)
    assert abs(sample.log_z.value - exact.log_z) <= 3 * sample.log_z.error <= 0.2
    late = Counter(draw.tokens for draw in sample.draws[1000:])
    noise = sampling_noise(exact.probabilities, 1000)
    assert total_variation(exact.probabilities, {x: c / 1000 for x, c in late.items()}) <= noise + 0.03
    assert sample.certificate.log_lower <= exact.log_z <= sample.certificate.log_upper
    once = sampler.bind(TableModel(5, scale=1.0), predicate())
    assert sampler.sample(once, 20, seed=0).draws == sample.draws[:20]


def test_awrs_takes_potentials_and_powers_below_one(automaton):
    for options in ({"potential": Score(ones)}, {"power": 0.5}):
        sampler = AWRS(**options)
        problem = sampler.bind(TableModel(5, scale=1.0), automaton)
        target = enumerate_target(problem)
        samples = [sampler.sample(problem, 1, seed=seed) for seed in range(800)]
        properly_weighted([sample.draws[0] for sample in samples], target, 800)
        assert samples[0].certificate is None


def test_masks_are_used_where_they_are_at_hand(problem):
    masked = AWRS().sample(problem, 20, seed=0)
    assert masked.draws == ASAp(explore=0).sample(problem, 20, seed=0).draws
    rejected = AWRS(always_reject=True).sample(problem, 20, seed=0)
    assert rejected.counts.evaluations > masked.counts.evaluations


def test_a_trie_twist_needs_few_particles(problem, exact):
    twist = ASAp(explore=0).sample(problem, 100, seed=3).trie
    plain, _ = distribution_of_draws(SMC(5), problem, 300)
    distribution, estimates = distribution_of_draws(SMC(5, twist=twist), problem, 300)
    assert abs(z_score(estimates, exact.log_z)) <= 4
    assert (
        total_variation(exact.probabilities, distribution) <= 0.09
    )  # 0.05 and the noise of 300 runs; the slow test has the bound
    assert total_variation(exact.probabilities, distribution) < 0.6 * total_variation(
        exact.probabilities, plain
    )
    _, estimates = distribution_of_draws(SMC(5, twist=twist, weights="rejection"), problem, 60)
    assert abs(z_score(estimates, exact.log_z)) <= 4


def test_a_settled_trie_makes_every_run_exact(problem, exact):
    twist = ASAp(until=0.0).sample(problem, 1, seed=0).trie
    _, estimates = distribution_of_draws(SMC(4, twist=twist), problem, 20)
    assert np.allclose(estimates, exact.log_z, atol=1e-9)


def ones(text):
    return -0.7 * text.count("1")


def test_a_critic_changes_the_target_and_a_twist_does_not(automaton, exact):
    critic = Score(ones, ones)
    sampler = SMC(20, potential=critic)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    target = enumerate_target(fresh)
    by_hand = {x: math.exp(v - 0.7 * fresh.bytes_of(x).count(b"1")) for x, v in exact.log_measure.items()}
    assert target.probabilities == pytest.approx({x: w / sum(by_hand.values()) for x, w in by_hand.items()})
    distribution, estimates = distribution_of_draws(sampler, fresh, 150)
    assert abs(z_score(estimates, target.log_z)) <= 4
    assert total_variation(target.probabilities, distribution) <= 0.16
    plain = SMC(20).bind(TableModel(5, scale=1.0), automaton)
    _, estimates = distribution_of_draws(SMC(20, twist=Score(prefix=ones)), plain, 150)
    assert abs(z_score(estimates, exact.log_z)) <= 4


def test_a_critic_that_rules_a_text_out(automaton):
    sampler = SMC(20, potential=Score(lambda text: -math.inf if text == "00000" else 0.0))
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    assert "00000" not in {d.text for d in sampler.sample(fresh, 40, seed=0).draws}


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_power_targets(automaton, power):
    sampler = SMC(40, power=power)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton)
    target = enumerate_target(fresh)
    populations = sampler._runs(fresh, list(range(200)), 0)
    assert abs(z_score(np.array([p.log_z for p in populations]), target.log_z)) <= 4
    # weighted by Ẑ, runs give every text its mass
    for tokens in sorted(target.log_measure, key=target.log_measure.get)[-4:]:
        shares = [
            sum(w for x, w in zip(p.texts[0], normalised(p.texts[2]), strict=True) if x == tokens)
            for p in populations
        ]
        values = np.array([math.exp(p.log_z) * share for p, share in zip(populations, shares, strict=True)])
        expected = math.exp(target.log_measure[tokens])
        assert abs(values.mean() - expected) <= 4.5 * values.std() / math.sqrt(200) + 1e-12
    draw = sampler.sample(fresh, 1, seed=0).draws[0]
    assert draw.logprob == pytest.approx(target.log_measure[draw.tokens] / power)


@pytest.mark.parametrize("weights", ["mask", "rejection"])
def test_draws_do_not_depend_on_batching(automaton, weights):
    def run(n, **options):
        sampler = SMC(6, weights=weights, **options)
        return sampler.sample(sampler.bind(TableModel(5, scale=1.0), automaton), n, seed=3).draws

    plain = run(12)
    assert run(12, batch_size=1) == plain
    assert run(12, batch_size=7, fast_forward=False) == plain
    assert run(5) == plain[:5]


def test_forced_tokens_still_multiply_the_weight():
    """1·0·0·0·1 is forced after its first token: weights are those of the steps, with and without
    fast-forward.
    """
    automaton = StringsAutomaton([b"10001", b"0"], tokens=[b"0", b"1", b"<eos>"], eos=(2,))
    found = {}
    for fast in (True, False):
        sampler = Masked(fast_forward=fast)
        fresh = sampler.bind(TableModel(2, vocab_size=3, eos=(2,)), automaton)
        found[fast] = sampler.sample(fresh, 6, seed=0)
        exact = enumerate_target(fresh)
        population = SMC(1, fast_forward=fast)._runs(fresh, list(range(40)), 0)
        for one in population:
            ((tokens,), _, (weight,)) = one.texts
            root = fresh.distributions([fresh.root()])[0]
            first = root.logf[list(root.ids).index(tokens[0])] - root.log_mass
            assert weight == pytest.approx(exact.log_measure[tokens] - first)
    assert found[True].draws == found[False].draws
    assert found[True].counts.rows == found[False].counts.rows
    assert found[True].counts.forwards < found[False].counts.forwards


def test_budgets_are_part_of_the_target(automaton):
    sampler = SMC(20)
    fresh = sampler.bind(TableModel(5, scale=1.0), automaton, max_tokens=3)
    target = enumerate_target(fresh)
    whole = enumerate_target(sampler.bind(TableModel(5, scale=1.0), automaton))
    short = {x: v for x, v in whole.log_measure.items() if len(x) <= 3}
    assert target.log_measure == pytest.approx(short)
    distribution, estimates = distribution_of_draws(sampler, fresh, 150)
    assert set(distribution) <= set(short)
    assert abs(z_score(estimates, target.log_z)) <= 4
    assert total_variation(target.probabilities, distribution) <= 0.12
    # a predicate knows no distances: particles may die at the budget, and Z is the same
    lazy = SMC(20).bind(TableModel(5, scale=1.0), predicate(), max_tokens=3)
    _, estimates = distribution_of_draws(SMC(20), lazy, 60)
    assert abs(z_score(estimates, target.log_z)) <= 4


def test_products_of_masks_and_predicates(automaton, exact):
    def even(text):
        return text.count("1") % 2 == 0

    factor = Predicate(TOKENS, [EOS], prefix=lambda text: True, complete=even)
    sampler = SMC(20)
    fresh = sampler.bind(TableModel(5, scale=1.0), Product(factor, AutomatonConstraint(automaton)))
    target = enumerate_target(fresh)
    by_hand = {x: v for x, v in exact.log_measure.items() if fresh.bytes_of(x).count(b"1") % 2 == 0}
    assert target.log_measure == pytest.approx(by_hand)
    _, estimates = distribution_of_draws(sampler, fresh, 60)
    assert abs(z_score(estimates, target.log_z)) <= 4
    # nothing that the mask forbids is asked about: each of its prefixes and strings once
    prefixes = {s[:i] for s in STRINGS for i in range(1, 6)}
    assert factor.evaluations <= len(prefixes) + len(STRINGS)


def test_the_weighted_population_and_stopping_by_error(problem, exact):
    sample = SMC(50).particles(problem, seed=0)
    assert 0 < len({draw.tokens for draw in sample.draws}) == len(sample.draws)
    assert 1 <= sample.ess <= 50
    total = np.logaddexp.reduce([draw.log_weight for draw in sample.draws])
    assert total - math.log(50) == pytest.approx(sample.log_z.value)
    assert sample.weights.sum() == pytest.approx(1)
    loose = SMC(10, until_error=0.2).sample(problem, 1, seed=0)
    tight = SMC(10, until_error=0.05).sample(problem, 1, seed=0)
    assert tight.log_z.error <= 0.05 < loose.log_z.error <= 0.2
    assert abs(tight.log_z.value - exact.log_z) <= 5 * tight.log_z.error
    assert loose.draws == tight.draws


def test_runs_that_all_die_are_reported(automaton):
    sampler = SMC(4, top_k=1, max_attempts=3)
    with pytest.raises(SamplingError, match="died out"):
        sampler.sample(sampler.bind(TableModel(1, scale=1.0), automaton), 1, seed=0)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 20])
def test_next_prefixes_weigh_their_mass_on_average_and_all_of_it_where_they_fit(count):
    masses = [np.array([0.5, 0.0, 0.01, 0.2]), np.array([0.07]), np.array([0.003, 0.04, 0.11, 0.0, 0.02])]
    runs, sums, squares = 4000, Counter(), Counter()
    for seed in range(runs):
        found = branches([m.copy() for m in masses], count, np.random.default_rng(seed))
        assert len(found) == min(count, 8)
        weights = Counter()
        for one in found:
            weights[one.parent, one.token_place] += one.mass
        sums.update(weights)
        squares.update({place: weight**2 for place, weight in weights.items()})
    for parent, values in enumerate(masses):
        for place, mass in enumerate(values):
            mean = sums[parent, place] / runs
            spread = math.sqrt(max(squares[parent, place] / runs - mean**2, 0.0) / runs)
            assert abs(mean - mass) <= 4.5 * spread + 1e-12
            assert count < 8 or spread < 1e-8


def test_resampling_is_unbiased():
    weights = np.array([0.0, 0.41, 0.07, 0.3, 0.22, 0.0])
    runs = 3000
    counts = np.stack(
        [np.bincount(systematic(weights, np.random.default_rng([2, i]), 6), minlength=6) for i in range(runs)]
    )
    assert (counts.sum(1) == 6).all()
    assert (counts[:, weights == 0] == 0).all()
    error = counts.std(0) / math.sqrt(runs)
    assert (np.abs(counts.mean(0) - 6 * weights) <= 4.5 * error + 1e-12).all()
    assert (np.abs(counts - 6 * weights) < 1).all()


def test_wrong_options_are_refused():
    for options in (
        {"particles": 0},
        {"threshold": 2.0},
        {"resampling": "systematic"},
        {"weights": "x"},
        {"temperature": 0.0},
        {"top_p": 0.0},
    ):
        with pytest.raises(OptionError):
            SMC(**options)
    with pytest.raises(OptionError):
        SMC(estimator="geometric", accepts=1)
