"""Texts of a model follow the model's own distribution, drawn many times; the masked sampler and the plot."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tokenform.cli.speculation_report import plot
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import DraftModel, Forced, Merge, Recycling, Suffix
from tokenform.decoding.speculative.node import Node
from tokenform.decoding.speculative.request import Report, Request
from tokenform.errors import OptionError

from .automata import EOS, Patterned, vocabulary
from .models import model
from .plain import plain
from .running import decode
from .small_heads import random_heads
from .targets import sampler

LETTERS = b"abc"
PROMPT = [5, 9]
LENGTH = 3


def automaton() -> Patterned:
    """Three letters."""
    return Patterned([(frozenset(LETTERS), 1)] * LENGTH)


def whole_distribution(net) -> dict[tuple[int, ...], float]:
    """text -> probability under local masking, by the model's own forward passes."""
    ids = [vocabulary().index(bytes([c])) for c in LETTERS]
    distribution = {}
    for text in itertools.product(ids, repeat=LENGTH):
        with torch.inference_mode():
            rows = net(torch.tensor([[*PROMPT, *text]])).logits[0, len(PROMPT) - 1 : -1][:, ids]
        chances = torch.softmax(rows, -1)
        distribution[text] = float(torch.stack([chances[i, ids.index(t)] for i, t in enumerate(text)]).prod())
    return distribution


def draws(net, count: int, drafter) -> dict[tuple[int, ...], int]:
    backbone, auto_ = Backbone(net, share=64), automaton()
    got: dict[tuple[int, ...], int] = {}
    for start in range(0, count, 64):
        asked = [
            Request(PROMPT, sampler(), auto_, max_tokens=8, eos=frozenset([EOS]), seed=11, number=start + i)
            for i in range(min(64, count - start))
        ]
        for output in decode(backbone, asked, drafter):
            assert output.reason == "end"
            key = tuple(output.tokens)
            got[key] = got.get(key, 0) + 1
    return got


DRAFTERS = {
    "looks up": lambda: Merge(Suffix(), Recycling()),
    "model": lambda: DraftModel(model("llama", seed=8, layers=1), 2),
    "heads": lambda: random_heads(sequential=True),
}


def p_value(net, count: int, drafter: str) -> float:
    distribution = whole_distribution(net)
    got = draws(net, count, DRAFTERS[drafter]())
    assert set(got) <= set(distribution)
    keys = sorted(distribution)
    want = np.array([distribution[k] for k in keys])
    want *= count / want.sum()
    squares = float(((np.array([got.get(k, 0) for k in keys]) - want) ** 2 / want).sum())
    freedom = torch.tensor((len(keys) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, torch.tensor(squares / 2, dtype=torch.float64)))


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_a_few_draws_follow_the_distribution(drafter):
    net = model("llama", layers=1, seed=2)
    assert p_value(net, 640, drafter) > 0.001


MANY = 86_016
"""Draws that tell a distribution at a total variation of 0.015 from the target in 999 cases of 1,000.

There are 27 texts, so 26 degrees of freedom; at 0.01 / 2 the statistic may be 48.3.  With N draws of
probabilities p + d it is noncentral by N·sum(d²/p) >= 4·N·TV² (Cauchy-Schwarz), and 77.3 is needed for a
power of 0.999: N = 77.3 / (4·0.015²) = 85,890, here in whole batches of 64.
"""


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_many_draws_follow_the_distribution(drafter):
    net = model("llama", layers=1, seed=2)
    found = p_value(net, MANY, drafter)
    print(f"{drafter}: p = {found:.3f}")
    assert found > 0.01 / len(DRAFTERS)


def test_the_masked_sampler_keeps_texts_within_the_budget_and_says_its_distribution():
    auto_ = Patterned([(frozenset(b"ab"), 3), b"xyz"])
    net, size = model("qwen3"), len(vocabulary())
    drawn = sampler()
    tight = [
        Request([3], drawn, auto_, max_tokens=4, eos=frozenset([EOS]), seed=1, number=i) for i in range(6)
    ]
    want = [plain(net, r) for r in tight]
    got = decode(Backbone(net), tight, Forced())
    assert [o.tokens for o in got] == want
    assert all(auto_.is_accepting(o.state) for o in got)
    state = auto_.advance(auto_.start, vocabulary().index(b"a"))
    logits = [torch.zeros(size + 2, dtype=torch.float64)]
    nodes = [Node([3], (), 1, auto_, state, remaining=remaining) for remaining in (3, 9)]
    distribution, loose = (drawn.distribution(logits, node)[0].numpy() for node in nodes)
    letters = {bytes([c]): distribution[vocabulary().index(bytes([c]))] for c in b"abx"}
    assert letters == {b"a": 0.0, b"b": 0.0, b"x": 1.0}
    assert loose.sum() == pytest.approx(1)
    assert np.count_nonzero(loose) == len(auto_.allowed_tokens(state))


def test_a_report_is_plotted(tmp_path):
    pytest.importorskip("matplotlib")
    net = model("llama")
    output = decode(Backbone(net), [Request([1, 2], sampler(0.0), max_tokens=30)], Suffix())[0]
    plot(output.report, tmp_path / "report.svg")
    assert (
        b"tokens per forward" in (tmp_path / "report.svg").read_bytes()
        or (tmp_path / "report.svg").stat().st_size > 9000
    )
    with pytest.raises(OptionError, match="nothing to plot"):
        plot(Report(), tmp_path / "none.svg")
