"""MaskBench's schemas with instructions: a valid document told line by line, to be written as JSON.

The schemas are real ones, of every kind; what is asked is copying, so that a wrong value is the doing of the
constraint or the layout rather than a lack of knowledge.  The document is the first valid one that the
benchmark has for a schema, if it is short: 2 to 12 leaves, at most 400 characters, a schema of at most 4,000.
Source: MaskBench (guidance-ai/jsonschemabench), read as the other jobs read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tokenform_bench.data import Case, read_maskbench, sample
from tokenform_bench.evaluate.tasks.grading import leaves
from tokenform_bench.evaluate.tasks.task import Task

LEAVES, CHARACTERS, SCHEMA_CHARACTERS = (2, 12), 400, 4000


def make(count: int, seed: int) -> Iterator[Task]:
    """`count` of the schemas, chosen by a hash of seed and id."""
    yield from map(read, sample((case for case in read_maskbench(None) if document(case)), count, seed))


def document(case: Case) -> dict[str, Any] | None:
    """The document to be told, or None where there is no short one."""
    if len(json.dumps(case.schema)) > SCHEMA_CHARACTERS:
        return None
    for one in case.documents:
        if not one.valid or not isinstance(one.data, dict):
            continue
        told = list(leaves(one.data))
        fits = LEAVES[0] <= len(told) <= LEAVES[1] and len(json.dumps(one.data)) <= CHARACTERS
        if fits and all(not isinstance(value, dict | list) and path for path, value in told):
            return one.data
    return None


def read(case: Case) -> Task:
    """A schema and its document as a task."""
    answer = document(case)
    assert answer is not None
    told = "\n".join(f"- {_named(path)}: {json.dumps(v, ensure_ascii=False)}" for path, v in leaves(answer))
    text = f"Write these values as one JSON document:\n{told}"
    return Task(
        f"maskbench-{case.id}", "maskbench", f"{text}\n\nAnswer with JSON.", case.schema, answer, text
    )


def _named(path: tuple[str | int, ...]) -> str:
    """`items[0].price`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
