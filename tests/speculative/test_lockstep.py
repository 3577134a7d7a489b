"""Sequences of a batch draft in lockstep: they share the passes of the drafters' models, and nothing else."""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import (
    Budget,
    Context,
    DraftModel,
    Forced,
    Merge,
    VocabularyMap,
)
from tokenform.decoding.speculative.drafting import Ask, together
from tokenform.decoding.speculative.live import Live
from tokenform.decoding.speculative.policies import Fixed
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.speculator import Speculator
from tokenform.decoding.speculative.tree import DraftTree

from .automata import EOS, record, vocabulary
from .models import model
from .plain import plain
from .running import decode
from .targets import sampler

BATCH = 8


def small() -> Any:
    return model("llama", seed=1, layers=1)


def other_vocabulary(retokenise: bool) -> VocabularyMap:
    """The test vocabulary in another order, one of its pieces missing."""
    tokens = vocabulary()
    draft = tokens[::-1]
    draft[5] = b""
    return VocabularyMap(tokens, draft, retokenise)


CASES: dict[str, Any] = {
    "matched": lambda: DraftModel(small(), tokens=4),
    "matched, chains": lambda: DraftModel(Backbone(small(), "chain"), tokens=3),
    "shared": lambda: DraftModel(small(), tokens=3, vocabulary=other_vocabulary(False)),
    "retokenised": lambda: DraftModel(small(), tokens=3, vocabulary=other_vocabulary(True)),
}
PASSES = [name for name in CASES if "chains" not in name]  # a model that takes no trees runs one by one


def requests(constrained: bool = False, tokens: int = 12, count: int = BATCH) -> list[Request]:
    """Prompts of several lengths."""
    automaton, warm = record() if constrained else None, sampler(0.7)
    eos = frozenset([EOS]) if constrained else frozenset()
    return [
        Request(
            [*[5, 6, 7, 5, 8][: 1 + i % 5], i + 1], warm, automaton,
            max_tokens=tokens, eos=eos, seed=3, number=i,
        )
        for i in range(count)
    ]  # fmt: skip


@pytest.fixture
def drafts(monkeypatch) -> dict[tuple[int, int], tuple[list[int], list[int]]]:
    """The tree of each sequence and position."""
    found, take = {}, Live.take

    def kept(live, draft, keep):
        take(live, draft, keep)
        found[live.request.number, len(live.text)] = live.tree.tokens, live.tree.parents

    monkeypatch.setattr(Live, "take", kept)
    return found


class Passes:
    """Counts the calls of a model's `forward`, views of it included, and may refuse one.

    Args:
        refused: token ids -> whether memory runs out.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, net: Any, refused: Any = None) -> None:
        self.count, whole = 0, type(net).forward

        @functools.wraps(whole)
        def forward(this: Any, *arguments: Any, **named: Any) -> Any:
            if this.model.embed_tokens is net.model.embed_tokens:
                self.count += 1
                if refused is not None and refused(named.get("input_ids", next(iter(arguments), None))):
                    raise torch.OutOfMemoryError("no memory")
            return whole(this, *arguments, **named)

        monkeypatch.setattr(type(net), "forward", forward)


def once(drafter: Any) -> Any:
    """Asked at the root alone: how it goes on depends on what all sequences of the drafter have accepted."""
    return Merge(drafter, rounds=1)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_drafts_and_texts_of_a_batch_are_those_of_each_sequence_alone(name, constrained, drafts):
    make = CASES[name]
    net, asked = model("qwen3"), requests(constrained)
    texts = [o.tokens for o in decode(Backbone(net), asked, once(make()))]
    whole = dict(drafts)
    drafts.clear()
    for one, text in zip(asked, texts, strict=True):
        assert decode(Backbone(net), [one], once(make()))[0].tokens == text
    assert whole == drafts and any(tokens for tokens, _ in whole.values())


@pytest.mark.parametrize("name", PASSES)
def test_a_batch_makes_as_many_passes_as_its_longest_draft(name, monkeypatch):
    make = CASES[name]
    net = model("qwen3")
    passes = Passes(monkeypatch, small())

    def count(asked: list[Request]) -> int:
        drafter, before = make(), passes.count
        decode(Backbone(net), asked, drafter)
        assert drafter.forwards == passes.count - before
        return drafter.forwards

    single = [count([one]) for one in requests()]
    assert min(single) > 5
    assert count(requests()) <= 1.5 * max(single) < 0.3 * sum(single)


def test_drafters_of_one_model_share_its_passes():
    second = Backbone(small())
    asked = requests()
    for one in asked:
        one.drafter = DraftModel(second, tokens=4)
    together_ = [o.tokens for o in decode(Backbone(model("qwen3")), asked)]
    shared, second.counters.forwards = second.counters.forwards, 0
    assert [decode(Backbone(model("qwen3")), [one])[0].tokens for one in asked] == together_
    assert shared < 0.4 * second.counters.forwards


def test_sources_in_one_tree_share_passes_too():
    net, asked = model("mistral"), requests(constrained=True)
    drafter = DraftModel(small(), tokens=3)
    sources = Merge(Forced(), drafter)
    got = decode(Backbone(net), asked, sources)
    assert [o.tokens for o in got] == [plain(net, one) for one in asked]
    assert {"model", "forced"} <= {name for o in got for name in o.report.sources}
    assert drafter.sequences == 0


@pytest.mark.parametrize("name", ["matched", "retokenised"])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_shared_pass_that_fails_is_made_again_in_halves(name, after, monkeypatch):
    """Batches of more than two don't fit: the texts stay, and nobody's drafter is switched off."""
    make = CASES[name]
    net, asked, seen = model("qwen3"), requests(count=5), 0
    want = [plain(net, one) for one in asked]

    def refused(ids: torch.Tensor) -> bool:
        nonlocal seen
        seen += 1
        return seen > after and ids.shape[0] > 2

    Passes(monkeypatch, small(), refused)
    backbone, drafter = Backbone(net), make()
    got = decode(backbone, asked, drafter)
    assert [o.tokens for o in got] == want
    assert not any("switched off" in note for o in got for note in o.report.notes)
    assert backbone.sequences == [] and sum(o.report.drafted for o in got) > 0


@pytest.mark.parametrize("name", ["matched", "matched, chains"])
def test_a_sequence_whose_passes_fail_loses_its_drafter_alone(name, monkeypatch):
    make = CASES[name]
    net, bad, asked = model("qwen3"), 50, requests(count=5)
    for one in asked:
        one.sampler = sampler(banned=[bad])
    asked[2].prompt = [3, bad, 4]
    want = [plain(net, one) for one in asked]
    Passes(monkeypatch, small(), lambda ids: bool((ids == bad).any()))
    backbone, drafter = Backbone(net), make()
    with pytest.warns(UserWarning, match="switched off"):
        got = decode(backbone, asked, drafter)
    assert [o.tokens for o in got] == want
    off = [any("switched off" in note for note in o.report.notes) for o in got]
    assert off == [i == 2 for i in range(5)] and [o.report.drafted > 0 for o in got] == [not x for x in off]
    assert backbone.sequences == [] and drafter.sequences == 0


@pytest.mark.parametrize("name", list(CASES))
def test_a_model_that_fails_for_good_leaves_plain_decoding(name, monkeypatch):
    make = CASES[name]
    net, asked = model("qwen3"), requests(constrained=True, count=3)
    for one in asked:
        one.sampler = sampler(0.0)
    want = [plain(net, one) for one in asked]
    Passes(monkeypatch, small(), lambda ids: True)
    backbone, drafter = Backbone(net), make()
    with pytest.warns(UserWarning, match="switched off"):
        got = decode(backbone, asked, drafter)
    assert [o.tokens for o in got] == want
    assert all(len(o.report.notes) == 1 and o.report.drafted == 0 for o in got)
    assert backbone.sequences == [] and drafter.sequences == 0


@pytest.mark.parametrize("mode", ["chain", "plain"])
def test_a_batch_that_fails_in_its_second_pass_is_as_it_was(mode, monkeypatch):
    net = small()
    backbone = Backbone(net, mode)
    trees = {backbone.open([i, 7]): DraftTree.chain([3, 4] if mode == "chain" else []) for i in (1, 2, 3)}
    want = backbone.score(trees)
    for seq in list(trees):
        backbone.drop(seq)
    again = {backbone.open([i, 7]): tree for i, tree in enumerate(trees.values(), 1)}
    backbone.padded = False  # so that one that has been run already goes apart from the others
    first = next(iter(again))
    backbone.score({first: DraftTree()})
    with monkeypatch.context() as patch:
        Passes(patch, net, lambda ids: int(ids[-1, 0]) == 3)
        with pytest.raises(torch.OutOfMemoryError):
            backbone.score(again)
    for old, (seq, tree) in zip(trees, again.items(), strict=True):
        assert torch.allclose(backbone.score({seq: tree})[seq], want[old], rtol=0, atol=1e-10)


def test_a_drafting_that_raises_closes_the_others_and_goes_to_the_caller():
    closed = []

    def waiting():
        try:
            yield Ask(backbone, seq, DraftTree())
        finally:
            closed.append(True)
        return DraftTree()

    def broken():
        yield Ask(backbone, other, DraftTree())
        raise ValueError("a draft")

    backbone = Backbone(small())
    seq, other = backbone.open([1]), backbone.open([2])
    with pytest.raises(ValueError, match="a draft"):
        together([broken(), waiting()])
    assert closed == [True]


def test_a_shared_pass_costs_each_sequence_its_share(monkeypatch):
    pause, net = 0.05, small()

    def work(ids):  # costs on a CPU are the thread's own seconds
        end = time.thread_time() + pause
        while time.thread_time() < end:
            pass

    Passes(monkeypatch, net, work)
    costs, drafting = [], []
    for count in (1, BATCH):
        drafter = DraftModel(net, tokens=3)
        speculator = Speculator(Backbone(model("qwen3")), drafter)
        for one in requests(tokens=5, count=count):
            speculator.add(one)
        outputs = [live.output for live in speculator._live.values()]
        began, passes = time.perf_counter(), drafter.forwards
        while speculator.active:
            speculator.step()
        costs.append(drafter.cost.seconds)
        spent = sum(o.report.seconds_draft for o in outputs)
        drafting.append(spent / ((drafter.forwards - passes) * pause))
        assert spent <= time.perf_counter() - began
    assert pause <= costs[0] and costs[1] < 0.6 * costs[0]
    assert all(share >= 1.0 for share in drafting)


def test_a_price_that_keeps_all_from_being_drafted_is_forgotten():
    for drafter in (DraftModel(small(), tokens=3), DraftModel(small(), vocabulary=other_vocabulary(True))):
        backbone = Backbone(model("qwen3"))
        there = Context([1, 2], 2, vocabulary_size=backbone.vocabulary_size)
        there.sampler = sampler(0.0)
        session, drafter.cost.seconds = drafter.session(there), 2.0
        budget = Budget(8, stop=lambda confidence, cumulative, seconds: seconds > 1.0)
        asked = 0
        while not len(session.propose(there, budget)):
            asked += 1
        assert 100 < asked < 1000 and drafter.forwards > 0


def test_threads_that_share_models_write_the_texts_of_one():
    """Each call has a cache of its own, of the draft model too."""
    net = model("qwen3")
    drafter = DraftModel(small(), tokens=3)
    own = [Request([3, 4, i], sampler(0.0), max_tokens=24) for i in range(9)]
    want = [plain(net, one) for one in own]

    def write(one: Request) -> Any:
        return decode(Backbone(net), [one], drafter, Fixed(8))[0]

    with ThreadPoolExecutor(3) as pool:
        got = list(pool.map(write, own))
    assert [o.tokens for o in got] == want
    assert not any(o.report.notes for o in got) and all(o.report.drafted for o in got)
