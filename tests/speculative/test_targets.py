"""Target transforms against their formulas, and on the backbone with a second model or prompt."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import Merge, NGram, Recycling
from tokenform.decoding.speculative.node import Node, mask_bits
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.targets import Anchored, ContextAware, Contrastive, Penalties, Safety
from tokenform.errors import OptionError, SamplingError

from .automata import EOS, record
from .models import model
from .plain import plain
from .running import decode
from .targets import Ban, Mask, Penalised, Target, Temperature, sampler

RNG = np.random.default_rng(0)
SCORES = np.log(np.array([0.4, 0.3, 0.2, 0.1]))


def distribution(*transforms, scores=SCORES, mixture=None, others=(), **node) -> np.ndarray:
    there = Node(node.pop("base", []), node.pop("path", ()), **node)
    return Target(transforms, mixture).distribution([scores, *others], there)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    top = scores.max()
    return scores - top - np.log(np.exp(scores - top).sum())


def divergence(log_p: np.ndarray, log_q: np.ndarray) -> float:
    return float((np.exp(log_p) * (log_p - log_q)).sum())


def anchored(radius: float, *rows: np.ndarray) -> np.ndarray:
    return Anchored(radius)([torch.from_numpy(row) for row in rows], Node([])).numpy()


def penalised(*options, **named) -> Penalised:
    return Penalised(Penalties(*options, **named))


def test_the_judges_themselves():
    assert distribution() == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert distribution(Temperature(0.5)) == pytest.approx(np.array([16, 9, 4, 1]) / 30)
    assert Target(greedy=True).distribution([SCORES], Node([])).tolist() == [1, 0, 0, 0]


def test_penalties_count_the_drafted_path():
    base, path = [0], (1, 1)
    got = distribution(penalised(frequency=1.0, presence=0.5), base=base, path=path, prompt_length=1)
    want = np.exp(SCORES - np.array([0, 2.5, 0, 0]))
    assert got == pytest.approx(want / want.sum())
    scores = np.array([2.0, -1.0, 1.0, 0.0])
    got = distribution(penalised(repetition=2.0), scores=scores, base=base, path=path, prompt_length=1)
    want = np.exp([1.0, -2.0, 1.0, 0.0])
    assert got == pytest.approx(want / want.sum())


def test_mixtures_follow_their_formulas():
    a, b = RNG.normal(size=4), RNG.normal(size=4)
    p, s = log_softmax(a), log_softmax(b)
    for mixture, scores in (
        (Contrastive(beta=0.7, alpha=0.0), 1.7 * p - 0.7 * s),
        (ContextAware(0.4), 1.4 * p - 0.4 * s),
        (Safety(0.25), np.log(0.75 * np.exp(p) + 0.25 * np.exp(s))),
    ):
        assert distribution(scores=a, mixture=mixture, others=(b,)) == pytest.approx(
            np.exp(log_softmax(scores))
        )
    cut = distribution(scores=a, mixture=Contrastive(alpha=1.0), others=(b,))
    assert cut == pytest.approx(np.eye(4)[int(np.argmax(a))])
    late = distribution(scores=a, mixture=Safety(1.0, tokens=2), others=(b,), base=[1, 2, 3])
    assert late == pytest.approx(np.exp(p))
    with pytest.raises(OptionError, match="mixes 2"):
        distribution(mixture=Safety())


def test_anchored_is_the_nearest_distribution_within_the_radius():
    for _ in range(20):
        a, b = RNG.normal(size=3) * 2, RNG.normal(size=3) * 2
        p, s = log_softmax(a), log_softmax(b)
        radius = 0.3 * divergence(p, s)
        got = log_softmax(anchored(radius, a, b))
        assert divergence(got, s) <= radius * (1 + 1e-9)
        for _ in range(300):
            other = log_softmax(np.log(RNG.dirichlet(np.ones(3)) + 1e-300))
            if divergence(other, s) <= radius:
                assert divergence(other, p) >= divergence(got, p) - 1e-9
    assert np.allclose(anchored(1e9, a, b), p)
    assert np.allclose(anchored(0.0, a, b), s)


def test_mask_takes_away_what_the_state_refuses():
    automaton = record()
    size = len(automaton.tokens)
    got = distribution(Mask(), scores=np.zeros(size + 3), automaton=automaton, state=automaton.start)
    allowed = automaton.allowed_tokens(automaton.start)
    assert np.flatnonzero(got).tolist() == allowed.tolist()
    assert not mask_bits(automaton.mask(automaton.start), 200)[size:].any()


def test_no_token_left_is_an_error():
    with pytest.raises(SamplingError):
        distribution(Ban([0, 1, 2, 3]))
    with pytest.raises(SamplingError):
        distribution(scores=np.array([0.0, np.nan]))


IMPOSSIBLE = [
    lambda: Penalties(repetition=0),
    lambda: Contrastive(-1),
    lambda: Anchored(-1),
]


@pytest.mark.parametrize("make", IMPOSSIBLE)
def test_impossible_options_are_refused(make):
    with pytest.raises(OptionError):
        make()


@pytest.mark.parametrize("mixture", [Contrastive(), ContextAware(), Safety(), Anchored(0.5)])
@pytest.mark.parametrize("second", ["prompt", "model"])
def test_mixtures_are_lossless_on_the_backbone(mixture, second):
    net = model("llama")
    other = net if second == "prompt" else model("gpt2", seed=4)
    backbone = Backbone(net)
    companion = backbone if second == "prompt" else Backbone(other)
    mixed = sampler(0.8, mixture=mixture, penalties=Penalties(1.2))
    asked = [
        Request(
            [3, 4, 3],
            mixed,
            automaton,
            max_tokens=10,
            eos=frozenset([EOS]),
            seed=9,
            number=i,
            companions=[(companion, [7, 8, 9, 7])],
        )
        for i, automaton in enumerate((None, record()))
    ]
    want = [plain(net, r, (other,)) for r in asked]
    got = decode(backbone, asked, Merge(NGram(), Recycling()))
    assert [o.tokens for o in got] == want and all(o.error is None for o in got)
    assert not backbone.sequences and not companion.sequences
