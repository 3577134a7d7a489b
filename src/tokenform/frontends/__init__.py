"""Ways to state a constraint, each of which gives a `Grammar`."""

from __future__ import annotations

from tokenform.frontends.coercion import one_constraint, to_constraint, to_grammar
from tokenform.frontends.condition import predicate
from tokenform.frontends.grammar import Condition, Grammar
from tokenform.frontends.patterns import any_text, choice, regex
from tokenform.frontends.python_types import from_type
from tokenform.frontends.schemas import json_schema

__all__ = [
    "Condition",
    "Grammar",
    "any_text",
    "choice",
    "from_type",
    "json_schema",
    "one_constraint",
    "predicate",
    "regex",
    "to_constraint",
    "to_grammar",
]
