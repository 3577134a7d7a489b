"""Trains the built-in masked-diffusion model: `python -m benchmarks.training.train_diffusion`.

Purpose: a bidirectional network (ModernBERT of `transformers`) that predicts the tokens under mask tokens of
an answer, given its prompt; with the tokenizer and the data of the built-in model, from a fixed seed.
Law: masked diffusion (Sahoo et al. 2024, MDLM; Nie et al. 2025, LLaDA): the share of masked positions is
uniform, and the loss is the cross-entropy at masked positions.  Behind an answer the canvas holds end-of-text
tokens, so that its length tells nothing; they weigh little.  Beside positions drawn at random, whole canvases
and all behind a position are masked, as decoders do.
Complexity: 6 * parameters operations a token.  The packaged weights: one H100, see docs/figures.md.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf

from tokenform.builtin.loading import WEIGHTS, read_tokenizer

from .batching import encode
from .data import examples
from .train import amend, optimiser


@dataclass
class Options:
    """What a run is."""

    hidden: int = 192
    layers: int = 8
    heads: int = 4
    feed: int = 384
    steps: int = 9000
    minutes: float = 0.0
    """Where above 0, the run ends by these or by its steps, whichever comes first, and the rate with it."""
    batch_tokens: int = 4096
    rate: float = 2e-3
    warmup: int = 200
    tail_weight: float = 0.05
    longest_tail: int = 72
    together: int = 64
    """Batches that are drawn together, so that each has texts of one length."""
    repeats: int = 1
    seed: int = 3
    device: str = "cpu"
    workers: int = 0


def build(options: Options, tokenizer: Any) -> Any:
    """A fresh network; its mask token stands behind the tokenizer's tokens."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    torch.manual_seed(options.seed)
    size = len(tokenizer)
    config = ModernBertConfig(
        vocab_size=-(-(size + 1) // 8) * 8,
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=options.feed,
        max_position_embeddings=1024,
        layer_types=["full_attention"] * options.layers,
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 10_000.0}},
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        cls_token_id=tokenizer.bos_token_id,
        sep_token_id=tokenizer.eos_token_id,
        mask_token_id=size,
    )
    return ModernBertForMaskedLM(config)


@dataclass(frozen=True)
class Rows:
    """`ids`: int16 [B, T]: prompt, answer, end-of-text tokens; `prompts`, `ends`: int16 [B], where the answer
    begins, and where only end-of-text tokens follow."""

    ids: Any
    prompts: Any
    ends: Any


def chunk(number: int, options: Options) -> list[Rows]:
    """The batches of one seed, shuffled."""
    torch.set_num_threads(1)
    tokenizer, rng = read_tokenizer(WEIGHTS / "model"), random.Random(options.seed * 7919 + number)
    drawn = examples(
        options.seed * 1_000_003 + number, options.together * options.batch_tokens // 130, tools=0.1
    )
    rows = sorted(encode(tokenizer, drawn, 400), key=lambda row: len(row[0]))
    size = -(-len(rows) // options.together)
    out = []
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        width = -(-(len(part[-1][0]) + rng.randint(0, options.longest_tail)) // 8) * 8
        ids = np.full((len(part), width), tokenizer.eos_token_id, np.int16)
        for place, (tokens, _) in enumerate(part):
            ids[place, : len(tokens)] = tokens
        prompts, ends = [cut for _, cut in part], [len(tokens) for tokens, _ in part]
        out.append(Rows(ids, np.array(prompts, np.int16), np.array(ends, np.int16)))
    rng.shuffle(out)
    return out


def stream(options: Options) -> Iterator[Rows]:
    """An endless stream of batches, each of them `repeats` times."""
    number = 0
    if not options.workers:
        while True:
            yield from chunk(number, options) * options.repeats
            number += 1
    with ProcessPoolExecutor(options.workers) as pool:
        waiting: list[Future[list[Rows]]] = []
        kept: list[Rows] = []
        while True:
            while len(waiting) < 2 * options.workers:
                waiting.append(pool.submit(chunk, number, options))
                number += 1
            fresh = waiting.pop(0).result()
            mixed = fresh + kept
            random.Random(number).shuffle(mixed)
            kept = fresh * (options.repeats - 1)
            yield from mixed


def masked(rows: Rows, options: Options, random_: torch.Generator) -> tuple[Any, Any, Any]:
    """Ids int64 [B, T], which of them are masked bool [B, T], and the weights of the loss float32 [B, T]."""
    device = options.device
    ids, prompts, ends = (
        torch.from_numpy(a.astype(np.int64)).to(device) for a in (rows.ids, rows.prompts, rows.ends)
    )
    count, width = ids.shape
    places = torch.arange(width, device=device)[None]
    canvas = places >= prompts[:, None]
    tail = places >= ends[:, None]

    def drawn(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=random_, device=device)

    share = (drawn(1) + torch.arange(count, device=device) / count)[:, None] % 1.0
    share = share[torch.randperm(count, generator=random_, device=device)]
    hidden = drawn(count, width) < share
    behind = places >= prompts[:, None] + (1 - share) * (ends - prompts)[:, None]
    kind, end = drawn(count, 1), drawn(count, 1)
    hidden = torch.where(kind < 0.2, behind, hidden)
    hidden = torch.where((kind >= 0.2) & (kind < 0.3), behind | (drawn(count, width) < 0.3), hidden)
    hidden = torch.where(kind > 0.92, torch.ones_like(hidden), hidden)
    # decoders are sure of the tail first
    hidden = torch.where(tail & (end < 0.4), torch.zeros_like(hidden), hidden)
    hidden = torch.where(tail & (end > 0.8), torch.ones_like(hidden), hidden)
    weights = torch.where(tail, options.tail_weight, 1.0)
    return ids, hidden & canvas, weights


def loss_of(model: Any, batch: tuple[Any, Any, Any], mask: int) -> torch.Tensor:
    """Weighted cross-entropy at masked positions; logits only there."""
    ids, hidden, weights = batch
    states = model.model(input_ids=ids.masked_fill(hidden, mask)).last_hidden_state
    logits = model.decoder(model.head(states[hidden]))
    loss = nnf.cross_entropy(logits.float(), ids[hidden], reduction="none")
    chosen = weights[hidden]
    return (loss * chosen).sum() / chosen.sum()


def rate_at(step: int, done: float, options: Options) -> float:
    """Warm-up, a plateau, a linear way down over the last 40 % of the run."""
    return options.rate * max(0.002, min(1.0, (step + 1) / options.warmup, (1 - done) / 0.4))


def train(options: Options, tokenizer: Any) -> Any:
    batches = stream(options)
    first = next(batches)  # workers start before the device does
    model = build(options, tokenizer)
    torch.nn.Module.to(model, options.device)
    model.train()
    optim: Any = optimiser(model, options.rate)
    random_ = torch.Generator(options.device).manual_seed(options.seed)
    half = torch.autocast("cuda", torch.bfloat16) if options.device == "cuda" else nullcontext()
    began, average, seen, step, done = time.time(), 0.0, 0, 0, 0.0
    while done < 1:
        batch = masked(next(batches) if step else first, options, random_)
        for group in optim.param_groups:
            group["lr"] = rate_at(step, done, options)
        with half:
            loss = loss_of(model, batch, model.config.mask_token_id)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        optim.zero_grad(set_to_none=True)
        step, seen, spent = step + 1, seen + batch[0].numel(), time.time() - began
        done = max(step / options.steps, spent / 60 / options.minutes if options.minutes else 0.0)
        if step % 100 == 1 or done >= 1:
            average = loss.item() if step == 1 else 0.5 * average + 0.5 * loss.item()
            print(
                f"step {step}: loss {average:.3f}, {seen / spent:.0f} tokens a second, {spent:.0f} s",
                flush=True,
            )
    return model.eval()


def export(model: Any, folder: Path) -> None:
    """Writes weights (bfloat16) and configuration; the tokenizer is that of the built-in model."""
    torch.nn.Module.to(model, "cpu", torch.bfloat16).save_pretrained(folder)
    # releases 4 of transformers have other names
    amend(folder / "config.json", global_attn_every_n_layers=1, global_rope_theta=10_000.0)
    (folder / "model.safetensors").chmod(0o644)


def main() -> None:
    """Reads the options, trains the network, exports it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in asdict(Options()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--out", type=Path, default=WEIGHTS / "diffusion", help="where the weights go")
    arguments = vars(parser.parse_args())
    out = arguments.pop("out")
    export(train(Options(**arguments), read_tokenizer(WEIGHTS / "model")), out)


if __name__ == "__main__":
    main()
