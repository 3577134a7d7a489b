"""What the constraint costs in a step of many particles over a large vocabulary.

    OMP_NUM_THREADS=1 python benchmarks/particles.py --particles 16 --size 131072

Purpose: the share of a step of `SMC` that is spent on the constraint: masks as ids, states, distances to an
end, and the restriction of distributions to masks.  The rest is the model, its softmax and the draws.
Model: the built-in one with its table widened: further tokens are pairs and triples of its own, with the
output row of their first piece.  CPU time of the process, one thread; masks are cold in the first run and
known in the others.
Rejected: wall time (the machine may be shared).
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

import tokenform as tf
from tokenform.decoding.aligned.problem import Problem
from tokenform_bench.tables import save, text_table

RESULTS = Path(__file__).resolve().parent / "results"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "year": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    },
    "required": ["name", "year", "tags"],
    "additionalProperties": False,
}
WORK = ("advance", "forced", "candidates", "check", "accepts", "distance", "within")


def widened(writer: Any, size: int) -> tuple[Any, tf.Vocabulary]:
    """The built-in model and its vocabulary with `size` tokens."""
    base = writer.vocabulary
    pieces = [(token, i) for i, token in enumerate(base.tokens) if len(token) >= 2 and i not in base.special]
    rng = np.random.default_rng(0)
    tokens, first, seen = list(base.tokens), list(range(base.size)), set(base.tokens)
    while len(tokens) < size:
        parts = [pieces[i] for i in rng.integers(len(pieces), size=int(rng.integers(2, 4)))]
        text = b"".join(part for part, _ in parts)
        if text not in seen:
            seen.add(text)
            tokens.append(text)
            first.append(parts[0][1])
    model = copy.deepcopy(writer.model)
    model.resize_token_embeddings(size, mean_resizing=False)
    with torch.no_grad():
        for table in (model.get_input_embeddings().weight, model.get_output_embeddings().weight):
            table.copy_(table[torch.tensor(first)])
    return model, tf.Vocabulary(tokens, eos=list(base.eos), special=list(base.special))


class Clock:
    """CPU seconds spent in the functions that it wraps, nested calls counted once."""

    def __init__(self) -> None:
        self.seconds, self._deep = 0.0, 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            start, self._deep = process_time(), self._deep + 1
            try:
                return function(*args, **options)
            finally:
                self._deep -= 1
                self.seconds += (process_time() - start) if self._deep == 0 else 0.0

        return timed


def measured(sampler: Any, problem: Problem, seed: int) -> dict[str, float]:
    """One run: steps, CPU seconds a step, and the share of the constraint."""
    clock = Clock()
    for name in WORK:
        setattr(problem.constraint, name, clock.wrap(getattr(problem.constraint, name)))
    problem.candidates = clock.wrap(problem.candidates)  # type: ignore[method-assign]
    problem.distribution_of = clock.wrap(problem.distribution_of)  # type: ignore[method-assign]
    start = process_time()
    sample = sampler.particles(problem, seed=seed)
    seconds = process_time() - start
    steps = max(sample.counts.forwards, 1)
    return {
        "steps": steps,
        "tokens": sample.counts.tokens,
        "ms_a_step": 1000 * seconds / steps,
        "constraint_ms_a_step": 1000 * clock.seconds / steps,
        "share": clock.seconds / seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--size", type=int, default=131_072)
    parser.add_argument("--max-tokens", type=int, default=40)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    base = tf.Generator()
    grammar = tf.json_schema(SCHEMA)
    ids = base.prompt_ids("Ada Lovelace, born 1815 in London, mathematician.", grammar)
    model, vocabulary = widened(base, options.size)
    writer = tf.Generator(model, vocabulary)
    lines = []
    for seed in range(options.runs):
        sampler = tf.SMC(options.particles, temperature=1.2)
        problem = writer.problem(ids, grammar, max_tokens=options.max_tokens, sampler=sampler)
        lines.append({"masks": "known" if seed else "cold", **measured(sampler, problem, seed)})
    rows = [[v if isinstance(v, str) else f"{v:.4g}" for v in line.values()] for line in lines]
    print(text_table(list(lines[0]), rows))
    save(RESULTS, "particles", {"options": vars(options), "lines": lines})
    return 0


if __name__ == "__main__":
    sys.exit(main())
