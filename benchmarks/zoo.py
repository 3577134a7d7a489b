"""Every drafter x policy, every sampler and every search, in one table from one command.

    python benchmarks/zoo.py --quick                       # the built-in model and its draft model
    python benchmarks/zoo.py                               # the same on more texts, and all policies
    python benchmarks/zoo.py --model .real/smollm2         # a chat model (it has no draft model)
    python benchmarks/zoo.py --model .real/smollm2 --heads heads/* --parts written   # with trained heads

Rows: `documents` are replayed (valid documents of MaskBench, 131,072 tokens; nothing is run, so only drafters
that look things up are there), `schemas` and `free text` are written by the model, greedily; `distribution`
is a language of few texts whose distribution under the model is enumerated.  Samplers of whole texts and
searches are a second table: `laws.py`.
Columns: tokens a pass of the model; drafted tokens that were kept; milliseconds of drafting a pass (wall
time); CPU milliseconds a token (of a model on a GPU: by the wall); how far off: texts that are those of plain
decoding, or the total variation from the enumerated distribution beside what as many exact draws would show
("of").
Invariant: what is refused by design is a row that says so; any other error ends the command with code 1.
Rejected: speed-ups as the first column (this is a busy machine's clock; passes are exact counts).
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import laws
import speculation
import tokenform as tf
from speculation_models import Passes, Row, chat_row, run
from tokenform.builtin import load_draft
from tokenform.decoding.aligned.enumeration import sampling_noise, total_variation, trie_distribution
from tokenform.decoding.speculative import drafters, policies
from tokenform.decoding.speculative.drafters import Context, DraftModel, Merge, auto
from tokenform.decoding.speculative.drafters.heads import HeadsSession
from tokenform_bench.data import read_maskbench, sample, shared_folder
from tokenform_bench.evaluate.tasks import make_tasks
from tokenform_bench.tables import save, text_table
from tokenform_bench.vocabulary import tekken
from training.data import examples
from training.evaluate import EVALUATION_SEED

RESULTS = Path(__file__).resolve().parent / "results"
FREE = RESULTS.parent / "free_text.txt"
LOOKED_UP: dict[str, Callable[[], Any]] = {
    "auto": auto,
    "Forced": drafters.Forced,
    "Names": drafters.Names,
    "NGram": drafters.NGram,
    "Suffix": drafters.Suffix,
}
LEARNING: dict[str, Callable[[], Any]] = {  # they need the model's own numbers
    "Recycling": drafters.Recycling,
    "auto + Recycling": lambda: Merge(*auto().drafters, drafters.Recycling()),
}
POLICIES: dict[str, Callable[[], Any]] = {
    "Controller": policies.Controller,
    "Fixed(32)": policies.Fixed,
    "BestFirst(32)": policies.BestFirst,
}


@dataclass
class Line:
    """A row of the table; None where a column has no meaning."""

    workload: str
    drafter: str
    policy: str = ""
    tokens_a_pass: float | None = None
    acceptance: float | None = None
    ms_a_draft: float | None = None
    ms_a_token: float | None = None
    off: str = ""
    failed: bool = False


class Told(list[Any]):
    """Rows, each told on the error stream as it comes."""

    def extend(self, lines: Iterable[Any]) -> None:
        for line in lines:
            print(f"{time.process_time():6.0f} s", *astuple(line), file=sys.stderr, flush=True)
            self.append(line)


Cell = tuple[str, str, Any, Any]
"""Names of drafter and policy; drafter, policy."""


class RankedFirst(HeadsSession):
    """Heads whose candidates are ranked before what the constraint refuses is taken out."""

    def ranked(self, context: Context, places: Any, head: int, states: Any) -> list[list[tuple[int, float]]]:
        found = super().ranked(replace(context, automaton=None), places, head, states)
        if context.automaton is None:
            return found
        allows = context.automaton.allows
        return [
            [one for one in best if allows(place, one[0])] for place, best in zip(places, found, strict=True)
        ]


class HeadsRankedFirst(drafters.Heads):
    """See `RankedFirst`."""

    makes = RankedFirst


def cells(draft: Any, tokens: Sequence[bytes], quick: bool, heads: Sequence[Path] = ()) -> Iterator[Cell]:
    """All combinations; with `quick`, of fewer policies."""
    known: dict[str, Callable[[], Any]] = {**LOOKED_UP, **LEARNING}
    for folder in heads:
        alone, first = partial(drafters.Heads, folder), partial(HeadsRankedFirst, folder)
        known |= {
            f"Heads {folder.name}": alone,
            f"auto + Heads {folder.name}": lambda alone=alone: Merge(*auto().drafters, alone()),
            f"Heads {folder.name}, ranked first": first,
        }
    if draft is not None:
        # a vocabulary of which a third is unknown to the other
        other = [token if i % 3 else b"" for i, token in enumerate(tokens)]
        other[:256] = tokens[:256]
        shared, spelled = (drafters.VocabularyMap(tokens, other, again) for again in (False, True))
        known |= {
            "DraftModel": lambda: DraftModel(draft),
            "auto + DraftModel": lambda: Merge(*auto().drafters, DraftModel(draft)),
            "DraftModel, shared tokens": lambda: DraftModel(draft, vocabulary=shared),
            "DraftModel, respelled": lambda: DraftModel(draft, vocabulary=spelled),
        }
    for name, policy in itertools.product(known, POLICIES):
        if not quick or policy in ("Controller", "Fixed(32)"):
            yield name, policy, known[name](), POLICIES[policy]


def written(
    make: Callable[..., tf.Generator], todo: Sequence[Cell], workload: str, tasks: Sequence[Any], most: int
) -> Iterator[Line]:
    """Texts of a model, greedily; the first task warms up."""
    plain = make(drafter=None)
    rows: dict[str, Row] = {"plain": chat_row(plain)}
    for cell in todo:
        drafter, policy = cell[2:]
        rows[" | ".join(cell[:2])] = chat_row(make(drafter=drafter, policy=policy))
    run(rows, [tasks[0], *tasks], most, Passes(plain.model))
    want, on_cpu = rows["plain"].texts, plain.model.device.type == "cpu"
    for name, row in rows.items():
        names = [*name.split(" | "), ""][:2]
        if row.failed:
            yield Line(workload, *names, off=row.failed, failed=True)
            continue
        stats, same = row.stats, sum(a == b for a, b in zip(row.texts, want, strict=True))
        passes, drafted = sum(s.forwards for s in stats), sum(s.drafted for s in stats)
        yield Line(
            workload, *names,
            tokens_a_pass=row.tokens / passes,
            acceptance=sum(s.accepted for s in stats) / drafted if drafted else None,
            ms_a_draft=1e3 * sum(s.seconds_draft for s in stats) / passes,
            ms_a_token=1e3 * (row.cpu if on_cpu else row.seconds) / row.tokens,
            off=f"same {same} of {len(want)}",
        )  # fmt: skip


def replayed(count: int) -> Iterator[Line]:
    """Documents of MaskBench that are replayed; see `speculation.py`."""
    if shared_folder() is None:
        yield Line("documents", "all", off="skipped: no folder of shared data (TOKENFORM_SHARED)")
        return
    vocabulary = tekken()
    compiled = tf.Vocabulary(vocabulary.tokens, eos=[vocabulary.eos], special=vocabulary.special)
    spell = speculation.speller(vocabulary, compiled.greedy)
    cases = [case for case in read_maskbench(None) if case.subset.startswith(tuple(speculation.GROUPS))]
    todo = list(speculation.tasks(sample(cases, count, 0), vocabulary, compiled))
    for (name, maker), (policy, shape) in itertools.product(LOOKED_UP.items(), POLICIES.items()):
        report, seconds = speculation.measure(todo, vocabulary, spell, (maker, shape))
        kept = report.accepted / report.drafted if report.drafted else None
        yield Line(
            "documents", name, policy, report.tokens_per_forward, kept,
            1e3 * report.seconds_draft / report.forwards, 1e3 * seconds / report.tokens, "replayed",
        )  # fmt: skip


def rules(make: Callable[..., tf.Generator], draft: Any, draws: int) -> Iterator[Line]:
    """Draws with drafts at temperature 1 beside the distribution of local masking, by enumeration."""
    # not finite, else the text is decided as one value; max_tokens makes it so
    grammar, prompt = tf.regex("[ab][01]+"), "Say a letter and some digits."
    # the law of masks alone: a text of a pattern may end where the model would go on with another text
    token = tf.Local(1.0, values="token", forced="any")
    todo: dict[str, Any] = {"plain": None, "auto": auto()}
    if draft is not None:
        todo["DraftModel"] = DraftModel(draft)
    for name, drafter in todo.items():
        writer = make(drafter=drafter, sampler=token, policy=policies.Fixed)
        problem = writer.problem(prompt, grammar, max_tokens=4, sampler=tf.samplers.Masked())
        want, began = trie_distribution(problem, None), time.process_time()
        found = writer.sample(prompt, grammar, n=draws, max_tokens=4, seed=1)
        took, stats = time.process_time() - began, [one.stats for one in found]
        drafted, tokens = sum(s.drafted for s in stats), sum(len(one.tokens) for one in found)
        yield Line(
            "distribution", name, "Fixed(32)",
            tokens / sum(s.forwards for s in stats),
            sum(s.accepted for s in stats) / drafted if drafted else None,
            1e3 * sum(s.seconds_draft for s in stats) / sum(s.forwards for s in stats),
            1e3 * took / tokens, apart(want, [one.tokens for one in found]),
        )  # fmt: skip


def apart(want: dict[Any, float], found: Sequence[Sequence[int]]) -> str:
    """Total variation, what exact draws would show, and the p-value of a chi-square test."""
    seen, count = Counter(tuple(tokens) for tokens in found), len(found)
    distance = total_variation(want, {x: c / count for x, c in seen.items()})
    cells = sorted(want.items(), key=lambda cell: -cell[1])
    few = [x for x, p in cells if p * count < 5]  # they are one cell
    pairs = [(seen[x], p * count) for x, p in cells if p * count >= 5]
    pairs += [(sum(seen[x] for x in few), sum(want[x] for x in few) * count)] if few else []
    squares = sum((got - due) ** 2 / max(due, 1e-300) for got, due in pairs)
    if set(seen) - set(want):
        return f"TV {distance:.3f}; {len(set(seen) - set(want))} texts outside"
    half = torch.tensor([max(len(pairs) - 1, 1) / 2, squares / 2], dtype=torch.float64)
    p = float(torch.special.gammaincc(half[0], half[1]))
    return f"TV {distance:.3f} of {sampling_noise(want, count):.3f}, p {p:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few texts, fewer policies")
    parser.add_argument("--model", help="a folder or GGUF file of a chat model; else the built-in model")
    parser.add_argument("--device", help="where that model runs")
    parser.add_argument("--heads", nargs="*", type=Path, default=[], help="folders of its heads")
    parser.add_argument("--count", type=int, help="texts of a workload")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--draws", type=int, help="of drafts' laws; samplers of whole texts draw 20 a run")
    parser.add_argument("--runs", type=int, help="of each sampler of whole texts")
    parser.add_argument("--only", nargs="*", help="parts of names")
    parser.add_argument("--parts", nargs="*", default=["documents", "written", "rules", "samplers"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = options.count or (2 if options.quick else 8)
    most = options.max_tokens or (24 if options.quick else 64)
    draws = options.draws or (100 if options.quick else 1000)
    began, draft = time.process_time(), None
    if options.model:
        first = tf.Generator(options.model, drafter=None, device=options.device)
        make = partial(tf.Generator, first.model, first.tokenizer)
        family = "extraction_aside" if options.heads else "extraction"  # heads were trained on the latter
        schemas = [(task.prompt, task.schema) for task in make_tasks(family, count, 0)]
        free: list[Any] = [(question, None) for question in FREE.read_text().splitlines()[:count]]
    else:
        make, draft = partial(tf.Generator, raw=True), load_draft()[0]
        first = make(drafter=None)
        prompts = examples(EVALUATION_SEED, count, held_out=True, tools=0.0)
        schemas = [(e.prompt, e.record.schema) for e in prompts if e.record is not None]
        free = [(e.prompt, None) for e in prompts]
    todo = list(cells(draft, first.vocabulary.tokens, options.quick, options.heads))
    if options.only:
        todo = [cell for cell in todo if any(part in " ".join(cell[:2]) for part in options.only)]
    lines, found = Told(), Told()
    if "documents" in options.parts:
        lines.extend(replayed(4 if options.quick else 60))
    if "written" in options.parts:
        lines.extend(written(make, todo, "schemas", schemas, most * 2))
        lines.extend(written(make, todo, "free text", free, most))
    if "rules" in options.parts:
        lines.extend(rules(make, draft, draws))
    if "samplers" in options.parts:
        found.extend(laws.laws(first, options.runs or (10 if options.quick else 100), 20, options.only or ()))
        if options.model and not options.quick and not options.only:  # raw, the other hardly writes JSON
            found.extend(laws.races(first, 5))
    print(table(lines))
    print(text_table(list(laws.TITLES), [laws.cells(one) for one in found]))
    seconds = time.process_time() - began
    payload = {"command": sys.argv, "cpu_seconds": seconds, "rows": [asdict(line) for line in lines]}
    payload["laws"] = [asdict(one) for one in found]
    print(f"{seconds:.0f} CPU seconds; results: {save(options.results, 'zoo', payload)}")
    return int(any(line.failed for line in lines))


def table(lines: Sequence[Line]) -> str:
    def shown(value: float | None) -> str:
        return "" if value is None or math.isnan(value) else f"{value:.2f}"

    titles = [
        "drafter, sampler or search",
        "on",
        "policy",
        "tokens/pass",
        "kept",
        "ms/draft",
        "ms/token",
    ]
    rows = [
        [one.drafter, one.workload, one.policy]
        + [shown(x) for x in (one.tokens_a_pass, one.acceptance, one.ms_a_draft, one.ms_a_token)]
        + [("FAILED " if one.failed else "") + one.off]
        for one in lines
    ]
    return text_table([*titles, "how far off"], rows)


if __name__ == "__main__":
    sys.exit(main())
