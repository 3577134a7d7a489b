"""Quality tasks: small problems with one right answer, each with a schema for the answer's document.

Purpose: does a constraint help or hurt the answers?  The four kinds of the paper: last letters, shuffled
objects, arithmetic with reasoning, extraction.
Invariant: made from a seed alone; the grade looks at the answer's field only, and reads a free text as well
as it can, so that the run without a constraint isn't marked down for its form.
Source: Geng et al. 2025, section on quality (last letter, shuffled objects, GSM8K); extraction is this
library's main use.
Rejected: downloading GSM8K (a run must work offline; task files can be given instead).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenform.errors import DataError, OptionError

_NAMES = (
    "Ada",
    "Alan",
    "Grace",
    "Edsger",
    "Barbara",
    "Donald",
    "Tony",
    "Frances",
    "John",
    "Margaret",
    "Niklaus",
    "Radia",
    "Ken",
    "Shafi",
    "Leslie",
    "Judea",
)
_SURNAMES = (
    "Lovelace",
    "Turing",
    "Hopper",
    "Dijkstra",
    "Liskov",
    "Knuth",
    "Hoare",
    "Allen",
    "Backus",
    "Hamilton",
    "Wirth",
    "Perlman",
)
_CITIES = ("Lisbon", "Oslo", "Nairobi", "Quito", "Osaka", "Tbilisi", "Cork", "Lagos", "Turin", "Perth")
_THINGS = ("red ball", "blue cube", "green book", "black pen", "white cup", "yellow hat", "brown box")


@dataclass(frozen=True)
class Task:
    """A prompt, the schema of the answer's document, and the right value of its field `answer`."""

    id: str
    family: str
    prompt: str
    schema: dict[str, Any]
    answer: Any


def _document(reasoning: bool, answer: dict[str, Any]) -> dict[str, Any]:
    properties = {"reasoning": {"type": "string", "maxLength": 400}} if reasoning else {}
    properties["answer"] = answer
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _last_letters(rng: random.Random, name: str) -> Task:
    words = rng.sample(_NAMES, 4)
    prompt = (
        f"Take the last letter of each word in '{' '.join(words)}' and join them. "
        'Answer with JSON: {"reasoning": "...", "answer": "..."}.'
    )
    schema = _document(True, {"type": "string", "pattern": "^[a-z]{4}$"})
    return Task(name, "last_letters", prompt, schema, "".join(word[-1] for word in words))


def _shuffled_objects(rng: random.Random, name: str) -> Task:
    people, things = rng.sample(_NAMES, 3), rng.sample(_THINGS, 3)
    held = dict(zip(people, things, strict=True))
    story = [f"{p} has the {t}" for p, t in held.items()]
    moves = []
    for _ in range(3):
        a, b = rng.sample(people, 2)
        held[a], held[b] = held[b], held[a]
        moves.append(f"{a} and {b} swap what they have")
    asked = rng.choice(people)
    prompt = (
        f"{', '.join(story)}. Then {'. Then '.join(moves)}. What does {asked} have at the end? "
        'Answer with JSON: {"reasoning": "...", "answer": "..."}.'
    )
    return Task(name, "shuffled_objects", prompt, _document(True, {"enum": sorted(things)}), held[asked])


def _arithmetic(rng: random.Random, name: str) -> Task:
    boxes, each, given, found = rng.randint(2, 9), rng.randint(3, 12), rng.randint(1, 5), rng.randint(2, 20)
    who = rng.choice(_NAMES)
    prompt = (
        f"{who} buys {boxes} boxes with {each} apples each, gives {given} away and finds {found} more. "
        f'How many apples does {who} have? Answer with JSON: {{"reasoning": "...", "answer": number}}.'
    )
    return Task(
        name, "arithmetic", prompt, _document(True, {"type": "integer"}), boxes * each - given + found
    )


def _extraction(rng: random.Random, name: str) -> Task:
    who = f"{rng.choice(_NAMES)} {rng.choice(_SURNAMES)}"
    answer = {"name": who, "age": rng.randint(19, 88), "city": rng.choice(_CITIES)}
    prompt = f"{who} is {answer['age']} years old and lives in {answer['city']}."
    fields = {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer"},
        "city": {"type": "string", "maxLength": 30},
    }
    inner = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return Task(name, "extraction", prompt, inner, answer)


FAMILIES: dict[str, Callable[[random.Random, str], Task]] = {
    "last_letters": _last_letters,
    "shuffled_objects": _shuffled_objects,
    "arithmetic": _arithmetic,
    "extraction": _extraction,
}


def make_tasks(family: str, count: int, seed: int) -> Iterator[Task]:
    """`count` tasks of a family; OptionError for an unknown one."""
    if family not in FAMILIES:
        raise OptionError(
            f"there are no tasks {family!r}: choose of {', '.join(FAMILIES)}, or give a .jsonl file"
        )
    for number in range(count):
        yield FAMILIES[family](random.Random(f"{seed}:{family}:{number}"), f"{family}-{number}")


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


def grade(answer: Any, text: str) -> bool:
    """Whether a text gives the answer: as a document, as a document within prose, or, last, as its last word
    or number."""
    for value in _documents(text):
        if isinstance(answer, dict):
            return isinstance(value, dict) and all(value.get(key) == want for key, want in answer.items())
        if isinstance(value, dict) and "answer" in value:
            return _same(answer, value["answer"])
    if isinstance(answer, dict):
        return False
    tail = re.findall(r"-?\d+(?:\.\d+)?" if isinstance(answer, (int, float)) else r"[^\s.,:;!?\"'{}]+", text)
    words = str(answer).split()
    return bool(tail) and " ".join(tail[-len(words) :]).casefold() == " ".join(words).casefold()


def _documents(text: str) -> Iterator[Any]:
    """The JSON documents in a text: itself, else those that begin at its braces."""
    try:
        yield json.loads(text)
        return
    except ValueError:
        pass
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            yield decoder.raw_decode(text, match.start())[0]
        except ValueError:
            continue


def _same(answer: Any, given: Any) -> bool:
    if isinstance(answer, str) and isinstance(given, str):
        return answer.strip().casefold() == given.strip().casefold()
    return bool(answer == given) and isinstance(answer, bool) == isinstance(given, bool)
