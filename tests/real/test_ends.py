"""What a budget makes of the texts of a real model is marked."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokenform as tf

INVOICE = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "customer": {"type": "string"}, "total": {"type": "integer"}},
    "required": ["item", "customer", "total"],
    "additionalProperties": False,
}
ASKED = "Extract the item, the customer and the total as JSON: {}"
ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "items": {"type": "array", "items": {"type": "string"}},
        "total": {"type": "number"},
        "paid": {"type": "boolean"},
    },
    "required": ["customer", "items", "total", "paid"],
    "additionalProperties": False,
}
CASES = [
    ([{"role": "user", "content": ASKED.format("Maria Lopez bought a desk for 89 dollars.")}], INVOICE),
    (
        [
            {
                "role": "user",
                "content": ASKED.format("The invoice of 1250 euros for a piano goes to Karl Berg."),
            }
        ],
        INVOICE,
    ),
    # the last value is a space and `false`, which a token less leaves no room for, or a whole ` true`
    ("Maria Rossi ordered a lamp and a chair for 412.50 euros. It is paid.", ORDER),
]


@pytest.mark.parametrize(("messages", "schema"), CASES)
def test_no_value_that_a_larger_budget_makes_another_is_unmarked(
    smol: tf.Generator, messages: Any, schema: Any
) -> None:
    (long,) = smol.sample(messages, schema, max_tokens=160)
    document, reasons = json.loads(long.text), set()
    for budget in (len(long.tokens) - 1, len(long.tokens) - 3, len(long.tokens) - 7, len(long.tokens)):
        (short,) = smol.sample(messages, schema, max_tokens=budget)
        reasons.add(short.reason)
        assert (short.reason == "end") == (short.tokens == long.tokens and long.reason == "end")
        for name, value in json.loads(short.text).items():
            assert value == document[name] or any(place.startswith(f"/{name}") for place in short.cut)
    assert "length" in reasons
