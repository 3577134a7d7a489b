"""Why a mask takes longer while a model writes than in a benchmark without one: the same masks, both ways.

    python benchmarks/between_passes.py    # half a minute

Documents of generated forms are walked with masks twice, first with nothing between two masks, then with a
forward pass of the built-in model between them: the code and the data of a mask leave the processor's caches.
"first": states that are met for the first time, "again": the same document once more, so that each mask is a
lookup.  Microseconds of mask + advance a token, called from Python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import tokenform as tf
from tokenform.engine import tokenizers
from tokenform_bench.evaluate.generated import generated_cases
from tokenform_bench.tables import number, text_table


def walk(automaton: Any, tokens: Sequence[int], row: Any, between: Callable[[], object]) -> list[float]:
    """Microseconds of mask + advance for each token."""
    times, state = [], automaton.start
    for token in tokens:
        between()
        started = time.perf_counter_ns()
        automaton.fill_masks([state], row)
        state = automaton.advance(state, token)
        times.append((time.perf_counter_ns() - started) / 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=30, help="schemas")
    parser.add_argument("--threads", type=int, default=1, help="of the model")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    writer = tf.Generator()
    row = np.zeros((1, (writer.vocabulary.size + 31) // 32), np.uint32)
    ids = torch.zeros((1, 8), dtype=torch.long)

    @torch.inference_mode()
    def forward_pass() -> None:
        writer.model(ids)

    forms = [case for case in generated_cases(2 * arguments.count) if case.subset == "forms"]
    table = []
    for name, between in (("nothing", lambda: None), ("a forward pass", forward_pass)):
        first: list[float] = []
        again: list[float] = []
        for case in forms:
            automaton = tf.json_schema(case.schema).compile(writer.vocabulary)
            text = json.dumps(case.documents[0].data, ensure_ascii=False)
            tokens = tokenizers.encode(writer.tokenizer, text, specials=False)
            first += walk(automaton, tokens, row, between)
            again += walk(automaton, tokens, row, between)
        figures = [f(times) for times in (first, again) for f in (statistics.median, statistics.fmean)]
        table.append([name, str(len(first)), *map(number, figures)])
    print(
        text_table(["between two masks", "tokens", "first: median", "mean", "again: median", "mean"], table)
    )


if __name__ == "__main__":
    main()
