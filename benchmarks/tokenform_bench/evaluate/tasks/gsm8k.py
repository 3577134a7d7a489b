"""GSM8K: sums in words (Cobbe et al. 2021), 200 rows of its test set, as `validbutwrong` (MIT) has them.

The document has room for the reasoning before the answer; the judge looks at the number alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tokenform_bench.evaluate.tasks.task import Task
from tokenform_bench.evaluate.tasks.wheels import Wheel

WHEEL = Wheel("validbutwrong", "0.1.1", "106b6a45dd882a719fde70d38e0653c0e7dd9c2b50f6860428b0c54c3f493915")
SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "answer": {"type": "number"}},
    "required": ["reasoning", "answer"],
    "additionalProperties": False,
}
TOKENS = 256


def make(count: int, seed: int) -> Iterator[Task]:
    """`count` of the rows, in an order that the seed gives."""
    rows = list(WHEEL.records("validbutwrong/data/gsm8k_test_first200.jsonl"))
    numbers = random.Random(f"{seed}:gsm8k").sample(range(len(rows)), min(count, len(rows)))
    for number in numbers:
        yield read(rows[number], number)


def read(row: dict[str, Any], number: int) -> Task:
    """A row as a task: the answer stands behind four number signs."""
    answer = float(row["answer"].rpartition("####")[2].strip().replace(",", ""))
    form = '{"reasoning": "...", "answer": number}'
    prompt = f"{row['question']}\n\nThink step by step, then answer with JSON: {form}."
    return Task(f"gsm8k-{number}", "gsm8k", prompt, SCHEMA, answer, row["question"], TOKENS)
