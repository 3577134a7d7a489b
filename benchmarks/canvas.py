"""Canvases of MaskBench documents with holes: verdicts, times, memory.

    python benchmarks/canvas.py --count 100               # some minutes on one core
    python benchmarks/canvas.py --count 1000 --minutes 9 --log canvas.jsonl   # again until it is through

Documents of development schemas as `json.dumps` writes them, in Tekken's 131,072 tokens, with end-of-text
tokens behind them; random positions are opened. Checked: the canvas has fillings; at up to 8 open positions
the document's own token is allowed, and a drawn filling is a document that jsonschema accepts, with formats
asserted or not. Times are CPU
time of one thread: the first full table of a new canvas (the automaton's own memory included), the same for a
further canvas of the automaton, and a commit of one drawn token with the question what another position
allows. With --log each document's figures are kept, and a run goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

import tokenform as tf
from tokenform.decoding.diffusion.generator import written_on_canvases
from tokenform_bench.data import Case, read_maskbench, sample
from tokenform_bench.tables import number, save, text_table
from tokenform_bench.vocabulary import BenchVocabulary, tekken

RESULTS = Path(__file__).resolve().parent / "results"
PADDING = 8


def clock() -> float:
    """Milliseconds of this thread."""
    return time.thread_time() * 1e3


def measure(automaton: Any, tokens: list[int], share: int, schema: Any, rng: random.Random) -> dict[str, Any]:
    """What was found of a document under one share of holes."""
    holes: list[int | None] = [None if rng.random() * 100 < share else t for t in tokens]
    begin = clock()
    canvas = tf.Canvas(automaton, holes)
    try:
        fits = canvas.feasible()
        canvas.masks(canvas.open)
    except tf.errors.LimitExceeded as error:
        return {"verdict": "limit", "limit": str(error)[:60], "spent": clock() - begin}
    found: dict[str, Any] = {"first": clock() - begin, "commit": []}
    begin = clock()
    other = tf.Canvas(automaton, holes)
    other.masks(other.open)
    found["again"] = clock() - begin
    found["states"], _, found["bytes"] = canvas._core.size()
    try:
        wrong = check(canvas, tokens, schema, fits, rng, found["commit"])
    except tf.errors.LimitExceeded as error:
        return found | {"verdict": "limit", "limit": str(error)[:60]}
    return found | {"verdict": "wrong" if wrong else "right", "wrong": wrong}


def check(
    canvas: tf.Canvas, tokens: list[int], schema: Any, fits: bool, rng: random.Random, commits: list[float]
) -> str | None:
    """What is wrong with a canvas; the times of commits go to `commits`."""
    if not fits:
        return "the document's own tokens are refused"
    places = rng.sample(canvas.open, min(8, len(canvas.open)))
    for at in places:
        if tokens[at] not in canvas.allowed(at):
            return f"token {tokens[at]} is refused at {at}"
    for at in places:
        chosen = int(rng.choice(canvas.allowed(at).tolist()))
        begin = clock()
        canvas.fill(at, chosen)
        if left := canvas.open:
            canvas.masks([min(left, key=lambda one: abs(one - at))])
        commits.append(clock() - begin)
    vocabulary = canvas.vocabulary
    logits = np.zeros((len(tokens), vocabulary.size), np.float32)
    filling = canvas.sample(logits, seed=rng.randrange(1 << 30))
    text = b"".join(vocabulary.tokens[t] for t in filling.tokens.tolist() if t not in vocabulary.eos).decode()
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"{error}: {text}"
    judge = jsonschema.validators.validator_for(schema)
    # formats bind here; whether they do is the reader's choice, and under "oneOf" it matters
    readings = (judge(schema), judge(schema, format_checker=judge.FORMAT_CHECKER))
    return None if any(one.is_valid(value) for one in readings) else f"not valid: {text}"


def row(share: int, found: list[dict[str, Any]]) -> list[str]:
    """A line of the table."""

    def middle(values: list[float], q: float = 0.5) -> str:
        return number(float(np.quantile(values, q))) if values else "-"

    def all_of(name: str) -> list[float]:
        return [one[name] for one in found if name in one]

    verdicts = Counter(one["verdict"] for one in found)
    commits = [spent for one in found for spent in one.get("commit", ())]
    held = [held / 2**20 for held in all_of("bytes")]
    return [
        f"{share} %",
        f"{verdicts['right']}/{len(found)}",
        str(verdicts["wrong"]),
        str(verdicts["limit"]),
        middle(all_of("first")),
        middle(all_of("first"), 0.9),
        middle(all_of("again")),
        middle(commits),
        middle(commits, 0.9),
        middle(held),
        middle(held, 1.0),
        middle(all_of("states")),
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


def document(
    case: Case, bench: BenchVocabulary, vocabulary: tf.Vocabulary, most: int, padded: bool
) -> tuple[str, Any, list[int]] | None:
    """(grammar's kind, automaton, tokens) of a valid document of a schema, where it compiles."""
    valid = [d.data for d in case.documents if d.valid]
    automata = list(compiled(case.schema, vocabulary)) if valid else []
    for data in valid:
        tokens = bench.encode(json.dumps(data, ensure_ascii=False))
        if len(tokens) >= most:
            continue
        text = b"".join(bench.tokens[t] for t in tokens)
        tokens += [bench.eos] * (most - len(tokens) if padded else PADDING)
        for kind, automaton in automata:
            if automaton.matches(text):
                return kind, automaton, tokens
    return None


def compiled(schema: Any, vocabulary: tf.Vocabulary) -> Iterator[tuple[str, Any]]:
    """What a canvas is filled with under the schema, all that it allows in the declared order, and in any;
    without those that the engine refuses."""
    kinds: dict[str, Callable[[], tf.Grammar]] = {
        "written": lambda: written_on_canvases(tf.json_schema(schema)),
        "declared": lambda: tf.json_schema(schema),
        "any order": lambda: tf.json_schema(schema, order="any"),
    }
    for kind, make in kinds.items():
        with contextlib.suppress(tf.TokenformError):
            yield kind, make().compile(vocabulary)


def run(
    told: argparse.Namespace, shares: list[int], known: dict[str, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The figures of each schema that is not known."""
    bench = tekken()
    vocabulary = tf.Vocabulary(bench.tokens, [bench.eos], bench.special)
    end = time.monotonic() + 60 * told.minutes
    for case in sample(read_maskbench(None), told.count, told.seed):
        if time.monotonic() > end:
            return
        if case.id in known:
            continue
        line: dict[str, Any] = {"id": case.id}
        found = document(case, bench, vocabulary, told.length, told.padded)
        if found is not None:
            kind, automaton, tokens = found
            line |= {"kind": kind, "length": len(tokens)}
            for share in shares:
                rng = random.Random(f"{told.seed}:{case.id}:{share}")
                line[str(share)] = measure(automaton, tokens, share, case.schema, rng)
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="schemas")
    parser.add_argument("--holes", default="10,50,90", help="percent, with commas")
    parser.add_argument("--length", type=int, default=256, help="most positions of a canvas")
    parser.add_argument("--padded", action="store_true", help="end-of-text tokens up to --length positions")
    parser.add_argument("--minutes", type=float, default=60.0, help="no document is begun after these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--log", type=Path, help="a line of JSON for each schema; what stands there is not run again"
    )
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results")
    told = parser.parse_args()
    shares = [int(share) for share in told.holes.split(",")]
    kept = told.log.read_text().splitlines() if told.log and told.log.exists() else []
    lines = {line["id"]: line for line in map(json.loads, kept)}
    log = told.log.open("a") if told.log else contextlib.nullcontext()
    with log as out:
        for line in run(told, shares, lines):
            lines[line["id"]] = line
            if out is not None:
                print(json.dumps(line), file=out, flush=True)
    found = [line for line in lines.values() if "kind" in line]
    lengths, kinds = [line["length"] for line in found], Counter(line["kind"] for line in found)
    print(f"{len(lines)} of {told.count} schemas, {len(found)} documents, {dict(kinds)}")
    print(f"{np.mean(lengths or [0]):.0f} positions (at most {max(lengths, default=0)})")
    table = [row(share, [line[str(share)] for line in found if str(share) in line]) for share in shares]
    print(text_table(HEADER, table))
    for share in shares:
        told_of = [(line["id"], line[str(share)]) for line in found if str(share) in line]
        print(f"{share} %: limits {dict(Counter(one['limit'] for _, one in told_of if 'limit' in one))}")
        for name, wrong in [(name, one["wrong"]) for name, one in told_of if one.get("wrong")][:5]:
            print(f"{share} %: {name}: {wrong[:300]}")
    if told.save:
        arguments = {name: str(value) for name, value in vars(told).items()}
        print(save(RESULTS, "canvas", {"arguments": arguments, "header": HEADER, "table": table}))


if __name__ == "__main__":
    main()
