"""Distributions of the synthetic data: valid, readable off the text, split, reproducible."""

from __future__ import annotations

import json
import random
import re

import pytest
from benchmarks.training.data import examples
from benchmarks.training.evaluate import leaves
from benchmarks.training.fields import DOMAINS
from benchmarks.training.pools import Pools, is_held_out
from benchmarks.training.records import draw_facts, draw_record
from benchmarks.training.tool_calls import draw_turn
from benchmarks.training.values import KINDS, MONTHS, NUMBER_WORDS, draw
from jsonschema import Draft202012Validator

from tokenform.builtin.prompt import EOS


@pytest.mark.parametrize("held_out", [False, True])
def test_answers_obey_their_schema(held_out: bool) -> None:
    for example in examples(3, 300, held_out=held_out, tools=0.0):
        assert example.record is not None
        Draft202012Validator.check_schema(example.record.schema)
        document = json.loads(example.answer.removesuffix(EOS))
        assert document == example.record.document
        Draft202012Validator(example.record.schema).validate(document)


def test_values_stand_in_the_text() -> None:
    p = Pools(random.Random(5))
    for _ in range(400):
        record = draw_record(p)
        for _, value in leaves(record.document):
            for item in value if isinstance(value, list) else [value]:
                assert any(spelling in record.text for spelling in spellings(item)), (item, record.text)


def spellings(value: object) -> list[str]:
    """The ways in which prose may write a value; a boolean is in the predicate, so anything will do."""
    if isinstance(value, bool):
        return [""]
    if isinstance(value, int):
        return [str(value), *([NUMBER_WORDS[value]] if value < len(NUMBER_WORDS) else [])]
    if isinstance(value, str) and (m := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", value)):
        month = MONTHS[int(m[2]) - 1]
        return [value, f"{int(m[3])} {month} {m[1]}", f"{month} {int(m[3])}, {m[1]}"]
    return [str(value)]


def test_both_booleans_are_told_apart() -> None:
    told: dict[str, set[str]] = {}
    for domain in DOMAINS:
        for field in domain.fields:
            if field.kind == "boolean":
                for form in field.predicates + field.shorts:
                    inner = form[form.index("[") + 1 : form.index("]")].split("|")
                    told[form] = set(inner)
    assert told and all(len(both) == 2 for both in told.values())


def test_same_seed_same_data() -> None:
    assert examples(11, 50) == examples(11, 50)
    assert examples(11, 50) != examples(12, 50)


def test_held_out_words_and_combinations_are_disjoint() -> None:
    seen, unseen = Pools(random.Random(1)), Pools(random.Random(1), held_out=True)
    assert not {seen.made_up() for _ in range(300)} & {unseen.made_up() for _ in range(300)}
    for pools, expected in ((seen, False), (unseen, True)):
        for domain in DOMAINS:
            _, combination = draw_facts(pools, domain, 4)
            assert is_held_out("|".join(combination)) is expected


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_obeys_its_own_schema(kind: str) -> None:
    p = Pools(random.Random(2))
    for _ in range(30):
        value = draw(p, kind)
        assert Draft202012Validator(value.schema).is_valid(value.value)
        listed = draw(p, kind + "*")
        assert Draft202012Validator(listed.schema).is_valid(listed.value)


def test_tool_calls_name_an_offered_tool_and_obey_its_parameters() -> None:
    p, calls = Pools(random.Random(4)), 0
    for _ in range(300):
        turn = draw_turn(p)
        found = re.fullmatch(r"<tool_call>\n(.*)\n</tool_call>", turn.answer)
        if found is None:
            assert "<tool_call>" not in turn.answer
            continue
        calls += 1
        call = json.loads(found[1])
        offered = {t["function"]["name"]: t["function"]["parameters"] for t in turn.tools}
        Draft202012Validator(offered[call["name"]]).validate(call["arguments"])
    assert calls > 100
