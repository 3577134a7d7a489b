"""Tokens per target forward, replaying valid documents of MaskBench with their schemas.

    python benchmarks/speculation.py --count 200

Purpose: what each drafter would save a model that writes exactly these documents: the 131,072-token
vocabulary, `json.dumps` whitespace, no prompt.
Invariant: a drafter sees the schema's automaton, the tokens written so far and, where it remembers, the
earlier documents of the same group, each after it was written; never the document itself.  The sample and
its order depend on the schemas' ids alone.
Figures: tokens of all documents divided by target passes; the prompt's pass is counted as the first.
Rejected: a mean of the documents' own ratios (a short document would weigh as much as a long one).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenform as tf
from suites.replay import replay
from tokenform.decoding.speculative.drafters import Forced, Hints, Merge, Suffix, auto
from tokenform.decoding.speculative.policies import Controller, Policy
from tokenform.decoding.speculative.request import Report
from tokenform.errors import TokenformError
from tokenform_bench.data import Case, read_maskbench, sample
from tokenform_bench.documents import write
from tokenform_bench.tables import save, text_table
from tokenform_bench.vocabulary import BenchVocabulary, tekken

RESULTS = Path(__file__).resolve().parent / "results"
GROUPS = {"BFCL": "BFCL", "Glaive": "Glaive", "Github_easy": "Github_easy"}

Configuration = tuple[Callable[[], Any], Callable[[], Policy] | None]
CONFIGURATIONS: dict[str, Configuration] = {
    "Forced": (Forced, None),
    "Forced + Suffix, no datastore": (lambda: Merge(Forced(), Suffix(remember=False)), None),
    "Forced + Suffix": (lambda: Merge(Forced(), Suffix()), None),
    "auto": (auto, None),
    "auto, Controller": (auto, Controller),
}


@dataclass
class Task:
    """A document that its schema's automaton accepts."""

    id: str
    automaton: Any
    tokens: list[int]
    hints: Hints


def tasks(cases: list[Case], vocabulary: BenchVocabulary, compiled: tf.Vocabulary) -> Iterator[Task]:
    """The valid documents in declared order; other orders are no texts of the default grammar."""
    for case in cases:
        try:
            grammar = tf.json_schema(case.schema)
            automaton = grammar.compile(compiled)
        except TokenformError:
            continue
        for document in case.documents:
            if not document.valid:
                continue
            tokens, state = vocabulary.encode(write(document.data)), automaton.start
            try:
                for token in tokens:
                    state = automaton.advance(state, token)
                if automaton.is_accepting(state):
                    yield Task(case.id, automaton, tokens, Hints(grammar, compiled))
            except TokenformError:
                continue


def speller(vocabulary: BenchVocabulary, longest: Callable[[bytes], list[int] | None]) -> Any:
    """Bytes -> canonical tokens; half a character is spelled by longest match."""

    def spell(text: bytes) -> list[int]:
        try:
            return vocabulary.encode(text.decode())
        except UnicodeDecodeError:
            return longest(text) or []

    return spell


def measure(
    todo: list[Task], vocabulary: BenchVocabulary, spell: Any, configuration: Configuration
) -> tuple[Report, float]:
    """The report over all documents with one drafter, and the seconds."""
    make, policy = configuration
    drafter, total, began = make(), Report(), time.perf_counter()
    for task in todo:
        total.add(
            replay(
                task.tokens,
                drafter,
                len(vocabulary.tokens),
                task.automaton,
                prompt=(vocabulary.eos,),
                policy=None if policy is None else policy(),
                eos=frozenset([vocabulary.eos]),
                hints=task.hints,
                encode=spell,
            )
        )
    return total, time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, help="schemas of each group; all where it is left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="another file or folder in MaskBench's format")
    parser.add_argument("--only", nargs="*", default=list(CONFIGURATIONS), choices=list(CONFIGURATIONS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    vocabulary = tekken()
    compiled = tf.Vocabulary(vocabulary.tokens, eos=[vocabulary.eos], special=vocabulary.special)
    spell = speller(vocabulary, compiled.greedy)
    groups: dict[str, list[Case]] = {name: [] for name in GROUPS}
    for case in read_maskbench(arguments.data):
        for name, prefix in GROUPS.items():
            if case.subset.startswith(prefix):
                groups[name].append(case)
    todo = {
        name: list(tasks(sample(cases, arguments.count, arguments.seed), vocabulary, compiled))
        for name, cases in groups.items()
    }
    print({name: f"{len(t)} documents, {sum(len(d.tokens) for d in t)} tokens" for name, t in todo.items()})
    rows, kept = [], {}
    for name in arguments.only:
        found = {g: measure(t, vocabulary, spell, CONFIGURATIONS[name]) for g, t in todo.items()}
        kept[name] = {g: report.as_dict() | {"seconds": s} for g, (report, s) in found.items()}
        rows.append([name, *(f"{report.tokens_per_forward:.2f}" for report, _ in found.values())])
        print(rows[-1], file=sys.stderr, flush=True)
    print(text_table(["tokens per forward", *GROUPS], rows))
    payload = {"command": sys.argv, "documents": {n: len(t) for n, t in todo.items()}, "reports": kept}
    print(f"results: {save(arguments.results, 'speculation-replay', payload)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
