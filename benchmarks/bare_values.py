"""What a chat model writes where a constraint asks for a bare value: a number, a date, a code, a command.

    python benchmarks/bare_values.py .real/smollm2                   # minutes on one core
    python benchmarks/bare_values.py .real/smollm2 --lead "" --lead "Answer: "

Six tasks of each kind, made by rule: a question and a sentence that answers it, as a text; greedy, 32 tokens
at most.  Right is the whole value.  `--lead` is what the model's turn begins with; the first row is the
library's own.  `--values token`: ends and values are not decided as wholes.
Needs a model with a chat template (`make real` brings one).
"""

from __future__ import annotations

import argparse
import collections
import datetime
import time
from typing import Any, Literal, NamedTuple, Optional
from unittest import mock

import tokenform as tf
from tokenform.decoding.instructions import LEAD_IN

NAMES = ["Tom", "Mary", "Oskar", "Lena", "Ivan", "Priya"]
CAPITALS = [
    *(("France", "Paris"), ("Italy", "Rome"), ("Spain", "Madrid")),
    *(("Poland", "Warsaw"), ("Norway", "Oslo"), ("Greece", "Athens")),
]
NUMBERS = [("three", 3), ("two", 2), ("seven", 7), ("five", 5), ("nine", 9), ("four", 4)]
COLOURS = ["ff8800", "00ff00", "123456", "abcdef", "c0ffee", "facade"]
PAIRS = [
    *(("bread", "milk"), ("apples", "pears"), ("pens", "paper")),
    *(("shoes", "hats"), ("books", "maps"), ("salt", "sugar")),
]
WAYS, ROOMS = ["north", "south", "east", "west"], ["kitchen", "bath", "hall"]
SUM = tf.lark('start: term (("+"|"-") term)*\nterm: /[0-9]+/ | "(" start ")"')
MOVE = tf.lark('start: "move " DIR " " NUMBER\nDIR: "north" | "south" | "east" | "west"\nNUMBER: /[0-9]+/')
LIGHT = tf.lark('start: "light(" ROOM "," STATE ")"\nROOM: "kitchen" | "bath" | "hall"\nSTATE: "on" | "off"')


class Task(NamedTuple):
    """A question, its constraint, and the value that is right."""

    kind: str
    text: str
    constraint: Any
    right: Any


def tasks(i: int) -> list[Task]:
    """One of each kind."""
    (country, capital), name, colour = CAPITALS[i], NAMES[i], COLOURS[i]
    (one, first), (other, second) = NUMBERS[i], NUMBERS[(i + 3) % 6]
    plate, order, room, state = f"AB{12 + i} XYZ", f"ORD-{2001 + 137 * i}", ROOMS[i % 3], ["on", "off"][i % 2]
    years, day = [1890 + i, 1902 + i, 1950 + 3 * i], datetime.date(1950 + i, 3, 3 + i)
    built = f"The bridge was begun in {years[0]}, finished in {years[1]} and rebuilt in {years[2]}."
    return [
        Task(
            "int", f"How many rooms are there? The hotel has {30 + 7 * i} rooms and a pool.", int, 30 + 7 * i
        ),
        Task("int | None", f"How many seats has the car? The car has {4 + i} seats.", Optional[int], 4 + i),  # noqa: UP045
        Task("float", f"What does it cost? The lamp costs {12 + i}.95 euros.", float, 12.95 + i),
        Task("bool", f"Is {capital if i % 2 else 'London'} the capital of {country}?", bool, bool(i % 2)),
        Task("date", f"When was it signed? It was signed on {day.day} March {day.year}.", datetime.date, day),
        Task(
            "phone",
            f"The phone number of the office is 555-01{20 + i}. Call them after nine.",
            tf.regex("[0-9]{3}-[0-9]{4}"),
            f"555-01{20 + i}",
        ),
        Task(
            "plate",
            f"The plate of the car is {plate} and it is red. What is the plate?",
            tf.regex("[A-Z]{2}[0-9]{2} [A-Z]{3}"),
            plate,
        ),
        Task(
            "order", f"Give the order number. Your order {order} was sent.", tf.regex("ORD-[0-9]{4}"), order
        ),
        Task(
            "colour",
            f"Which colour? The background is #{colour}.",
            tf.regex("#[0-9a-f]{6}"),
            f"#{colour}",
        ),
        Task(
            "word",
            f"In which city does she live? {name} lives in {capital}.",
            tf.regex("[A-Z][a-z]+"),
            capital,
        ),
        Task("sum", f"Write as an expression: {one} plus {other}.", SUM, f"{first}+{second}"),
        Task("command", f"Go {WAYS[i % 4]} by {3 + i} steps.", MOVE, f"move {WAYS[i % 4]} {3 + i}"),
        Task("call", f"Please switch the light in the {room} {state}.", LIGHT, f"light({room},{state})"),
        Task("list[int]", f"Which years are named? {built}", list[int], years),
        *_lists(i),
    ]


def _lists(i: int) -> list[Task]:
    names, (one, other) = [NAMES[(i + k) % 6] for k in (0, 2, 3)], PAIRS[i]
    pairs = [[3 + i, 4 + 2 * i], [5 + i, 9 + i]]
    listed = " and ".join(f"{a} with {b}" for a, b in pairs)
    return [
        Task(
            "list[str]",
            f"Who came? {names[0]}, {names[1]} and {names[2]} came to the party.",
            list[str],
            names,
        ),
        Task(
            "list of goods",
            f"What does the shop sell? It sells {one}, {other} and tea.",
            list[str],
            [one, other, "tea"],
        ),
        Task(
            "list of choices",
            f"Which rooms are free? The {ROOMS[i % 3]} and the {ROOMS[(i + 1) % 3]} are free.",
            list[Literal["kitchen", "bath", "hall", "cellar"]],
            [ROOMS[i % 3], ROOMS[(i + 1) % 3]],
        ),
        Task("list of lists", f"Give the pairs. The pairs are {listed}.", list[list[int]], pairs),
        Task(
            "tuple",
            f"Which pages? Read pages {14 + i} to {29 + 3 * i}.",
            tuple[int, int],
            (14 + i, 29 + 3 * i),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--lead", action="append", default=[])
    parser.add_argument("--values", choices=["whole", "token"], default="whole")
    parser.add_argument("--kind", default="", help="what a kind's name holds")
    parser.add_argument("--show", action="store_true", help="what is wrong")
    args = parser.parse_args()
    gen = tf.Generator(args.model)
    local = tf.Local(0.0, values=args.values)
    todo = [task for i in range(6) for task in tasks(i) if args.kind in task.kind]
    for lead in [None, *args.lead]:
        begun, right = time.process_time(), collections.Counter[str]()
        with mock.patch("tokenform.decoding.instructions.LEAD_IN", LEAD_IN if lead is None else lead):
            written = gen.sample(
                [task.text for task in todo],
                [task.constraint for task in todo],
                sampler=local,
                max_tokens=32,
            )
        for task, (result,) in zip(todo, written, strict=True):
            right[task.kind] += result.value == task.right
            if args.show and result.value != task.right:
                print(f"    {task.kind}: {result.text!r}, not {task.right!r}")
        parts = ", ".join(f"{kind} {right[kind]}" for kind in dict.fromkeys(task.kind for task in todo))
        label = "the library's own" if lead is None else repr(lead)
        total = f"{sum(right.values())} of {len(todo)}"
        print(f"{label}: {total} ({parts}); {time.process_time() - begun:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
