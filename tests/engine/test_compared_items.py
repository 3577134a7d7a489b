"""Arrays whose items are compared: `uniqueItems` and its negation beside what else is said of the items.

What an item may be depends on later items here, so every schema is walked by random texts along the masks: a
text that can't be completed shows as a dead end. `None` for a schema that nothing satisfies.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from benchmarks.suites.differential import beyond_floats, finished_walk
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf
from tokenform.errors import UnsatisfiableSchema

VOCABULARY = byte_vocabulary()
UNIQUE: dict[str, Any] = {"uniqueItems": True}
SOME_EQUAL: dict[str, Any] = {"not": UNIQUE}
PAIRS = [{"a": 1}, {"a": 2}, 1.0]

SATISFIABLE: list[dict[str, Any]] = [
    {"prefixItems": [{"enum": [1, 2]}, {"const": 1}], "minItems": 2, **UNIQUE},
    {"prefixItems": [{"enum": ["ab", "ac"]}, {"const": "ab"}], "minItems": 2, **UNIQUE},
    {"prefixItems": [{"type": "string"}, {"pattern": "^a?$"}, {"const": ""}], "minItems": 3, **UNIQUE},
    {"items": {"enum": [[1], [2]]}, "minItems": 2, **UNIQUE},
    {"contains": {"enum": PAIRS}, "minContains": 3, **UNIQUE},
    {"contains": {"const": "x"}, "prefixItems": [{"type": "string"}], "maxItems": 2, **UNIQUE},
    {**SOME_EQUAL},
    {"items": {"type": "boolean"}, "maxItems": 3, **SOME_EQUAL},
    {"items": {"type": "object", "required": ["a"]}, "maxItems": 3, **SOME_EQUAL},
    {"prefixItems": [{"type": "string"}, {"const": "a"}], "maxItems": 2, **SOME_EQUAL},
    {"prefixItems": [{"type": "string"}, {"const": "a"}, {"type": "string"}], "maxItems": 3, **SOME_EQUAL},
    {"prefixItems": [{"type": "string"}, {"enum": PAIRS}, {"type": "number"}], "maxItems": 3, **SOME_EQUAL},
    {"contains": {"const": "x"}, "maxContains": 1, "maxItems": 3, **SOME_EQUAL},
    {"contains": {"type": "boolean"}, "minContains": 2, "maxItems": 3, **SOME_EQUAL},
    {"items": SOME_EQUAL, "minItems": 1, "maxItems": 2},
    {"oneOf": [UNIQUE, {"minItems": 3}]},
    {"anyOf": [SOME_EQUAL, {"prefixItems": [{"const": 1}, {"type": "string"}], "minItems": 2}]},
]

UNSATISFIABLE: list[dict[str, Any]] = [
    {"items": {"enum": [[1], [2]]}, "minItems": 3, **UNIQUE},
    {"items": {"enum": PAIRS}, "minItems": 4, **UNIQUE},
    {"items": {"type": "string", "pattern": "^a?$"}, "minItems": 3, **UNIQUE},
    {"contains": {"const": True}, "minContains": 2, **UNIQUE},
    {"contains": {"enum": PAIRS}, "minContains": 4, **UNIQUE},
    {"prefixItems": [{"const": 1}, {"const": 1.0}], "minItems": 2, **UNIQUE},
    {"prefixItems": [{"type": "string"}, {"const": 1}, {"type": "boolean"}], "maxItems": 3, **SOME_EQUAL},
    {"items": {"type": ["string", "null"]}, "contains": {"type": "string"}, "maxContains": 1, "maxItems": 1}
    | SOME_EQUAL,
    {"items": {"type": ["string", "null"]}, "contains": {"type": "null"}, "minContains": 1, "maxItems": 2}
    | {"maxContains": 1, **SOME_EQUAL},
    {**UNIQUE, **SOME_EQUAL},
]


@pytest.mark.parametrize("schema", SATISFIABLE, ids=json.dumps)
def test_every_text_along_the_masks_can_be_completed(schema: dict[str, Any]) -> None:
    schema = {"type": "array", **schema}
    automaton = tf.json_schema(schema, order="any", whitespace="compact").compile(VOCABULARY)
    judge = jsonschema.Draft202012Validator(schema)
    for seed in range(25):
        text = finished_walk(automaton, random.Random(seed), longest=16)
        assert beyond_floats(text) or judge.is_valid(json.loads(text)), text


@pytest.mark.parametrize("schema", UNSATISFIABLE, ids=json.dumps)
def test_what_no_items_satisfy_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsatisfiableSchema):
        tf.json_schema({"type": "array", **schema}).compile(VOCABULARY)


@pytest.mark.parametrize("schema", SATISFIABLE + UNSATISFIABLE, ids=json.dumps)
def test_all_short_arrays_are_judged_as_a_validator_does(schema: dict[str, Any]) -> None:
    schema = {"type": "array", **schema}
    judge = jsonschema.Draft202012Validator(schema)
    values = ["x", "a", "", 1, 2, True, {"a": 1}, [1], [2, 2]]
    arrays = [list(items) for n in range(4) for items in itertools.product(values, repeat=n)]
    valid = {json.dumps(a) for a in arrays if judge.is_valid(a)}
    try:
        automaton = tf.json_schema(schema, whitespace="spaced").compile(VOCABULARY)
    except UnsatisfiableSchema:
        assert not valid
        return
    sample = random.Random(7).sample(arrays, 250)
    wrong = [a for a in sample if automaton.matches(json.dumps(a).encode()) != (json.dumps(a) in valid)]
    assert not wrong, wrong[:5]
