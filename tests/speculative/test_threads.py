"""A pass of a small model runs on one thread of the processor; other threads keep theirs."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.backbone.threads import SMALL, thread_limit
from tokenform.decoding.speculative.tree import DraftTree

pytest.importorskip("threadpoolctl")
CONFIG = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
)


@pytest.fixture
def four() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


class Spy(LlamaForCausalLM):
    """Notes the threads of its passes, and those that another thread of the process has meanwhile."""

    seen: list[tuple[int, int]]

    def forward(self, *args: Any, **named: Any) -> Any:
        other: list[int] = []
        beside = threading.Thread(target=lambda: other.append(torch.get_num_threads()))
        beside.start()
        beside.join()
        self.seen.append((torch.get_num_threads(), other[0]))
        return super().forward(*args, **named)


def test_a_small_model_runs_on_one_thread_and_others_keep_theirs(four: None) -> None:
    model = Spy(CONFIG).eval()
    model.seen = []
    backbone = Backbone(model)
    seq = backbone.open([1, 2, 3])
    backbone.score({seq: DraftTree.chain([4, 5])})
    assert model.seen and set(model.seen) == {(1, 4)}
    assert torch.get_num_threads() == 4


def test_an_error_within_a_pass_leaves_the_threads_as_they_were(four: None) -> None:
    class Broken(Spy):
        def forward(self, *args: Any, **named: Any) -> Any:
            raise RuntimeError("out of order")

    with pytest.raises(RuntimeError, match="out of order"):
        backbone = Backbone(Broken(CONFIG).eval(), "plain")
        backbone.score({backbone.open([1]): DraftTree()})
    assert torch.get_num_threads() == 4


def test_large_models_and_what_tells_no_weights_are_not_limited(four: None) -> None:
    large = torch.nn.Linear(SMALL // 4, 2, device="cpu")
    for model in (large, torch.nn.Linear(8, 8, device="meta"), lambda ids: ids):
        with thread_limit(model)():
            assert torch.get_num_threads() == 4
    with thread_limit(torch.nn.Linear(8, 8))():
        assert torch.get_num_threads() == 1
