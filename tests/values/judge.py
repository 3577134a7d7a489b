"""Small random models whose probabilities of whole values are found by plain passes, one a value."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import tokenform as tf
from tokenform.decoding.scheduler import Scheduler
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.speculator import Speculator

WORDS = [
    "new",
    "new york",
    "newark",
    "no",
    "none of these",
    "The Hague",
    "The plant kingdom",
    "the",
    "Zürich",
    "!",
    "no!",
]
TEXTS = [*WORDS, *(f'{{"a": "{word}", "b": true, "n": 10}}' for word in WORDS), "null false 100 -1.5"] * 3
LISTS = ['["new", "york"]'] * 9


@functools.cache
def tokenizer(kind: str = "bytes", size: int = 420) -> PreTrainedTokenizerFast:
    """BPE over bytes ("lists": with `["` as one token), or over characters with a mark in place of spaces, as
    SentencePiece has it."""
    raw = Tokenizer(models.BPE(byte_fallback=kind == "marks", unk_token="<unk>" if kind == "marks" else None))
    special = ["<s>", "</s>", "<unk>"]
    if kind != "marks":
        raw.pre_tokenizer, raw.decoder = (
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            decoders.ByteLevel(),
        )
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
        raw.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
        alphabet, special = [], [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    raw.train_from_iterator(
        [*TEXTS, *LISTS] if kind == "lists" else TEXTS,
        trainers.BpeTrainer(
            vocab_size=size + 256 * (kind == "marks"),
            special_tokens=special,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")


@functools.cache
def model(size: int, seed: int = 0, spread: float = 0.6) -> Any:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=spread, bos_token_id=0,
        eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    net = LlamaForCausalLM(config).double().eval()
    for module in net.modules():
        if type(module).__name__.endswith("RMSNorm"):  # transformers' own rounds to float32
            module.forward = functools.partial(_norm, module)
    return net


def _norm(module: Any, hidden: torch.Tensor) -> torch.Tensor:
    return (
        module.weight * hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + module.variance_epsilon)
    )


@torch.inference_mode()
def logprobs(net: Any, ids: Sequence[int]) -> np.ndarray:
    """Of the next token after each of these, float64 [len, V], by one plain pass."""
    return torch.log_softmax(net(torch.tensor([list(ids)])).logits[0].double(), -1).numpy()


def text_logprob(net: Any, prompt: Sequence[int], tokens: Sequence[int], ends: Sequence[int]) -> float:
    """Of some tokens, and then one of the ends."""
    table = logprobs(net, [*prompt, *tokens])[len(prompt) - 1 :]
    known = sum(float(table[place][token]) for place, token in enumerate(tokens))
    return known + float(np.logaddexp.reduce([table[len(tokens)][end] for end in ends]))


def generator(kind: str = "bytes", seed: int = 0, **options: Any) -> tf.Generator:
    read = tokenizer(kind)
    return tf.Generator(model(len(read), seed), read, **options)


def best(scores: dict[Any, float]) -> Any:
    return max(scores, key=scores.__getitem__)


def shares(scores: dict[Any, float], temperature: float = 1.0) -> dict[Any, float]:
    top = max(scores.values())
    weights = {key: math.exp((score - top) / temperature) for key, score in scores.items()}
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def backbones_write_alike(gen: tf.Generator, mode: str, requests: Sequence[Any]) -> None:
    """Checks that models that score trees, and those of a mode ("chain", "plain"; or "whole", a device's
    draws) write the same texts."""
    texts = []
    for used in ("tree", mode):
        backbone = Backbone(gen.model, mode="tree" if used == "whole" else used)
        speculator = Speculator(backbone, matcher=DeviceDraws(backbone.device, whole=used == "whole"))
        outputs = [speculator.output(speculator.add(copy.copy(one))) for one in requests]
        while speculator.active:
            speculator.step()
        assert not any(one.error for one in outputs)
        texts.append([one.tokens for one in outputs])
    assert texts[0] == texts[1]


def written_alike(
    prompt: str, grammar: tf.Grammar, temperature: float, max_tokens: int, kind: str = "bytes"
) -> None:
    """Checks that seeds, batches, drafts, streams and schedulers write the same texts."""
    asked: Any = {"seed": 3, "sampler": tf.Local(temperature), "max_tokens": max_tokens}
    gen, plain = generator(kind), generator(kind, drafter=None)
    prompts = [f"{prompt} {number}" for number in range(6)]
    batch = [one[0].text for one in gen.sample(prompts, grammar, **asked)]
    for other in (gen, plain):
        assert batch == [other.sample(one, grammar, **asked)[0].text for one in prompts]
    assert batch == ["".join(gen.stream(one, grammar, **asked)) for one in prompts]
    with Scheduler(gen) as scheduler:
        jobs = [scheduler.submit(one, grammar, **asked) for one in prompts]
        assert batch == [job.future.result()[0].text for job in jobs]
