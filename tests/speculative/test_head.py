"""The head is run where logits are wanted: fewer rows, the same logits, the model as it was."""

from __future__ import annotations

import pytest
import torch

from tokenform.decoding.speculative.backbone import Backbone, head
from tokenform.decoding.speculative.backbone.threads import PassThreads
from tokenform.decoding.speculative.tree import DraftTree

from .models import VOCABULARY, model

LENGTHS = (1, 7, 0, 3)  # tokens of the drafts: lines of unequal length


def rows_of_head(net, monkeypatch) -> list[int]:
    seen, whole = [], net.lm_head.forward

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        seen.append(hidden.shape[:-1].numel())
        return whole(hidden)

    monkeypatch.setattr(net.lm_head, "forward", forward)
    return seen


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3"])
def test_padding_has_no_logits(name, monkeypatch):
    net = model(name)
    backbone, before = Backbone(net), dict(net._modules)
    seqs = [backbone.open([1 + i, 2, 3]) for i in range(len(LENGTHS))]
    backbone.score({seq: DraftTree() for seq in seqs})
    for seq in seqs:
        backbone.commit(seq, [5])
    seen = rows_of_head(net, monkeypatch)
    trees = {seq: DraftTree.chain(list(range(4, 4 + n))) for seq, n in zip(seqs, LENGTHS, strict=True)}
    scored = backbone.score(trees)
    assert seen == [sum(LENGTHS) + len(LENGTHS)]
    assert net._modules == before
    for seq, tree in trees.items():
        other = Backbone(net)
        alone = other.open(backbone.tokens(seq))
        want = other.score({alone: tree})[alone]
        assert scored[seq].shape == (len(tree) + 1, VOCABULARY)
        assert (scored[seq] - want).abs().max() <= 1e-10


def test_a_model_may_keep_more_logits_than_it_is_asked_for(monkeypatch):
    net = model("llama")
    whole, trees = type(net).forward, DraftTree.chain([5, 6])

    def forward(self, *arguments, logits_to_keep: int = 0, **named):
        return whole(self, *arguments, **named)

    def scored() -> list[torch.Tensor]:
        backbone = Backbone(net)
        seqs = [backbone.open([1, 2, 3]), backbone.open([4, 2])]
        found = backbone.score({seqs[0]: trees, seqs[1]: DraftTree()})
        assert backbone.mode == "tree"
        return [found[seq] for seq in seqs]

    want = scored()
    monkeypatch.setattr(type(net), "forward", forward)
    head_rows = scored()
    assert all((a - b).abs().max() <= 1e-10 for a, b in zip(head_rows, want, strict=True))


def test_a_forward_of_the_instance_is_run(monkeypatch):
    """Libraries that spread a model over devices put their own `forward` on it."""
    net, calls = model("llama"), 0
    whole = net.forward

    def forward(*arguments, **named):
        nonlocal calls
        calls += 1
        return whole(*arguments, **named)

    backbone = Backbone(net)
    monkeypatch.setattr(net, "forward", forward)
    seqs = [backbone.open([1, 2]), backbone.open([3, 4])]
    trees = {seqs[0]: DraftTree.chain([5, 6, 7]), seqs[1]: DraftTree()}
    scored = backbone.score(trees)
    assert calls == 1 and [len(scored[seq]) for seq in seqs] == [4, 1]


def test_large_logits_are_written_where_nobody_reads_any_more(monkeypatch):
    """The memory of an earlier pass is used again, and never while somebody holds a part of it."""
    monkeypatch.setattr(head, "_MAPPED", 1)
    lm_head, rows = torch.nn.Linear(8, VOCABULARY, bias=False), torch.randn(1, 5, 8)
    block, wanted = head._Block(), torch.tensor([0, 2, 3])
    packed = head._Packed(lm_head, wanted, 5, block)
    with torch.no_grad():
        want = lm_head(rows[0, wanted])
        first = packed(rows)[0]
        place, kept = first.data_ptr(), first[1]
        assert torch.equal(first, want) and place == block._held.ctypes.data
        del first
        second = packed(-rows)[0]  # a row of the first is still held
        assert second.data_ptr() != place and torch.equal(kept, want[1])
        del kept
        third = packed(-rows)[0]
        assert third.data_ptr() == place and torch.equal(third, second)


def test_a_head_that_is_more_than_a_product_is_run_as_it_is(monkeypatch):
    monkeypatch.setattr(head, "_MAPPED", 1)
    rows, wanted = torch.randn(1, 5, 8), torch.tensor([0, 2])
    added, hooked = torch.nn.Linear(8, VOCABULARY), torch.nn.Linear(8, VOCABULARY, bias=False)
    hooked.register_forward_hook(lambda module, inputs, output: output + 1)
    with torch.no_grad():
        for one in (added, hooked):
            assert torch.equal(head._Packed(one, wanted, 5, head._Block())(rows)[0], one(rows[0, wanted]))


@pytest.mark.parametrize("lengths", [(0, 0, 0), LENGTHS])
def test_logits_in_used_memory_are_the_same(lengths, monkeypatch):
    net, texts = model("llama"), []
    for mapped in (1 << 40, 1):
        monkeypatch.setattr(head, "_MAPPED", mapped)
        backbone, found = Backbone(net), []
        seqs = [backbone.open([1 + i, 2, 3]) for i in range(len(lengths))]
        for turn in range(3):
            trees = {s: DraftTree.chain(list(range(4, 4 + n))) for s, n in zip(seqs, lengths, strict=True)}
            scored = backbone.score(trees)
            found += [scored[seq].clone() for seq in seqs]
            for seq in seqs:
                backbone.commit(seq, [4, 5 + turn] if trees[seq].tokens else [turn])
        texts.append(found)
    assert all(map(torch.equal, *texts))


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("mapped", [1 << 40, 1])
@pytest.mark.parametrize(("dtype", "parts"), [(torch.float32, 3), (torch.float64, 1)])
def test_one_thread_multiplies_a_large_head_part_by_part(dtype, parts, mapped, monkeypatch, one_thread):
    """Every column once, whether or not memory is used again; in float64 nothing is won by it."""
    monkeypatch.setattr(head, "_CACHED", 1)  # 64 columns at least
    monkeypatch.setattr(head, "_MAPPED", mapped)
    products, whole = [], torch.mm

    def product(given: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        products.append(weight.shape[1])
        return whole(given, weight, out=out)

    monkeypatch.setattr(torch, "mm", product)
    lm_head, rows = torch.nn.Linear(8, 150, bias=False, dtype=dtype), torch.randn(5, 8, dtype=dtype)
    with torch.no_grad():
        got = head._Packed(lm_head, torch.arange(5), 5, head._Block()).logits(rows)
        torch.testing.assert_close(got, lm_head(rows))
        if parts > 1 or mapped == 1:
            assert len(products) == parts and sum(products) == 150


def test_the_head_of_a_batch_is_multiplied_in_parts_only_by_one_thread(monkeypatch, one_thread):
    monkeypatch.setattr(head, "_SLICED", 1)
    asked, net = [], model("llama")
    monkeypatch.setattr(head, "_part", lambda rows, weight: asked.append(len(rows)) or len(weight))
    backbone = Backbone(net)
    backbone._threads = PassThreads(0, None)  # as for a large model
    seqs = [backbone.open([1, 2]), backbone.open([3, 4])]
    for threads, calls in ((1, [2]), (2, [2])):
        torch.set_num_threads(threads)
        backbone.score({seq: DraftTree() for seq in seqs})
        assert asked == calls
        for seq in seqs:
            backbone.commit(seq, [5])
