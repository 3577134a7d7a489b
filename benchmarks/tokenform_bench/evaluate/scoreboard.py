"""The scoreboard: what each engine's texts were worth, and whether engines differ.

Purpose: for every family of tasks and all of them: valid, right, *wrong but valid*, fields right, the price.
Invariant: every figure is a function of the rows. A unit that failed is counted, and stands in no mean; a
task that an engine refused is one that it has not solved. Engines are compared on the tasks that both did.
Differences: the mean of the tasks' differences with its 95 % interval by bootstrap over tasks (Efron 1979,
the percentile interval), paired, 10,000 resamples from a fixed seed. Significant: zero is outside.
Rejected: intervals of each engine alone (the tasks' own difficulty would drown the difference).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tokenform_bench.evaluate import svg
from tokenform_bench.evaluate.page import Page, Section, facts
from tokenform_bench.evaluate.store import Store
from tokenform_bench.tables import number

ALL = "all"
RESAMPLES = 10_000


@dataclass
class Score:
    """An engine on a family's tasks.

    Attributes:
        failed, refused: units that went wrong; tasks that the engine refused.
        right, valid: tasks whose answer is all right; whose document is valid.
        wrong_but_valid: valid, and not right.
        fields: each task's share of fields that are right.
        nats, mass, draws: sums over the steps: minus log-probabilities without a constraint, logs of the mass
            that the masks allowed, how many steps.
    """

    tasks: int = 0
    failed: int = 0
    refused: int = 0
    valid: int = 0
    right: int = 0
    wrong_but_valid: int = 0
    fields: list[float] = field(default_factory=list)
    tokens: int = 0
    passes: int = 0
    cpu_s: float = 0.0
    nats: float = 0.0
    mass: float = 0.0
    draws: int = 0

    def add(self, row: dict[str, Any]) -> None:
        self.tasks += 1
        self.refused += row["status"] == "refused"
        self.valid += bool(row["valid"])
        self.right += bool(row["correct"])
        self.wrong_but_valid += bool(row["valid"]) and not row["correct"]
        self.fields.append(fields_right(row))
        for name in ("tokens", "cpu_s", "nats", "mass", "draws"):
            setattr(self, name, getattr(self, name) + (row[name] or 0))
        self.passes += row["forwards"] or 0

    def as_dict(self) -> dict[str, Any]:
        """The figures: shares, means over tasks, means over steps."""
        each = {
            name: _ratio(getattr(self, name), self.tasks) for name in ("tokens", "passes", "cpu_s", "nats")
        }
        return {
            "tasks": self.tasks,
            "failed": self.failed,
            "refused": self.refused,
            "valid": _ratio(self.valid, self.tasks),
            "right": _ratio(self.right, self.tasks),
            "wrong_but_valid": _ratio(self.wrong_but_valid, self.tasks),
            "fields_right": _ratio(math.fsum(self.fields), self.tasks),
            "nats_a_token": _ratio(self.nats, self.draws),
            "log_mass_a_token": _ratio(self.mass, self.draws),
            **each,
        }


@dataclass(frozen=True)
class Difference:
    """The first engine less another: means over the tasks that both have done, and 95 % intervals."""

    family: str
    engine: str
    other: str
    tasks: int
    right: tuple[float, float, float]
    fields: tuple[float, float, float]

    @property
    def verdict(self) -> str:
        """ "worse", "better" or "": by the answers that are all right, and by fields."""
        if self.right[2] < 0 or self.fields[2] < 0:
            return "worse"
        return "better" if self.right[1] > 0 or self.fields[1] > 0 else ""


@dataclass
class Board:
    """All figures of a run; `scores` by (family, engine), with `ALL` for all families."""

    options: dict[str, Any]
    engines: list[str]
    families: list[str]
    planned: int
    done: int
    scores: dict[tuple[str, str], Score]
    differences: list[Difference]
    failures: dict[str, list[tuple[str, str]]]
    sessions: list[dict[str, Any]]

    @property
    def batched(self) -> bool:
        """Whether texts were written together: seconds of rows of one batch can't be compared."""
        return any(one["environment"].get("limits", {}).get("batch") for one in self.sessions)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; NaN is None."""
        scores = [
            {"family": family, "engine": engine, **_finite(score.as_dict())}
            for (family, engine), score in self.scores.items()
        ]
        differences = [{**asdict(one), "verdict": one.verdict} for one in self.differences]
        machine = self.sessions[-1]["environment"] if self.sessions else {}
        return {
            "options": self.options,
            "machine": machine,
            "units": {"done": self.done, "planned": self.planned},
            "scores": scores,
            "differences": differences,
        }


def fields_right(row: dict[str, Any]) -> float:
    """The share of a task's fields that are right."""
    return (row["fields_right"] or 0) / row["fields"] if row["fields"] else 0.0


def compute(store: Store) -> Board:
    """Read the scoreboard out of a database, which may hold an unfinished run."""
    options = store.options()
    engines = list(options.get("engines", []))
    scores: dict[tuple[str, str], Score] = {}
    done: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)  # case -> engine -> row
    families, failures, count = list[str](), {engine: list[tuple[str, str]]() for engine in engines}, 0
    for row in store.rows():
        family, engine = row["task"]["family"], row["engine"]
        count += 1
        if family not in families:
            families.append(family)
        cells = [scores.setdefault((name, engine), Score()) for name in (family, ALL)]
        if row["status"] not in ("ok", "refused") or (row["status"] == "ok" and row["correct"] is None):
            failures[engine].append((row["case_id"], f"{row['status']} {row['detail'] or 'not judged'}"))
            for cell in cells:
                cell.failed += 1
            continue
        done[row["case_id"]][engine] = row
        for cell in cells:
            cell.add(row)
    order = [*families, ALL] if len(families) > 1 else families
    ordered = {(f, e): scores.get((f, e), Score()) for f in order for e in engines}
    differences = [
        one
        for other in engines[1:]
        for f in order
        if (one := _difference(done, f, engines[0], other)) is not None
    ]
    planned = store.case_count() * len(engines)
    return Board(options, engines, order, planned, count, ordered, differences, failures, store.sessions())


def _difference(
    done: dict[str, dict[str, dict[str, Any]]], family: str, engine: str, other: str
) -> Difference | None:
    both = [rows for rows in done.values() if engine in rows and other in rows]
    pairs = [(rows[engine], rows[other]) for rows in both if family in (ALL, rows[engine]["task"]["family"])]
    if not pairs:
        return None
    right = [float(bool(a["correct"])) - bool(b["correct"]) for a, b in pairs]
    fields = [fields_right(a) - fields_right(b) for a, b in pairs]
    return Difference(family, engine, other, len(pairs), bootstrap(right), bootstrap(fields))


def bootstrap(differences: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """(mean, low, high): the mean and its 95 % percentile interval over resampled tasks."""
    values, rng = np.asarray(differences, float), np.random.default_rng(seed)
    n, means = len(values), list[np.ndarray]()
    block = max(1, 1_000_000 // n)
    for start in range(0, RESAMPLES, block):
        drawn = rng.integers(0, n, (min(block, RESAMPLES - start), n))
        means.append(values[drawn].mean(axis=1))
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def _ratio(value: float, count: int) -> float:
    return value / count if count else math.nan


def _finite(figures: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in figures.items()}


_NAMES = {"none": "free text, parsed", "tokenform": "tokenform"}


def page(board: Board) -> Page:
    """The board as a page: a table a family, the differences, and bars."""
    hidden = {"job", "engines", "limit", "data", "split", "order", "whitespace", "task_count"}
    known = facts(board.options, board.done, board.planned, board.sessions, hidden)
    sections = [_table(board, family) for family in reversed(board.families)]
    found = [section for section in [sections[0], _compared(board), *sections[1:]] if section.rows]
    return Page("Scoreboard", known, board.engines, found, board.failures)


def _table(board: Board, family: str) -> Section:
    header = ["engine", "tasks", "valid", "all right", "wrong but valid", "fields right", "tokens", "passes"]
    header += ["nats", "nats a token", "log mass a token", "CPU s", "refused", "failed"]
    rows = []
    for engine in board.engines:
        score = board.scores[family, engine]
        if not score.tasks and not score.failed:
            continue
        f = score.as_dict()
        shares = [_percent(f[k]) for k in ("valid", "right", "wrong_but_valid", "fields_right")]
        costs = [number(f[k]) for k in ("tokens", "passes", "nats")]
        costs += [_signed(f[k]) for k in ("nats_a_token", "log_mass_a_token")]
        counts = [str(score.refused), str(score.failed)]
        seconds = "-" if board.batched else number(f["cpu_s"])
        rows.append([_NAMES.get(engine, engine), str(score.tasks), *shares, *costs, seconds, *counts])
    note = (
        "Tokens, passes, nats and CPU seconds are means over tasks; nats (of what was written) and log mass "
        "(that the masks allowed) are the model's own, without a constraint. Failed units stand in no mean. "
        "Seconds are told of runs that write each text alone (--batch 0)."
    )
    names = ("valid", "right", "fields_right")
    labels = ["valid", "all right", "fields right"]
    bars = {e: [board.scores[family, e].as_dict()[n] for n in names] for e in board.engines}
    most = max(board.scores[family, e].tasks for e in board.engines)
    plots = [svg.bars(f"Scores: {family}", labels, bars, [most] * 3)] if rows else []
    return Section(f"Tasks: {family}", note, header, rows, plots)


def _compared(board: Board) -> Section:
    rows = []
    for one in board.differences:
        cells = [
            f"{100 * m:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
            for m, low, high in (one.right, one.fields)
        ]
        rows.append([one.family, _NAMES.get(one.other, one.other), str(one.tasks), *cells, one.verdict])
    header = ["tasks", "beside", "number", "all right, points", "fields right, points", "significantly"]
    engine = board.engines[0] if board.engines else ""
    note = (
        f"{engine} less the other engine, on the tasks that both have done; 95 % intervals, paired bootstrap."
    )
    return Section("Differences", note, header, rows)


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
