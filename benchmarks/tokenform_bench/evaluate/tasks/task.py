"""What a task is: a prompt, a JSON Schema for the answer's document, the right answer; files of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenform.errors import DataError


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        family: the name under which `tasks.FAMILIES` knows its maker and its judge.
        prompt: what the model is asked, with an instruction.
        schema: of the answer's document.
        answer: what the family's judge compares with: the right document, the right value of its field
            `answer`, or what else the family keeps.
        text: what a newcomer gives as the prompt: the text alone; "" where that is the prompt itself.
        max_tokens: most tokens of the text; None for the run's.
    """

    id: str
    family: str
    prompt: str
    schema: Any
    answer: Any
    text: str = ""
    max_tokens: int | None = None


def read_tasks(path: Path) -> Iterator[Task]:
    """Tasks of a file with one JSON object a line: {"prompt", "schema", "answer", "id"?, "family"?}.

    Raises:
        DataError: the file can't be read, or a line isn't such an object.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} can't be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            task = Task(
                str(record.get("id", f"{path.stem}-{number}")),
                str(record.get("family", path.stem)),
                record["prompt"],
                record["schema"],
                record["answer"],
            )
        except (ValueError, KeyError, AttributeError) as error:
            raise DataError(f"{path}:{number} is not a task (prompt, schema, answer): {error!r}") from error
        yield task
