"""Any drafter, any batch, any policy: the text of plain decoding."""

from __future__ import annotations

import random
import warnings

import pytest

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.backbone.facts import cache_name
from tokenform.decoding.speculative.drafters import Forced, Merge, NGram, Suffix
from tokenform.decoding.speculative.policies import BestFirst, Controller, Fixed
from tokenform.decoding.speculative.request import Request

from .automata import EOS, record, word
from .models import ARCHITECTURES, VOCABULARY, model
from .plain import plain
from .running import decode
from .small_heads import random_heads
from .targets import sampler

GREEDY, WARM = sampler(0.0), sampler(0.7)


def prompts(n: int, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(1, 12) for _ in range(rng.randrange(1, 30))] for _ in range(n)]


def requests(n: int, automaton=None, sampler=GREEDY, tokens: int = 14, seed: int = 3) -> list[Request]:
    eos = frozenset([EOS])
    return [
        Request(p, sampler, automaton, max_tokens=tokens, eos=eos, seed=seed, number=i)
        for i, p in enumerate(prompts(n))
    ]


DRAFTERS = {
    "none": lambda: None,
    "ngram": NGram,
    "suffix": lambda: Suffix(remember=True),
    "forced": lambda: Forced(),
    "merge": lambda: Merge(Forced(), Suffix(), NGram()),
    "heads": lambda: random_heads(sequential=True),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("kind", ["free", "record", "word"])
def test_greedy_text_is_that_of_plain_decoding(name, kind):
    net = model(name)
    automaton = {"free": None, "record": record(), "word": word()}[kind]
    asked = requests(3, automaton)
    want = [plain(net, r) for r in asked]
    for drafter in DRAFTERS:
        got = decode(Backbone(net), asked, DRAFTERS[drafter]())
        assert [o.tokens for o in got] == want, drafter
        alone = decode(Backbone(net), asked[1:2], DRAFTERS[drafter]())
        assert alone[0].tokens == want[1], drafter


@pytest.mark.parametrize("kind", ["free", "record", "word"])
def test_the_same_seed_gives_the_same_text(kind):
    net = model("qwen3")
    automaton = {"free": None, "record": record(), "word": word()}[kind]
    asked = requests(6, automaton, WARM)
    want = [plain(net, r) for r in asked]
    assert len({tuple(w) for w in want}) > 3
    for drafter in DRAFTERS:
        assert [o.tokens for o in decode(Backbone(net), asked, DRAFTERS[drafter]())] == want, drafter


@pytest.mark.parametrize("policy", [Fixed(5, 2), BestFirst(6), Controller(16)])
def test_policies_change_nothing_but_the_work(policy):
    net = model("llama")
    for automaton in (None, record()):
        asked = requests(4, automaton)
        want = [plain(net, r) for r in asked]
        assert [o.tokens for o in decode(Backbone(net), asked, DRAFTERS["merge"](), policy=policy)] == want


@pytest.mark.parametrize("mode", ["chain", "plain"])
def test_lesser_modes_give_the_same_text(mode):
    net = model("llama")
    asked = requests(3, record())
    want = [plain(net, r) for r in asked]
    assert [o.tokens for o in decode(Backbone(net, mode), asked, DRAFTERS["merge"]())] == want


def test_forced_spans_save_forward_passes_and_reports_add_up():
    outputs = decode(Backbone(model("llama")), requests(4, record(), tokens=60), Forced())
    for o in outputs:
        r = o.report
        assert o.reason == "end" and r.tokens - len(o.tokens) in (0, 1)
        assert (
            r.accepted
            == sum(hit for _, hit in r.sources.values())
            == sum(hit for _, hit in r.depths.values())
        )
        assert r.drafted == sum(n for n, _ in r.sources.values())
        assert r.tokens == r.forwards + r.accepted
        assert r.tokens_per_forward > 1.3


class Broken:
    """Raises, or proposes what is not a tree of tokens."""

    def __init__(self, kind: str) -> None:
        self.kind = self.name = kind

    def session(self, context):
        if self.kind == "session":
            raise RuntimeError("no session")
        return self

    def propose(self, context, budget):
        from tokenform.decoding.speculative.tree import DraftTree

        if self.kind == "propose":
            raise RuntimeError("no draft")
        if self.kind == "type":
            return [1, 2]
        tree = DraftTree.chain([1, 2, 3])
        if self.kind == "token":
            tree.tokens[1] = VOCABULARY
        if self.kind == "parent":
            tree.parents[1] = 2
        if self.kind == "lengths":
            tree.depths.pop()
        return tree

    def observe(self, *_):
        if self.kind == "observe":
            raise RuntimeError("can't learn")

    def close(self):
        if self.kind == "close":
            raise RuntimeError("can't close")


@pytest.mark.parametrize(
    "kind", ["session", "propose", "type", "token", "parent", "lengths", "observe", "close"]
)
def test_a_broken_drafter_is_switched_off_and_the_text_goes_on(kind):
    net = model("gpt2")
    asked = requests(2)
    want = [plain(net, r) for r in asked]
    backbone = Backbone(net)
    with pytest.warns(UserWarning, match="switched off"):
        got = decode(backbone, asked, Merge(Broken(kind), NGram()))
    assert [o.tokens for o in got] == want
    assert all("switched off" in o.report.notes[0] for o in got)
    assert backbone.sequences == []


def test_out_of_memory_costs_drafts_then_the_batch_then_one_text(monkeypatch):
    net = model("llama")
    asked = requests(4)
    want = [plain(net, r) for r in asked]
    whole = net.forward
    backbone = Backbone(net)

    name = cache_name(net)

    def small(input_ids, logits_to_keep=0, **rest):
        if input_ids.shape[0] > 1 or (input_ids.shape[1] > 1 and rest[name].get_seq_length() > 32):
            raise MemoryError
        return whole(input_ids=input_ids, logits_to_keep=logits_to_keep, **rest)

    monkeypatch.setattr(net, "forward", small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = decode(backbone, asked, NGram())
    assert [o.tokens for o in got] == want
    assert not backbone.sequences

    monkeypatch.setattr(net, "forward", lambda *a, logits_to_keep=0, **k: 1 / 0)
    got = decode(backbone, asked[:1], NGram())
    assert got[0].reason == "error" and "ZeroDivisionError" in str(got[0].error)
    assert not backbone.sequences


def test_a_sampler_that_raises_ends_its_own_text_alone():
    good = requests(3)

    def broken(text, logits):
        if text[: len(good[1].prompt)] == good[1].prompt and len(text) == len(good[1].prompt) + 3:
            raise ValueError("a broken transform")
        return logits

    net = model("llama")
    bad = MaskedSampler(tf.Local(0.0), VOCABULARY, [EOS], [broken])
    got = decode(Backbone(net), requests(3, sampler=bad), NGram())
    assert got[1].reason == "error" and len(got[1].tokens) == 3
    assert [got[i].tokens for i in (0, 2)] == [plain(net, good[i]) for i in (0, 2)]


def test_texts_may_join_and_leave_at_any_time():
    from tokenform.decoding.speculative.speculator import Speculator

    net = model("mistral")
    asked = requests(4)
    backbone = Backbone(net)
    speculator = Speculator(backbone, Suffix())
    first = [speculator.add(r) for r in asked[:2]]
    outputs = [speculator.output(n) for n in first]
    speculator.step()
    outputs += [speculator.output(speculator.add(r)) for r in asked[2:]]
    speculator.step()
    assert speculator.cancel(first[0]).reason == "cancelled"
    while speculator.active:
        speculator.step()
    for o, r in zip(outputs[1:], asked[1:], strict=True):
        assert o.tokens == plain(net, r)
    assert backbone.sequences == []
