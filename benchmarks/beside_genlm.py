"""Beside genlm-control: the same model, prompt, constraint and number of particles.

    pip install genlm-control==0.4.1
    OMP_NUM_THREADS=1 python benchmarks/beside_genlm.py --runs 20

Tasks: `year` (a regex whose distribution is enumerated) and `person` (a regex with free strings: log Z alone)
by mask weights; `monday` (a Python function without a mask) by adaptive weighted rejection.  All with the
built-in model, 16 particles, resampling below an effective size of 8. Columns: total variation between the
mean posterior over texts and the enumerated distribution (with what exact draws in equal number would show),
log of the mean estimate of Z and its standard error, evaluations of the predicate a token and a run, CPU
seconds of the process a run (one thread; all caches cold, compiling left out).
Rejected: comparing distributions over token sequences (genlm's vocabulary leaves out control tokens, ours
masks them; texts are the same); its JSON Schema potential (it spells documents in more ways, so Z would be
another).
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

import tokenform as tf
from tokenform.decoding.aligned.enumeration import enumerate_target
from tokenform_bench.tables import save, text_table

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass
class Task:
    """A constraint as both libraries are given it.

    Attributes:
        shown: the properties of the JSON Schema in the prompt.
        pattern: a regex, for masks; "" where there is none.
        prefix, complete: Python functions on text, for rejection; None where there are masks.
        exact: whether the distribution is enumerated.
    """

    name: str
    max_tokens: int
    prompt: str
    shown: Mapping[str, Any]
    pattern: str = ""
    prefix: Callable[[str], bool] | None = None
    complete: Callable[[str], bool] | None = None
    exact: bool = True


@dataclass
class Run:
    """Posterior over texts, log of the estimate of Z, seconds, predicate calls, tokens of the texts."""

    posterior: dict[str, float]
    log_z: float
    seconds: float
    evaluations: int
    tokens: int


@dataclass
class Line:
    """One row of the table."""

    task: str
    library: str
    distance: float
    noise: float
    log_z: float
    log_z_error: float
    exact_log_z: float
    evaluations_per_token: float
    evaluations: float
    seconds: float


FORM = '{"date": "2020-'


def may_begin(text: str) -> bool:
    """Whether a day of 2020 in a JSON document may begin so."""
    rest = text[len(FORM) :]
    if not (FORM.startswith(text) or text.startswith(FORM)):
        return False
    return len(rest) <= 7 and any(day.startswith(rest) for day in DAYS)


def is_day(text: str) -> bool:
    """Whether it is a whole document, its day a Monday."""
    try:
        day = datetime.date.fromisoformat(text[len('{"date": "') : -2])
    except ValueError:
        return False
    return text == f'{{"date": "{day.isoformat()}"}}' and day.year == 2020 and day.weekday() == 0


_NEW_YEAR = datetime.date(2020, 1, 1)
DAYS = [f'{(_NEW_YEAR + datetime.timedelta(n)).strftime("%m-%d")}"}}' for n in range(366)]
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TASKS = [
    Task("year", 16, "A person.", {"year": NUMBER}, r'\{"year": 19[4-8][05]\}'),
    Task(
        "person",
        40,
        "A person, born long ago.",
        {"name": TEXT, "year": NUMBER},
        r'\{"name": "[A-Za-z .]{1,24}", "year": [0-9]{4}\}',
        exact=False,
    ),
    Task(
        "monday",
        16,
        "A meeting in 2020.",
        {"date": {"type": "string", "format": "date"}},
        prefix=may_begin,
        complete=is_day,
        exact=False,
    ),
]


def prompt_ids(writer: Any, task: Task) -> list[int]:
    """The prompt with its schema, as the model was trained to read it."""
    schema = {"type": "object", "properties": dict(task.shown), "required": list(task.shown)}
    ids: list[int] = writer.prompt_ids(task.prompt, tf.json_schema({**schema, "additionalProperties": False}))
    return ids


class Ours:
    """tokenform."""

    name = "tokenform"

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def constraint(self, task: Task, count: Callable[[], None] = lambda: None) -> Any:
        if task.pattern:
            return tf.regex(task.pattern)
        assert task.prefix is not None and task.complete is not None
        prefix, complete = task.prefix, task.complete
        return tf.predicate(
            lambda text: (count(), prefix(text))[1], lambda text: (count(), complete(text))[1], name=task.name
        )

    def run(self, task: Task, particles: int, seed: int) -> Run:
        calls = Calls()
        sampler = tf.SMC(particles)
        problem = self.writer.problem(
            prompt_ids(self.writer, task),
            self.constraint(task, calls),
            max_tokens=task.max_tokens,
            sampler=sampler,
        )
        start = process_time()
        sample = sampler.particles(problem, seed=seed)
        seconds = process_time() - start
        posterior: dict[str, float] = defaultdict(float)
        for draw, weight in zip(sample.draws, sample.weights.tolist(), strict=True):
            posterior[draw.text] += weight
        tokens = sample.counts.tokens
        assert sample.log_z is not None
        return Run(dict(posterior), sample.log_z.value, seconds, calls.number, tokens)


class Calls:
    """Counts."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> None:
        self.number += 1


class Theirs:
    """genlm-control."""

    name = "genlm-control 0.4"

    def __init__(self, writer: Any) -> None:
        from genlm.backend.llm import AsyncTransformer

        self.writer = writer
        self.model = AsyncTransformer(writer.model, writer.tokenizer, batch_size=16, timeout=0.001)

    def prompted(self, task: Task) -> Any:
        from genlm.control import PromptedLLM

        vocabulary, tokenizer = self.writer.vocabulary, self.writer.tokenizer
        names = [tokenizer.convert_ids_to_tokens(end).encode() for end in vocabulary.eos]
        return PromptedLLM(self.model, prompt_ids=prompt_ids(self.writer, task), eos_byte_strings=names)

    def sampler(self, task: Task, calls: Calls) -> Any:
        from genlm.control import AWRS, BoolFSA, direct_token_sampler

        llm = self.prompted(task)
        if task.pattern:
            return direct_token_sampler(llm * BoolFSA.from_regex(task.pattern).coerce(llm, f=b"".join))
        return AWRS(llm, _potential(llm.vocab, task, calls))

    def run(self, task: Task, particles: int, seed: int) -> Run:
        torch.manual_seed(seed)
        np.random.seed(seed)
        calls = Calls()
        self.model.clear_cache()
        sampler = self.sampler(task, calls)

        async def go() -> Any:
            return await sampler.smc(n_particles=particles, ess_threshold=0.5, max_tokens=task.max_tokens)

        start = process_time()
        found = asyncio.run(go())
        seconds = process_time() - start
        tokens = sum(len(context) for context in found.contexts)
        posterior = {str(text): float(p) for text, p in found.decoded_posterior.items()}
        return Run(posterior, float(found.log_ml), seconds, calls.number, tokens)


def _potential(vocabulary: Any, task: Task, calls: Calls) -> Any:
    from genlm.control import Potential

    assert task.prefix is not None and task.complete is not None
    prefix, complete = task.prefix, task.complete

    class Judged(Potential):
        async def prefix(self, context: Any) -> float:
            calls()
            return 0.0 if prefix(spelled(context)) else -math.inf

        async def complete(self, context: Any) -> float:
            calls()
            return 0.0 if complete(spelled(context)) else -math.inf

    def spelled(context: Any) -> str:
        return b"".join(token.byte_string for token in context).decode("utf-8", "ignore")

    return Judged(vocabulary=vocabulary)


def exact_distribution(writer: Any, task: Task) -> tuple[dict[str, float], float]:
    """The target over texts, and log Z."""
    sampler = tf.SMC()
    problem = writer.problem(
        prompt_ids(writer, task), tf.regex(task.pattern), max_tokens=task.max_tokens, sampler=sampler
    )
    found = enumerate_target(problem, limit=200_000)
    distribution: dict[str, float] = defaultdict(float)
    for tokens, value in found.log_measure.items():
        distribution[problem.bytes_of(tokens).decode()] += math.exp(value - found.log_z)
    return dict(distribution), found.log_z


def measured(
    library: Any, task: Task, runs: int, particles: int, distribution: tuple[dict[str, float], float]
) -> Line:
    """A line of the table; the first run, which warms the interpreter, is not counted."""
    library.run(task, particles, 10_000)
    done = [library.run(task, particles, seed) for seed in range(runs)]
    estimates = np.exp(np.array([run.log_z for run in done]))
    mean: dict[str, float] = defaultdict(float)
    total = sum(sum(run.posterior.values()) for run in done)
    for run in done:
        for text, chance in run.posterior.items():
            mean[text] += chance / total
    texts, log_z = distribution
    chances = np.array(list(texts.values()))
    distance = noise = math.nan
    if texts:
        distance = 0.5 * sum(abs(mean.get(t, 0.0) - texts.get(t, 0.0)) for t in {*mean, *texts})
        drawn = np.random.default_rng(0).multinomial(runs * particles, chances / chances.sum(), size=50)
        noise = float(0.5 * np.abs(drawn / (runs * particles) - chances).sum(1).mean())
    error = float(estimates.std(ddof=1) / math.sqrt(runs) / estimates.mean())
    tokens = sum(run.tokens for run in done)
    evaluations = sum(run.evaluations for run in done) / tokens if task.prefix else math.nan
    seconds = sum(run.seconds for run in done) / runs
    return Line(
        task.name,
        library.name,
        distance,
        noise,
        math.log(estimates.mean()),
        error,
        log_z,
        evaluations,
        sum(run.evaluations for run in done) / runs if task.prefix else math.nan,
        seconds,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--tasks", default=",".join(task.name for task in TASKS))
    parser.add_argument("--no-save", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    writer = tf.Generator()
    lines: list[Line] = []
    for task in TASKS:
        if task.name not in options.tasks.split(","):
            continue
        distribution = exact_distribution(writer, task) if task.exact else ({}, math.nan)
        for library in (Ours(writer), Theirs(writer)):
            line = measured(library, task, options.runs, options.particles, distribution)
            lines.append(line)
            print(line, file=sys.stderr)
    table = text_table(list(asdict(lines[0])), [[_shown(v) for v in asdict(line).values()] for line in lines])
    print(table)
    if not options.no_save:
        save(
            RESULTS,
            "beside-genlm",
            {"options": vars(options), "lines": [asdict(line) for line in lines]},
        )
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
