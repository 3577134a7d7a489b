"""Draws of the next token: on the device and on the host alike, by the definition, and in distribution."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

import tokenform as tf
from tokenform.decoding.draws import DenseDrawer, LazyDrawer, MaskedSampler
from tokenform.decoding.keyed_random import (
    BLOCK,
    block_numbers,
    cumulated,
    invert,
    pick,
    race_key,
    stream_seed,
    token_numbers,
)
from tokenform.decoding.speculative.node import Node, mask_bits
from tokenform.errors import SamplingError
from tokenform.masking import MaskTable

SIZE = 3 * BLOCK + 17
VOCABULARY = tf.Vocabulary(
    [bytes([i % 256, i // 256]) if i else b"" for i in range(SIZE)], eos=[0], special=[0]
)
SAMPLERS = [
    tf.Local(0.0),
    tf.Local(1.0),
    tf.Local(0.3),
    tf.Local(2.0, top_k=7),
    tf.Local(1.3, top_p=0.6),
    tf.Local(0.8, min_p=0.2),
    tf.Local(1.1, top_k=40, top_p=0.9, min_p=0.02),
]


class Masks:
    """An automaton of two states, of which each token leads to itself: a mask of many tokens, and one of
    few.
    """

    def __init__(self, many: np.ndarray, few: np.ndarray, near: np.ndarray) -> None:
        self.bits, self.near = {"many": many, "few": few}, near

    def mask(self, state: str) -> np.ndarray:
        return np.packbits(np.pad(self.bits[state], (0, -SIZE % 32)), bitorder="little").view(np.uint32)

    def mask_within(self, state: str, left: int) -> np.ndarray:
        kept = self.bits[state] & self.near if left < 9 else self.bits[state]
        return np.packbits(np.pad(kept, (0, -SIZE % 32)), bitorder="little").view(np.uint32)

    def fill_masks(self, states, out, threads: int = 1) -> None:
        for row, state in zip(out, states, strict=True):
            row[:] = self.mask(state).view(np.int32)

    def distance(self, state, within=None) -> int:
        return 4 if isinstance(state, str) else state

    def advance(self, state: str, token: int) -> int:
        return 4 if self.near[token] else 8


def masks(random: np.random.Generator) -> Masks:
    many, few, near = random.random(SIZE) < 0.8, np.zeros(SIZE, bool), random.random(SIZE) < 0.5
    few[random.integers(1, SIZE, 6)] = True
    few[np.flatnonzero(near)[:2]] = True
    return Masks(many, few, near)


def by_definition(row: np.ndarray, automaton, state, left: int, local: tf.Local, key) -> int:
    """The distribution of the docs, with every token's number worked out."""
    numbers = np.array(
        [
            float(
                token_numbers(
                    *key, np.array([t], np.int32), *block_numbers(*key, np.array([t // BLOCK], np.int32))
                )[0]
            )
            for t in range(SIZE)
        ]
    )

    def best(kept: np.ndarray) -> int:
        scores = np.where(kept, row, -np.inf)
        return int(
            np.argmax(scores if local.temperature == 0 else scores / local.temperature - np.log(numbers))
        )

    def truncated(kept: np.ndarray) -> np.ndarray:
        if local.temperature == 0:
            return kept
        scores = torch.from_numpy(np.where(kept, row, -np.inf))[None]
        return (local.log_distribution(scores)[0] > -math.inf).numpy()

    if automaton is None:
        return best(truncated(np.ones(SIZE, bool)))
    allowed = truncated(mask_bits(automaton.mask(state), SIZE))
    token = best(allowed)
    if left >= 9 or automaton.near[token]:
        return token
    fitting = mask_bits(automaton.mask_within(state, left), SIZE)
    return best(allowed & fitting) if (allowed & fitting).any() else best(truncated(fitting))


def defined(sampler: MaskedSampler, rows: list[torch.Tensor], node: Node) -> torch.Tensor:
    """What a node is drawn from, float64 [V of the model], by the definition."""

    def drawn(scores: torch.Tensor, words: np.ndarray | None) -> torch.Tensor:
        bits = np.ones(SIZE, bool) if words is None else mask_bits(words, SIZE)
        masked = scores.masked_fill(~torch.from_numpy(bits), -math.inf)
        return sampler.local.log_distribution(masked[None])[0].exp()

    free, auto = sampler.free(rows, node), node.automaton
    kept = drawn(free, None if auto is None else auto.mask(node.state))
    if auto is not None:
        words = auto.mask_within(node.state, node.remaining)
        fits = torch.from_numpy(mask_bits(words, SIZE))
        fits[list(sampler.eos)] = True
        kept = kept * fits
        if not kept.any():
            within = free.masked_fill(~torch.from_numpy(mask_bits(words, SIZE)), -math.inf)
            kept = drawn(free if within.isfinite().any() else rows[0][:SIZE].double(), words)
    return torch.nn.functional.pad(kept / kept.sum(), (0, len(rows[0]) - SIZE))


@pytest.mark.parametrize("local", SAMPLERS, ids=str)
@pytest.mark.parametrize("mixture", [None, tf.targets.ContextAware(0.5)])
def test_a_distribution_is_that_of_the_definition(local, mixture):
    """Masks, truncation, the budget, rows without any."""
    random = np.random.default_rng(4)
    automaton = masks(random)
    rows = torch.from_numpy(random.normal(size=(8, SIZE + 4)) * 3)
    rows[6] = float("nan")
    kinds = [(None, 30), ("many", 30), ("few", 30), ("many", 6), ("few", 6), ("few", 5), ("many", 5)]
    nodes = []
    for place in range(8):
        state, left = kinds[place % 7]
        auto = None if state is None else automaton
        nodes.append(Node([1], (), 1, auto, state, left, 0, place))
    sampler = MaskedSampler(local, SIZE, [0], mixture=mixture)
    second = list(rows.flip(1))
    for place, node in enumerate(nodes):
        both = [rows[place], second[place]]
        if place == 6:
            with pytest.raises(SamplingError):
                sampler.distribution(both, node)
            continue
        found, refused = sampler.distribution(both, node)
        assert float((found - defined(sampler, both, node)).abs().max()) < 1e-12
        assert found.sum() == pytest.approx(1.0, abs=1e-12) and 0.0 <= refused <= 1.0 + 1e-12


@pytest.mark.parametrize("local", SAMPLERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_host_and_device_draw_what_the_definition_says(local, dtype):
    random = np.random.default_rng(3)
    for trial in range(3):
        automaton = masks(random)
        rows = torch.from_numpy(random.normal(size=(9, SIZE + 4)) * random.choice([0.1, 1.0, 6.0])).to(dtype)
        kinds = [(None, 30), ("many", 30), ("few", 30), ("many", 6), ("few", 6), ("many", 5), ("few", 5)]
        nodes = []
        for place in range(9):
            state, left = kinds[place % 7][-2:]
            auto = None if state is None else automaton
            nodes.append(Node([1], (2,) * place, 1, auto, state, left, trial, place))
        sampler = MaskedSampler(local, SIZE, [])
        lazy = LazyDrawer().draw(sampler, [list(rows)], nodes)
        dense = DenseDrawer(MaskTable(SIZE, "cpu")).draw(sampler, [list(rows)], nodes)
        assert [one.token for one in lazy] == [one.token for one in dense]
        assert [one.logprob for one in lazy] == pytest.approx([one.logprob for one in dense], abs=1e-4)
        for row, node, one in zip(rows, nodes, lazy, strict=True):
            wide = row.double().numpy()[:SIZE]
            key = race_key(node.seed, node.sequence, node.position)
            want = by_definition(wide, node.automaton, node.state, node.remaining, local, key)
            assert one.error is None and one.token == want
            distribution = torch.log_softmax(row.double(), -1)
            assert one.logprob == pytest.approx(float(distribution[one.token]), abs=1e-4)


def test_a_row_that_gives_nothing_costs_itself():
    rows = torch.zeros(4, SIZE)
    rows[1], rows[2, 5] = -math.inf, math.nan
    nodes = [Node([1], (), 1, None, None, 30, 0, i) for i in range(4)]
    for local in (tf.Local(0.0), tf.Local(1.0)):
        sampler = MaskedSampler(local, SIZE, [])
        for drawer in (LazyDrawer(), DenseDrawer(MaskTable(SIZE, "cpu"))):
            got = drawer.draw(sampler, [list(rows)], nodes)
            assert [one.error is None for one in got] == [True, False, False, True]
            assert isinstance(got[1].error, SamplingError)


@pytest.mark.parametrize("local", [tf.Local(1.0), tf.Local(0.7, top_p=0.8)], ids=str)
def test_draws_have_the_distribution(local):
    """Chi-square of 20,000 draws; p > 0.001 is asked for."""
    random = np.random.default_rng(0)
    row = torch.from_numpy(np.full(SIZE, -9.0))
    row[torch.from_numpy(random.permutation(SIZE)[:12].copy())] = torch.from_numpy(random.normal(size=12))
    sampler, count = MaskedSampler(local, SIZE, []), 20_000
    nodes = [Node([1], (), 1, None, None, 30, 7, i) for i in range(count)]
    drawn = Counter(one.token for one in LazyDrawer().draw(sampler, [[row] * count], nodes))
    distribution = local.log_distribution(row[None])[0].exp().numpy()
    large = np.flatnonzero(distribution * count >= 5)
    rest = 1 - distribution[large].sum()
    seen = [drawn[int(t)] for t in large]
    expected = [*(distribution[large] * count), *([rest * count] if rest > 1e-9 else [])]
    seen += [count - sum(seen)] if rest > 1e-9 else []
    statistic = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True))
    freedom = len(expected) - 1  # Wilson and Hilferty's normal approximation of the chi-square distribution
    deviate = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert deviate < 3.1


def test_numbers_of_a_race_are_exponential_and_independent():
    """Mean, variance, tail, and the least of a block, over a million numbers."""
    tokens = np.arange(64 * BLOCK, dtype=np.int32)
    every = []
    for position in range(128):
        key = race_key(5, 0, position)
        least, leader = block_numbers(*key, np.arange(64, dtype=np.int32))
        numbers = token_numbers(*key, tokens, np.repeat(least, BLOCK), np.repeat(leader, BLOCK))
        assert np.array_equal(numbers.reshape(64, BLOCK).min(1), least)
        assert np.array_equal(numbers.reshape(64, BLOCK).argmin(1), leader)
        every.append(numbers)
    drawn = np.concatenate(every)
    assert drawn.mean() == pytest.approx(1, abs=0.005) and drawn.var() == pytest.approx(1, abs=0.02)
    for bound in (0.01, 0.5, 3.0, 9.0):
        share = math.exp(-bound)
        assert (drawn > bound).mean() == pytest.approx(
            share, abs=5 * math.sqrt(share * (1 - share) / len(drawn))
        )
    neighbours = np.corrcoef(drawn[:-1], drawn[1:])[0, 1]
    positions = np.corrcoef(np.stack(every))[np.triu_indices(128, 1)]
    assert abs(neighbours) < 0.005 and np.abs(positions).max() < 0.06


def test_equal_distributions_are_coupled_and_near_ones_mostly():
    """Between distributions of total variation 0.2, more than 1 - 2 TV / (1 + TV) of the draws are equal."""
    random = np.random.default_rng(1)
    size, count = 20_000, 400
    one = random.normal(size=size)
    other = one + random.normal(size=size) * 0.5
    p, q = (np.exp(x) / np.exp(x).sum() for x in (one, other))
    apart = 0.5 * np.abs(p - q).sum()
    assert 0.15 < apart < 0.25
    sampler = MaskedSampler(tf.Local(), size, [])
    nodes = [Node([1], (), 1, None, None, 30, 2, i) for i in range(count)]
    draws = [
        [d.token for d in LazyDrawer().draw(sampler, [[torch.from_numpy(x)] * count], nodes)]
        for x in (one, other)
    ]
    equal = np.mean([a == b for a, b in zip(*draws, strict=True)])
    assert equal > (1 - apart) / (1 + apart) - 0.1


def test_equal_seeds_of_different_prompts_are_separate_streams():
    assert stream_seed(1, [1, 2]) == stream_seed(1, [1, 2])
    assert len({stream_seed(s, p) for s in (0, 1) for p in ([1, 2], [2, 1], [1], [1, 2, 3])}) == 8


def test_an_inverse_never_draws_what_has_no_weight():
    """Also where a number just below 1 times the whole is rounded up to the whole."""
    edge = np.nextafter(1.0, 0.0)
    for weights in ([0.0, 0.1, 0.2, 0.0, 0.7, 0.0], [5e-324, 0.0], [0.0, 1e-300, 1e-300, 0.0], [1.0, 1e-30]):
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(weights))
        steps = cumulated(logs)
        drawn = invert(steps, np.array([0.0, 0.25, 0.5, 0.999, edge]))
        assert all(weights[place] > 0 for place in drawn.tolist())
        assert (np.diff(drawn) >= 0).all() and drawn[0] == next(i for i, w in enumerate(weights) if w)
        assert [pick(logs, u) for u in (0.0, 0.25, 0.5, 0.999, edge)] == drawn.tolist()
    assert cumulated(np.array([-np.inf, -np.inf])).tolist() == cumulated(np.zeros(0)).tolist() == [0.0]
    counts = np.bincount(invert(cumulated(np.log([1.0, 2.0, 5.0])), (np.arange(8000) + 0.5) / 8000))
    assert counts.tolist() == [1000, 2000, 5000]
