# ruff: noqa: E501
"""What a chat model answers with a Python expression: held to a scope (`tf.python`), to Python's syntax, or free.

    python benchmarks/expressions.py MODEL [--show]

Twelve questions over one scope.  An answer counts as run where it raises nothing, and as right where its value is
that of the expression written beforehand.  All are told the names in the same words.
"""

from __future__ import annotations

import argparse
import math
import re
from typing import Any

import tokenform as tf


def price(item: str, quantity: int = 1, *, tax: float = 0.0) -> float:
    """An item's price."""
    return {"lamp": 20.0, "desk": 150.0}.get(item, 5.0) * quantity * (1 + tax)


SCOPE: dict[str, Any] = {
    "math": math,
    "price": price,
    "prices": [3.5, 2.0, 8.0],
    "names": ["Ann", "Bob", "Cid"],
    "radius": 2.0,
}
QUESTIONS = [
    ("What is the sum of the prices?", "sum(prices)"),
    ("How many names are there?", "len(names)"),
    ("What is the highest price of prices?", "max(prices)"),
    ("What is the square root of the radius?", "math.sqrt(radius)"),
    ("What is the area of a circle with this radius?", "math.pi * radius * radius"),
    ("Sort the prices.", "sorted(prices)"),
    ("What is the first of the names?", "names[0]"),
    ("What is the price of a lamp?", "price('lamp')"),
    ("What is the price of 3 desks?", "price('desk', 3)"),
    ("What is the mean of prices?", "sum(prices) / len(prices)"),
    ("Round the radius up.", "math.ceil(radius)"),
    ("Double each of the prices.", "[x * 2 for x in prices]"),
]
BUILTINS = {
    name: getattr(__import__("builtins"), name)
    for name in (
        "len",
        "max",
        "min",
        "sum",
        "sorted",
        "list",
        "range",
        "round",
        "abs",
        "map",
        "str",
        "int",
        "float",
        "zip",
        "enumerate",
        "any",
        "all",
        "tuple",
        "dict",
        "set",
        "reversed",
        "filter",
        "bool",
        "repr",
        "isinstance",
        "divmod",
        "frozenset",
    )
}


def value(text: str) -> tuple[bool, Any]:
    """(whether it runs, its value)."""
    try:
        return True, eval(text, {"__builtins__": BUILTINS, **SCOPE})
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def cut(text: str) -> str:
    """The first line of code in an answer."""
    fenced = re.search(r"```(?:\w*\n)?(.*?)(?:```|$)", text, re.DOTALL)
    return ((fenced[1] if fenced else text).strip().splitlines() or [""])[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--show", action="store_true", help="print each answer")
    given = parser.parse_args()
    generator = tf.Generator(given.model)
    held = tf.python(SCOPE)
    syntax = tf.lark(tf.grammars.text("python"), start="file_input")
    for kind, grammar in (("tf.python", held), ("tf.grammars.python", syntax), ("free", None)):
        ran = right = 0
        for question, wanted in QUESTIONS:
            prompt = question if grammar is held else f"{held.told[0]}\n\n{question}"
            (result,) = generator.sample(prompt, grammar, max_tokens=60)
            text = result.text if grammar is held else cut(result.text)
            runs, found = value(text)
            same = runs and found == value(wanted)[1]
            ran, right = ran + runs, right + same
            if given.show:
                print(f"{kind:18} {'right' if same else found}: {text!r}")
        print(f"{kind}: of {len(QUESTIONS)} run {ran}, right are {right}")


if __name__ == "__main__":
    main()
