"""Every spelling parses back to the document that was written."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenform_bench.documents import STYLES, number, respelled, shuffled, write
from tokenform_bench.judges import Judges, parse

_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
# beyond 2^53 a float spelling names another number
_INTEGERS = st.integers(-(2**53), 2**53)
_LEAVES = st.none() | st.booleans() | _INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
DOCUMENTS = st.recursive(
    _LEAVES, lambda x: st.lists(x, max_size=4) | st.dictionaries(_TEXT, x, max_size=4), max_leaves=12
)


@given(DOCUMENTS, st.integers())
def test_spellings_parse_back(document: object, seed: int) -> None:
    rng = random.Random(seed)
    for text in [respelled(document, rng), *(write(shuffled(document, rng), style) for style in STYLES)]:
        assert parse(text) == document


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_numbers_keep_their_decimal_value(value: float, seed: int) -> None:
    spelled = number(value, random.Random(seed))
    assert Decimal(spelled) == Decimal(json.dumps(value))
    json.loads(spelled)


def test_every_number_spelling_occurs() -> None:
    spelled = {number(1, random.Random(seed)) for seed in range(200)}
    assert {"1", "1.0", "1e0", "1E+0"} <= spelled


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"a":{"b":1,"b":2}}', "NaN", "[1,]", '"\\ud800"', ""])
def test_judges_refuse_what_is_not_json_or_repeats_a_key(text: str) -> None:
    assert not Judges(True).judge(text).parses


def test_judges_agree_and_disagree() -> None:
    judges = Judges({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}})
    assert judges.judge('{"a": 1}').valid
    wrong = judges.judge('{"a": "1"}')
    assert not wrong.valid
    assert not wrong.disputed
    assert set(wrong.verdicts) >= {"jsonschema"}
    ecma = Judges({"pattern": r"^\cA$"})  # a control escape: ECMA-262 has it, Python's re refuses the pattern
    assert set(ecma.judge('"x"').verdicts) <= {"jsonschema-rs"}
