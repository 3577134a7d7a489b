"""Puzzles: small problems with one right answer, each with a schema for the answer's document.

Purpose: does a constraint help or hurt the answers?  Three kinds of the paper: last letters, shuffled
objects, arithmetic with reasoning.
Invariant: made from a seed alone.
Source: Geng et al. 2025, section on quality (last letter, shuffled objects, GSM8K).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tokenform_bench.evaluate.tasks.task import Task

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
_THINGS = ("red ball", "blue cube", "green book", "black pen", "white cup", "yellow hat", "brown box")


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


KINDS: dict[str, Callable[[random.Random, str], Task]] = {
    "last_letters": _last_letters,
    "shuffled_objects": _shuffled_objects,
    "arithmetic": _arithmetic,
}


def make(kind: str, count: int, seed: int) -> Iterator[Task]:
    """`count` puzzles of a kind."""
    for number in range(count):
        yield KINDS[kind](random.Random(f"{seed}:{kind}:{number}"), f"{kind}-{number}")
