"""The built-in model under schemas that people wrote, with tight budgets: every text parses and validates."""

from __future__ import annotations

import json
import lzma
import os
import random
from pathlib import Path

import jsonschema
import pytest

import tokenform as tf
from tokenform.errors import BudgetTooSmall, UnsatisfiableSchema, UnsupportedSchema

SHARED = Path(os.environ.get("TOKENFORM_SHARED", Path(__file__).parents[2].parent / "shared"))
DATA = SHARED / "data" / "maskbench-dev.jsonl.xz"


def schemas(seed: int) -> list[dict]:
    if not DATA.exists():
        pytest.skip(f"no MaskBench data at {DATA}; set TOKENFORM_SHARED to the folder that holds data/")
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        listed = [json.loads(line)["schema"] for line in lines]
    random.Random(seed).shuffle(listed)
    return listed


@pytest.mark.parametrize(
    "wanted", [6, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_every_text_is_valid(wanted):
    writer = tf.Generator()
    budgets = random.Random(wanted)
    done = 0
    for schema in schemas(seed=wanted):
        budget = budgets.randint(20, 200)
        try:
            grammar = tf.json_schema(schema)
            (result,) = writer.sample(
                "An example, please.", grammar, max_tokens=budget, seed=done, sampler=tf.Local()
            )
        except (UnsupportedSchema, UnsatisfiableSchema, BudgetTooSmall):
            continue
        validator = jsonschema.validators.validator_for(schema)
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(result.text))
        assert len(result.tokens) <= budget
        done += 1
        if done == wanted:
            return
    pytest.fail(f"only {done} schemas could be tried")


def test_positions_that_are_told_apart_while_a_way_out_is_sought():
    """A file list whose names match patterns: the distance to the end was once asked by another class."""
    if not DATA.exists():
        pytest.skip(f"no MaskBench data at {DATA}; set TOKENFORM_SHARED to the folder that holds data/")
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        listed = (json.loads(line) for line in lines)
        schema = next(case["schema"] for case in listed if case["id"].endswith("---filespec-schema"))
    (result,) = tf.Generator().sample(
        "Write a JSON document.", tf.json_schema(schema, whitespace="any"), max_tokens=100
    )
    jsonschema.validators.validator_for(schema)(schema).validate(json.loads(result.text))
