"""Is every schema judged right?  The quick judge of the engine, by bytes, used all the time while it is
built.

    python -m benchmarks.suites.maskcheck --limit 500 --order any --whitespace any
    python -m benchmarks.suites.maskcheck --ids Github_easy---o1,Snowplow---x --verbose

Purpose: compile each schema of a MaskBench-format data set, walk its documents byte by byte, and group what
is wrong by cause.
Invariant: each schema ends in exactly one class; "pass" means compiled, all valid documents accepted, all
invalid refused, within the time limit.
Complexity: one automaton over a vocabulary of 256 single bytes a schema, one step a byte.
Rejected: the 131k vocabulary (what a mask allows is tested apart; here the language alone is judged, 100
times faster).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenform import _core
from tokenform.batch.workers import TaskOutcome, run_tasks
from tokenform.errors import TokenformError
from tokenform.frontends.schemas import SPELLINGS
from tokenform_bench.data import Case, keywords_of, read_maskbench, sample
from tokenform_bench.documents import write

CLASSES = (
    "pass",
    "refused",
    "wrong_accept",
    "wrong_reject",
    "unsat",
    "slow",
    "timeout",
    "memory",
    "crash",
    "error",
)
OPTIONS = {name: values for name, values in _core.json_options() if name in SPELLINGS}


@dataclass
class Verdict:
    """What became of one schema.

    Attributes:
        kind: one of CLASSES.
        cause: what the report groups by (error class and keyword; "rejects" ...).
        detail: one line for a person.
        compile_seconds: until the automaton was there.
        walk_seconds: for all documents together.
    """

    id: str
    kind: str
    cause: str = ""
    detail: str = ""
    compile_seconds: float = 0.0
    walk_seconds: float = 0.0
    documents: int = 0


def byte_vocabulary() -> Any:
    """256 single-byte tokens and an EOS: the smallest vocabulary that spells every text."""
    import tokenform as tf

    return tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])


def rejected_at(automaton: Any, text: bytes) -> int:
    """The offset of the first byte that the automaton refuses; the length where only the end is refused."""
    state = automaton.start
    for offset, byte in enumerate(text):
        if not automaton.allows(state, byte):
            return offset
        state = automaton.advance(state, byte)
    return len(text)


def checker(options: dict[str, Any], slow_seconds: float) -> Callable[[Case], Verdict]:
    """Build, in a worker, the function that judges one case."""
    import tokenform as tf

    vocabulary = byte_vocabulary()

    def check(case: Case) -> Verdict:
        begun = time.perf_counter()
        valid = sum(document.valid for document in case.documents)
        try:
            automaton = tf.json_schema(case.schema, **options).compile(vocabulary)
        except TokenformError as error:
            return _refusal(case, error, valid, time.perf_counter() - begun)
        compiled = time.perf_counter()
        wrong: list[tuple[str, str, str]] = []
        for document in case.documents:
            text = write(document.data).encode("utf-8", "surrogatepass")
            try:
                accepted = bool(automaton.matches(text))
            except TokenformError as error:
                wrong.append(("error", f"walk: {type(error).__name__}", f"{error} {_near(error)}"))
                break
            if accepted and not document.valid:
                wrong.append(
                    (
                        "wrong_accept",
                        "accepts invalid",
                        f"{document.note}: {text.decode('utf-8', 'replace')[:400]}",
                    )
                )
            elif document.valid and not accepted:
                at = rejected_at(automaton, text)
                context = (text[max(0, at - 60) : at] + b"<<HERE>>" + text[at : at + 40]).decode(
                    "utf-8", "replace"
                )
                wrong.append(("wrong_reject", "rejects valid", f"byte {at}: {context}"))
        walked = time.perf_counter()
        seconds = {
            "compile_seconds": compiled - begun,
            "walk_seconds": walked - compiled,
            "documents": len(case.documents),
        }
        for kind in ("wrong_accept", "wrong_reject", "error"):
            for found, cause, detail in wrong:
                if found == kind:
                    return Verdict(case.id, kind, cause, detail, **seconds)  # type: ignore[arg-type]
        if walked - begun > slow_seconds:
            cause = "compile" if compiled - begun > slow_seconds else "walk"
            return Verdict(case.id, "slow", cause, f"{walked - begun:.2f} s", **seconds)  # type: ignore[arg-type]
        return Verdict(case.id, "pass", **seconds)  # type: ignore[arg-type]

    return check


def _near(error: TokenformError) -> str:
    return f"at {error.pointer!r}" if error.pointer is not None else ""


def _refusal(case: Case, error: TokenformError, valid: int, seconds: float) -> Verdict:
    name = type(error).__name__
    detail = f"{error} {_near(error)}"
    if name == "UnsatisfiableSchema":
        kind = (
            "unsat" if valid else "pass"
        )  # with invalid documents only, refusing at compile time judges them right
        return Verdict(
            case.id, kind, "unsatisfiable, but has valid documents" if valid else "", detail, seconds
        )
    return Verdict(case.id, "refused", f"{name} {error.keyword or ''}".strip(), detail, seconds)


def judge(
    cases: list[Case],
    options: dict[str, Any],
    *,
    workers: int,
    timeout: float,
    slow: float,
    memory_bytes: int | None,
) -> Iterator[Verdict]:
    """The verdict of each case, as they come."""
    for case, outcome in run_tasks(
        cases, checker, (options, slow), workers=workers, timeout=timeout, memory_bytes=memory_bytes
    ):
        yield outcome.value if outcome.status == "ok" else _failure(case, outcome)


def _failure(case: Case, outcome: TaskOutcome) -> Verdict:
    cause = outcome.detail[:60] if outcome.status in ("error", "crash") else ""
    return Verdict(case.id, outcome.status, cause, outcome.detail)


@dataclass
class Tally:
    """Counts and examples of the verdicts."""

    counts: Counter[str] = field(default_factory=Counter)
    causes: dict[tuple[str, str], list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    verdicts: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        self.counts[verdict.kind] += 1
        if verdict.kind != "pass":
            self.causes[verdict.kind, verdict.cause].append(verdict)

    def report(self, examples: int, width: int = 300) -> str:
        total = len(self.verdicts)
        lines = []
        for kind in CLASSES[1:]:
            groups = sorted((g for g in self.causes.items() if g[0][0] == kind), key=lambda g: -len(g[1]))
            for (_, cause), found in groups:
                lines.append(f"{kind:13s}{len(found):6d}  {cause}")
                lines.extend(f"      {v.id}  {v.detail[:width]!r}" for v in found[:examples])
        compiled = total - sum(self.counts[k] for k in ("refused", "timeout", "memory", "crash"))
        lines.append("  ".join(f"{kind} {self.counts[kind]}" for kind in CLASSES if self.counts[kind]))
        passed = _percent(self.counts["pass"], total)
        lines.append(f"total {total}: pass {passed}, compiled {_percent(compiled, total)}")
        times = sorted(v.compile_seconds for v in self.verdicts if v.compile_seconds)
        if times:
            picks = [times[min(len(times) - 1, int(len(times) * q))] * 1e3 for q in (0.5, 0.99, 1.0)]
            lines.append("compile ms: median {:.2f}, p99 {:.2f}, worst {:.1f}".format(*picks))
        return "\n".join(lines)


def _percent(part: int, whole: int) -> str:
    return f"{part} ({100 * part / max(whole, 1):.2f} %)"


def compare(old_file: Path, tally: Tally) -> str:
    """What changed since a run that was written by --out."""
    old = {record["id"]: record["kind"] for record in json.loads(old_file.read_text("utf-8"))}
    worse = [v for v in tally.verdicts if v.kind != "pass" and old.get(v.id) == "pass"]
    better = [v.id for v in tally.verdicts if v.kind == "pass" and old.get(v.id, "pass") != "pass"]
    lines = [f"since {old_file}: {len(better)} better, {len(worse)} worse"]
    lines.extend(f"  worse: {v.id} {v.kind} {v.cause} {v.detail[:200]!r}" for v in worse[:30])
    return "\n".join(lines)


def select(arguments: argparse.Namespace) -> list[Case]:
    """The cases that the command line asks for."""
    cases: Iterator[Case] = read_maskbench(arguments.data)
    if arguments.ids:
        named = (
            Path(arguments.ids[1:]).read_text("utf-8").split()
            if arguments.ids[0] == "@"
            else arguments.ids.split(",")
        )
        wanted = set(named)
        return [case for case in cases if case.id in wanted]
    if arguments.uses:
        wanted = set(arguments.uses.split(","))
        cases = (case for case in cases if wanted & keywords_of(case.schema))
    return sample(cases, arguments.limit, arguments.seed)


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", help="a folder of JSON files or a .jsonl(.xz); default: the shared MaskBench file"
    )
    parser.add_argument("--limit", type=int, help="so many schemas, chosen by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ids", help="comma-separated ids, or @FILE")
    parser.add_argument("--uses", help="only schemas with one of these comma-separated keys in their text")


def add_option_arguments(parser: argparse.ArgumentParser, **defaults: str) -> None:
    """An argument for each option that says how documents are written."""
    for name, choices in OPTIONS.items():
        parser.add_argument(f"--{name}", choices=choices, default=defaults.get(name))


def chosen_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were chosen; the others have the engine's defaults."""
    return {name: value for name in OPTIONS if (value := getattr(arguments, name)) is not None}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.suites.maskcheck", description=(__doc__ or "").split("\n")[0]
    )
    add_data_arguments(parser)
    add_option_arguments(parser)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--timeout", type=float, default=10.0, help="seconds for one schema before it is given up"
    )
    parser.add_argument(
        "--slow", type=float, default=1.0, help="seconds above which a right schema counts as slow"
    )
    parser.add_argument("--memory", type=int, default=4096, help="MiB for one worker")
    parser.add_argument("--examples", type=int, default=3, help="shown for each cause")
    parser.add_argument(
        "--verbose", action="store_true", help="each verdict as it comes, details unshortened"
    )
    parser.add_argument("--out", type=Path, help="write the verdicts as JSON")
    parser.add_argument("--since", type=Path, help="compare with a file written by --out")
    arguments = parser.parse_args(argv)
    options = chosen_options(arguments)
    begun = time.perf_counter()
    tally = Tally()
    verdicts = judge(
        select(arguments),
        options,
        workers=arguments.workers,
        timeout=arguments.timeout,
        slow=arguments.slow,
        memory_bytes=arguments.memory << 20,
    )
    for number, verdict in enumerate(verdicts, 1):
        tally.add(verdict)
        if arguments.verbose:
            milliseconds = f"{verdict.compile_seconds * 1e3:.2f} ms"
            print(f"{verdict.id}  {verdict.kind}  {milliseconds}  {verdict.cause}  {verdict.detail}")
        elif number % 100 == 0:
            print(f"\r{number}  {dict(tally.counts)}", end="", file=sys.stderr, flush=True)
    print("", file=sys.stderr)
    print(tally.report(arguments.examples, 2000 if arguments.verbose else 300))
    if arguments.since:
        print(compare(arguments.since, tally))
    if arguments.out:
        arguments.out.write_text(
            json.dumps([vars(v) for v in sorted(tally.verdicts, key=lambda v: v.id)]), "utf-8"
        )
    print(f"{time.perf_counter() - begun:.1f} s", file=sys.stderr)
    return 0 if tally.counts["pass"] == len(tally.verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
