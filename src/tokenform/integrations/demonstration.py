"""A first run that needs nothing: an order in prose, a JSON Schema for orders, the built-in model.

Invariant: the verdict is that of the package `jsonschema`, which knows nothing of this library.
"""

from __future__ import annotations

from typing import Any

import jsonschema

from tokenform.decoding import Result
from tokenform.integrations.generation import generate

PROMPT = (
    "The order has the number A-2041 and was placed by Maria Rossi on 2024-03-17. It contains a lamp and "
    "a chair, comes to 412.50 euros in total, ships to Lisbon, is now shipped and has been paid."
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"product": {"type": "string", "minLength": 2, "maxLength": 24}},
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^[A-Z]-[0-9]{2,6}$"},
        "customer": {"type": "string", "minLength": 3, "maxLength": 40},
        "date": {"type": "string", "format": "date"},
        "items": {"type": "array", "items": {"$ref": "#/$defs/product"}, "minItems": 1, "maxItems": 5},
        "total": {"type": "number", "minimum": 0, "maximum": 10000},
        "city": {"type": "string", "minLength": 2, "maxLength": 30},
        "status": {"enum": ["new", "paid", "shipped", "delivered", "cancelled"]},
        "paid": {"type": "boolean"},
    },
    "required": ["order_id", "customer", "date", "items", "total", "city", "status", "paid"],
    "additionalProperties": False,
}


def demonstrate() -> tuple[Result, str | None]:
    """The document that the built-in model writes, and what is wrong with it (None: valid)."""
    result: Result = generate(PROMPT, schema=SCHEMA, max_tokens=200)
    validator = jsonschema.Draft202012Validator(
        SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    error = next(validator.iter_errors(result.value), None)
    return result, None if error is None else error.message
