"""The head is run where logits are wanted: fewer rows, the same logits, the model as it was."""

from __future__ import annotations

import pytest
import torch

from tokenform.decoding.speculative.backbone import Backbone
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
