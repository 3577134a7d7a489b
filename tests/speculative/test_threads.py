"""A pass of a small model runs on one thread of the processor; other threads keep theirs."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.backbone.base import Counters
from tokenform.decoding.speculative.backbone.threads import (
    LONGEST,
    READ,
    SHORT,
    SMALL,
    WHILE,
    PassThreads,
    threads_of,
)
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
        with threads_of(model).run(Counters()):
            assert torch.get_num_threads() == 4
    with threads_of(torch.nn.Linear(8, 8)).run(Counters()):
        assert torch.get_num_threads() == 1


LARGE = 20 * SMALL
BOUND = 0.01 + LARGE / READ


def steps(threads: PassThreads, count: int, alone: float, together: float) -> list[bool]:
    """So many steps that take so long on one thread and on all: which were on one."""
    taken = []
    for _ in range(count):
        taken.append(threads.single)
        threads.step(threads.single, alone if threads.single else together)
    return taken


def test_steps_of_a_quiet_machine_run_on_all_threads() -> None:
    threads = PassThreads(LARGE, nullcontext)
    assert steps(threads, 300, 0.9 * BOUND, 0.8 * BOUND) == [False] * 300


def test_a_busy_machine_is_found_at_the_first_step_and_tried_ever_more_rarely() -> None:
    threads = PassThreads(LARGE, nullcontext)
    taken = steps(threads, 40_000, 0.5 * BOUND, 50 * BOUND)
    tried = [at for at, single in enumerate(taken) if not single]
    assert tried[0] == 0 and tried[1] == WHILE + 2
    gaps = [later - at for at, later in pairwise(tried)]
    assert gaps == sorted(gaps) and gaps[-1] == LONGEST + 2 and len(tried) < 20
    # quiet again: back to all threads, and a later load is tried as the first was
    taken = steps(threads, LONGEST + 2 + 100, 0.9 * BOUND, 0.8 * BOUND)
    assert taken[-100:] == [False] * 100
    assert [at for at, single in enumerate(steps(threads, 100, 0.5 * BOUND, 9 * BOUND)) if not single][
        :2
    ] == [
        0,
        WHILE + 2,
    ]


def test_a_slow_machine_stays_on_all_threads() -> None:
    """Its steps take longer than a core reads, and on one thread longer still."""
    threads = PassThreads(LARGE, nullcontext)
    taken = steps(threads, 1000, 3 * BOUND, 2 * BOUND)
    assert sum(taken) < 6


def test_prompts_and_errors_decide_nothing(four: None) -> None:
    threads, counters = PassThreads(LARGE, nullcontext), Counters()
    threads._bound = -1.0
    with threads.run(counters):
        counters.positions += SHORT + 1
    assert not threads.single
    with pytest.raises(ValueError), threads.run(counters):
        raise ValueError
    assert not threads.single
    with threads.run(counters):
        counters.positions += SHORT
    assert threads.single
