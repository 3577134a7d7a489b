"""Whether thinking aloud before a bound answer makes a small chat model's answers right.

    python benchmarks/reason.py MODEL [--problems 40] [--budget 120] [--mass 0.75] [--seed 7]

Word problems of one step (a sum, change, an age, a total), written by rule, each with one whole number as its
answer; the schema is `{"answer": integer}`, decoding is greedy.  Without a thought, with one that ends with
the model's turn or its budget, with one that also ends where the feasible mass is reached, and with a free
draft of the answer.  Printed: right answers, tokens of thoughts and answers, CPU seconds.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import torch

import tokenform as tf

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
NAMES = ["Anna", "Ben", "Carla", "David", "Emma", "Felix", "Greta", "Henry"]
THINGS = ["apples", "books", "pencils", "shells", "stamps", "marbles"]
Problem = tuple[str, int]


def add(draw: random.Random) -> Problem:
    one, other = draw.sample(NAMES, 2)
    what, x, y = draw.choice(THINGS), draw.randint(3, 40), draw.randint(3, 40)
    return f"{one} has {x} {what} and {other} has {y} {what}. How many {what} do they have together?", x + y


def change(draw: random.Random) -> Problem:
    who, price, note = draw.choice(NAMES), draw.randint(2, 18), draw.choice((20, 50))
    asked = f"How many dollars of change does {who} get?"
    return (
        f"{who} buys a ticket for {price} dollars and pays with a {note} dollar note. {asked}",
        note - price,
    )


def age(draw: random.Random) -> Problem:
    one, other = draw.sample(NAMES, 2)
    years, more = draw.randint(8, 20), draw.randint(2, 9)
    told = f"{one} is {years} years old. {other} is {more} years older than {one}."
    return f"{told} How old is {other}?", years + more


def total(draw: random.Random) -> Problem:
    boxes, each, what = draw.randint(3, 9), draw.randint(4, 12), draw.choice(THINGS)
    return (
        f"There are {boxes} boxes with {each} {what} in each. How many {what} are there in all?",
        boxes * each,
    )


KINDS: list[Callable[[random.Random], Problem]] = [add, change, age, total]


def problems(count: int, seed: int) -> list[Problem]:
    draw = random.Random(seed)
    return [KINDS[number % len(KINDS)](draw) for number in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--budget", type=int, default=120)
    parser.add_argument("--mass", type=float, default=0.75)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", type=int, default=0, help="texts of each kind that are printed")
    given = parser.parse_args()
    torch.set_num_threads(1)
    writer = tf.Generator(given.model, drafter=None, batch_size=given.problems)
    asked = problems(given.problems, given.seed)
    ways: dict[str, Any] = {
        "no thought": None,
        "reason=, its turn or its budget": tf.Reason(given.budget),
        "reason=, feasible mass": tf.Reason(given.budget, mass=given.mass),
        "draft, then bind": tf.Reason(given.budget, draft=True),
    }
    print("| | right | thoughts: tokens | cut | answers: tokens | CPU s |\n|---|---|---|---|---|---|")
    for name, reason in ways.items():
        began = time.process_time()
        call: dict[str, Any] = {"max_tokens": given.budget + 60, "logprobs": False, "progress": False}
        found = writer.sample([text for text, _ in asked], SCHEMA, reason=reason, **call)
        spent = time.process_time() - began
        results = [one for (one,) in found]
        right = sum(one.value["answer"] == wanted for one, (_, wanted) in zip(results, asked, strict=True))
        thoughts = [one.thought for one in results if one.thought is not None]
        written = sum(len(one.tokens) for one in thoughts)
        cut, answers = sum(one.cut for one in thoughts), sum(len(one.tokens) for one in results)
        print(
            f"| {name} | {right} of {len(asked)} | {written} | {cut} | {answers} | {spent:.0f} |", flush=True
        )
        for one, (text, wanted) in list(zip(results, asked, strict=True))[: given.show]:
            print(f"<!-- {text} {wanted}: {one.reasoning!r} {one.text!r} -->", flush=True)


if __name__ == "__main__":
    main()
