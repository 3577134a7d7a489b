"""What samplers of whole texts draw, beside the enumerated law: the second table of `zoo.py`.

Purpose: on supports that can be enumerated, each sampler is run many times with a real model's distributions:
the total variation of its draws as they are and weighted by exp(log_weight), beside what as many exact draws
would show; log Z less the true one, the stated error, and how many runs lie within two of them.
Supports: `cities`, ten values of different lengths, whose ends fall due at different steps (longer ones would
have too many tokenisations); `years`, 40 strings of four digits.
Cost: passes and rows are those of a run; CPU milliseconds a draw are the sampler's own, for each prefix is
computed once and kept for all runs (a finite support has a few hundred).
An error of inf says that it is not known; such runs are counted apart ("unknown"), never among those that
held.  A sampler that tests tokens one by one needs hundreds of thousands of tests here: it has fewer runs.
`person` is not enumerated: CPU seconds of exact draws with the model running, CARS beside plain rejection in
batches of 64, which draws freely and stops a text at its first wrong token.
Invariant: every run has a problem of its own, so that it pays for what it asks.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

import tokenform as tf
from tokenform.decoding.aligned.enumeration import (
    ExactDistribution,
    enumerate_target,
    sampling_noise,
    total_variation,
)
from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.protocols import Float, Tokens
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.errors import SamplingError

CITIES = ("Ur", "Rome", "Oslo", "Bern", "Lyon", "Paris", "Cairo", "Vienna", "Managua", "Paris, TX")
SUPPORTS: dict[str, tuple[Callable[[], tf.Grammar], str]] = {
    "cities": (lambda: tf.choice(list(CITIES)), "What is the capital of France?"),
    "years": (lambda: tf.regex("1[89][0-9][05]"), "In which year was Ada Lovelace born?"),
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 24}, "born": {"type": "integer"}},
    "required": ["name", "born"],
    "additionalProperties": False,
}
TEXT = "Ada Lovelace, born 1815 in London, mathematician."
BATCH = 64  # texts of plain rejection that are drawn side by side


class Known(WrappedModel):
    """A model of which each distribution is computed once; its counts are of what is asked."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._known: dict[Tokens, Any] = {}
        self._forwards = self._rows = 0

    @property
    def forwards(self) -> int:
        return self._forwards

    @property
    def rows(self) -> int:
        return self._rows

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        wanted = list(dict.fromkeys(prefixes))
        if missing := [prefix for prefix in wanted if prefix not in self._known]:
            self._known.update(zip(missing, self.model.logprobs(missing), strict=True))
        self._forwards, self._rows = self._forwards + 1, self._rows + len(wanted)
        return np.stack([self._known[prefix] for prefix in prefixes])


@dataclass
class Law:
    """A row: means over runs; `held` counts runs whose log Z is within two stated, finite errors."""

    sampler: str
    support: str
    runs: int
    draws: int
    plain: float
    weighted: float
    noise: float
    log_z_off: float = math.nan
    error: float = math.nan
    held: int = 0
    unknown: int = 0
    passes: float = 0.0
    rows: float = 0.0
    ms_a_draw: float = 0.0
    note: str = ""


TITLES = (
    "sampler", "on", "runs", "draws", "TV as drawn", "TV weighted", "of exact", "log Z off", "± (median)",
    "held", "unknown", "passes", "rows", "ms/draw", "",
)  # fmt: skip


def samplers() -> dict[str, tuple[Any, float, int]]:
    """Samplers of whole texts, what share of the runs each has, and how many times the draws of a run."""
    s, cars = tf.samplers, tf.CARS
    return {
        "Masked": (s.Masked(), 1, 1),
        "AWRS": (tf.AWRS(), 1, 10),
        **{f"SMC({n})": (tf.SMC(n), 1, 1) for n in (4, 16, 64)},
        "MCMC(10)": (tf.MCMC(10), 1, 1),
        "MCMC(10), one try": (tf.MCMC(10, tries=1), 1, 1),
        "ASAp": (tf.ASAp(), 1, 1),
        "ASAp, 200 draws": (tf.ASAp(), 1, 10),
        "CARS": (cars(), 1, 1),
        "AWRS, tests alone": (tf.AWRS(always_reject=True), 0.02, 10),
        "SMC(16), tests alone": (tf.SMC(16, weights="rejection"), 0.02, 1),
        "CARS(rejected)": (cars(learn="rejected", max_attempts=2000), 0.01, 1),
    }


def searches() -> dict[str, Any]:
    """Searches for the likeliest text."""
    return {
        "Beam(4)": tf.Beam(4),
        "Beam(4), 2 groups": tf.Beam(4, groups=2),
        "Beam(4), patience 2": tf.Beam(4, patience=2.0),
        "Beam(4), best first": tf.Beam(4, best_first=True),
        "Beam(None), best first": tf.Beam(None, best_first=True),
        "BestSpan": tf.samplers.BestSpan(),
    }


Bind = Callable[[Any], Problem]


def supports(writer: tf.Generator) -> Iterator[tuple[str, Bind, ExactDistribution]]:
    """Each support's name, what makes a sampler's problem of it, and its law."""
    model = Known(writer.language_model())
    for name, (make, prompt) in SUPPORTS.items():
        grammar = make()
        automaton, ids = grammar.compile(writer.vocabulary), tuple(writer.prompt_ids(prompt, grammar))

        def bind(sampler: Any, automaton: Any = automaton, ids: tuple[int, ...] = ids) -> Problem:
            problem: Problem = sampler.bind(model, automaton, ids, 24)
            return problem

        yield name, bind, enumerate_target(bind(tf.samplers.Masked()))


def laws(writer: tf.Generator, runs: int, draws: int, only: Sequence[str]) -> Iterator[Law]:
    """Every sampler on every support, and the searches."""
    for name, bind, exact in supports(writer):
        for label, (sampler, share, times) in samplers().items():
            if not only or any(part in label for part in only):
                count = max(round(runs * share), 1)
                yield measured(label, name, sampler, bind, exact, count, draws * times)
        best = max(exact.log_measure.values())
        for label, search in searches().items():
            if not only or any(part in label for part in only):
                found = search.sample(bind(search), 1, seed=0)
                yield Law(
                    label, name, 1, 1, math.nan, math.nan, math.nan, passes=found.counts.forwards,
                    rows=found.counts.rows, note=f"log p {found.draws[0].logprob:.2f}, best {best:.2f}",
                )  # fmt: skip


def measured(
    label: str, support: str, sampler: Any, bind: Bind, exact: ExactDistribution, runs: int, draws: int
) -> Law:  # fmt: skip
    """`runs` runs of one sampler."""
    plain, weighted = Counter[Tokens](), Counter[Tokens]()
    offs, errors, passes, rows = list[float](), list[float](), 0, 0
    began = time.process_time()
    try:
        for seed in range(runs):
            found = sampler.sample(bind(sampler), draws, seed=seed)
            top = exact.log_z if any(draw.log_weight for draw in found.draws) else 0.0
            for draw in found.draws:
                plain[draw.tokens] += 1
                weighted[draw.tokens] += math.exp(draw.log_weight - top)
            offs.append(found.log_z.value - exact.log_z)
            errors.append(found.log_z.error)
            passes, rows = passes + found.counts.forwards, rows + found.counts.rows
    except SamplingError as error:
        return Law(label, support, runs, draws, math.nan, math.nan, math.nan, note=f"gave up: {error}"[:80])
    seconds = time.process_time() - began
    off, error = np.array(offs), np.array(errors)
    return Law(
        label, support, runs, draws, apart(exact, plain), apart(exact, weighted),
        sampling_noise(exact.probabilities, runs * draws), float(off.mean()), float(np.median(error)),
        int((np.isfinite(error) & (np.abs(off) <= 2 * error)).sum()), int(np.isinf(error).sum()),
        passes / runs, rows / runs, 1e3 * seconds / runs / draws, "exact" if found.exact else "",
    )  # fmt: skip


def apart(exact: ExactDistribution, found: Counter[Tokens]) -> float:
    """Total variation of what was drawn."""
    total = sum(found.values())
    return total_variation(exact.probabilities, {x: c / total for x, c in found.items()})


def races(writer: tf.Generator, draws: int) -> Iterator[Law]:
    """Exact draws of a document with the model running: CARS, and plain rejection in batches."""
    grammar = tf.json_schema(PERSON)
    automaton, ids = grammar.compile(writer.vocabulary), tuple(writer.prompt_ids(TEXT, grammar))
    sampler = tf.CARS()
    for label, draw in (("CARS", sampler.sample), (f"rejection in batches of {BATCH}", rejected)):
        problem = sampler.bind(writer.language_model(), automaton, ids, 40)
        before, began = problem.counts(), time.process_time()
        draw(problem, draws, seed=0)
        seconds, spent = time.process_time() - began, problem.counts() - before
        yield Law(
            label, "person", 1, draws, math.nan, math.nan, math.nan, passes=spent.forwards, rows=spent.rows,
            ms_a_draw=1e3 * seconds / draws, note="exact",
        )  # fmt: skip


def rejected(problem: Problem, draws: int, seed: int) -> list[Tokens]:
    """Plain rejection: texts of the model, `BATCH` side by side, each up to its first wrong token."""
    generator, found = np.random.default_rng(seed), list[Tokens]()
    while len(found) < draws:
        live: list[Prefix] = [problem.root()] * BATCH
        while live:
            measures = problem.log_measure(live)
            chosen = [int((row + generator.gumbel(size=len(row))).argmax()) for row in measures]
            right = problem.check(live, chosen)
            ended = [
                p for p, token, ok in zip(live, chosen, right, strict=True) if ok and token == problem.eos
            ]
            found += [prefix.tokens for prefix in ended]
            live = [
                problem.extend(prefix, token)
                for prefix, token, ok in zip(live, chosen, right, strict=True)
                if ok and token != problem.eos
            ]
    return found[:draws]


def cells(one: Law) -> list[str]:
    """A row as text."""
    return [
        ("-" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:.0f}")
        if isinstance(value, float)
        else str(value)
        for value in astuple(one)
    ]


assert len(TITLES) == len(fields(Law))
