"""Where a mask allows few tokens and nobody asks for log-probabilities, only these tokens' logits are made:
the same texts, the same numbers, and a whole head wherever anything else is looked at."""

from __future__ import annotations

import dataclasses
import functools
import json
import math

import numpy as np
import pytest
import torch
import transformers as hf

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.draws.lazy import LazyDrawer
from tokenform.decoding.scheduler import Scheduler
from tokenform.decoding.speculative.backbone import Backbone, head
from tokenform.decoding.speculative.drafters import Forced, Merge, Recycling, Suffix, auto
from tokenform.decoding.speculative.drafters.base import Seen
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.node import Node
from tokenform.decoding.speculative.policies import Controller
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.scores import Listed, Scores
from tokenform.decoding.speculative.speculator import Speculator
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.errors import InvalidState, LimitExceeded, ModelError

from .models import ARCHITECTURES, model
from .running import decode
from .test_engine import EOS, TOKENS, constraint, requests

LOCALS = {
    "greedy": tf.Local(temperature=0.0),
    "drawn": tf.Local(temperature=0.7),
    "top-p": tf.Local(temperature=0.7, top_p=0.8),
    "top-k": tf.Local(temperature=1.0, top_k=2),
    "min-p": tf.Local(temperature=1.3, min_p=0.2),
}
DRAFTERS = {
    "none": lambda: None,
    "auto": lambda: auto(),
    "looks": lambda: Merge(Forced(), Recycling()),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small vocabularies are sliced too, a third of them at most."""
    monkeypatch.setattr(head, "_SLICED", 1)
    monkeypatch.setattr(head, "_PART", 3)
    monkeypatch.setattr(head, "_SHARE", 3)


@pytest.fixture
def columns(monkeypatch) -> list[int]:
    """How many logits each call of the head made: whole rows, and below zero those at listed tokens."""
    made: list[int] = []
    whole, later = head._Packed.logits, head._made

    def logits(self, rows):
        made.append(len(rows) * len(TOKENS))
        return whole(self, rows)

    def part(packed, wanted):
        scores = later(packed, wanted)
        made.append(-sum(len(one.ids) for one in scores._listed.values()))
        return scores

    monkeypatch.setattr(head._Packed, "logits", logits)
    monkeypatch.setattr(head, "_made", part)
    return made


def asked(local, count: int = 2, logprobs: bool = False, tokens: int = 40) -> list[Request]:
    found = []
    for number in range(count):
        kind = ("schema", "choice", "regex")[number % 3]
        one = requests(kind, local, tokens)[number % 2]
        found.append(dataclasses.replace(one, logprobs=logprobs, number=number))
    sampler = found[0].sampler  # one for all, so that they are drawn together
    return [dataclasses.replace(one, sampler=sampler) for one in found]


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("local", LOCALS)
@pytest.mark.parametrize("batch", [1, 16])
def test_texts_are_those_of_the_whole_head(drafter, local, batch, columns):
    net = model("llama", vocabulary=len(TOKENS))
    texts, counts = [], []
    for logprobs in (True, False):
        columns.clear()
        want = asked(LOCALS[local], batch, logprobs)
        outputs = decode(Backbone(net), want, DRAFTERS[drafter](), policy=Controller())
        assert all(one.error is None for one in outputs)
        texts.append([(one.tokens, one.reason, one.state) for one in outputs])
        counts.append(sum(count for count in columns if count < 0))
        for one in outputs:
            assert len(one.token_logprobs) == len(one.tokens) * logprobs
            assert math.isnan(one.logprob) is not logprobs
    assert texts[0] == texts[1]
    assert counts[0] == 0 and (counts[1] < 0) is (drafter != "looks")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_most_of_the_head_is_left_out(name, columns):
    """Greedy choices, whose masks have a few tokens each: everything but the first pass is a part."""
    net = model(name, vocabulary=len(TOKENS))
    one = dataclasses.replace(
        requests("choice", tf.Local(temperature=0.0, values="token"))[0], logprobs=False
    )
    speculator = Speculator(Backbone(net))
    speculator.add(one)
    made = []
    while speculator.active:
        columns.clear()
        speculator.step()
        made.append(sum(map(abs, columns)))
    assert made[0] >= len(TOKENS) and len(made) > 1  # it tries the model
    assert all(count < 20 for count in made[1:])


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
def test_listed_logits_are_those_of_the_whole_head(kind):
    net = model("llama", seed=3, vocabulary=len(TOKENS))
    net = net if kind == torch.float64 else model("qwen3", seed=5, vocabulary=len(TOKENS)).float()
    backbone = Backbone(net)
    seqs = [backbone.open([5, 6, 7 + i]) for i in range(5)]
    lists = [np.array(ids, np.int64) for ids in ([4], [1, 9, 266], [], [7, 8, 9])]
    for turn in range(3):
        trees = {seq: DraftTree.chain([9, 8][: i % 3]) for i, seq in enumerate(seqs)}
        wanted = {
            seq: [lists[(i + node) % 4] if (i + node) % 5 else None for node in range(len(trees[seq]) + 1)]
            for i, seq in enumerate(seqs[:-1])
        }
        scored = backbone.score_listed(trees, wanted)
        plain = Backbone(net)
        for i, seq in enumerate(seqs):
            other = plain.open(backbone.tokens(seq))
            want, got = plain.score({other: trees[seq]})[other], scored[seq]
            whole = got.whole() if isinstance(got, Scores) else got
            exact = {"rtol": 0, "atol": 1e-12 if kind == torch.float64 else 1e-4}
            assert len(got) == len(want) and torch.allclose(whole, want, **exact)
            listed = [isinstance(got[row], Listed) for row in range(len(got))]
            asked_for = [ids is not None for ids in wanted.get(seq, [None] * len(got))]
            assert listed == [one and turn > 0 for one in asked_for]
            for row, ids in enumerate(wanted.get(seq, ())):
                if listed[row]:
                    assert np.allclose(got[row][ids], want[row][ids].numpy(), **exact)
                else:
                    assert torch.allclose(got[row], want[row], **exact)
            backbone.commit(seq, [*trees[seq].tokens, 3 + i] if i % 2 else [3 + turn])
    if kind == torch.float32:
        net.double()


def test_what_is_not_listed_is_refused():
    row = Listed(np.array([2, 5, 9]), np.array([0.5, -1.0, 3.0]), 12)
    assert row[5] == -1.0 and row.shape == (12,)
    assert row[np.array([9, 2])].tolist() == [3.0, 0.5]
    for tokens in (4, 11, 0, np.array([2, 3])):
        with pytest.raises(InvalidState):
            row[tokens]
    with pytest.raises(InvalidState):
        Listed(np.empty(0, np.int64), np.empty(0), 12)[3]


def test_a_sequence_goes_on_from_rows_that_are_not_known_whole():
    """The root after a draft that was committed as a whole is computed again where it is asked for."""
    net = model("llama", vocabulary=len(TOKENS))
    backbone = Backbone(net)
    seq = backbone.open([5, 6])
    backbone.score_listed({seq: DraftTree()}, {seq: [np.array([7])]})
    backbone.commit(seq, [7])
    lists = [np.array([8]), np.array([9]), np.array([4])]
    backbone.score_listed({seq: DraftTree.chain([8, 9])}, {seq: lists})
    backbone.commit(seq, [8, 9])
    assert backbone.last_logits(seq) is None
    fork = backbone.fork(seq)
    scored = backbone.score({seq: DraftTree(), fork: DraftTree.chain([4])})
    other = Backbone(net)
    alone = other.open([5, 6, 7, 8, 9])
    want = other.score({alone: DraftTree.chain([4])})[alone]
    assert torch.allclose(scored[seq][0], want[0], rtol=0, atol=1e-12)
    assert torch.allclose(scored[fork], want, rtol=0, atol=1e-12)


def test_a_tight_budget_is_kept():
    net = model("qwen3", vocabulary=len(TOKENS))
    need = constraint("schema").distance(constraint("schema").start)
    for spare in (0, 2, 5):
        for local in LOCALS.values():
            texts = []
            for logprobs in (True, False):
                want = [
                    dataclasses.replace(one, logprobs=logprobs)
                    for one in requests("schema", local, need + spare)
                ]
                texts.append([o.tokens for o in decode(Backbone(net), want, Merge(Forced(), Suffix()))])
            assert texts[0] == texts[1] and all(len(one) <= need + spare for one in texts[0])


class Capped(hf.LlamaForCausalLM):
    """Does something to its logits after its head."""

    @functools.wraps(hf.LlamaForCausalLM.forward)
    def forward(self, *arguments, **named):
        out = super().forward(*arguments, **named)
        out.logits = torch.tanh(out.logits / 3) * 3
        return out


def halve(module, inputs, out):
    out.logits.mul_(0.5)


def changed(kind: str):
    torch.manual_seed(2)
    config = model("llama", vocabulary=len(TOKENS)).config
    net = (Capped if kind == "capped" else hf.LlamaForCausalLM)(config).double().eval()
    if kind == "bias":
        net.lm_head.bias = torch.nn.Parameter(torch.randn(len(TOKENS), dtype=torch.float64))
    elif kind == "in place":
        net.register_forward_hook(halve)
    elif kind == "hooked":
        net.lm_head.register_forward_hook(lambda module, inputs, out: out * 0.5)
    elif kind == "nameless":
        net.get_output_embeddings = lambda: None
    elif kind == "other class":
        plain = net.lm_head
        net.lm_head = type("Quantised", (torch.nn.Linear,), {})(32, len(TOKENS), bias=False).double()
        net.lm_head.weight = plain.weight
    return net


@pytest.mark.parametrize("kind", ["capped", "bias", "in place", "hooked", "nameless", "other class"])
def test_heads_that_are_more_than_a_product_are_run_whole(kind, columns):
    net = changed(kind)
    backbone = Backbone(net)
    texts = [
        [o.tokens for o in decode(Backbone(net), asked(LOCALS["drawn"], 4, logprobs))]
        for logprobs in (True, False)
    ]
    assert texts[0] == texts[1]
    decode(backbone, asked(LOCALS["drawn"], 4))
    assert not backbone.sliced


def test_a_model_that_begins_to_change_its_logits_is_not_believed():
    net = changed("plain")
    speculator = Speculator(Backbone(net))
    (one,) = asked(LOCALS["greedy"], 1)
    speculator.add(one)
    speculator.step()
    assert speculator.backbone.sliced
    net.register_forward_hook(lambda module, inputs, out: type(out)(**{**out, "logits": out.logits * 2}))
    ((_, _, output, _),) = speculator.step()
    assert isinstance(output.error, ModelError) and "after its head" in str(output.error)


def test_logits_that_somebody_looks_at_are_whole(columns):
    """Likely tokens, log-probabilities, transforms, penalties, and drafters that learn from logits."""
    net = model("llama", vocabulary=len(TOKENS))
    greedy = tf.Local(temperature=0.0, values="token")  # values as wholes look at whole rows themselves
    (plain,) = asked(greedy, 1)
    touched = MaskedSampler(greedy, len(TOKENS), [EOS], [lambda text, logits: -logits])
    for one, drafter in (
        (dataclasses.replace(plain, alternatives=3), None),
        (dataclasses.replace(plain, logprobs=True), None),
        (dataclasses.replace(plain, sampler=touched), None),
        (dataclasses.replace(plain, automaton=None, hints=None), None),
        (plain, Merge(Recycling())),
    ):
        columns.clear()
        speculator = Speculator(Backbone(net), drafter)
        speculator.add(one)
        while speculator.active:
            speculator.step()
        assert all(made > 0 for made in columns)  # whole rows
    seen = []

    class Watching:
        name = "watching"

        def session(self, context):
            return self

        def propose(self, context, budget):
            return DraftTree()

        def observe(self, context, seen_: Seen):
            seen.append(seen_.logits.clone())

        def close(self):
            pass

    decode(Backbone(net), [plain], Watching())
    want = decode(Backbone(net), [dataclasses.replace(plain, logprobs=True)])[0].tokens
    assert len(seen) >= len(want)
    other = Backbone(net)
    for place, logits in enumerate(seen):
        alone = other.open([*plain.prompt, *want[:place]])
        assert torch.allclose(logits, other.score({alone: DraftTree()})[alone], rtol=0, atol=1e-10)


def test_on_a_device_all_logits_stay_there(columns):
    """Where draws are made on a device, a part of the head would need the masks before the pass."""
    net, texts = model("llama", vocabulary=len(TOKENS)), []
    for logprobs in (True, False):
        speculator = Speculator(Backbone(net), matcher=DeviceDraws(torch.device("cpu"), None, whole=True))
        for one in asked(LOCALS["drawn"], 3, logprobs):
            speculator.add(one)
        told = {}
        while speculator.active:
            told.update((number, output.tokens) for number, _, output, _ in speculator.step())
        texts.append(told)
    assert texts[0] == texts[1] and all(count >= 0 for count in columns)


def test_a_mask_that_fails_costs_its_own_text(monkeypatch):
    net = model("llama", vocabulary=len(TOKENS))
    want = asked(tf.Local(temperature=0.0, values="token"), 3)
    real = [o.tokens for o in decode(Backbone(net), want)]

    class Failing:
        def __init__(self, automaton):
            self._automaton, self.fails = automaton, 3

        def __getattr__(self, name):
            return getattr(self._automaton, name)

        def mask(self, state):
            self.fails -= 1
            if self.fails < 0:
                raise LimitExceeded("too much work")
            return self._automaton.mask(state)

    want[1] = dataclasses.replace(want[1], automaton=Failing(want[1].automaton))
    got = decode(Backbone(net), want)
    assert isinstance(got[1].error, LimitExceeded)
    assert [got[0].tokens, got[2].tokens] == [real[0], real[2]]


def test_a_scheduler_that_is_not_asked_for_probabilities():
    generator, texts = tf.Generator(), []
    schema = {"type": "object", "properties": {"paid": {"type": "boolean"}, "to": {"enum": ["Ada", "Bo"]}}}
    with Scheduler(generator, batch_size=4) as scheduler:
        for logprobs in (True, False):
            jobs = [
                scheduler.submit("Paid?", grammar, seed=seed, n=2, sampler=tf.Local(), logprobs=logprobs)
                for seed, grammar in enumerate((schema, tf.regex("[a-d]{2,9}"), None))
            ]
            results = [one for job in jobs for one in job.result(60)]
            texts.append([one.text for one in results])
            for one in results:
                assert math.isnan(one.logprob) is not logprobs
                assert len(one.token_logprobs) == len(one.tokens) * logprobs
        asked_for = scheduler.submit("Paid?", schema, logprobs=False, alternatives=2).result(60)[0]
    assert texts[0] == texts[1]
    assert len(asked_for.token_logprobs) == len(asked_for.likeliest) == len(asked_for.tokens)
    assert json.loads(asked_for.text) is not None


def test_listed_ids_are_those_of_the_mask():
    drawer, auto_ = LazyDrawer(), constraint("choice")
    sampler = MaskedSampler(tf.Local(), len(TOKENS), [EOS])
    ids = drawer.listed(sampler, Node([1], automaton=auto_, state=auto_.start))
    assert ids is not None and ids.tolist() == np.asarray(auto_.allowed_tokens(auto_.start)).tolist()
    assert drawer.listed(sampler, Node([1])) is None


@pytest.mark.parametrize("local", LOCALS)
def test_a_forced_token_that_no_longer_fits_has_all_that_are_allowed(local):
    """The tokenizer's own way through a forced text may be longer than the tokens that are left."""
    tokens = [b"a", b"b", b"c", b"bc", b"abc", b""]
    vocabulary = tf.Vocabulary(tokens, eos=[5])
    auto_ = tf.regex("abc").compile(vocabulary)
    drawer, sampler = LazyDrawer(), MaskedSampler(LOCALS[local], len(tokens), [5])
    scores = np.arange(len(tokens), dtype=np.float64)
    for remaining, listed, drawn in ((9, [0], 0), (2, [0], 0), (1, [0, 4], 4)):
        node = Node([1], automaton=auto_, state=auto_.start, remaining=remaining, forced=0)
        ids = drawer.listed(sampler, node)
        assert ids is not None and ids.tolist() == listed
        answer = drawer.one(sampler, [Listed(ids, scores[ids], len(tokens))], node)
        assert answer.error is None and answer.token == drawn
