"""What a constraint costs end to end on a CPU: seconds of a token beside free decoding of transformers.

    OMP_NUM_THREADS=1 python benchmarks/step.py                  # 131,072 tokens, batch 16
    python benchmarks/step.py --tiny                             # small sizes, to see that it runs

Purpose: ratios of CPU seconds a token: `plain` (`drafter=None`), `auto` (the default) and
`GrammarLogitsProcessor` in `model.generate`, each over `model.generate` without a constraint; also greedy
beside sampling, and texts of few choices with and without log-probabilities.
Invariant: every way runs in turns in one process, the same model and prompts; seconds are the process's own.
Design: a Llama of random weights, whose forward pass is the greater part of a step; texts are of a schema of
bounded strings, as long as the budget allows; free decoding writes as many tokens as the plain loop did.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tokenform as tf
from tokenform.integrations.transformers import GrammarLogitsProcessor
from tokenform_bench.tables import save, text_table

sys.path.insert(0, str(Path(__file__).resolve().parent))
from device import vocabulary_of

RESULTS = Path(__file__).resolve().parent / "results"
NAMES = ("name", "street", "comment")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string", "minLength": 8, "maxLength": 900} for name in NAMES},
    "required": list(NAMES),
    "additionalProperties": False,
}


def llama(size: int, hidden: int, layers: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(1, hidden // 128),
        max_position_embeddings=4096,
        bos_token_id=None,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


class Ways:
    """Each way gives (tokens written, CPU seconds) of one run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.vocabulary = options, vocabulary_of(options.size)
        self.model = llama(options.size, options.hidden, options.layers)
        self.grammar, self.choices = tf.json_schema(SCHEMA), tf.regex("(red|green|blue|black){3000}")
        generator = torch.Generator().manual_seed(1)
        self.prompts = torch.randint(
            300, min(3000, options.size - 1), (options.batch, 12), generator=generator
        )
        self.processor = GrammarLogitsProcessor(self.grammar, self.vocabulary)
        self.passes = 0
        self.model.register_forward_hook(self.count)
        common = {"batch_size": options.batch}
        self.writers = {
            "plain": tf.Generator(self.model, self.vocabulary, drafter=None, **common),
            "auto": tf.Generator(self.model, self.vocabulary, **common),
        }
        self.samplers = {
            "": tf.Local(temperature=0.0),
            " 0.7": tf.Local(temperature=0.7),
            " 0.7 top-p": tf.Local(temperature=0.7, top_p=0.9),
        }

    def begin(self, number: int) -> None:
        """A round of its own prompts, so that nobody remembers its texts."""
        generator, most = torch.Generator().manual_seed(number), min(3000, self.options.size - 1)
        self.prompts = torch.randint(300, most, (self.options.batch, 12), generator=generator)

    def count(self, *_: Any) -> None:
        self.passes += 1

    def generate(self, **extra: Any) -> tuple[int, float]:
        steps = self.options.steps
        begun = time.process_time()
        ids = self.model.generate(
            self.prompts,
            attention_mask=torch.ones_like(self.prompts),
            do_sample=False,
            max_new_tokens=steps,
            pad_token_id=0,
            **extra,
        )
        return len(ids) * (ids.shape[1] - self.prompts.shape[1]), time.process_time() - begun

    def write(self, which: str, sampler: str, **told: bool) -> tuple[int, float, float]:
        """The first tokens of texts that go on far beyond them: no row ends, as in free decoding."""
        writer, chosen = self.writers[which], self.samplers[sampler]
        self.passes, begun = 0, time.process_time()
        rows = [
            row
            for prompt in self.prompts.tolist()
            for row in writer.rows(prompt, self.choices if told else self.grammar, 1, 0, 3000, **told)
        ]
        tokens, run = 0, writer.decoder(chosen, len(rows)).run(rows, len(rows))
        for _ in run:
            tokens += 1
            if tokens >= self.options.steps * len(rows):
                break
        run.close()
        taken = time.process_time() - begun
        return tokens, taken, tokens / len(rows) / self.passes

    def every(self) -> dict[str, Callable[[], tuple[Any, ...]]]:
        ways: dict[str, Callable[[], tuple[Any, ...]]] = {
            "free": self.generate,
            "processor": lambda: self.generate(logits_processor=[self.processor]),
        }
        for sampler in self.samplers:
            ways[f"plain{sampler}"] = lambda sampler=sampler: self.write("plain", sampler)
        ways["auto"] = lambda: self.write("auto", "")
        for told in (True, False):  # where the mask allows few tokens
            name = f"choices-logprobs={told}"
            ways[name] = lambda told=told: self.write("plain", "", logprobs=told)
        return ways


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=131_072)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=64, help="most tokens of a text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", default="", help="a part of them, by comma")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        options.size, options.hidden, options.layers, options.steps, options.rounds = 2048, 64, 1, 96, 2
    torch.set_num_threads(1)
    run = Ways(options)
    chosen = options.ways.split(",") if options.ways else list(run.every())
    ways = {name: way for name, way in run.every().items() if name in chosen}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    passes: dict[str, float] = {}
    for number in range(options.rounds + 1):
        run.begin(number)
        for name, way in ways.items():
            tokens, taken, *rest = way()
            passes[name] = rest[0] if rest else 1.0
            if number:  # the first round is to warm up
                seconds[name].append(taken / tokens)
    rows, found = [], {}
    for name, times in seconds.items():
        ratio = statistics.median(one / free for one, free in zip(times, seconds["free"], strict=True))
        found[name] = {"seconds": times, "ratio": ratio, "tokens_per_forward": passes[name]}
        rows.append([name, f"{1e3 * statistics.median(times):.2f}", f"{ratio:.3f}", f"{passes[name]:.2f}"])
    print(text_table(["way", "CPU ms a token", "over free", "tokens a pass"], rows))
    print(f"results: {save(RESULTS, 'step', {'options': vars(options), 'ways': found})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
