"""Trains the built-in model and its draft: `python -m benchmarks.training.train`.

Purpose: one command from nothing to `weights/`: tokenizer, model, draft model, all from a fixed seed.
A run that was cut off goes on from its last checkpoint.  Options scale it up.
Invariant: step i sees the same data whatever was interrupted.
Complexity: about 6 * parameters operations a token; the default model reads 3,700 tokens a second on an
idle core with AVX2.
Rejected: the loss on all tokens alike.  Prompts hold random names that nobody can predict, and logits for
them take time: prompts carry a small weight on a quarter of their tokens.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as nnf
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from tokenform.builtin.loading import WEIGHTS, read_tokenizer
from tokenform.errors import OptionError

from .batching import Batch, batches
from .data import examples
from .initial import lay_out_induction
from .vocabulary import train_tokenizer


@dataclass
class Options:
    """What a run is: the shape of the network, the data, the optimiser."""

    hidden: int = 192
    layers: int = 4
    heads: int = 4
    feed: int = 384
    vocabulary: int = 2048
    context: int = 1024
    steps: int = 9000
    batch_tokens: int = 2048
    rate: float = 2e-3
    warmup: int = 100
    text_weight: float = 0.05
    seed: int = 1
    device: str = "cpu"
    threads: int = 0
    distill: float = 0.0
    checkpoint_every: int = 50


def build(options: Options, tokenizer: Any) -> LlamaForCausalLM:
    """A fresh network of the wanted shape, float32."""
    torch.manual_seed(options.seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.heads,
        intermediate_size=options.feed,
        max_position_embeddings=options.context,
        tie_word_embeddings=True,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        initializer_range=options.hidden**-0.5 * 0.5,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    lay_out_induction(model, options.seed)
    return model


def curriculum(step: int) -> dict[str, Any]:
    """First records with meaningless keys, whose values can only be copied; then the full mix."""
    return {"unknown": 0.5, "nested": 0.0, "tools": 0.1} if step < 300 else {}


def rate_at(step: int, options: Options) -> float:
    """Warm-up, a plateau, and a linear way down over the last 30 % of the steps.

    The plateau (rather than a cosine) lets a run be shortened or prolonged by resuming with another `steps`.
    """
    up = (step + 1) / options.warmup
    down = (options.steps - step) / max(1.0, 0.3 * options.steps)
    return options.rate * max(0.005, min(1.0, up, down))


def loss_of(model: Any, batch: Batch, device: str, teacher: Any = None, distill: float = 0.0) -> torch.Tensor:
    """Weighted cross-entropy of the next token; logits only where the weight is not zero.

    With a teacher, `distill` of the loss is the cross-entropy against the teacher's distribution.
    """
    ids, weights = batch.ids.to(device), batch.weights.to(device)
    keep = weights.reshape(-1) > 0
    chosen, targets = weights.reshape(-1)[keep], ids[:, 1:].reshape(-1)[keep]
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    logits = model.lm_head(hidden.reshape(-1, hidden.shape[-1])[keep])
    loss = nnf.cross_entropy(logits, targets, reduction="none")
    if teacher is not None and distill > 0:
        with torch.no_grad():
            seen = teacher.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
            target = teacher.lm_head(seen.reshape(-1, seen.shape[-1])[keep]).softmax(-1)
        loss = (1 - distill) * loss + distill * nnf.cross_entropy(logits, target, reduction="none")
    return (loss * chosen).sum() / chosen.sum()


def optimiser(model: Any, rate: float) -> torch.optim.Optimizer:
    """AdamW; matrices decay, gains do not."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    gains = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-9)


def resume(model: Any, optim: torch.optim.Optimizer, checkpoint: Path) -> int:
    """Goes on from a checkpoint; returns the number of steps that it has behind it.

    Raises:
        OptionError: the checkpoint is that of a network of another shape.
    """
    state = torch.load(checkpoint, weights_only=True)
    try:
        model.load_state_dict(state["model"])
    except RuntimeError as error:
        raise OptionError(
            f"{checkpoint} holds a network of another shape: give the options that it was begun with, "
            "or another --runs"
        ) from error
    optim.load_state_dict(state["optimiser"])
    return int(state["step"])


def train(options: Options, tokenizer: Any, folder: Path, teacher: Any = None) -> Any:
    """Trains one network, with checkpoints in `folder`; returns it."""
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    model = build(options, tokenizer)
    torch.nn.Module.to(model, options.device)
    optim = optimiser(model, options.rate)
    checkpoint = folder / "checkpoint.pt"
    start = resume(model, optim, checkpoint) if checkpoint.exists() else 0
    stream = batches(
        tokenizer,
        seed=options.seed,
        tokens=options.batch_tokens,
        context=options.context,
        text_weight=options.text_weight,
        start=start,
        options=curriculum,
    )
    model.train()
    size = sum(p.numel() for p in model.parameters())
    bar = tqdm(total=options.steps, initial=start, desc=f"{folder.name} {size / 1e6:.2f}M", mininterval=10)
    average, began, seen = 0.0, time.time(), 0
    for step in range(start, options.steps):
        batch = next(stream)
        for group in optim.param_groups:
            group["lr"] = rate_at(step, options)
        loss = loss_of(model, batch, options.device, teacher, options.distill)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        optim.zero_grad(set_to_none=True)
        seen += batch.ids.numel()
        average = loss.item() if step == start else 0.98 * average + 0.02 * loss.item()
        bar.update(1)
        bar.set_postfix(loss=f"{average:.3f}", tps=f"{seen / (time.time() - began):.0f}", refresh=False)
        if (step + 1) % options.checkpoint_every == 0 or step + 1 == options.steps:
            state = {
                "model": model.state_dict(),
                "optimiser": optim.state_dict(),
                "step": step + 1,
            }
            torch.save(state, folder / "checkpoint.new")
            (folder / "checkpoint.new").replace(checkpoint)
    bar.close()
    return model.eval()


def export(model: Any, tokenizer: Any, folder: Path) -> None:
    """Writes weights (bfloat16), configuration and tokenizer, as `transformers` reads them."""
    shutil.rmtree(folder, ignore_errors=True)
    model.to("cpu", torch.bfloat16).save_pretrained(folder)
    config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    amend(folder / "config.json", rope_theta=model.config.rope_parameters["rope_theta"])
    amend(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    (folder / "model.safetensors").chmod(0o644)


def amend(path: Path, **entries: Any) -> None:
    """Adds entries that releases 4 of `transformers` look for; takes out traces of how the file was made."""
    kept = {
        k: v for k, v in json.loads(path.read_text()).items() if k not in ("is_local", "local_files_only")
    }
    path.write_text(json.dumps({**kept, **entries}, indent=2) + "\n")


def make_tokenizer(options: Options, folder: Path) -> Any:
    """The tokenizer of this run: made once, then read back."""
    if not (folder / "tokenizer.json").exists():
        texts = (e.prompt + e.answer for e in examples(options.seed + 7, 20_000))
        train_tokenizer(texts, options.vocabulary, options.context).save_pretrained(folder)
    return read_tokenizer(folder)


def draft_options(options: Options) -> Options:
    """The draft model: a fifth of the size or less (0.34 of 1.87 million parameters by default)."""
    changes = {"hidden": 96, "layers": 2, "heads": 2, "feed": 128, "rate": 3e-3}
    return Options(**{**asdict(options), **changes})


def main() -> None:
    """Reads the options, trains both networks, exports them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in asdict(Options()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--runs", type=Path, default=Path(".train/builtin"), help="checkpoints")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="where the finished weights go")
    parser.add_argument("--draft-steps", type=int, default=4000)
    parser.add_argument("--only", choices=["model", "draft", "both"], default="both")
    arguments = vars(parser.parse_args())
    runs, out, draft_steps, only = (arguments.pop(k) for k in ("runs", "out", "draft_steps", "only"))
    options = Options(**arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    tokenizer = make_tokenizer(options, runs / "tokenizer")
    model = None
    if only != "draft":
        model = train(options, tokenizer, runs / "model")
        export(model, tokenizer, out / "model")
    if only != "model":
        small = draft_options(options)
        small.steps = draft_steps
        teacher = None
        if options.distill > 0:
            teacher = LlamaForCausalLM.from_pretrained(out / "model", dtype=torch.float32)
            torch.nn.Module.to(teacher, options.device)
            teacher.eval()
        export(train(small, tokenizer, runs / "draft", teacher), tokenizer, out / "draft")


if __name__ == "__main__":
    main()
