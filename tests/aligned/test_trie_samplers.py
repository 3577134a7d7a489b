"""ASAp and CARS: exact distributions, certificates, exactness from the first draw, saved and bounded
tries."""

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
    trie_distribution,
)

from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.enumeration import enumerate_target, total_variation
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.trie import Trie
from tokenform.decoding.aligned.trie_file import load_trie, save_trie
from tokenform.errors import DataError, OptionError, SamplingError


def distance_of(problem, trie, exact):
    return total_variation(exact.probabilities, trie_distribution(problem, trie))


def test_the_toy_is_the_one_of_the_reference(problem, exact):
    assert len(exact.log_measure) == 89
    assert len({problem.bytes_of(tokens) for tokens in exact.log_measure}) == 17
    assert total_variation(exact.probabilities, local_distribution(problem)) == pytest.approx(
        0.5515, abs=1e-3
    )


@pytest.mark.parametrize("explore", [0, 1])
@pytest.mark.parametrize(("samples", "bound"), [(100, 0.18), (300, 0.05), (1000, 0.02)])
def test_asap_approaches_the_target(problem, exact, samples, bound, explore):
    for seed in range(3):
        trie = ASAp(explore=explore).sample(problem, samples, seed=seed).trie
        assert distance_of(problem, trie, exact) <= bound


@pytest.mark.parametrize("explore", [0, 1])
def test_the_certificate_is_never_violated(problem, exact, explore):
    trie = Trie(problem)
    for seed in range(60):
        certificate = ASAp(explore=explore, trie=trie).sample(problem, 3, seed=seed).certificate
        assert certificate.log_lower <= exact.log_z + 1e-12
        assert certificate.log_upper >= exact.log_z - 1e-12
        assert distance_of(problem, trie, exact) <= certificate.distance + 1e-12


def test_asap_stops_learning_when_it_is_close_enough(problem, exact):
    sample = ASAp(until=0.05, explore=0).sample(problem, 1, seed=0)
    assert sample.certificate.distance <= 0.05
    shorter = ASAp(until=0.5, explore=0).sample(problem, 1, seed=0)
    assert shorter.counts.attempts < sample.counts.attempts
    assert distance_of(problem, sample.trie, exact) <= 0.05


def test_the_first_draw_of_asap_has_the_distribution_of_local_masking(problem):
    runs = 1000
    seen = Counter(
        ASAp(explore=0, lookahead=1).sample(problem, 1, seed=s).draws[0].tokens for s in range(runs)
    )
    for tokens, p in local_distribution(problem).items():
        assert abs(seen[tokens] / runs - p) <= 4.5 * math.sqrt(p * (1 - p) / runs) + 1e-9


def test_weights_of_asap_are_f_over_q(problem):
    """On a settled trie the weight of every draw is U, and on a fresh one the product of the step masses."""
    first = ASAp(explore=0).sample(problem, 1, seed=4).draws[0]
    assert math.exp(first.logprob - first.log_weight) == pytest.approx(
        local_distribution(problem)[first.tokens]
    )
    later = ASAp().sample(problem, 400, seed=4)
    assert later.draws[-1].log_weight == pytest.approx(later.certificate.log_upper)


def test_log_z_estimates_agree_with_enumeration(automaton, exact):
    fresh = ASAp(explore=0).bind(TableModel(5, scale=1.0), automaton)
    deviations = []
    for seed in range(12):
        for sampler in (ASAp(explore=0), CARS(explore=0)):
            log_z = sampler.sample(fresh, 60, seed=seed).log_z
            deviations.append((log_z.value - exact.log_z) / log_z.error)
    assert np.abs(deviations).max() <= 4.5
    assert abs(np.mean(deviations)) <= 1.5


@pytest.fixture()
def likely(automaton):
    """A toy on which plain rejection is cheap: Z = 0.056."""
    return CARS().bind(TableModel(4, scale=1.5), automaton)


def chi_square_ok(counts, distribution, total):
    """Pearson's statistic within 5 standard deviations of its mean, small cells pooled."""
    cells = sorted(distribution, key=distribution.get)
    expected, observed, rows = 0.0, 0, []
    for x in cells:
        expected += distribution[x] * total
        observed += counts[x]
        if expected >= 8:
            rows.append((observed, expected))
            expected, observed = 0.0, 0
    statistic = sum((o - e) ** 2 / e for o, e in rows)
    freedom = len(rows) - 1
    return statistic <= freedom + 5 * math.sqrt(2 * freedom), statistic, freedom


@pytest.mark.parametrize("learn", ["masks", "rejected"])
def test_cars_is_exact_from_the_first_draws(likely, learn):
    """The first draws of fresh tries, and the second to fourth, have the target's distribution."""
    distribution = enumerate_target(likely).probabilities
    by_place = [Counter() for _ in range(4)]
    for seed in range(250):
        for place, draw in enumerate(
            CARS(learn=learn, lookahead=1, explore=seed % 2).sample(likely, 4, seed=seed).draws
        ):
            by_place[place][draw.tokens] += 1
    for counts in (by_place[0], sum(by_place[1:], Counter())):
        ok, statistic, freedom = chi_square_ok(counts, distribution, counts.total())
        assert ok, f"chi-square {statistic:.1f} with {freedom} degrees of freedom"


@pytest.mark.parametrize("learn", ["first", "none"])
def test_plain_rejection_and_first_token_masking_are_exact_too(likely, learn):
    target = enumerate_target(likely)
    sample = CARS(learn=learn).sample(likely, 150, seed=3)
    ok, statistic, freedom = chi_square_ok(Counter(d.tokens for d in sample.draws), target.probabilities, 150)
    assert ok, f"chi-square {statistic:.1f} with {freedom} degrees of freedom"
    root = likely.distributions([likely.root()])[0].log_mass if learn == "first" else 0.0
    expected = 150 * math.exp(root - target.log_z)
    assert abs(sample.counts.attempts - expected) <= 5 * expected / math.sqrt(150)


@pytest.mark.parametrize("explore", [0, 1])
def test_cars_needs_few_attempts(problem, explore):
    for seed in range(5):
        assert CARS(explore=explore).sample(problem, 100, seed=seed).counts.attempts <= 200


@pytest.mark.parametrize("make", [ASAp, CARS])
def test_draws_do_not_depend_on_batching(automaton, make):
    def run(**options):
        return [
            d.tokens
            for d in make(**options).sample(make(**options).bind(TableModel(7), automaton), 40, seed=11).draws
        ]

    plain = run(lookahead=1)
    assert run(lookahead=16) == plain
    assert run(lookahead=8, batch_size=1) == plain
    assert run(fast_forward=False) == plain


def test_lookahead_saves_forward_passes(automaton):
    def forwards(lookahead):
        sampler = CARS(lookahead=lookahead, explore=0)
        return sampler.sample(sampler.bind(TableModel(5), automaton), 40, seed=0).counts.forwards

    assert forwards(16) < 0.7 * forwards(1)


def predicate():
    return Predicate(TOKENS, [EOS], toy_prefix, toy_complete, on="bytes")


def test_predicates_give_the_same_distributions_as_masks(exact):
    shared = CARS().bind(TableModel(5, scale=1.0), predicate())
    draws = [d.tokens for seed in range(10) for d in CARS().sample(shared, 40, seed=seed).draws]
    ok, statistic, freedom = chi_square_ok(Counter(draws), exact.probabilities, len(draws))
    assert ok, f"chi-square {statistic:.1f} with {freedom} degrees of freedom"
    sample = ASAp().sample(ASAp().bind(TableModel(5, scale=1.0), predicate()), 700, seed=1)
    assert sample.certificate.log_lower <= exact.log_z <= sample.certificate.log_upper
    assert abs(sample.log_z.value - exact.log_z) <= 4.5 * sample.log_z.error
    distribution = Counter()
    for draw in sample.draws[200:]:
        distribution[draw.tokens] += 1 / 500
    assert total_variation(exact.probabilities, distribution) <= sample.certificate.distance + 0.2


def test_tries_are_saved_bit_for_bit(problem, tmp_path):
    for name, constraint in (("exact", toy_automaton()), ("lazy", predicate())):
        fresh = ASAp().bind(TableModel(5, scale=1.0), constraint)
        trie = ASAp(explore=0).sample(fresh, 50, seed=0).trie
        save_trie(trie, tmp_path / f"{name}.npz")
        again = load_trie(tmp_path / f"{name}.npz", fresh)
        save_trie(again, tmp_path / f"{name}2.npz")
        assert (tmp_path / f"{name}.npz").read_bytes() == (tmp_path / f"{name}2.npz").read_bytes()
        assert again.certificate() == trie.certificate()
        assert again.bytes == trie.bytes
        a = ASAp(trie=trie).sample(fresh, 30, seed=1)
        b = ASAp(trie=again).sample(fresh, 30, seed=1)
        assert a.draws == b.draws
        assert a.certificate == b.certificate


def test_a_trie_serves_its_own_problem_only(problem, automaton, tmp_path):
    trie = ASAp().sample(problem, 5, seed=0).trie
    save_trie(trie, tmp_path / "trie.npz")
    others = [
        ASAp(temperature=0.5).bind(TableModel(5, scale=1.0), automaton),
        ASAp(top_p=0.9).bind(TableModel(5, scale=1.0), automaton),
        ASAp().bind(TableModel(5, scale=1.0), automaton, prompt=[1]),
        ASAp().bind(TableModel(5, scale=1.0), automaton, max_tokens=4),
        ASAp().bind(TableModel(6, scale=1.0), automaton),
        ASAp().bind(TableModel(5, scale=1.0), StringsAutomaton([b"00000"])),
    ]
    for other in others:
        with pytest.raises(OptionError, match="learned for another"):
            ASAp(trie=trie).sample(other, 1, seed=0)
        with pytest.raises(OptionError, match="learned for another"):
            load_trie(tmp_path / "trie.npz", other)
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(DataError):
        load_trie(tmp_path / "bad.npz", problem)


def test_broken_archives_are_refused_with_a_typed_error(problem, tmp_path):
    trie = ASAp().sample(problem, 20, seed=0).trie
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    save_trie(trie, good)
    whole, rng = good.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(whole[: rng.integers(len(whole) + 1)] if rng.random() < 0.3 else whole)
        for place in rng.integers(0, max(len(broken), 1), size=rng.integers(1, 6)):
            if broken:
                broken[place] = rng.integers(256)
        bad.write_bytes(broken)
        try:
            again = load_trie(bad, problem)
        except (DataError, OptionError):
            continue
        assert again.certificate() == trie.certificate(), "bytes that nothing depends on"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parent", lambda a: a + 5),
        ("parent", lambda a: np.full_like(a, -1)),
        ("index", lambda a: a + 100),
        ("length", lambda a: -a),
        ("length", lambda a: a + 1),
        ("ids", lambda a: a[:-1]),
        ("logf", lambda a: a + 3.0),
        ("logf", lambda a: np.full_like(a, np.nan)),
        ("theta_place", lambda a: a + 1000),
        ("theta_value", lambda a: a + 2.0),
        ("sums", lambda a: a[:, :2]),
        ("stamp", lambda a: a[:0]),
        ("parent", lambda a: a[:0]),
    ],
)
def test_a_changed_archive_is_not_believed(problem, tmp_path, name, change):
    save_trie(ASAp().sample(problem, 20, seed=0).trie, tmp_path / "trie.npz")
    with np.load(tmp_path / "trie.npz") as file:
        arrays = {key: file[key] for key in file.files}
    arrays[name] = change(arrays[name])
    np.savez(tmp_path / "changed.npz", **arrays)
    with pytest.raises(DataError):
        load_trie(tmp_path / "changed.npz", problem)


def every_string(length):
    return [format(i, f"0{length}b").encode() for i in range(2**length)]


@pytest.mark.parametrize("make", [ASAp, CARS])
def test_memory_is_bounded_and_the_distributions_survive_it(make):
    """A trie of 64 KiB over a language that would need several times that."""
    fresh = make().bind(
        TableModel(3, scale=1.0), StringsAutomaton([s for s in every_string(7) if s.count(b"1") % 3])
    )
    limited = make(limit_bytes=1 << 16, explore=0).sample(fresh, 200, seed=0)
    assert limited.trie.evicted > 0
    assert limited.trie.bytes <= 1 << 16
    for node in limited.trie.walk():
        assert node.log_theta == pytest.approx(float(np.logaddexp.reduce(node.log_weights())), abs=1e-12)
    target = enumerate_target(fresh)
    if make is ASAp:
        assert distance_of(fresh, limited.trie, target) <= limited.certificate.distance
    else:
        strings = Counter(fresh.bytes_of(d.tokens)[:3] for d in limited.draws)
        distribution = Counter()
        for tokens, p in target.probabilities.items():
            distribution[fresh.bytes_of(tokens)[:3]] += p
        ok, statistic, freedom = chi_square_ok(strings, distribution, 200)
        assert ok, f"chi-square {statistic:.1f} with {freedom} degrees of freedom"


def test_a_dead_end_gets_no_mass(automaton):
    """top-p empties the mask of some prefixes: they are ruled out, not left at θ = 1."""
    fresh = ASAp(top_k=3).bind(TableModel(5, scale=1.0), automaton)
    target = enumerate_target(fresh)
    assert 0 < len(target.log_measure) < 89
    sample = ASAp(top_k=3).sample(fresh, 300, seed=0)
    assert {d.tokens for d in sample.draws} <= set(target.log_measure)
    assert sample.counts.attempts > 300
    assert sample.certificate.log_upper == pytest.approx(target.log_z)
    assert distance_of(fresh, sample.trie, target) <= 1e-12


def test_no_mass_at_all_is_reported(automaton):
    for make in (ASAp, CARS):
        with pytest.raises(SamplingError, match="no mass"):
            make(top_k=1).sample(make(top_k=1).bind(TableModel(1, scale=1.0), automaton), 1, seed=0)


def test_powers_from_one_on(automaton):
    fresh = CARS(power=2.0).bind(TableModel(5, scale=1.0), automaton)
    target = enumerate_target(fresh)
    plain = enumerate_target(CARS().bind(TableModel(5, scale=1.0), automaton))
    weights = {x: math.exp(2 * v) for x, v in plain.log_measure.items()}
    assert target.probabilities == pytest.approx({x: w / sum(weights.values()) for x, w in weights.items()})
    sample = CARS(power=2.0).sample(fresh, 800, seed=0)
    ok, statistic, freedom = chi_square_ok(Counter(d.tokens for d in sample.draws), target.probabilities, 800)
    assert ok, f"chi-square {statistic:.1f} with {freedom} degrees of freedom"
    assert sample.draws[0].logprob == pytest.approx(plain.log_measure[sample.draws[0].tokens])
    with pytest.raises(OptionError, match="power"):
        ASAp(power=0.5)
