"""Tokens per target forward and seconds with real models: the built-in one, and any others of one vocabulary.

    python benchmarks/speculation_models.py builtin --count 20       # documents for unseen schemas
    python benchmarks/speculation_models.py free --count 10          # free text: what the default costs
    python benchmarks/speculation_models.py assisted --count 10      # beside transformers' own speculation
    python benchmarks/speculation_models.py folder --model FOLDER    # extraction, free text: a chat model
    python benchmarks/speculation_models.py folder --model FOLDER --device cuda --compile   # on a GPU

Purpose: what speculation saves where a model pays for it.
Invariant: within a table every row runs the same model on the same prompts, one text at a time, greedily
unless said; rows take turns prompt by prompt, each first as often as the others, so that a busy machine slows
all of them alike and none finds masks that another has made more often; the first prompt warms up and is not
counted.  Passes of the target are counted on the model itself.  Texts that differ from the first row's are
counted ("differ"): a lossless row has none but for ties within float32's rounding.
Rejected: batches (transformers' assisted generation takes one sequence at a time).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import tokenform as tf
from tokenform.builtin import load, load_draft
from tokenform.decoding.speculative.drafters import (
    DraftModel,
    Forced,
    Merge,
    Names,
    NGram,
    Recycling,
    Suffix,
    auto,
)
from tokenform.decoding.speculative.policies import Fixed
from tokenform.integrations.transformers import GrammarLogitsProcessor
from tokenform_bench.evaluate.tasks import make_tasks
from tokenform_bench.tables import save, text_table
from training.data import Example, examples
from training.evaluate import EVALUATION_SEED

RESULTS = Path(__file__).resolve().parent / "results"
MOST = 200

Writer = Callable[[Any, int], tuple[list[int], tf.Stats | None]]
"""(prompt, most tokens) -> the text's tokens, and the work behind it where that is known."""
QUESTIONS = (
    "Hello! Who are you?",
    "Why does the moon have phases? Explain it to a child.",
    "Write a short story about a lighthouse keeper who is afraid of the dark.",
    "Give me three reasons to learn to cook.",
    "What is the difference between a lake and a pond?",
)


@dataclass
class Row:
    """What one way of decoding did; texts by prompt."""

    write: Writer
    tokens: int = 0
    forwards: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    each: list[float] = field(default_factory=list)
    texts: list[list[int]] = field(default_factory=list)
    stats: list[tf.Stats] = field(default_factory=list)
    failed: str = ""


class Passes:
    """Counts a model's forward passes."""

    def __init__(self, model: Any) -> None:
        self.count = 0
        model.register_forward_pre_hook(self._seen)

    def _seen(self, *_: Any) -> None:
        self.count += 1


def run(rows: dict[str, Row], prompts: Sequence[Any], most: int, passes: Passes) -> None:
    """Each prompt with each row in turn; the first is not counted."""
    for number, prompt in enumerate(prompts):
        turn = list(rows.values())
        for row in turn[number % len(turn) :] + turn[: number % len(turn)]:
            if row.failed:
                continue
            before, began, cpu = passes.count, time.perf_counter(), time.process_time()
            try:
                text, stats = row.write(prompt, most)
            except Exception as error:
                row.failed = f"{type(error).__name__}: {error}".splitlines()[0][:90]
                continue
            if number:
                row.seconds += time.perf_counter() - began
                row.each.append(time.process_time() - cpu)
                row.cpu += row.each[-1]
                row.forwards += passes.count - before
                row.tokens += len(text)
                row.texts.append(text)
                row.stats += [] if stats is None else [stats]


def generator_row(drafter: Any, constrained: bool, temperature: float = 0.0, policy: Any = None) -> Row:
    """This library's generator on the built-in model."""
    generator = tf.Generator(drafter=drafter, sampler=tf.Local(temperature=temperature), policy=policy)

    def write(example: Example, most: int) -> tuple[list[int], tf.Stats]:
        grammar = grammar_of(example) if constrained else None
        prompt = generator.tokenizer.encode(example.prompt, add_special_tokens=False)
        (result,) = generator.sample(prompt, grammar, max_tokens=most, seed=0)
        return list(result.tokens), result.stats

    return Row(write)


def chat_row(generator: tf.Generator) -> Row:
    """A generator that is asked as a newcomer asks it: a string, and a schema or None."""

    def write(task: tuple[str, Any], most: int) -> tuple[list[int], tf.Stats]:
        grammar = None if task[1] is None else tf.json_schema(task[1])
        (result,) = generator.sample(task[0], grammar, max_tokens=most, seed=0)
        return list(result.tokens), result.stats

    return Row(write)


def transformers_row(model: Any, tokenizer: Any, constrained: bool, **options: Any) -> Row:
    """The `generate` of transformers with the same model."""
    vocabulary = tf.Generator().vocabulary

    def write(example: Example, most: int) -> tuple[list[int], None]:
        ids = torch.tensor([tokenizer.encode(example.prompt, add_special_tokens=False)])
        extra = dict(options)
        if constrained:
            extra["logits_processor"] = [
                GrammarLogitsProcessor(grammar_of(example), vocabulary, max_tokens=most)
            ]
        with torch.inference_mode():
            output = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=most + constrained,
                **extra,
            )
        text = output[0, ids.shape[1] :].tolist()
        return [token for token in text if token not in vocabulary.eos], None

    return Row(write)


def grammar_of(example: Example) -> tf.Grammar:
    assert example.record is not None
    return tf.json_schema(example.record.schema)


def with_model(draft: Any) -> Merge:
    return Merge(Forced(), Names(), Suffix(), DraftModel(draft))


def table(title: str, rows: dict[str, Row]) -> str:
    first = next(iter(rows.values()))
    cells = []
    for name, row in rows.items():
        if row.failed:
            cells.append([name, *"-------", row.failed])
            continue
        differ = sum(a != b for a, b in zip(row.texts, first.texts, strict=True))
        speed = (first.seconds / first.tokens) / (row.seconds / row.tokens)
        cpu = (first.cpu / first.tokens) / (row.cpu / row.tokens)
        figures = [row.tokens / row.forwards, row.seconds, speed, row.cpu, cpu]
        shares = [own / plain for own, plain in zip(row.each, first.each, strict=True)]
        figures += [sum(shares) / len(shares), max(shares)]
        cells.append([name, *(f"{figure:.2f}" for figure in figures), str(differ)])
    titles = ["tokens/forward", "seconds", "speed-up", "CPU seconds", "CPU speed-up", "CPU share", "worst"]
    return f"{title}\n" + text_table(["", *titles, "differ"], cells)


def builtin(prompts: list[Example], passes: Passes, most: int) -> dict[str, dict[str, Row]]:
    draft = load_draft()[0]
    rows = {
        "plain": generator_row(None, True),
        "auto": generator_row("auto", True),
        "with the draft model": generator_row(with_model(draft), True),
    }
    run(rows, prompts, most, passes)
    return {"documents for unseen schemas": rows}


def free(prompts: list[Example], passes: Passes, most: int) -> dict[str, dict[str, Row]]:
    found = {}
    for temperature in (0.0, 2.0):  # at 2 next to nothing can be guessed
        rows = {d or "plain": generator_row(d, False, temperature) for d in (None, "auto")}
        run(rows, prompts, most, passes)
        found[f"free text, temperature {temperature:g}"] = rows
    return found


def assisted(prompts: list[Example], passes: Passes, most: int) -> dict[str, dict[str, Row]]:
    model, tokenizer = load()
    draft, found = load_draft()[0], {}
    for constrained in (False, True):
        rows = {
            "transformers, plain": transformers_row(model, tokenizer, constrained),
            "transformers, assistant model": transformers_row(
                model, tokenizer, constrained, assistant_model=draft
            ),
            # drafts by a rule of lengths, as transformers does, and drafts as they pay
            "tokenform, draft model, Fixed": generator_row(
                Merge(DraftModel(draft)), constrained, policy=Fixed
            ),
            "tokenform, draft model": generator_row(Merge(DraftModel(draft)), constrained),
            "transformers, prompt lookup": transformers_row(
                model, tokenizer, constrained, prompt_lookup_num_tokens=10
            ),
            "tokenform, prompt lookup, Fixed": generator_row(Merge(NGram()), constrained, policy=Fixed),
            "tokenform, prompt lookup": generator_row(Merge(NGram()), constrained),
            "tokenform, auto": generator_row("auto", constrained),
        }
        run(rows, prompts, MOST if constrained else most, passes)
        found["under a schema" if constrained else "free text"] = rows
    return found


def folder(
    path: str, count: int, most: int, device: str | None = None, compiled: Any = ()
) -> dict[str, dict[str, Row]]:
    """A chat model of one's own, with strings as prompts: extraction under schemas, free text."""
    plain = tf.Generator(path, drafter=None, device=device)
    drafters: dict[str, Any] = {"auto": "auto", "auto and Recycling": Merge(*auto().drafters, Recycling())}
    passes, found = Passes(plain.model), {}
    tasks = [(task.prompt, task.schema) for task in make_tasks("extraction", count, 0)]
    for title, asked in (
        ("extraction", [tasks[0], *tasks]),
        ("free text", [(question, None) for question in QUESTIONS]),
    ):
        rows = {"plain": chat_row(plain)}
        for name, drafter in drafters.items():
            rows[name] = chat_row(tf.Generator(plain.model, plain.tokenizer, drafter=drafter))
        for way in compiled:
            for name, drafter in {"plain": None, "auto": "auto"}.items():
                writer = tf.Generator(plain.model, plain.tokenizer, drafter=drafter, compile=way)
                rows[f"{name}, {'graphs' if way == 'graphs' else 'compiled'}"] = chat_row(writer)
                chat_row(writer).write(asked[0], most)  # its shapes are compiled here
        run(rows, asked, most, passes)
        found[title] = rows
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    jobs = {"builtin": builtin, "free": free, "assisted": assisted}
    parser.add_argument("job", choices=[*jobs, "folder"])
    parser.add_argument("--model", default=".real/smollm2", help="for `folder`: a folder or a GGUF file")
    parser.add_argument("--count", type=int, default=20, help="prompts")
    parser.add_argument("--max-tokens", type=int, default=MOST)
    parser.add_argument("--device", help="for `folder`")
    parser.add_argument("--compile", action="store_true", help="for `folder`: rows of compiled passes, too")
    parser.add_argument("--graphs", action="store_true", help="for `folder`: rows of CUDA graphs, too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=EVALUATION_SEED, help="which prompts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.job == "folder":
        ways = arguments.device, ["graphs"] * arguments.graphs + [True] * arguments.compile
        found = folder(arguments.model, arguments.count, arguments.max_tokens, *ways)
    else:
        prompts = examples(arguments.seed, arguments.count + 1, held_out=True, tools=0.0)
        found = jobs[arguments.job](prompts, Passes(load()[0]), arguments.max_tokens)
    kept: dict[str, Any] = {}
    for title, rows in found.items():
        print(table(title, rows))
        kept[title] = {
            name: {k: getattr(row, k) for k in ("tokens", "forwards", "seconds", "cpu", "each", "failed")}
            for name, row in rows.items()
        }
    payload = {"command": sys.argv, "threads": arguments.threads, "prompts": arguments.count, "rows": kept}
    print(f"results: {save(arguments.results, f'speculation-{arguments.job}', payload)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
