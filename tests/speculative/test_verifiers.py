"""Each verifier returns the target's distribution exactly: every outcome is enumerated with its
probability."""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tokenform.decoding.speculative.drafters.drawing import draw_paths, draw_tree
from tokenform.decoding.speculative.drafting import alone
from tokenform.decoding.speculative.node_draws import Sample
from tokenform.decoding.speculative.tree import ROOT, DraftTree
from tokenform.decoding.speculative.verifiers import (
    BestPath,
    BlockRule,
    Coins,
    Forest,
    KSeq,
    Recursive,
    SampleAndMatch,
    TokenRule,
    Traversal,
)
from tokenform.errors import DrafterError

BOUND = 1e-12


class Enumerated:
    """A choice that follows a script, and extends it by first outcomes."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.at, self.probability = script, 0, 1.0
        self.options: list[list[float]] = []

    def _choose(self, options: list[float]) -> int:
        if self.at == len(self.script):
            self.script.append(next(i for i, p in enumerate(options) if p > 0))
        taken = self.script[self.at]
        self.options.append(options)
        self.probability *= options[taken]
        self.at += 1
        return taken

    def accept(self, probability: float) -> bool:
        chance = min(max(float(probability), 0.0), 1.0)
        return bool(self._choose([1 - chance, chance]))

    def draw(self, distribution: np.ndarray) -> int:
        return self._choose([float(x) for x in distribution / distribution.sum()])


def enumerate_outcomes(run: Callable[[Enumerated], tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """outcome -> probability, over every sequence of choices of positive probability."""
    distribution: dict[tuple[int, ...], float] = defaultdict(float)
    script: list[int] = []
    while True:
        choice = Enumerated(script)
        distribution[run(choice)] += choice.probability
        while script:
            options = choice.options[len(script) - 1]
            following = next((i for i in range(script[-1] + 1, len(options)) if options[i] > 0), None)
            if following is not None:
                script[-1] = following
                break
            script.pop()
        if not script:
            return distribution


class Distributions:
    """Random distributions at every path, some tokens masked; equal paths have equal distributions."""

    def __init__(self, rng: np.random.Generator, vocabulary: int, masked: bool, sharp: float = 1.0) -> None:
        self.rng, self.v, self.masked, self.sharp = rng, vocabulary, masked, sharp
        self.known: dict[tuple[int, ...], np.ndarray] = {}

    def __call__(self, path) -> np.ndarray:
        key = tuple(path)
        if key not in self.known:
            distribution = self.rng.random(self.v) ** self.sharp
            if self.masked:
                distribution[self.rng.random(self.v) < 0.35] = 0.0
                if not distribution.any():
                    distribution[self.rng.integers(self.v)] = 1.0
            self.known[key] = distribution / distribution.sum()
        return self.known[key]


def at(distributions: Distributions, choice: Enumerated):
    """Draws of a drafter that needs no pass, by the enumerated choice."""

    def given(tree, wanted, apart):
        yield from ()
        samples = []
        for node, count in wanted:
            distribution = distributions(tree.path(node) if node >= 0 else [])
            rest, tokens = distribution.copy(), []
            for _ in range(min(count, np.count_nonzero(distribution)) if apart else count):
                tokens.append(choice.draw(rest))
                rest[tokens[-1]] *= not apart
            samples.append(Sample(distribution, tokens, [float(distribution[t]) for t in tokens]))
        return samples

    return given


def verify(rule, tree: DraftTree, distributions: Distributions, choice: Enumerated) -> list[int]:
    """The committed tokens: the accepted path, then one more."""
    nodes = range(ROOT, len(tree))
    if not rule.drawn:
        return rule.follow(tree, lambda node: choice.draw(distributions(tree.path(node))))
    rule.check(tree)
    forest = Forest([tree], torch.device("cpu"))
    q = [torch.as_tensor(distribution) for distribution in forest.distributions]
    p = torch.stack([torch.as_tensor(distributions(tree.path(node))) for node in nodes])
    weights = rule.weigh(forest, p, torch.stack(q) if q else p[:0])
    node = rule.stop(tree, Coins(weights.chance.tolist(), weights.lean.tolist()), choice)
    return [*tree.path(node), choice.draw(weights.final[node + 1].numpy())]


def remembered(rule):
    """The rule, which weighs equal trees once."""
    known, weigh = {}, getattr(rule, "weigh", None)

    def once(forest, p, q):
        (tree,) = forest.trees
        key = (*tree.tokens, *tree.parents, str(tree.paths))
        if key not in known:
            known[key] = weigh(forest, p, q)
        return known[key]

    if weigh is not None:
        rule.weigh = once
    return rule


def distance(verifier, draft, p: Distributions, depth: int) -> tuple[float, float]:
    """(total variation of the first `depth + 1` tokens from the target, mean number of committed tokens)."""

    verifier = remembered(copy.copy(verifier))

    def run(choice: Enumerated) -> tuple[int, ...]:
        tree = draft(choice)
        return tuple(verify(verifier, tree, p, choice))

    length = depth + 1
    committed = enumerate_outcomes(run)
    got: dict[tuple[int, ...], float] = defaultdict(float)
    for tokens, probability in committed.items():
        assert 1 <= len(tokens) <= length
        for rest in itertools.product(range(p.v), repeat=length - len(tokens)):
            whole = tokens + rest
            chance = probability
            for i in range(len(tokens), length):
                chance *= p(whole[:i])[whole[i]]
            got[whole] += chance
    total = 0.0
    for text in itertools.product(range(p.v), repeat=length):
        want = float(np.prod([p(text[:i])[text[i]] for i in range(length)]))
        total += abs(got[text] - want)
    return total / 2, sum(len(t) * c for t, c in committed.items())


PATHS = {TokenRule: (1,), BlockRule: (1,), KSeq: (1, 2, 3), BestPath: (1, 2, 3)}
TREES = {Recursive: [(1, 1), (2, 1), (3, 2)], Traversal: [(1, 1), (2, 1), (3, 2), (1, 2, 1)]}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("rule", "paths", "vocabulary", "depth"),
    [
        pytest.param(rule, k, v, d, marks=[pytest.mark.slow] if (v**d) ** k > 60 else [])
        for rule, counts in PATHS.items()
        for k in counts
        for v, d in ((2, 1), (2, 3), (3, 2), (4, 1), (4, 2), (4, 3))
        if (v**d) ** k <= 1000
    ],
)
def test_rules_for_drawn_paths_keep_the_distribution(rule, paths, vocabulary, depth, masked):
    rng = np.random.default_rng([paths, vocabulary, depth, masked])
    for sharp in (1.0, 4.0):
        p, q = Distributions(rng, vocabulary, masked, sharp), Distributions(rng, vocabulary, masked)
        tv, _ = distance(rule(), lambda choice, q=q: alone(draw_paths(at(q, choice), paths, depth)), p, depth)
        assert tv <= BOUND


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("rule", "widths"), [(rule, w) for rule, shapes in TREES.items() for w in shapes])
def test_rules_for_drawn_trees_keep_the_distribution(rule, widths, masked):
    rng = np.random.default_rng([*widths, masked])
    for vocabulary in (3, 4) if len(widths) == 2 and widths != (3, 2) else (3,):
        p, q = Distributions(rng, vocabulary, masked, 3.0), Distributions(rng, vocabulary, masked)
        tv, _ = distance(rule(), lambda choice, q=q: alone(draw_tree(at(q, choice), widths)), p, len(widths))
        assert tv <= BOUND


@pytest.mark.parametrize("masked", [False, True])
def test_sample_and_match_keeps_the_distribution_whatever_was_drafted(masked):
    rng = np.random.default_rng(5)
    p = Distributions(rng, 3, masked)
    tree = DraftTree()
    for path in ([0, 1], [0, 2], [2, 2], [1]):
        tree.add_path(ROOT, path)
    tv, _ = distance(SampleAndMatch(), lambda choice: tree, p, 2)
    assert tv <= BOUND


def mean_committed(rule, draft, trials: int = 6) -> float:
    total = 0.0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        p, q = Distributions(rng, 3, False, 2.0), Distributions(rng, 3, False, 2.0)
        total += distance(rule, lambda choice, q=q: draft(q, choice), p, 2)[1]
    return total / trials


def test_stronger_rules_commit_more():
    token = mean_committed(TokenRule(), lambda q, c: alone(draw_paths(at(q, c), 1, 2)))
    block = mean_committed(BlockRule(), lambda q, c: alone(draw_paths(at(q, c), 1, 2)))
    two = mean_committed(BestPath(), lambda q, c: alone(draw_paths(at(q, c), 2, 2)))
    recursive = mean_committed(Recursive(), lambda q, c: alone(draw_tree(at(q, c), (2, 1))))
    traversal = mean_committed(Traversal(), lambda q, c: alone(draw_tree(at(q, c), (2, 1))))
    assert token < block < two
    assert token < recursive < traversal


def test_traversal_of_a_chain_is_block_verification():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p, q = Distributions(rng, 3, True), Distributions(rng, 3, False)
        chain = distance(Traversal(), lambda choice, q=q: alone(draw_tree(at(q, choice), (1, 1))), p, 2)[1]
        block = distance(BlockRule(), lambda choice, q=q: alone(draw_paths(at(q, choice), 1, 2)), p, 2)[1]
        assert chain == pytest.approx(block, abs=1e-12)


def test_rules_for_drawn_drafts_refuse_drafts_that_were_looked_up():
    p = Distributions(np.random.default_rng(0), 3, False)
    for rule in (TokenRule, BlockRule, KSeq, Recursive, Traversal, BestPath):
        with pytest.raises(DrafterError, match="draw"):
            distance(rule(), lambda choice: DraftTree.chain([0, 1]), p, 2)
