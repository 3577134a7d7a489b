"""Samplers of whole texts for several prompts: their passes are shared, their draws are not."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.side_by_side import side_by_side
from tokenform.errors import SamplingError

SAMPLERS = {"smc": tf.SMC(particles=4), "cars": tf.CARS(), "asap": tf.ASAp(), "mcmc": tf.MCMC(steps=2)}
PROMPTS = ["Ada was born in 1815.", "The parcel 4821 is paid.", "Ada was born in Rome."]


class Table:
    """A model whose distribution depends on the prefix alone; it notes its calls."""

    eos, vocab_size = (0,), 7

    def __init__(self, broken: int | None = None) -> None:
        self.forwards = self.rows = 0
        self.calls: list[list[Tokens]] = []
        self.broken = broken

    def logprobs(self, prefixes: Any) -> Float:
        self.forwards += 1
        self.rows += len(prefixes)
        self.calls.append([tuple(prefix) for prefix in prefixes])
        if any(prefix[0] == self.broken for prefix in prefixes):
            raise MemoryError("too wide")
        rows = [np.random.default_rng(list(prefix)).random(self.vocab_size) for prefix in prefixes]
        return np.log(np.array(rows) / np.sum(rows, 1, keepdims=True))


def walk(first: int, length: int) -> Any:
    """A job: the likeliest tokens after a first one."""

    def job(model: LanguageModel) -> tuple[list[int], int, int]:
        text = [first]
        for _ in range(length):
            text.append(int(model.logprobs([tuple(text)])[0].argmax()))
        return text, model.forwards, model.rows

    return job


def test_as_many_passes_as_the_longest_and_what_each_finds_alone() -> None:
    lengths, table = [3, 7, 0, 5], Table()
    found = side_by_side(table, [walk(i, n) for i, n in enumerate(lengths)])
    alone = [walk(i, n)(Table()) for i, n in enumerate(lengths)]
    assert found == alone
    assert table.forwards == max(lengths)
    assert [len(call) for call in table.calls] == [3, 3, 3, 2, 2, 1, 1]
    assert all(call == sorted(call, key=lambda prefix: prefix[0]) for call in table.calls)


def test_a_job_that_fails_costs_itself() -> None:
    def fails(model: LanguageModel) -> Any:
        model.logprobs([(5,)])
        raise SamplingError("no text")

    found = side_by_side(Table(), [walk(1, 4), fails, walk(2, 4)])
    assert isinstance(found[1], SamplingError)
    assert [found[0], found[2]] == [walk(1, 4)(Table()), walk(2, 4)(Table())]


def test_a_pass_that_fails_is_made_for_each_alone() -> None:
    found = side_by_side(Table(broken=2), [walk(1, 3), walk(2, 3), walk(3, 3)])
    assert isinstance(found[1], MemoryError)
    assert [found[0], found[2]] == [walk(1, 3)(Table()), walk(3, 3)(Table())]


def test_one_job_runs_at_a_time() -> None:
    running: list[int] = []

    def job(model: LanguageModel) -> int:
        most = 0
        for step in range(20):
            running.append(step)
            most = max(most, len(running))
            threading.Event().wait(0.0005)
            running.pop()
            model.logprobs([(step + 1,)])
        return most

    assert side_by_side(Table(), [job] * 6) == [1] * 6


@pytest.mark.parametrize("name", SAMPLERS)
def test_texts_are_those_of_each_prompt_alone_in_fewer_passes(name: str) -> None:
    grammar = tf.regex("[ab]{1,4}")
    generator = tf.Generator(sampler=SAMPLERS[name])
    passes: list[int] = []
    generator.model.register_forward_hook(lambda *_: passes.append(1))
    alone = [generator.sample(prompt, grammar, n=2, seed=3, max_tokens=6) for prompt in PROMPTS]
    apart, together = len(passes), generator.sample(PROMPTS, grammar, n=2, seed=3, max_tokens=6)
    assert [[r.text for r in one] for one in together] == [[r.text for r in one] for one in alone]
    assert len(passes) - apart < apart
