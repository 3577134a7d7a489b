"""Faithful samplers on programs, molecules, patterns and documents: distance or agreement on log Z, and cost.

    OMP_NUM_THREADS=1 python benchmarks/fidelity.py --draws 60

Purpose: each task's table of `tokenform evaluate fidelity`, and whether SMC, AWRS and CARS agree on Z.
Tasks: grammars of GAD's program synthesis (SLIA, BV4) and molecules through `tf.gbnf`, patterns of AWRS
through `tf.regex`, with n-gram models trained on the examples of the task (on strings drawn from the
pattern); documents with the built-in model.  Data: `gad-tasks.tar.xz` and `awrs-patterns.csv` in
TOKENFORM_SHARED/data.
A pair agrees if its estimates of Z differ by at most three standard errors of the difference: each
estimate of Z is an unbiased mean with a standard error (that of log Z is neither).  Their share is printed.
Rejected: distances between the sets of texts that were seen (no distance to the target).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenform as tf
from suites.ngram import NgramModel
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform_bench.fidelity import ROUNDING, Fidelity, evaluate_fidelity
from tokenform_bench.tables import save

RESULTS = Path(__file__).resolve().parent / "results"
SHARED = Path(os.environ.get("TOKENFORM_SHARED", Path(__file__).resolve().parents[2] / "shared"))
SOLUTION = re.compile(r"^(\(define-fun (?:inv|f) .*\))$|^Molecule: (\S+)$", re.MULTILINE)
PROGRAMS = [
    "BV4/find_inv_eq_bvand_4bit",
    "BV4/find_inv_bvsge_bvnot_4bit",
    "SLIA/univ_1_short",
    "SLIA/firstname",
    "smiles/acrylates",
    "smiles/isocyanates",
]
JUDGED = ("CARS", "SMC(20)", "SMC-AWRS(20)")


@dataclass
class Task:
    """A problem: model, automaton, prompt ids and budget."""

    name: str
    model: Any
    automaton: Any
    prompt: tuple[int, ...] = ()
    max_tokens: int = 60


def programs() -> Iterator[Task]:
    """Program synthesis and molecules."""
    with tarfile.open(SHARED / "data" / "gad-tasks.tar.xz") as archive:
        for name in PROGRAMS:
            grammar, prompt = (_member(archive, name + end) for end in (".ebnf", ".txt"))
            model = NgramModel([a or b for a, b in SOLUTION.findall(prompt)], order=6)
            yield Task(name, model, tf.gbnf(grammar).compile(vocabulary(model)))


def _member(archive: tarfile.TarFile, name: str) -> str:
    found = archive.extractfile(name)
    assert found is not None
    return found.read().decode()


def patterns(count: int) -> Iterator[Task]:
    """The first patterns that the engine takes, with models of strings drawn from them."""
    with (SHARED / "data" / "awrs-patterns.csv").open(newline="") as file:
        lines = [row["regex"] for row in csv.DictReader(file)]
    flat = NgramModel([], order=1)
    for pattern in lines:
        if count == 0:
            return
        try:
            automaton = tf.regex(pattern).compile(vocabulary(flat))
            problem = tf.samplers.Masked().bind(flat, automaton, max_tokens=24)
            texts = [draw.text for draw in tf.samplers.Masked().sample(problem, 30, seed=0).draws]
        except tf.TokenformError:
            continue  # not a regular language, or nothing that 24 printable characters can spell
        model = NgramModel(texts, order=3)
        count -= 1
        yield Task(f"regex {pattern}", model, tf.regex(pattern).compile(vocabulary(model)), max_tokens=24)


def documents() -> Iterator[Task]:
    """JSON documents with the built-in model."""
    writer = tf.Generator()
    texts = {
        "document known": "Ada Lovelace, born 1815 in London.",
        "document open": "Someone who was born somewhere.",
    }
    properties = {"name": {"type": "string", "maxLength": 24}, "year": {"type": "integer"}}
    grammar = tf.json_schema(
        {
            "type": "object",
            "properties": properties,
            "required": ["name", "year"],
            "additionalProperties": False,
        }
    )
    model = writer.language_model()
    for name, prompt in texts.items():
        ids = tuple(writer.prompt_ids(prompt, grammar))
        yield Task(name, model, grammar.compile(writer.vocabulary), ids, 40)


def vocabulary(model: NgramModel) -> tf.Vocabulary:
    """The model's tokens for the engine."""
    return tf.Vocabulary(model.tokens, eos=list(model.eos), special=list(model.eos))


def samplers() -> dict[str, AlignedSampler]:
    """What is compared."""
    return {
        "local masking": tf.samplers.Masked(),
        "ASAp": tf.ASAp(),
        "CARS": tf.CARS(max_attempts=5000),
        "SMC(20)": tf.SMC(20),
        "SMC-AWRS(20)": tf.SMC(20, weights="rejection", estimator="two_loops"),
    }


def agreement(found: Fidelity) -> list[float]:
    """Differences of Z between SMC, AWRS and CARS, in standard errors of the difference."""
    rows = [row for row in found.rows if row.sampler in JUDGED and math.isfinite(row.log_z_error)]
    top = max((row.log_z for row in rows), default=0.0)
    known = [(math.exp(row.log_z - top), max(row.log_z_error, ROUNDING)) for row in rows]
    return [
        (a - b) / math.hypot(a * error_a, b * error_b)
        for (a, error_a), (b, error_b) in itertools.combinations(known, 2)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--patterns", type=int, default=8)
    parser.add_argument("--kinds", default="programs,patterns,documents")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    kinds = {"programs": programs, "patterns": lambda: patterns(options.patterns), "documents": documents}
    gaps: list[float] = []
    for kind in options.kinds.split(","):
        tables = []
        for task in kinds[kind]():
            found = evaluate_fidelity(
                task.model,
                task.automaton,
                samplers(),
                prompt=task.prompt,
                max_tokens=task.max_tokens,
                draws=options.draws,
                seed=options.seed,
                limit=0 if kind == "documents" else 5000,
            )
            mine = agreement(found)
            gaps += mine
            print(
                f"\n{task.name}\n{found.table()}\nZ apart: {', '.join(f'{g:.1f}' for g in mine)}",
                flush=True,
            )
            tables.append({"task": task.name, "z_apart": mine, **found.as_dict()})
        save(RESULTS, f"fidelity-{kind}", {"options": vars(options), "tables": tables})
    within = sum(abs(gap) <= 3 for gap in gaps)
    print(f"\n{within} of {len(gaps)} pairs of SMC, AWRS and CARS agree on Z within 3 standard errors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
