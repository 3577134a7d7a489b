"""What leaves the device: one transfer a step, of some bytes a node.

There need not be a GPU: the model's logits become tensors of a class that counts what brings them, or
whatever is made of them, to the host.  The draws are those that run on a device.  The same cases run with
the Triton kernel, in a process in which Triton interprets (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import torch
from tests.generation.conftest import small_llama

import tokenform as tf
from tokenform.decoding.decoders import Decoders
from tokenform.decoding.speculative import policies
from tokenform.decoding.speculative.backbone import Backbone, static_passes
from tokenform.decoding.speculative.drafters import DraftModel
from tokenform.decoding.speculative.matching import DeviceDraws

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
READS = {
    "item",
    "tolist",
    "numpy",
    "cpu",
    "__array__",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
    "nonzero",
}
READS |= {"__dlpack__", "masked_select", "unique"}
SCHEMA = {
    "type": "object",
    "properties": {"first_name": {"type": "string", "maxLength": 8}, "verified": {"type": "boolean"}},
    "required": ["first_name", "verified"],
    "additionalProperties": False,
}
MOST = 64  # bytes a node
CPU = torch.device("cpu")


class Watched(torch.Tensor):
    """A tensor that stands for one on a device, as does everything that is computed from it."""

    reads: ClassVar[list[tuple[str, int, int]]] = []  # (how it was read, rows, bytes)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, first = getattr(func, "__name__", ""), args[0] if args else None
        moved = name == "to" and any(
            isinstance(a, str | torch.device) for a in (*args[1:], *(kwargs or {}).values())
        )
        interpreter = any("triton" in frame for frame in _callers()) if name in READS or moved else False
        if (name in READS or moved) and isinstance(first, Watched) and not interpreter:
            cls.reads.append(
                (name, first.shape[0] if first.dim() else 1, first.numel() * first.element_size())
            )
        return super().__torch_function__(func, types, args, kwargs or {})


def _callers() -> Iterator[str]:
    frame: Any = sys._getframe(2)
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


@pytest.fixture
def watched(tokenizer, monkeypatch) -> tuple[Any, list[int]]:
    """A model whose logits are watched, and the tokens of its passes."""
    net, passes = small_llama(len(tokenizer) + 5), []
    watch(net, passes)
    monkeypatch.setattr(Decoders, "_matcher", lambda *_: DeviceDraws(CPU, None, whole=True))
    return net, passes


def watch(net: Any, passes: list[int]) -> Any:
    """The model, whose logits are watched from now on; the tokens of each of its passes are told."""

    def hook(_: Any, arguments: Any, named: Any, output: Any) -> Any:
        passes.append(named.get("input_ids", next(iter(arguments), torch.empty(0))).numel())
        output.logits = output.logits.as_subclass(Watched)
        return output

    net.register_forward_hook(hook, with_kwargs=True)
    return net


SAMPLERS = {
    "greedy": tf.Local(0.0, values="token"),
    "warm": tf.Local(0.8, values="token"),
    "truncated": tf.Local(1.2, top_k=50, top_p=0.9, min_p=0.01, values="token"),
}


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_a_step_that_decides_values_brings_their_probabilities_home_at_once(watched, tokenizer, drafter):
    net, passes = watched
    writer = tf.Generator(net, tokenizer, drafter=drafter, sampler=tf.Local(0.8), batch_size=4)
    writer.sample("warm", tf.json_schema(SCHEMA), seed=0)
    Watched.reads.clear()
    passes.clear()
    results = writer.sample([f"Ada {i}" for i in range(4)], tf.json_schema(SCHEMA), seed=1)
    names = [name for name, _, _ in Watched.reads]
    assert sum(len(one[0].decided) for one in results) == 4
    assert (
        set(names) == {"tolist"} and len(passes) + 4 <= len(names) <= len(passes) + 8
    )  # a value may take two


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("drafter", [None, "auto"])
def test_one_transfer_a_step(watched, tokenizer, drafter, sampler, batch):
    net, passes = watched
    writer = tf.Generator(net, tokenizer, drafter=drafter, sampler=SAMPLERS[sampler], batch_size=batch)
    writer.sample("warm", tf.json_schema(SCHEMA), seed=0)  # the first look at a model tries trees on it
    Watched.reads.clear()
    passes.clear()
    prompts = [f"Ada {'x' * i}" for i in range(batch)]
    results = writer.sample(prompts, tf.json_schema(SCHEMA), seed=1, max_tokens=120)
    assert passes and [name for name, _, _ in Watched.reads] == ["tolist"] * len(passes)
    assert all(size <= MOST * rows for _, rows, size in Watched.reads)
    steps = max(r[0].stats.forwards for r in results)
    assert len(passes) == steps
    nodes = sum(rows for _, rows, _ in Watched.reads)
    assert nodes == sum(r[0].stats.forwards + r[0].stats.drafted for r in results)
    assert (drafter is None) == (nodes == sum(r[0].stats.forwards for r in results))


@pytest.mark.skipif(INTERPRETED, reason="the kernel is the same")
@pytest.mark.parametrize("kind", ["penalties", "transforms", "mixture", "lookups", "draft model"])
def test_one_transfer_a_step_with_everything_else(watched, tokenizer, kind):
    net, passes = watched
    options: dict[str, Any] = {
        "penalties": {"penalties": tf.targets.Penalties(1.2, 0.1, 0.1)},
        "transforms": {"transforms": [lambda tokens, logits: logits * 0.9]},
        "mixture": {"mixture": tf.targets.Anchored(0.3)},
        "lookups": {
            "drafter": tf.drafters.Merge(tf.drafters.NGram(), tf.drafters.Suffix(), tf.drafters.Names())
        },
        "draft model": {"drafter": DraftModel(small_llama(len(tokenizer) + 5, seed=3))},
    }[kind]
    writer = tf.Generator(net, tokenizer, sampler=tf.Local(0.9, top_p=0.95, values="token"), **options)
    second = {"companion_prompt": "Grace"} if kind == "mixture" else {}
    writer.sample("warm", tf.json_schema(SCHEMA), seed=0, **second)
    Watched.reads.clear()
    passes.clear()
    results = writer.sample(["Ada", "Grace"], tf.json_schema(SCHEMA), seed=1, max_tokens=120, **second)
    steps = max(r[0].stats.forwards for r in results)
    assert [name for name, _, _ in Watched.reads] == ["tolist"] * steps


@pytest.mark.skipif(INTERPRETED, reason="the kernel is the same")
@pytest.mark.parametrize("drafter", [None, "auto"])
def test_one_transfer_a_step_of_compiled_passes(tokenizer, monkeypatch, drafter):
    """But for a shape's first pass, which is compared with the model as it is."""
    net, passes, run = small_llama(len(tokenizer) + 5), [], static_passes._Step.__call__

    def watching(step: Any, *given: Any) -> Any:
        passes.append(step)
        logits, hidden = run(step, *given)
        return logits.as_subclass(Watched), hidden

    monkeypatch.setattr(Decoders, "_matcher", lambda *_: DeviceDraws(CPU, None, whole=True))
    monkeypatch.setattr(static_passes, "BACKEND", "eager")
    monkeypatch.setattr(static_passes._Step, "__call__", watching)
    options = {} if drafter is None else {"policy": lambda: policies.Fixed(3)}
    local = tf.Local(0.0, values="token")
    writer = tf.Generator(net, tokenizer, sampler=local, drafter=drafter, compile=True, **options)
    for _ in range(2):  # the second time all shapes are known
        Watched.reads.clear()
        passes.clear()
        results = writer.sample(["Ada", "Grace"], tf.json_schema(SCHEMA), seed=1, max_tokens=120)
    assert [name for name, _, _ in Watched.reads] == ["tolist"] * len(passes)
    assert all(size <= MOST * rows for _, rows, size in Watched.reads)
    steps = max(r[0].stats.forwards for r in results)
    assert steps - 1 <= len(passes) <= steps  # the first has the prompts


LOOKED_UP = {
    "forced": lambda second: tf.drafters.Forced(),
    "names": lambda second: tf.drafters.Names(),
    "ngram": lambda second: tf.drafters.NGram(),
    "suffix": lambda second: tf.drafters.Suffix(),
    "recycling": lambda second: tf.drafters.Recycling(),
    "model": lambda second: DraftModel(second, tokens=3),
    "retokenised": lambda second: None,
    "shared": lambda second: None,
}


@pytest.mark.skipif(INTERPRETED, reason="the kernel is the same")
@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("drafter", LOOKED_UP)
def test_one_transfer_a_pass_with_every_drafter(watched, tokenizer, monkeypatch, drafter, temperature, batch):
    """A drafter's own model makes a transfer a pass too: without its draws its next masks are unknown."""
    net, passes = watched
    second = watch(small_llama(len(tokenizer) + 5, seed=3), passes)
    if drafter in ("shared", "retokenised"):
        tokens = tf.Vocabulary.from_tokenizer(tokenizer, size=len(tokenizer) + 5).tokens
        other = tf.drafters.VocabularyMap(tokens, tokens[::-1], drafter == "retokenised")
        source = DraftModel(second, tokens=3, vocabulary=other)
    else:
        source = LOOKED_UP[drafter](second)
    sampler = tf.Local(temperature, top_p=0.95 if temperature else 1.0, values="token")
    options = {"policy": lambda: policies.Fixed(8), "batch_size": batch}
    writer = tf.Generator(net, tokenizer, sampler=sampler, drafter=source, **options)
    writer.sample("warm", tf.json_schema(SCHEMA), seed=0)
    asked, score = [], Backbone.score

    def counted(self: Backbone, *arguments: Any, **named: Any) -> Any:
        asked.append(self)
        return score(self, *arguments, **named)

    monkeypatch.setattr(Backbone, "score", counted)
    Watched.reads.clear()
    passes.clear()
    prompts = [f"Ada {'x' * i}" for i in range(batch)]
    results = writer.sample(prompts, tf.json_schema(SCHEMA), seed=1, max_tokens=120)
    assert not [note for r in results for note in r[0].report.notes]
    assert passes and [name for name, _, _ in Watched.reads] == ["tolist"] * len(asked)
    assert len(passes) <= len(asked)  # a row that is known already is drawn from without a pass
    assert all(size <= MOST * rows for _, rows, size in Watched.reads)
    steps = max(r[0].stats.forwards for r in results)
    if drafter in ("model", "shared", "retokenised"):
        assert len(passes) > steps
        assert sum(r[0].stats.drafted for r in results) > 0
    else:
        assert len(passes) == steps


ALIGNED = {
    "smc": tf.SMC(particles=4),
    "awrs": tf.AWRS(),
    "cars": tf.CARS(),
    "asap": tf.ASAp(),
    "mcmc": tf.MCMC(steps=2),
    "beam": tf.Beam(2),
}


@pytest.mark.skipif(INTERPRETED, reason="the kernel draws nothing here")
@pytest.mark.parametrize("name", ALIGNED)
def test_one_transfer_a_pass_with_samplers_of_whole_texts(watched, tokenizer, name):
    """Theirs are whole distributions of all prefixes of a pass: 8 bytes a token of the vocabulary."""
    net, passes = watched
    writer = tf.Generator(net, tokenizer, sampler=ALIGNED[name])
    writer.sample("warm", tf.regex("[ab]{1,3}"), seed=0, max_tokens=4)
    Watched.reads.clear()
    passes.clear()
    assert writer.sample("Ada", tf.regex("[ab]{1,3}"), n=2, seed=1, max_tokens=4)
    transfers = [(rows, size) for how, rows, size in Watched.reads if how == "cpu"]
    assert len(transfers) == len(passes)
    assert {how for how, _, _ in Watched.reads} == {"cpu", "numpy"}, "what is here already is read as numpy"
    assert all(size == 8 * rows * writer.vocabulary.size for rows, size in transfers)


def test_draws_of_the_device_are_those_of_the_host(model, tokenizer, monkeypatch):
    grammar, prompts = tf.json_schema(SCHEMA), ["Ada", "Grace was born in London", "x"]
    for sampler in (tf.Local(0.0), tf.Local(1.2), tf.Local(1.5, top_p=0.9)):
        for tokens in (24, 60):
            texts = []
            for whole in (False, True):
                monkeypatch.setattr(Decoders, "_matcher", lambda *_, w=whole: DeviceDraws(CPU, None, whole=w))
                writer = tf.Generator(model, tokenizer, sampler=sampler)
                every = writer.sample(prompts, grammar, n=3, seed=4, max_tokens=tokens)
                texts.append([r.tokens for one in every for r in one])
            assert texts[0] == texts[1]
