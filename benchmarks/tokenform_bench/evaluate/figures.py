"""The metrics of an evaluation, computed from its database and from nothing else.

Purpose: efficiency, coverage and quality for each engine, as the paper defines them.
Invariant: every figure is a function of the rows; a test recomputes them with plain SQL.
    declared coverage  = units whose constraint compiled / units
    empirical coverage = units whose text both judges find valid / units
    compliance         = empirical / declared
    efficiency         = over the cases that ran under every engine of the run ("ok"), so that all are timed
                         on the same schemas
Complexity: one pass over the rows; times of all tokens are held once (8 bytes each).
Source: Geng et al. 2025: coverage and quality; efficiency "on the intersection" of what all engines cover.
Rejected: means alone (the paper's medians, and the tails that decide how a server feels, are given too).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenform_bench.evaluate.store import Store


@dataclass
class Coverage:
    """Counts of units; the ratios are properties."""

    units: int = 0
    compiled: int = 0
    valid: int = 0
    disputed: int = 0

    @property
    def declared(self) -> float:
        return self.compiled / self.units if self.units else float("nan")

    @property
    def empirical(self) -> float:
        return self.valid / self.units if self.units else float("nan")

    @property
    def compliance(self) -> float:
        return self.valid / self.compiled if self.compiled else float("nan")

    def add(self, row: dict[str, Any]) -> None:
        self.units += 1
        self.compiled += row["compile_s"] is not None and row["status"] != "refused"
        self.valid += bool(row["valid"])
        self.disputed += bool(row["disputed"])


@dataclass
class Efficiency:
    """Times over the units of the cases that ran under every engine: seconds, except `token_us`.

    Attributes:
        units: how many units these are.
        token_us: microseconds of mask + advance for every token.
        per_token_s: each unit's seconds a token, model included.
    """

    units: int = 0
    compile_s: list[float] = field(default_factory=list)
    first_token_s: list[float] = field(default_factory=list)
    per_token_s: list[float] = field(default_factory=list)
    token_us: list[float] = field(default_factory=list)
    tokens: int = 0
    forwards: int = 0
    seconds: float = 0.0
    mask_seconds: float = 0.0

    def add(self, row: dict[str, Any]) -> None:
        self.units += 1
        self.compile_s.append(row["compile_s"])
        self.first_token_s.append(row["first_token_s"])
        self.token_us += row["mask_us"] or []
        self.mask_seconds += row["mask_s"] or 0.0
        self.tokens += row["tokens"] or 0
        if row["model_s"] is None:
            return
        self.forwards += row["forwards"]
        spent = row["model_s"] + row["mask_s"]
        self.seconds += spent
        if row["tokens"]:
            self.per_token_s.append(spent / row["tokens"])

    @property
    def throughput(self) -> float:
        """Tokens a second, model and masks."""
        return self.tokens / self.seconds if self.seconds else float("nan")

    @property
    def forwards_per_token(self) -> float:
        return self.forwards / self.tokens if self.tokens and self.forwards else float("nan")


def spread(values: Iterable[float]) -> dict[str, float]:
    """Mean, median, 99th percentile and worst; nan without values."""
    array = np.fromiter(values, float)
    if not array.size:
        return dict.fromkeys(("mean", "median", "p99", "worst"), float("nan"))
    return {
        "mean": float(array.mean()),
        "median": float(np.median(array)),
        "p99": float(np.quantile(array, 0.99)),
        "worst": float(array.max()),
    }


@dataclass
class Figures:
    """All metrics of a run, by engine (in the order of the run's options).

    Attributes:
        cut: texts that were not ended within the limit of tokens.
        invalid: texts that were ended, and that are invalid all the same.
        quality: (right, all) tasks by family.
        failures: (case, why) of what neither ran nor was refused, and of what is invalid though not cut.
    """

    options: dict[str, Any]
    engines: list[str]
    planned: int
    done: int
    statuses: dict[str, Counter[str]]
    coverage: dict[str, Coverage]
    by_subset: dict[str, dict[str, Coverage]]
    by_keyword: dict[str, dict[str, Coverage]]
    efficiency: dict[str, Efficiency]
    cut: dict[str, int]
    invalid: dict[str, int]
    quality: dict[str, dict[str, tuple[int, int]]]
    failures: dict[str, list[tuple[str, str]]]
    sessions: list[dict[str, Any]]


def compute(store: Store) -> Figures:
    """Read the metrics out of a database, which may hold an unfinished run."""
    options = store.options()
    engines = list(options.get("engines", []))

    def each(make: Callable[[], Any]) -> dict[str, Any]:
        return {engine: make() for engine in engines}

    figures = Figures(
        options=options,
        engines=engines,
        planned=store.case_count() * len(engines),
        done=0,
        statuses=each(Counter),
        coverage=each(Coverage),
        by_subset=defaultdict(lambda: each(Coverage)),
        by_keyword=defaultdict(lambda: each(Coverage)),
        efficiency=each(Efficiency),
        cut=dict.fromkeys(engines, 0),
        invalid=dict.fromkeys(engines, 0),
        quality=defaultdict(lambda: dict.fromkeys(engines, (0, 0))),
        failures=each(list),
        sessions=store.sessions(),
    )
    ran = Counter((kind, case) for _, kind, case, status in store.statuses() if status == "ok")
    for row in store.rows():
        figures.done += 1
        if ran[row["kind"], row["case_id"]] == len(engines):
            figures.efficiency[row["engine"]].add(row)
        _add(figures, row)
    return figures


def _add(figures: Figures, row: dict[str, Any]) -> None:
    engine = row["engine"]
    figures.statuses[engine][row["status"]] += 1
    if row["kind"] == "quality":
        right, total = figures.quality[row["task"]["family"]][engine]
        figures.quality[row["task"]["family"]][engine] = right + bool(row["correct"]), total + 1
        return
    groups = [figures.coverage, figures.by_subset[row["subset"]]]
    groups += [figures.by_keyword[keyword] for keyword in row["keywords"]]
    for group in groups:
        group[engine].add(row)
    figures.cut[engine] += row["finished"] == 0
    if row["status"] not in ("ok", "refused"):
        figures.failures[engine].append((row["case_id"], f"{row['status']} {row['detail'] or ''}"))
    elif row["status"] == "ok" and row["valid"] == 0 and row["finished"] != 0:
        figures.invalid[engine] += 1
        wrong = "; ".join(f"{name}: {error}" for name, error in (row["judges"] or {}).items() if error)
        figures.failures[engine].append((row["case_id"], f"invalid: {wrong or 'not JSON'}"))
