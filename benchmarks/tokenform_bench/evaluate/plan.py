"""What an evaluation consists of: options, cases, and the units of work.

Purpose: turn the options of a run into the list of (engine, case) that must have a result.
Invariant: the same options give the same units in the same order: case by case, all engines in turn, so that
a run that is stopped early compares the engines over the same cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokenform.errors import DataError, OptionError, extras
from tokenform_bench.data import (
    MASKBENCH_FILE,
    Case,
    keywords_of,
    read_maskbench,
    sample,
    shared_folder,
)
from tokenform_bench.engines import ENGINES, missing
from tokenform_bench.evaluate.generated import generated_cases
from tokenform_bench.evaluate.store import Store, StoredCase, Unit
from tokenform_bench.evaluate.tasks import Task, make_tasks, read_tasks
from tokenform_bench.keywords import KEYWORDS

HUB = "epfl-dlab/JSONSchemaBench"
GENERATED = "generated"
TASKS = 50
SCOREBOARD, BOARD = "scoreboard", "board"  # the job, and the kind of its cases
PROMPTS = ("library", "chat", "schema")
QUALITY = ("last_letters", "shuffled_objects", "arithmetic", "extraction")


@dataclass(frozen=True)
class Options:
    """What a run is; changing any of it makes it another run.

    Attributes:
        job: "jsonschemabench" (a model writes), "masks" (no model) or "scoreboard" (tasks with right answers
            alone, every engine at its own defaults).
        data: a folder of schemas or MaskBench-format cases, a `.jsonl(.xz)` file, "hub" for the benchmark's
            data set, "hub:NAME" for another one of the same form (a name on the hub, or a local folder that
            `datasets` reads), "generated", or None for the shared MaskBench file, and where that is not
            there, generated schemas.
        split: of the hub's data set.
        limit: schemas for coverage, chosen by `seed` (None: all; 0: none).
        tasks: families of tasks, or task files; "family:12" for so many of one.
        task_count: tasks of each family; None: 50, or `limit` where that is less.
        prompt: how a task is put. "library": its text as a string, as `Generator` reads it; "chat": text and
            instruction as a user's message; "schema": the same with the schema shown.
        model: None for the built-in model, a path or a hub name otherwise.
        max_tokens: limit of each text.
        temperature: 0 is greedy.
    """

    job: str = "jsonschemabench"
    engines: tuple[str, ...] = ("tokenform", "llguidance", "xgrammar", "none")
    data: str | None = None
    split: str = "test"
    limit: int | None = 500
    seed: int = 0
    tasks: tuple[str, ...] = QUALITY
    task_count: int | None = None
    prompt: str = "schema"
    model: str | None = None
    max_tokens: int = 200
    temperature: float = 0.0
    order: str = "declared"
    whitespace: str = "any"

    def __post_init__(self) -> None:
        unknown = [name for name in self.engines if name not in ENGINES]
        if unknown or not self.engines:
            raise OptionError(f"no engine {', '.join(unknown) or 'given'}: choose of {', '.join(ENGINES)}")
        if len(set(self.engines)) < len(self.engines):
            raise OptionError(f"an engine is named twice in {', '.join(self.engines)}")
        if self.job not in ("jsonschemabench", "masks", SCOREBOARD):
            raise OptionError(f"no evaluation {self.job!r}: choose jsonschemabench, masks or scoreboard")
        if self.prompt not in PROMPTS:
            raise OptionError(f"no prompt {self.prompt!r}: choose of {', '.join(PROMPTS)}")
        if self.max_tokens < 1 or self.temperature < 0 or (self.limit is not None and self.limit < 0):
            raise OptionError("max_tokens must be at least 1; temperature and limit at least 0")

    @property
    def tasks_of_a_family(self) -> int:
        """How many tasks each family has."""
        if self.task_count is not None:
            return self.task_count
        return TASKS if not self.limit else min(TASKS, self.limit)

    def most_tokens_of(self, case: StoredCase) -> int:
        """The limit of a case's text."""
        own = None if case.task is None else case.task.get("max_tokens")
        return int(own or self.max_tokens)

    def check_engines(self) -> None:
        """DataError if an engine's package isn't installed."""
        absent = missing(self.engines)
        if absent:
            raise DataError(
                f"not installed: {', '.join(absent)}; pip install 'tokenform[peers]', or leave out"
            )

    def as_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]


def cases_of(options: Options) -> Iterator[StoredCase]:
    """All cases of a run: coverage (or masks) first, then tasks."""
    if options.job != SCOREBOARD and options.limit != 0:
        for case in sample(schemas_of(options), options.limit, options.seed):
            yield _stored(case, "masks" if options.job == "masks" else "coverage")
    if options.job == "masks":
        return
    kind = BOARD if options.job == SCOREBOARD else "quality"
    for name in options.tasks:
        for task in _tasks(name, options):
            details = {"answer": task.answer, "family": task.family, "max_tokens": task.max_tokens}
            details |= {"prompt": task.prompt, "text": task.text}
            yield StoredCase(kind, task.id, task.family, task.schema, _keywords(task.schema), details)


def _tasks(name: str, options: Options) -> Iterator[Task]:
    path = Path(name)
    if path.suffix == ".jsonl":
        return read_tasks(path)
    family, _, count = name.partition(":")
    if count and not count.isdecimal():
        raise OptionError(f"{name!r}: a family, or family:NUMBER")
    return make_tasks(family, int(count) if count else options.tasks_of_a_family, options.seed)


def schemas_of(options: Options) -> Iterator[Case]:
    """The benchmark's schemas: the hub's data set, or local files."""
    kind, _, name = source(options).partition(":")
    if kind == "hub":
        return hub_schemas(options.split, name or HUB)
    if kind == GENERATED:
        return generated_cases(options.limit, options.seed)
    return read_maskbench(options.data)


def source(options: Options) -> str:
    """Where the schemas come from: what `data` says, the shared file, or `generated`."""
    if options.data is not None:
        return options.data
    folder = shared_folder()
    shared = None if folder is None else folder / "data" / MASKBENCH_FILE
    return GENERATED if shared is None or not shared.is_file() else str(shared)


def hub_schemas(split: str, name: str = HUB) -> Iterator[Case]:
    """Every subset (configuration) of a data set with columns `json_schema` and `unique_id`, through
    `datasets`.

    Raises:
        MissingExtra: `datasets` isn't installed (with `data` given, it is not needed).
        DataError: the data set can't be had, or it has other columns.
    """
    with extras():
        import datasets
    try:
        configurations = datasets.get_dataset_config_names(name)
        for subset in [c for c in configurations if c != "default"] or ["default"]:
            for row in datasets.load_dataset(name, subset, split=split):
                yield Case(f"{subset}---{row['unique_id']}", json.loads(row["json_schema"]), ())
    except Exception as error:  # network, cache and format errors have no common class
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{name} can't be read: {why}; give --data FOLDER instead") from error


def _stored(case: Case, kind: str) -> StoredCase:
    documents = [[d.data, d.valid] for d in case.documents] if kind == "masks" else None
    return StoredCase(kind, case.id, case.subset, case.schema, _keywords(case.schema), None, documents)


def _keywords(schema: Any) -> list[str]:
    return sorted(keywords_of(schema) & KEYWORDS)


def units_left(store: Store, options: Options) -> list[Unit]:
    """The units without a result, in order."""
    done = store.done()
    units = (Unit(engine, case) for case in store.cases() for engine in options.engines)
    return [unit for unit in units if unit.key not in done]
