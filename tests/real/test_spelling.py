"""The real model writes JSON as writers do: no escaped letter of a name, no break before a comma."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import tokenform as tf

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": "integer"}}}
ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "items": {"type": "array", "items": {"type": "string"}},
        "total": {"type": "number"},
    },
}
TOPIC = {"type": "object", "properties": {"topic": {"enum": ["sports", "politics", "science", "naïve art"]}}}
INVOICE = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"article": {"type": "string"}, "price": {"type": "number"}},
                "required": ["article", "price"],
            },
        },
    },
}
TASKS = [
    (PERSON, "René Müller, *1972, lives in Zürich."),
    (ORDER, "Mia Wong bought a lamp and a chair for 130 dollars."),
    (TOPIC, "Parliament voted on the new tax law today."),
    (INVOICE, "Invoice A-17: a pump for 120.00 EUR and a valve for 15.50 EUR."),
]
ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
STRING = re.compile(r'"(\\.|[^"\\])*"')


def is_naturally_spelled(text: str) -> bool:
    """No letter, digit or `_` of ASCII as an escape; nothing before commas and colons."""
    escaped = (chr(int(digits, 16)) for digits in ESCAPED.findall(text))
    if any(c.isascii() and (c.isalnum() or c == "_") for c in escaped):
        return False
    return not re.search(r"\s[,:]|:\s*\n|\n\s*\n", STRING.sub('""', text))


def test_the_property_can_fail() -> None:
    assert is_naturally_spelled('{\n  "a\\n\\u00e9 ,": [1, 2],\n  "b": 1\n}')
    for text in ('{"\\u0061": 1}', '{"a": 1\n, "b": 2}', '{"a" : 1}', '{"a":\n1}', '["n\\u0075"]'):
        assert not is_naturally_spelled(text), text


@pytest.mark.parametrize("prompt", ["string", "message"])
@pytest.mark.parametrize(("properties", "text"), TASKS, ids=["person", "order", "topic", "invoice"])
def test_the_model_spells_as_writers_do(smol: tf.Generator, properties: Any, text: str, prompt: str) -> None:
    schema = {**properties, "required": list(properties["properties"])}
    said = f"Extract the data from the text. Answer with JSON.\n\nText: {text}"
    asked: Any = said if prompt == "string" else [{"role": "user", "content": said}]
    grammar = tf.json_schema(schema)
    result = smol.sample(asked, grammar, sampler=tf.Local(temperature=0), seed=0, max_tokens=100)[0]
    assert is_naturally_spelled(result.text), result.text
    assert set(schema["required"]) <= set(json.loads(result.text))
