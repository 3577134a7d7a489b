"""Command line of the judges; see each subcommand's `--help`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenform.batch.workers import run_tasks
from tokenform_bench.data import DRAFTS
from tokenform_bench.tables import text_table

from . import (
    cases,
    certificates,
    differential,
    exports,
    fuzz_corpus,
    hostile,
    mutations,
    official,
    patterns,
    walks,
    writers,
)
from .maskcheck import add_data_arguments, add_option_arguments, chosen_options, select

BASELINE = Path(__file__).resolve().parents[2] / "tests" / "suites" / "baseline.json"


def run_official(arguments: argparse.Namespace) -> int:
    verdicts = official.run(arguments.drafts.split(","), only=arguments.only, workers=arguments.workers)
    for v in verdicts:
        if v.kind != "pass" and (arguments.all or v.required):
            print(f"{v.kind:8s} {v.id} {v.right}/{v.total}  {v.detail[: arguments.width]}")
    rows = [
        [f"{draft} {name}", str(right), str(total), f"{100 * right / total:.2f} %", str(groups), str(counts)]
        for draft, name, right, total, groups, counts in official.summary(verdicts)
    ]
    print(text_table(["tests", "right", "of", "share", "groups", "by kind"], rows))
    if arguments.only or arguments.drafts != ",".join(DRAFTS):
        return 0
    worse = (
        official.worse(verdicts, official.read_baseline(arguments.baseline))
        if arguments.baseline.exists()
        else []
    )
    for v in worse:
        print(f"WORSE than the baseline: {v.id} {v.kind} {v.detail[: arguments.width]}")
    if arguments.record:
        if worse and not arguments.force:
            print("not recorded: --force records a worse baseline")
            return 1
        official.record(verdicts, arguments.baseline)
        print(f"recorded: {arguments.baseline}")
    return 1 if worse else 0


def _run_reports(
    arguments: argparse.Namespace, factory: Callable[..., Callable[[Any], Any]], parameters: tuple[Any, ...]
) -> int:
    kinds: Counter[str] = Counter()
    done = tokens = refused = 0
    stream = run_tasks(
        select(arguments),
        factory,
        parameters,
        workers=arguments.workers,
        timeout=arguments.timeout,
        memory_bytes=4 << 30,
    )
    for number, (case, outcome) in enumerate(stream, 1):
        if outcome.status != "ok":
            kinds[outcome.status] += 1
            print(f"{outcome.status}  {case.id}  {outcome.detail}", flush=True)
            continue
        report = outcome.value
        done, tokens, refused = done + report.done, tokens + report.tokens, refused + bool(report.refused)
        if report.refused:
            print(f"refused  {report.id}  {report.refused[: arguments.width]}", flush=True)
        for kind, detail in report.violations:
            kinds[kind] += 1
            print(f"{kind}  {report.id}  {detail[: arguments.width]}", flush=True)
        if number % 50 == 0:
            print(f"\r{number} schemas, {done} done, {dict(kinds)}", end="", file=sys.stderr, flush=True)
    print(f"\n{done} done, {tokens:,} tokens, {refused} schemas refused, violations: {dict(kinds) or 'none'}")
    return 1 if sum(n for kind, n in kinds.items() if kind != "disputed") else 0


def run_walks(arguments: argparse.Namespace) -> int:
    options = chosen_options(arguments)
    return _run_reports(arguments, walks.walker, (arguments.walks, arguments.longest, options))


def run_respell(arguments: argparse.Namespace) -> int:
    return _run_reports(arguments, walks.respeller, (arguments.spellings,))


def run_hostile(arguments: argparse.Namespace) -> int:
    verdicts = hostile.run(arguments.only, timeout=arguments.timeout, workers=arguments.workers)
    for v in verdicts:
        if arguments.all or not v.harmless:
            print(f"{v.kind:14s} {v.seconds:7.2f} s  {v.name}  {v.detail[: arguments.width]}")
    print(dict(Counter(v.kind for v in verdicts)))
    return 0 if all(v.harmless for v in verdicts) else 1


def run_differential(arguments: argparse.Namespace) -> int:
    drafts = [int(draft) for draft in arguments.drafts.split(",")] if arguments.drafts else None
    findings = differential.run(arguments.seconds, arguments.seed, drafts)
    text, violations = differential.report(findings, arguments.width)
    print(text)
    return 1 if violations else 0


def run_mutations(arguments: argparse.Namespace) -> int:
    bad = 0
    for frontend in arguments.frontends.split(","):
        done = mutations.run(
            frontend, arguments.seconds, arguments.seed, timeout=arguments.timeout, workers=arguments.workers
        )
        for finding in done.findings:
            print(f"{frontend}  {finding.detail}  {finding.source}"[: arguments.width], flush=True)
        bad += len(done.findings)
        print(f"{frontend}: {done.worked} grammars, {done.refused} refused, {len(done.findings)} findings")
    return 1 if bad else 0


def run_writers(arguments: argparse.Namespace) -> int:
    taken = writers.judge(select(arguments))
    print(taken.report(arguments.show))
    return 0 if taken.share >= arguments.least else 1


def run_patterns(arguments: argparse.Namespace) -> int:
    given = patterns.patterns_of_data(arguments.data) if arguments.data else []
    findings, read = patterns.run(arguments.count, arguments.seed, given)
    for one in findings:
        print(f"{one.dialect}  {one.pattern!r}  {one.detail}"[: arguments.width])
    print(f"{len(findings)} findings; read: {dict(read)}")
    return 1 if findings else 0


def run_cases(arguments: argparse.Namespace) -> int:
    wrong, summary = cases.run(arguments.texts, arguments.seed)
    for line in wrong:
        print(line[: arguments.width])
    print(summary)
    return 1 if wrong else 0


def run_exports(arguments: argparse.Namespace) -> int:
    findings = exports.run(arguments.count, arguments.seed, arguments.libraries.split(","))
    text, violations = differential.report(findings, arguments.width)
    print(text)
    return 1 if violations else 0


def run_certificates(arguments: argparse.Namespace) -> int:
    counts, wrong, refused = Counter[str](), list[str](), 0
    wanted = arguments.true, arguments.mutated, arguments.seed, arguments.first
    for number, counts, wrong in certificates.run(*wanted):
        refused = certificates.refused(counts)
        if (number + 1) % 500 == 0:
            print(
                f"draw {number}: {counts['true, accepted']} accepted, {refused} refused, {len(wrong)} wrong",
                flush=True,
            )
    print(text_table(["certificates", "of these"], [[kind, str(n)] for kind, n in sorted(counts.items())]))
    print(
        f"{counts['true, accepted']} true ones accepted, {refused} mutated ones refused, {len(wrong)} wrong"
    )
    for line in wrong:
        print(line[: arguments.width])
    return 1 if wrong else 0


def run_corpus(arguments: argparse.Namespace) -> int:
    print(f"{fuzz_corpus.make(arguments.folder)} seeds in {arguments.folder}")
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks.suites")
    commands = top.add_subparsers(required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text)
        sub.set_defaults(run=run)
        sub.add_argument("--workers", type=int, default=2)
        sub.add_argument("--width", type=int, default=300, help="characters of each detail")
        return sub

    sub = command("official", run_official, "the JSON-Schema-Test-Suite, against the baseline")
    sub.add_argument("--drafts", default=",".join(DRAFTS))
    sub.add_argument("--only", help="groups whose id holds this text")
    sub.add_argument("--all", action="store_true", help="list failing optional groups too")
    sub.add_argument("--baseline", type=Path, default=BASELINE)
    sub.add_argument("--record", action="store_true", help="record the result as the baseline")
    sub.add_argument("--force", action="store_true", help="record it even where it is worse")
    sub = command("walks", run_walks, "random walks along the masks, judged by two validators")
    add_data_arguments(sub)
    sub.add_argument("--walks", type=int, default=5, help="walks a schema")
    sub.add_argument("--longest", type=int, default=120, help="tokens beyond the least number")
    add_option_arguments(sub)
    sub.add_argument("--timeout", type=float, default=60.0)
    sub = command("respell", run_respell, "valid documents in random spellings and tokenisations")
    add_data_arguments(sub)
    sub.add_argument("--spellings", type=int, default=20, help="spellings a document")
    sub.add_argument("--timeout", type=float, default=60.0)
    sub = command("writers", run_writers, "valid documents as writers write them, under the default options")
    add_data_arguments(sub)
    sub.add_argument("--show", type=int, default=20, help="so many of the refused")
    sub.add_argument("--least", type=float, default=0.999, help="share of texts below which the status is 1")
    sub = command("hostile", run_hostile, "schemas that hurt")
    sub.add_argument("--only", help="schemas whose name holds this text")
    sub.add_argument("--all", action="store_true", help="list the harmless ones too")
    sub.add_argument("--timeout", type=float, default=10.0)
    sub = command("differential", run_differential, "random schemas and documents, against two validators")
    sub.add_argument("--seconds", type=float, default=60.0)
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--drafts", help="comma-separated: 4, 6, 7, 2019, 2020; default: all")
    sub = command("mutations", run_mutations, "mutated sources for each frontend: typed errors or grammars")
    sub.add_argument("--frontends", default=",".join(mutations.FRONTENDS))
    sub.add_argument("--seconds", type=float, default=60.0, help="for each frontend")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--timeout", type=float, default=60.0, help="seconds for a batch of examples")
    sub = command("patterns", run_patterns, "patterns against the readers of their dialects")
    sub.add_argument("--count", type=int, default=1000, help="random patterns")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--data", type=Path, help="a folder of data, whose patterns are judged too")
    sub = command("cases", run_cases, "public complaints, by masks and by what the built-in model writes")
    sub.add_argument("--texts", type=int, default=5, help="texts that are generated a case")
    sub.add_argument("--seed", type=int, default=0)
    sub = command("exports", run_exports, "schemas as pydantic, FastAPI, DRF and zod export them")
    sub.add_argument("--count", type=int, default=200, help="schemas")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--libraries", default=",".join(exports.LIBRARIES))
    sub = command(
        "certificates", run_certificates, "certificates of masks, true and mutated, by their checker"
    )
    sub.add_argument("--true", type=int, default=1000, help="at least so many true ones")
    sub.add_argument("--mutated", type=int, default=1000, help="at least so many that are not true")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--first", type=int, default=0, help="the number of the first draw")
    sub = command("corpus", run_corpus, "seeds for the fuzz targets")
    sub.add_argument("folder", type=Path)
    return top


if __name__ == "__main__":
    options = parser().parse_args()
    sys.exit(options.run(options))
