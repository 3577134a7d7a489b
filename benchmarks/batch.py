"""Masks for a batch: 1 to 512 sequences under mixed schemas, one thread and two; ratios to the better rival.

    python benchmarks/batch.py --engines tokenform,llguidance,xgrammar --plot

Purpose: what one decoding step pays for all masks of its batch.
Invariant: every engine walks the same documents in the same slots; only filling the masks is timed, advancing
is not; automata are compiled anew for each batch size ("cold"; what they share with others in the process
stays), then used again ("warm").
Rejected: batches of one schema (they hide what mixed requests cost).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

import tokenform as tf
from tokenform_bench.data import read_maskbench, sample
from tokenform_bench.documents import write
from tokenform_bench.engines import Engine, EngineMissing, EngineOptions, EngineRefused, load
from tokenform_bench.tables import number, save, text_table
from tokenform_bench.vocabulary import BenchVocabulary, tekken

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass
class Slot:
    """One sequence of the batch: the engine's own handle, the document and the place in it."""

    handle: Any
    tokens: list[int]
    at: int = 0


class TokenformBatch:
    """`fill_masks` over states of different automata, on the engine's own threads."""

    def __init__(self, threads: int, words: int) -> None:
        self.threads, self.words = threads, words

    def start(self, compiled: Any) -> Any:
        return [compiled.automaton, compiled.automaton.start]

    def advance(self, slot: Slot, token: int) -> None:
        slot.handle[1] = slot.handle[0].advance(slot.handle[1], token)

    def filler(self, slots: Sequence[Slot]) -> Callable[[], Any]:
        out = np.zeros((len(slots), self.words), np.uint32)
        return lambda: tf.engine.fill_masks([slot.handle[1] for slot in slots], out, threads=self.threads)


class LLGuidanceBatch:
    """`fill_next_token_bitmask_par` on an executor of so many threads."""

    def __init__(self, threads: int, words: int) -> None:
        from llguidance import LLExecutor

        self.executor, self.words = LLExecutor(num_threads=threads), words

    def start(self, compiled: Any) -> Any:
        return compiled.matcher.deep_copy()

    def advance(self, slot: Slot, token: int) -> None:
        slot.handle.consume_token(token)

    def filler(self, slots: Sequence[Slot]) -> Callable[[], Any]:
        from llguidance.numpy import fill_next_token_bitmask_par

        out = np.zeros((len(slots), self.words), np.int32)
        return lambda: fill_next_token_bitmask_par(
            self.executor, [(s.handle, i) for i, s in enumerate(slots)], out
        )


class XGrammarBatch:
    """`BatchGrammarMatcher` of so many threads."""

    def __init__(self, threads: int, words: int) -> None:
        import xgrammar

        self.matcher, self.words = xgrammar.BatchGrammarMatcher(max_threads=threads), words

    def start(self, compiled: Any) -> Any:
        import xgrammar

        return xgrammar.GrammarMatcher(compiled.compiled)

    def advance(self, slot: Slot, token: int) -> None:
        slot.handle.accept_token(token)

    def filler(self, slots: Sequence[Slot]) -> Callable[[], Any]:
        import torch

        out = torch.zeros((len(slots), self.words), dtype=torch.int32)
        return lambda: self.matcher.batch_fill_next_token_bitmask([s.handle for s in slots], out)


BATCHES: dict[str, Callable[[int, int], Any]] = {
    "tokenform": TokenformBatch,
    "llguidance": LLGuidanceBatch,
    "xgrammar": XGrammarBatch,
}


def schemas_for_all(
    engines: dict[str, Engine], vocabulary: BenchVocabulary, count: int, seed: int
) -> list[tuple[Any, list[int]]]:
    """So many (schema, valid document's tokens) that every engine compiles and accepts."""
    chosen: list[tuple[Any, list[int]]] = []
    for case in sample(read_maskbench(), count * 6, seed):
        texts = [write(d.data) for d in case.documents if d.valid]
        tokens = max((vocabulary.encode(text) for text in texts), key=len, default=[])
        if not 20 <= len(tokens) <= 600:
            continue
        try:
            compiled = {name: engine.json_schema(case.schema) for name, engine in engines.items()}
        except EngineRefused:
            continue
        if all(_accepts(c.session(), tokens) for c in compiled.values()):
            chosen.append((case.schema, tokens))
        if len(chosen) == count:
            break
    return chosen


def _accepts(session: Any, tokens: list[int]) -> bool:
    for token in tokens:
        session.fill()
        if not session.allows(token):
            return False
        session.advance(token)
    return True


def measure(batch: Any, mixed: list[tuple[Any, list[int]]], size: int, steps: int) -> list[int]:
    """Nanoseconds to fill all masks of the batch, for each step; a sequence that ends begins its document
    again.

    `mixed` holds (compiled, tokens); slots of one schema lie side by side.
    """
    order = sorted(i % len(mixed) for i in range(size))
    slots = [Slot(batch.start(mixed[i][0]), mixed[i][1]) for i in order]
    for index, slot in enumerate(slots):  # slots of one schema stand at different places of its document
        for _ in range(index % min(17, len(slot.tokens))):
            batch.advance(slot, slot.tokens[slot.at])
            slot.at += 1
    times = []
    fill = batch.filler(slots)
    for _ in range(steps):
        begun = perf_counter_ns()
        fill()
        times.append(perf_counter_ns() - begun)
        for slot, i in zip(slots, order, strict=True):
            if slot.at == len(slot.tokens):
                slot.handle, slot.at = batch.start(mixed[i][0]), 0
            batch.advance(slot, slot.tokens[slot.at])
            slot.at += 1
    return times


def beside_the_best(rows: list[dict[str, Any]]) -> list[str]:
    """tokenform's mean and median step over those of the better rival, a line each."""
    lines = []
    for ours in (r for r in rows if r["engine"] == "tokenform"):
        same = ("threads", "batch", "phase")
        others = [r for r in rows if r is not ours and all(r[k] == ours[k] for k in same)]
        if others:
            mean, half = (ours[k] / min(r[k] for r in others) for k in ("step_mean_us", "step_p50_us"))
            named = f"{ours['threads']} threads, {ours['batch']} rows, {ours['phase']}"
            lines.append(f"{named}: {mean:.3f} of the better, {half:.3f} by the median")
    return lines


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Microseconds a mask over the batch size, cold and warm."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for axis, phase in zip(axes, ("cold", "warm"), strict=True):
        for engine, threads in dict.fromkeys((r["engine"], r["threads"]) for r in rows):
            line = [r for r in rows if (r["engine"], r["threads"], r["phase"]) == (engine, threads, phase)]
            points = [r["batch"] for r in line], [r["mask_us"] for r in line]
            axis.plot(*points, "o-", label=f"{engine}, {threads} thread{'s' if threads > 1 else ''}")
        axis.set(xscale="log", yscale="log", xlabel=f"sequences in the batch ({phase})")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("µs a mask")
    axes[1].legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engines", default="tokenform,llguidance")
    parser.add_argument("--schemas", type=int, default=32)
    parser.add_argument("--batches", default="1,2,4,8,16,32,64,128,256,512")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", action="store_true", help="write a plot too (needs matplotlib)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    vocabulary = tekken()
    engines: dict[str, Engine] = {}
    for name in arguments.engines.split(","):
        try:
            engines[name] = load(name, vocabulary, EngineOptions())
        except EngineMissing as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
    mixed = schemas_for_all(engines, vocabulary, arguments.schemas, arguments.seed)
    lengths = [len(tokens) for _, tokens in mixed]
    print(f"{len(mixed)} schemas, documents of {min(lengths)} to {max(lengths)} tokens")
    rows = []
    for threads in map(int, arguments.threads.split(",")):
        for name in engines:
            batch = BATCHES[name](threads, vocabulary.words)
            for size in map(int, arguments.batches.split(",")):
                compiled = [(engines[name].json_schema(schema), tokens) for schema, tokens in mixed]
                for phase in ("cold", "warm"):
                    times = np.array(measure(batch, compiled, size, arguments.steps)) / 1e3
                    row: dict[str, Any] = {
                        "engine": name,
                        "threads": threads,
                        "batch": size,
                        "phase": phase,
                        "step_mean_us": times.mean(),
                    }
                    row |= {"step_p50_us": np.median(times), "step_p99_us": np.quantile(times, 0.99)}
                    rows.append(row | {"mask_us": times.mean() / size})
    header = ["engine", "threads", "phase", "batch", "step µs", "step p50", "step p99", "µs a mask"]
    cells = [
        [
            r["engine"],
            r["threads"],
            r["phase"],
            r["batch"],
            *(number(r[k]) for k in ("step_mean_us", "step_p50_us", "step_p99_us", "mask_us")),
        ]
        for r in rows
    ]
    print(text_table(header, cells))
    for line in beside_the_best(rows):
        print(line)
    path = save(arguments.results, "batch", {"rows": rows, "command": sys.argv})
    print(f"results: {path}")
    if arguments.plot:
        plot(rows, path.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
