"""Canvases of MaskBench documents with holes: verdicts, times, memory.

    python benchmarks/canvas.py --count 100               # some minutes on one core
    python benchmarks/canvas.py --count 1000 --holes 10,50,90

Documents of development schemas as `json.dumps` writes them, in Tekken's 131,072 tokens, with end-of-text
tokens behind them; random positions are opened. Checked: the canvas has fillings; at up to 8 open positions
the document's own token is allowed, and a drawn filling is a document that jsonschema accepts; an invalid
document without holes has none. Times are CPU time of one thread: the first full table of a new canvas (the
automaton's own memory included), the same for a further canvas of the automaton, and a commit of one drawn
token with the question what another position allows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

import tokenform as tf
from tokenform_bench.data import Case, read_maskbench, sample
from tokenform_bench.tables import number, save, text_table
from tokenform_bench.vocabulary import BenchVocabulary, tekken

RESULTS = Path(__file__).resolve().parent / "results"
PADDING = 8


def clock() -> float:
    """Milliseconds of this thread."""
    return time.thread_time() * 1e3


class Run:
    """What was found under one share of holes."""

    def __init__(self, share: int, most: int) -> None:
        self.share, self.most = share, most
        self.verdicts: Counter[str] = Counter()
        self.first: list[float] = []
        self.again: list[float] = []
        self.commit: list[float] = []
        self.bytes: list[int] = []
        self.states: list[int] = []
        self.wrong: list[str] = []
        self.limits: Counter[str] = Counter()

    def document(self, automaton: Any, tokens: list[int], schema: Any, name: str, rng: random.Random) -> None:
        holes: list[int | None] = [None if rng.random() * 100 < self.share else t for t in tokens]
        begin = clock()
        canvas = tf.Canvas(automaton, holes)
        try:
            fits = canvas.feasible()
            canvas.masks(canvas.open)
        except tf.errors.LimitExceeded as error:
            self.verdicts["limit"] += 1
            self.limits[str(error)[:60]] += 1
            return
        self.first.append(clock() - begin)
        begin = clock()
        other = tf.Canvas(automaton, holes)
        other.masks(other.open)
        self.again.append(clock() - begin)
        states, _, held = canvas._core.size()
        self.bytes.append(held)
        self.states.append(states)
        try:
            wrong = self.check(canvas, tokens, schema, fits, rng)
        except tf.errors.LimitExceeded:
            self.verdicts["limit later"] += 1
            return
        self.verdicts["wrong" if wrong else "right"] += 1
        if wrong:
            self.wrong.append(f"{name}: {wrong}")

    def check(
        self, canvas: tf.Canvas, tokens: list[int], schema: Any, fits: bool, rng: random.Random
    ) -> str | None:
        if not fits:
            return "the document's own tokens are refused"
        places = rng.sample(canvas.open, min(8, len(canvas.open)))
        for at in places:
            if tokens[at] not in canvas.allowed(at):
                return f"token {tokens[at]} is refused at {at}"
        for at in places:
            begin = clock()
            canvas.fill(at, int(rng.choice(canvas.allowed(at).tolist())))
            if left := canvas.open:
                canvas.masks([min(left, key=lambda one: abs(one - at))])
            self.commit.append(clock() - begin)
        vocabulary = canvas.vocabulary
        filling = canvas.sample(
            np.zeros((len(tokens), vocabulary.size), np.float32), seed=rng.randrange(1 << 30)
        )
        text = b"".join(
            vocabulary.tokens[t] for t in filling.tokens.tolist() if t not in vocabulary.eos
        ).decode()
        try:
            value = json.loads(text)
        except ValueError as error:
            return f"{error}: {text}"
        valid = jsonschema.validators.validator_for(schema)(schema).is_valid(value)
        return None if valid else f"not valid: {text}"

    def row(self) -> list[str]:
        def middle(values: list[Any], q: float = 0.5) -> str:
            return number(float(np.quantile(values, q))) if values else "-"

        right, all_ = self.verdicts["right"], sum(self.verdicts.values())
        return [
            f"{self.share} %",
            f"{right}/{all_}",
            str(self.verdicts["wrong"]),
            str(self.verdicts["limit"] + self.verdicts["limit later"]),
            middle(self.first),
            middle(self.first, 0.9),
            middle(self.again),
            middle(self.commit),
            middle(self.commit, 0.9),
            middle([b / 2**20 for b in self.bytes]),
            middle([b / 2**20 for b in self.bytes], 1.0),
            middle(self.states),
        ]


HEADER = [
    "holes",
    "right",
    "wrong",
    "limit",
    "first ms",
    "p90",
    "again ms",
    "commit ms",
    "p90",
    "MiB",
    "most",
    "states",
]


def documents(cases: list[Case], bench: BenchVocabulary, most: int, padded: bool) -> Any:
    """(grammar's kind, automaton, schema, tokens, name) of a valid document of each schema that compiles."""
    vocabulary = tf.Vocabulary(bench.tokens, [bench.eos], bench.special)
    for case in cases:
        valid = [d.data for d in case.documents if d.valid]
        if not valid:
            continue
        grammars = grammars_of(case.schema)
        for data in valid:
            tokens = bench.encode(json.dumps(data, ensure_ascii=False))
            if len(tokens) >= most:
                continue
            text = b"".join(bench.tokens[t] for t in tokens)
            tokens += [bench.eos] * (most - len(tokens) if padded else PADDING)
            found = next(((kind, a) for kind, a in compiled(grammars, vocabulary) if a.matches(text)), None)
            if found is not None:
                yield *found, case.schema, tokens, case.id
                break


def grammars_of(schema: Any) -> list[tuple[str, tf.Grammar]]:
    """What a model writes of the schema, all that it allows in the declared order, and in any; none where the
    engine refuses it."""
    try:
        declared = tf.json_schema(schema)
        return [
            ("written", declared.for_writing),
            ("declared", declared),
            ("any order", tf.json_schema(schema, order="any")),
        ]
    except tf.TokenformError:
        return []


def compiled(grammars: list[tuple[str, tf.Grammar]], vocabulary: tf.Vocabulary) -> Any:
    for kind, grammar in grammars:
        with contextlib.suppress(tf.TokenformError):
            yield kind, grammar.compile(vocabulary)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="schemas")
    parser.add_argument("--holes", default="10,50,90", help="percent, with commas")
    parser.add_argument("--length", type=int, default=256, help="most positions of a canvas")
    parser.add_argument("--padded", action="store_true", help="end-of-text tokens up to --length positions")
    parser.add_argument("--minutes", type=float, default=60.0, help="no document is begun after these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="a line for each canvas")
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results")
    told = parser.parse_args()
    bench, rng = tekken(), random.Random(told.seed)
    runs = [Run(int(share), told.length) for share in told.holes.split(",")]
    cases = sample(read_maskbench(None), told.count, told.seed)
    lengths, end = [], time.monotonic() + 60 * told.minutes
    kinds: Counter[str] = Counter()
    for kind, automaton, schema, tokens, name in documents(list(cases), bench, told.length, told.padded):
        lengths.append(len(tokens))
        kinds[kind] += 1
        for run in runs:
            begin = clock()
            run.document(automaton, tokens, schema, name, rng)
            if told.verbose:
                print(f"{name} {kind} {run.share} %: {run.verdicts} {clock() - begin:.0f} ms", flush=True)
        if time.monotonic() > end:
            break
    shape = f"{np.mean(lengths):.0f} positions (at most {max(lengths)})"
    print(f"{len(lengths)} documents of {shape}; {dict(kinds)}")
    print(text_table(HEADER, [run.row() for run in runs]))
    for run in runs:
        print(f"{run.share} %: limits {dict(run.limits)}")
        for wrong in run.wrong[:5]:
            print(f"{run.share} %: {wrong[:300]}")
    if told.save:
        print(save(RESULTS, "canvas", {"arguments": vars(told), "table": [run.row() for run in runs]}))


if __name__ == "__main__":
    main()
