"""Tasks with right answers: each family is a file that makes or reads its tasks, with a judge.

A family gives `(count, seed) -> tasks` and `(answer, text) -> Marks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tokenform.errors import OptionError
from tokenform_bench.evaluate.tasks import bfcl, extraction, gsm8k, human_eval, maskbench, puzzles
from tokenform_bench.evaluate.tasks.grading import Marks, mark_text
from tokenform_bench.evaluate.tasks.task import Task, read_tasks

__all__ = ["FAMILIES", "Family", "Marks", "Task", "judge_of", "make_tasks", "read_tasks"]


@dataclass(frozen=True)
class Family:
    """How a family's tasks are made, and how a text is judged."""

    make: Callable[[int, int], Iterator[Task]]
    judge: Callable[[Any, str], Marks] = mark_text


FAMILIES: dict[str, Family] = {
    "last_letters": Family(partial(puzzles.make, "last_letters")),
    "shuffled_objects": Family(partial(puzzles.make, "shuffled_objects")),
    "arithmetic": Family(partial(puzzles.make, "arithmetic")),
    "extraction": Family(extraction.make),
    "extraction_aside": Family(partial(extraction.make, aside=True)),
    "bfcl": Family(bfcl.make, bfcl.judge),
    "gsm8k": Family(gsm8k.make),
    "human_eval": Family(human_eval.make, human_eval.judge),
    "maskbench": Family(maskbench.make),
}


def make_tasks(family: str, count: int, seed: int) -> Iterator[Task]:
    """`count` tasks of a family, or as many as it has; OptionError for an unknown one."""
    if family not in FAMILIES:
        raise OptionError(
            f"there are no tasks {family!r}: choose of {', '.join(FAMILIES)}, or give a .jsonl file"
        )
    return FAMILIES[family].make(count, seed)


def judge_of(family: str) -> Callable[[Any, str], Marks]:
    """The judge of a family; of a file's tasks, `mark_text`."""
    return FAMILIES[family].judge if family in FAMILIES else mark_text
