"""What all samplers share: folded EOS ids, duplicate tokens, budgets, transforms, caching, forced tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from toy import EOS, STRINGS, TOKENS, StringsAutomaton, TableModel, toy_complete, toy_prefix

from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.enumeration import enumerate_target
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.results import log_sum
from tokenform.decoding.aligned.smc import SMC
from tokenform.decoding.keyed_random import Purpose, pick, stream
from tokenform.decoding.samplers.local import Local
from tokenform.errors import ModelError, OptionError
from tokenform_bench.fidelity import kl_divergence


def strings_distribution(problem):
    distribution: dict[bytes, float] = {}
    for tokens, p in enumerate_target(problem).probabilities.items():
        text = problem.bytes_of(tokens)
        distribution[text] = distribution.get(text, 0.0) + p
    return distribution


def brute_force(model, tokens, eos, strings, transform=lambda p: p):
    """Z-normalised masses of strings over all tokenisations and all EOS ids, straight from the table."""
    masses = dict.fromkeys(strings, 0.0)

    def walk(prefix, text, p):
        distribution = transform(np.exp(model.row(prefix)))
        if text in masses:
            masses[text] += p * sum(distribution[e] for e in eos)
        for token, spelled in enumerate(tokens):
            if token not in eos and spelled and any(s.startswith(text + spelled) for s in strings):
                walk((*prefix, token), text + spelled, p * distribution[token])

    walk((), b"", 1.0)
    total = sum(masses.values())
    return {s: m / total for s, m in masses.items()}, total


def test_several_eos_ids_and_tokens_of_equal_bytes_are_summed():
    """Two EOS ids, and two ids for b"1" that the model treats differently."""
    tokens, eos = [b"0", b"1", b"<a>", b"11", b"1", b"<b>"], (5, 2)
    model = TableModel(1, eos=eos)
    automaton = StringsAutomaton(STRINGS, tokens, eos)
    expected, z = brute_force(model, tokens, eos, STRINGS)
    for constraint in (automaton, Predicate(tokens, eos, toy_prefix, toy_complete, on="bytes")):
        problem = Masked().bind(model, constraint)
        exact = enumerate_target(problem)
        assert math.exp(exact.log_z) == pytest.approx(z, rel=1e-12)
        assert strings_distribution(problem) == pytest.approx(expected, rel=1e-12)
    counts: dict[bytes, int] = {}
    problem = CARS().bind(model, automaton)
    for draw in CARS().sample(problem, 500, seed=0).draws:
        counts[draw.text.encode()] = counts.get(draw.text.encode(), 0) + 1
        assert not set(draw.tokens) & set(eos)
    for text, p in expected.items():
        assert abs(counts.get(text, 0) / 500 - p) <= 4.5 * math.sqrt(p * (1 - p) / 500) + 1e-9


@pytest.mark.parametrize(
    "options", [{"temperature": 0.6}, {"temperature": 1.7}, {"top_k": 4}, {"top_p": 0.9}, {"min_p": 0.1}]
)
def test_transforms_come_before_the_constraint(automaton, options):
    def by_hand(p):
        p = p ** (1 / options.get("temperature", 1.0))
        p = p / p.sum()
        order = np.argsort(-p, kind="stable")
        keep = np.zeros(len(p), bool)
        if "top_k" in options:
            keep[order[: options["top_k"]]] = True
        elif "min_p" in options:
            keep = p >= options["min_p"] * p.max()
        else:
            mass = 0.0
            for token in order:
                keep[token] = True
                mass += p[token]
                if mass >= options.get("top_p", 2.0):
                    break
        p = np.where(keep, p, 0.0)
        return p / p.sum()

    model = TableModel(2, scale=1.0)
    expected, z = brute_force(model, TOKENS, (EOS,), STRINGS, by_hand)
    problem = Masked(**options).bind(model, automaton)
    assert math.exp(enumerate_target(problem).log_z) == pytest.approx(z, rel=1e-9)
    found = strings_distribution(problem)
    assert {s: p for s, p in expected.items() if p > 0} == pytest.approx(found, rel=1e-9)


def test_transformed_rows_are_normalised_and_leave_their_input_alone():
    rows = np.log(np.random.default_rng(0).dirichlet(np.ones(50), size=4))
    before = rows.copy()
    out = Local(temperature=0.7, top_k=20, top_p=0.8, min_p=0.02).before_masks(rows)
    assert np.array_equal(rows, before)
    assert np.allclose(np.exp(out).sum(1), 1)
    assert ((out > -np.inf).sum(1) <= 20).all()


def test_the_budget_only_removes_what_is_too_long(automaton):
    whole = enumerate_target(Masked().bind(TableModel(5), automaton)).log_measure
    for budget in range(6):
        problem = Masked().bind(TableModel(5), automaton, max_tokens=budget)
        found = enumerate_target(problem).log_measure
        assert found == pytest.approx({x: v for x, v in whole.items() if len(x) <= budget})
        lazy = Masked().bind(
            TableModel(5), Predicate(TOKENS, [EOS], toy_prefix, toy_complete, on="bytes"), max_tokens=budget
        )
        assert enumerate_target(lazy).log_measure == pytest.approx(found)


def test_no_mask_leads_past_the_budget(automaton):
    """With distances, local masking never runs into the end of the budget."""
    problem = Masked().bind(TableModel(5), automaton, max_tokens=3)
    sample = Masked().sample(problem, 200, seed=0)
    assert sample.counts.attempts == 200
    assert max(len(d.tokens) for d in sample.draws) == 3


def test_distributions_are_computed_once_and_kept_within_bounds(automaton):
    model = TableModel(5)
    problem = Masked().bind(model, automaton)
    enumerate_target(problem)
    rows = model.rows
    enumerate_target(problem)
    assert model.rows == rows
    small = Problem(TableModel(5), problem.constraint, cache_bytes=200)
    exact = enumerate_target(problem)
    assert enumerate_target(small).log_measure == exact.log_measure
    assert small._distribution_bytes <= 200


def test_batches_are_cut_to_size(automaton):
    model = TableModel(5)
    sampler = SMC(30, batch_size=4)
    sampler.sample(sampler.bind(model, automaton), 2, seed=0)
    assert model.largest_batch == 4


def test_streams_are_addressed_and_distinct():
    def numbers(*address):
        return tuple(stream(*address).random(4))

    assert numbers(1, Purpose.PROPOSAL, 2, 3) == numbers(1, Purpose.PROPOSAL, 2, 3)
    addresses = [
        (s, purpose, r, t)
        for s in (0, 1, 2**64)
        for purpose in (Purpose.PROPOSAL, Purpose.CUT)
        for r in (0, 1)
        for t in (0, 1)
    ]
    assert len({numbers(*a) for a in addresses}) == len(addresses)


def test_pick_and_log_sum_in_the_far_tail():
    weights = np.array([-np.inf, -2000.0, -2001.0, -np.inf])
    assert log_sum(weights) == pytest.approx(-2000 + math.log1p(math.exp(-1)))
    assert log_sum(np.empty(0)) == -math.inf
    assert pick(weights, 0.0) == 1
    assert pick(weights, 0.9999999) == 2
    share = np.mean([pick(weights, u) == 1 for u in np.linspace(0, 1, 10_001)[:-1]])
    assert share == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-3)


def test_wrong_problems_are_refused(automaton):
    with pytest.raises(OptionError):
        Masked().bind(TableModel(0), automaton, max_tokens=-1)
    with pytest.raises(OptionError):
        Masked(power=0)
    with pytest.raises(ModelError):
        Masked().bind(TableModel(0, eos=()), automaton)


@pytest.mark.parametrize(
    ("errors", "published"),
    [
        (["AAA"], 0.0075),
        (["AAA", "AAC"], 0.0429),
        ([f"A{b}{c}" for b in "ABC" for c in "ABC" if b + c != "AC"], 0.3836),
    ],
)
def test_the_published_toy_of_approximately_aligned_decoding(errors, published):
    """Three symbols, length three, a uniform model: KL(local masking ‖ target), which the paper estimated
    from samples.
    """

    class Uniform(TableModel):
        def row(self, prefix):
            return np.log(np.array([1, 1, 1, 0]) / 3) if len(prefix) < 3 else np.log(np.array([0, 0, 0, 1.0]))

    strings = [(a + b + c).encode() for a in "ABC" for b in "ABC" for c in "ABC" if a + b + c not in errors]
    with np.errstate(divide="ignore"):
        problem = Masked().bind(
            Uniform(0, 4, (3,)), StringsAutomaton(strings, [b"A", b"B", b"C", b"<eos>"], (3,))
        )
        target = strings_distribution(problem)
        local: dict[bytes, float] = {}
        for tokens in enumerate_target(problem).log_measure:
            prefix, p = problem.root(), 1.0
            for token in tokens:
                distribution = problem.distributions([prefix])[0]
                p *= math.exp(distribution.logf[list(distribution.ids).index(token)] - distribution.log_mass)
                prefix = problem.extend(prefix, token)
            local[problem.bytes_of(tokens)] = p
    assert target == pytest.approx(dict.fromkeys(strings, 1 / len(strings)))
    assert kl_divergence(local, target) == pytest.approx(published, abs=0.003)
