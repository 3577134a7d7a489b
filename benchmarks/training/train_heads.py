"""Trains heads for `tf.drafters.Heads` on what a model itself writes.

    python -m benchmarks.training.train_heads builtin OUT --texts 3000    # minutes on a CPU
    python -m benchmarks.training.train_heads MODEL OUT --minutes 4 --device cuda
    python -m benchmarks.training.train_heads MODEL OUT --texts 600 --steps 800 --data texts.pt
    python -m benchmarks.training.train_heads MODEL OUT --kinds medusa hydra-open --data texts.pt

Purpose: the model is frozen; it writes texts under schemas and free ones, half of them greedily, and its
hidden states there are kept in memory.  Free prompts are questions of `choices.jsonl` and what the model
itself writes in a user's place (Xu et al. 2024, Magpie).
Law: cross-entropy to the model's own distribution i + 2 places on, in free text; under a schema to the token
that was written, for the mask was in that draw.  Kinds that end in `-open` have no loss at what `Forced` and
`Names` guess under the schema: heads are not needed there.
The built-in model, which knows no chats, has its own training prompts for both.
Invariant: one seed, `--texts` and `--steps` give one result; with `--minutes` a clock decides.
The tasks of `extraction_aside` and the prompts of `free_text.txt` are not among them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import tokenform as tf
from tokenform.decoding.speculative.drafters.head_stack import Stack
from tokenform.decoding.speculative.policies import Fixed
from tokenform_bench.evaluate.tasks import make_tasks

from .data import examples

_TOGETHER = 32  # texts of a batch on a CPU; a GPU takes eight times as many
_WINDOW = 32  # places beside each other that are trained on together
_HELD_OUT = 0.05
_FAMILIES = ("extraction", "arithmetic", "shuffled_objects", "last_letters")


@dataclass
class Texts:
    """What was written, one text behind the other.

    Attributes:
        hidden: float16 [N, d], the state that each token was drawn at.
        tokens, text: int64 [N], the token, and the number of its text.
        guessed, constrained: bool [N], whether the constraint's own drafts held it; whether there was one.
    """

    hidden: torch.Tensor
    tokens: torch.Tensor
    text: torch.Tensor
    guessed: torch.Tensor
    constrained: torch.Tensor

    def split(self) -> tuple[Texts, Texts]:
        """Those to train on, and the last ones."""
        cut = int((self.text < self.text.max() * (1 - _HELD_OUT)).sum())
        parts = [(part[:cut], part[cut:]) for part in vars(self).values()]
        return Texts(*(a for a, _ in parts)), Texts(*(b for _, b in parts))


def schema_tasks(seed: int, families: Sequence[str]) -> Iterator[tuple[str, tf.Grammar]]:
    """Prompts with schemas, endlessly: of families, and those of the built-in model."""
    for number in itertools.count(seed * 1000):
        found = [task for family in families for task in make_tasks(family, 8, number)]
        made = [(task.prompt, task.schema) for task in found]
        made += [(e.prompt, e.record.schema) for e in examples(number, 32, tools=0.0) if e.record is not None]
        random.Random(number).shuffle(made)
        for prompt, schema in made:
            yield prompt, tf.json_schema(schema)


def free_prompts(gen: tf.Generator, seed: int, together: int) -> Iterator[str]:
    """Questions of this repository and of the model, as many of each; then the model's alone."""
    folder = Path(__file__).resolve().parents[1]
    rows = (folder / "choices.jsonl").read_text().splitlines()
    known = [json.loads(row)["question"] for row in rows]
    random.Random(seed).shuffle(known)
    aside = set((folder / "free_text.txt").read_text().splitlines())
    mark = "\x02"
    shown = gen.tokenizer.apply_chat_template([{"role": "user", "content": mark}], tokenize=False)
    head = gen.tokenizer.encode(shown.split(mark)[0], add_special_tokens=False)
    for number in itertools.count(seed * 1000):
        own = gen.sample(
            [head] * together, max_tokens=64, sampler=tf.Local(1.0, top_p=0.95), seed=number, logprobs=False
        )
        found = known[:together] + [one[0].text.strip() for one in own]
        known = known[together:]
        yield from (one for one in found if one and one not in aside)


def written(gen: tf.Generator, together: int, seed: int, chats: bool) -> Iterator[list[Any]]:
    """Batches of results, with whether a schema was asked for; endlessly."""
    tasks = schema_tasks(seed, _FAMILIES if chats else ())
    questions = free_prompts(gen, seed, together) if chats else (one for one, _ in schema_tasks(~seed, ()))
    for number in itertools.count(seed * 1000):
        sampler = tf.Local(0.0 if number % 4 < 2 else 0.7)
        if number % 2:
            prompts, grammars = zip(*itertools.islice(tasks, together), strict=True)
            asked: dict[str, Any] = {"schema": list(grammars), "max_tokens": 160}
        else:
            prompts, asked = tuple(itertools.islice(questions, together)), {"max_tokens": 96}
        asked |= {"sampler": sampler, "seed": number, "logprobs": False, "on_error": "return"}
        found = [one[0] for one in gen.sample(list(prompts), **asked)]
        yield [(one, bool(number % 2)) for one in found if isinstance(one, tf.Result) and one.tokens]


@torch.inference_mode()
def read(model: Any, results: list[Any], first: int) -> Texts:
    """The states along some texts, whose numbers begin with `first`."""
    found: list[list[torch.Tensor]] = []
    for at in range(0, len(results), 16):
        part = results[at : at + 16]
        every = [[*one.prompt.ids, *one.tokens] for one, _ in part]
        ids = torch.zeros(len(part), max(map(len, every)), dtype=torch.long)
        for row, own in enumerate(every):
            ids[row, : len(own)] = torch.tensor(own)
        # padded on the right: what is behind a text is seen by nobody
        states = model.base_model(input_ids=ids.to(model.device), use_cache=False).last_hidden_state
        for row, (one, constrained) in enumerate(part):
            begin, count = len(one.prompt.ids) - 1, len(one.tokens)
            guessed = torch.tensor(one.guessed) if constrained else torch.zeros(count, dtype=torch.bool)
            found.append(
                [
                    states[row, begin : begin + count].to(torch.float16),
                    torch.tensor(one.tokens),
                    torch.full((count,), first + at + row),
                    guessed,
                    torch.full((count,), constrained),
                ]
            )
    return Texts(*(torch.cat(parts).to(model.device) for parts in zip(*found, strict=True)))


def gather(options: argparse.Namespace, gen: tf.Generator, began: float) -> Texts:
    """Texts up to the count, or the time for them; those of `--data` where it is there."""
    if options.data and options.data.exists():
        return Texts(**torch.load(options.data, map_location=gen.model.device, weights_only=True))
    found, count, tokens = list[Texts](), 0, 0
    until = began + 60 * options.share * options.minutes
    for results in written(gen, gen.batch_size, options.seed, options.model != "builtin"):
        found.append(read(gen.model, results, count))
        count, tokens = count + len(results), tokens + len(found[-1].tokens)
        print(f"{time.time() - began:.0f} s: {count} texts, {tokens} tokens", flush=True)
        if time.time() > until if options.minutes else count >= options.texts:
            break
    made = Texts(*(torch.cat(parts) for parts in zip(*(vars(one).values() for one in found), strict=True)))
    if options.data:
        torch.save(vars(made), options.data)
    return made


class Trained:
    """Heads on their way.

    Args:
        texts: whose tokens are drafted, the most frequent ones; then those with the lowest ids.
        kind: "medusa" or "hydra", or one of these and "-open".
    """

    def __init__(self, model: Any, texts: Texts, kind: str, options: argparse.Namespace) -> None:
        self.options, self.open, device = options, kind.endswith("-open"), model.device
        hydra = kind.startswith("hydra")
        output = model.get_output_embeddings().weight.detach()
        self.size = len(output)
        counts = torch.bincount(texts.tokens, minlength=self.size).double()
        counts -= torch.arange(self.size, device=device) / self.size
        kept = counts.topk(min(options.tokens, self.size)).indices.sort().values
        self.column = torch.full((self.size,), -1, device=device).scatter(
            0, kept, torch.arange(len(kept), device=device)
        )
        self.output, self.embedding = output[kept], model.get_input_embeddings().weight.detach()
        d = output.shape[1]
        weights = dict[str, torch.Tensor]()
        for i in range(options.heads):
            weights[f"{i}.0.linear.weight"] = torch.zeros(d, d + d * hydra, device=device)
            weights[f"{i}.0.linear.bias"] = torch.zeros(d, device=device)
            weights[f"{i}.projection.weight"] = torch.eye(d, device=device)
        name = getattr(model.config, "_name_or_path", "")
        self.weights = [tensor.requires_grad_() for tensor in weights.values()]
        self.stack = Stack({**weights, "tokens": kept.int()}, hydra, Path(name).name)

    def loss(self, texts: Texts, starts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss, and (right, tried) of each head [k, 2], at windows that begin there."""
        k = self.options.heads
        at = starts[:, None] + torch.arange(_WINDOW + k, device=starts.device)
        hidden = texts.hidden[at].to(self.embedding.dtype)
        tokens, text = texts.tokens[at], texts.text[at]
        with torch.no_grad():
            aims = torch.softmax((hidden @ self.output.T).float(), -1)
        state, here = hidden[:, :_WINDOW], slice(0, _WINDOW)
        total, told = hidden.new_zeros((), dtype=torch.float32), []
        for i in range(k):
            own = self.stack.state(i, state, self.embedding[tokens[:, i : i + _WINDOW]])
            there = slice(i + 1, i + 1 + _WINDOW)
            logprobs = torch.log_softmax((own @ self.output.T).float(), -1)
            column, hard = self.column[tokens[:, there]], texts.constrained[at[:, there]]
            picked = -logprobs.gather(-1, column.clamp(min=0)[..., None])[..., 0]
            loss = torch.where(hard, picked, -(aims[:, there] * logprobs).sum(-1))
            counts = (text[:, there] == text[:, here]) & ((column >= 0) | ~hard)
            if self.open:
                counts &= ~texts.guessed[at[:, there]]
            total = total + 0.8**i * (loss * counts).sum() / counts.sum().clamp(min=1)
            asked = (text[:, there] == text[:, here]) & ~texts.guessed[at[:, there]]
            right = asked & (logprobs.argmax(-1) == column)
            told.append(torch.stack([right.sum(), asked.sum()]))
            state = own if self.stack.sequential else state
        return total, torch.stack(told)


def train(trained: Trained, texts: Texts, until: float) -> None:
    """Steps up to their count, or the end of the time; the rate falls to nothing."""
    options, device = trained.options, texts.tokens.device
    own, aside = texts.split()
    optim = torch.optim.AdamW(trained.weights, lr=options.rate, betas=(0.9, 0.95), weight_decay=0.01)
    chance = torch.Generator(device).manual_seed(options.seed)
    last, step, done, started = len(own.tokens) - _WINDOW - options.heads, 0, 0.0, time.time()
    half = torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
    while done < 1:
        starts = torch.randint(max(last, 1), (options.windows,), generator=chance, device=device)
        for group in optim.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / 50) * max(0.01, 1 - done)
        with half:
            loss, _ = trained.loss(own, starts)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.weights, 1.0)
        optim.step()
        optim.zero_grad(set_to_none=True)
        step += 1
        done = step / options.steps
        if options.minutes:
            done = max(done, (time.time() - started) / max(until - started, 1))
        if step % options.tell == 0 or done >= 1:
            took, right = time.time() - started, judged(trained, aside)
            print(f"{took:.0f} s, step {step}: loss {loss.item():.3f}, {right}", flush=True)


@torch.no_grad()
def judged(trained: Trained, texts: Texts) -> str:
    """The share of tokens that each head has right, of those that the constraint's drafts have not."""
    last = len(texts.tokens) - _WINDOW - trained.options.heads
    starts = torch.arange(0, max(last, 1), _WINDOW, device=texts.tokens.device)
    told = sum(trained.loss(texts, part)[1] for part in starts.split(trained.options.windows))
    return "right " + ", ".join(f"{right / max(asked, 1):.3f}" for right, asked in told.tolist())


def main() -> None:
    """Reads the options, writes texts, trains heads, writes these."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a folder of a chat model; or: builtin")
    parser.add_argument("out", type=Path, help="a folder for those of each kind")
    kinds = [form + end for form in ("hydra", "medusa") for end in ("", "-open")]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=["hydra", "hydra-open", "medusa"])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=8192, help="that heads know")
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--minutes", type=float, default=0.0, help="that it takes, or less if the steps do")
    parser.add_argument("--share", type=float, default=0.6, help="of the minutes, for writing")
    parser.add_argument("--windows", type=int, default=16, help=f"of {_WINDOW} places, a step; 8 x on a GPU")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument(
        "--data", type=Path, help="a file for the texts: read where it is there, else written"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tell", type=int, default=50)
    options, began = parser.parse_args(), time.time()
    times = 1 if options.device == "cpu" else 8
    options.windows *= times
    drafts = tf.drafters.Merge(tf.drafters.Forced(), tf.drafters.Names())
    own: dict[str, Any] = {"model": options.model, "device": options.device}
    if options.model == "builtin":
        own = {"raw": True}
    gen = tf.Generator(
        **own, drafter=drafts, policy=lambda: Fixed(8 if times == 1 else 16), batch_size=_TOGETHER * times,
        prompt_cache=0,
    )  # fmt: skip
    gen.model.requires_grad_(False)
    texts = gather(options, gen, began)
    for number, kind in enumerate(options.kinds):
        print(kind, flush=True)
        trained, left = Trained(gen.model, texts, kind, options), began + 60 * options.minutes - time.time()
        train(trained, texts, time.time() + left / (len(options.kinds) - number))
        trained.stack.write(options.out / kind)


if __name__ == "__main__":
    main()
