"""Numbers with exponents against exact arithmetic: texts with one future are one state, and no other ones."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from typing import Any

import pytest

import tokenform as tf

LEAST, MOST = Decimal("2.4703282292062328e-324"), Decimal("1.7976931348623158e308")
VOCABULARY = tf.Vocabulary([bytes([b]) for b in range(256)] + [b"</s>"], eos=[256], special=[256])
BOUNDS: list[dict[str, Any]] = [
    {},
    {"minimum": 0},
    {"maximum": 1234.5},
    {"minimum": -0.02, "maximum": 7e10},
    {"exclusiveMinimum": 1.5, "exclusiveMaximum": 250},
    {"minimum": 1e300},
    {"maximum": -3},
]


def drawn(rng: random.Random) -> str:
    whole = rng.choice(["0", str(rng.randint(1, 9)), str(rng.randint(1, 10 ** rng.randint(1, 20)))])
    if rng.random() < 0.3:
        whole = rng.choice(["1", "2", "17", "24", "179769313486231", "247032822920623"])
    size = rng.choice([1, 2, 3, 5, 16])
    fraction = "." + "".join(rng.choice("0123456789") for _ in range(size)) if rng.random() < 0.7 else ""
    if rng.random() < 0.2 and whole in ("1", "2"):
        fraction = {"1": ".797693134862315", "2": ".470328229206232"}[whole] + str(rng.randint(0, 99))
    near = [0, 1, 2, 5, 10, 290, 300, 306, 307, 308, 309, 322, 323, 324, 325, 340, 999]
    exponent = f"{rng.choice(['e', 'E'])}{rng.choice(['', '+', '-'])}{rng.choice(near)}"
    return rng.choice(["", "-"]) + whole + fraction + exponent


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_numbers_with_exponents(bounds: dict[str, Any]) -> None:
    automaton = tf.json_schema({"type": "number", **bounds}).compile(VOCABULARY)
    rng = random.Random(str(bounds))
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -5000, 5000
        for _ in range(1500):
            text = drawn(rng)
            value = Decimal(text)
            expected = value == 0 or LEAST <= abs(value) <= MOST
            expected = expected and not (
                value < Decimal(str(bounds.get("minimum", "-inf")))
                or value > Decimal(str(bounds.get("maximum", "inf")))
                or value <= Decimal(str(bounds.get("exclusiveMinimum", "-inf")))
                or value >= Decimal(str(bounds.get("exclusiveMaximum", "inf")))
            )
            assert automaton.matches(text) == expected, text
