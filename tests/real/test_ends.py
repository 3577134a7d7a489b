"""What a budget makes of the texts of a real model is marked."""

from __future__ import annotations

import json

import pytest

import tokenform as tf

INVOICE = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "customer": {"type": "string"}, "total": {"type": "integer"}},
    "required": ["item", "customer", "total"],
    "additionalProperties": False,
}
ASKED = "Extract the item, the customer and the total as JSON: {}"
TEXTS = [
    "Maria Lopez bought a desk for 89 dollars.",
    "The invoice of 1250 euros for a piano goes to Karl Berg.",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_value_that_a_larger_budget_makes_another_is_unmarked(smol: tf.Generator, text: str) -> None:
    messages = [{"role": "user", "content": ASKED.format(text)}]
    (long,) = smol.sample(messages, INVOICE, max_tokens=160)
    document, reasons = json.loads(long.text), set()
    for budget in (len(long.tokens) - 1, len(long.tokens) - 3, len(long.tokens) - 7, len(long.tokens)):
        (short,) = smol.sample(messages, INVOICE, max_tokens=budget)
        reasons.add(short.reason)
        assert (short.reason == "end") == (short.tokens == long.tokens and long.reason == "end")
        for name, value in json.loads(short.text).items():
            assert value == document[name] or f"/{name}" in short.cut
    assert "length" in reasons
