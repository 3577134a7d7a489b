"""The algebra of schemas by its laws, and the engine against two independent validators.

Schemas are drawn over all keywords by `tokenform_bench.random_schemas`; Hypothesis draws the seeds.  A
document's verdict is that of a grammar with every option at "any".
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from benchmarks.suites.differential import Differ, run
from benchmarks.suites.maskcheck import byte_vocabulary
from benchmarks.suites.walks import LOOSE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import InvalidSchema, LimitExceeded, UnsatisfiableSchema
from tokenform_bench.documents import write
from tokenform_bench.random_schemas import URIS, SchemaMaker, documents

VOCABULARY = byte_vocabulary()
LAWS = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
RANDOMS = st.integers(0, 1 << 40).map(random.Random)


class Judge:
    """Whether documents satisfy a schema; one that nothing satisfies refuses them all."""

    def __init__(self, schema: Any) -> None:
        self._automaton: Any = None
        with contextlib.suppress(UnsatisfiableSchema):
            self._automaton = tf.json_schema(schema, **LOOSE).compile(VOCABULARY)

    def __call__(self, document: Any) -> bool:
        return self._automaton is not None and bool(self._automaton.matches(write(document).encode("utf-8")))


def _schema(maker: SchemaMaker) -> dict[str, Any]:
    """A schema that may stand inside another: no references, which lead to the root."""
    schema = maker.schema(references=False)
    del schema["$schema"]
    return schema


def _judges(*schemas: Any) -> list[Judge] | None:
    try:
        return [Judge(schema) for schema in schemas]
    except LimitExceeded:
        return None


@LAWS
@given(RANDOMS)
def test_negation_turns_every_verdict_around(rng: random.Random) -> None:
    maker = SchemaMaker(rng)
    schema = _schema(maker)
    judges = _judges(schema, {"not": schema}, {"not": {"not": schema}})
    if judges is None:
        return
    holds, fails, twice = judges
    for document in documents(maker, schema, 10):
        assert fails(document) is not holds(document), document
        assert twice(document) is holds(document), document


@LAWS
@given(RANDOMS)
def test_connectives_agree_with_the_verdicts_of_their_operands(rng: random.Random) -> None:
    maker = SchemaMaker(rng)
    a, b = _schema(maker), _schema(maker)
    judges = _judges(a, b, *({name: [a, b]} for name in ("allOf", "anyOf", "oneOf")))
    if judges is None:
        return
    left, right, both, some, one = judges
    for document in documents(maker, [a, b], 10):
        x, y = left(document), right(document)
        assert both(document) is (x and y), document
        assert some(document) is (x or y), document
        assert one(document) is (x is not y), document


def _overlapping(rng: random.Random, kind: str) -> dict[str, Any]:
    """A schema over few keys (or places) and few values, so that many of them overlap."""

    def value() -> Any:
        if rng.random() < 0.2:
            return {"type": "object", "required": rng.sample("ab", 1), "properties": {"a": {"enum": [1, 2]}}}
        return {"enum": rng.sample([1, 2, "x", "y", None], rng.randint(1, 3))}

    if kind == "object":
        keys = rng.sample("abc", rng.randint(1, 3))
        schema: dict[str, Any] = {"type": "object", "properties": {k: value() for k in keys}}
        if rng.random() < 0.6:
            schema["required"] = rng.sample(keys, rng.randint(1, len(keys)))
        if rng.random() < 0.3:
            schema["additionalProperties"] = False
        return schema
    return {"type": "array", "maxItems": 3, rng.choice(("items", "contains")): value()}


def _overlapping_document(rng: random.Random, kind: str) -> Any:
    values = [1, 2, "x", "y", None, {"a": 1}, {"a": 1, "b": 1}, {"b": "x"}]
    if kind == "object":
        return {k: rng.choice(values) for k in rng.sample("abcd", rng.randint(0, 3))}
    return [rng.choice(values) for _ in range(rng.randint(0, 3))]


@LAWS
@given(RANDOMS, st.sampled_from(["object", "array"]))
def test_many_overlapping_branches_are_counted_right(rng: random.Random, kind: str) -> None:
    parts = [_overlapping(rng, kind) for _ in range(rng.randint(5, 12))]
    judges = _judges(*parts, *({name: parts} for name in ("anyOf", "oneOf")), {"not": {"oneOf": parts}})
    assert judges is not None, "within the limits"
    *each, some, one, other = judges
    for _ in range(12):
        document = _overlapping_document(rng, kind)
        count = sum(judge(document) for judge in each)
        assert some(document) is (count > 0), document
        assert one(document) is (count == 1), document
        assert other(document) is (count != 1), document


@LAWS
@given(RANDOMS)
def test_de_morgan(rng: random.Random) -> None:
    maker = SchemaMaker(rng)
    a, b = _schema(maker), _schema(maker)
    judges = _judges(
        {"not": {"allOf": [a, b]}},
        {"anyOf": [{"not": a}, {"not": b}]},
        {"not": {"anyOf": [a, b]}},
        {"allOf": [{"not": a}, {"not": b}]},
        {"if": a, "then": b},
        {"anyOf": [{"not": a}, b]},
    )
    if judges is None:
        return
    for document in documents(maker, [a, b], 8):
        verdicts = [judge(document) for judge in judges]
        assert verdicts[0] is verdicts[1], document
        assert verdicts[2] is verdicts[3], document
        assert verdicts[4] is verdicts[5], document


@LAWS
@given(RANDOMS)
def test_a_schema_and_its_negation_have_nothing_in_common(rng: random.Random) -> None:
    schema = _schema(SchemaMaker(rng))
    try:
        grammar = tf.json_schema({"allOf": [schema, {"not": schema}]}, **LOOSE)
        automaton = grammar.compile(VOCABULARY)  # what the search's budget left unproven
    except (UnsatisfiableSchema, LimitExceeded):
        return
    assert not any(automaton.matches(write(d).encode()) for d in documents(SchemaMaker(rng), schema, 20))


@settings(LAWS, max_examples=150)
@given(RANDOMS, st.sampled_from(sorted(URIS)))
def test_documents_are_judged_as_two_validators_say(rng: random.Random, draft: int) -> None:
    pytest.importorskip("jsonschema_rs")
    schema = SchemaMaker(rng, draft).schema()
    found = Differ().compare(schema, rng, draft, count=10, walks=1)
    assert not found.wrong, (found.wrong, schema)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_documents_are_judged_as_two_validators_say_for_long(seed: int) -> None:
    pytest.importorskip("jsonschema_rs")
    wrong = [(found.schema, found.wrong) for found in run(seconds=300, seed=seed) if found.wrong]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "string", "minLength": 3, "maxLength": 2}, ""),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, ""),
        ({"properties": {"a": False}, "required": ["a"], "type": "object"}, "/properties/a"),
        ({"const": 1, "not": {"type": "integer"}}, ""),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, ""),
        ({"type": "object", "propertyNames": {"enum": ["a"]}, "minProperties": 2}, ""),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, ""),
        ({"type": "number", "multipleOf": 0.3, "minimum": 0.1, "maximum": 0.2}, ""),
        ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, "/properties/a"),
        ({"type": "array", "contains": {"const": 1}, "minContains": 2, "maxItems": 1}, ""),
        ({"oneOf": [True, True]}, ""),
        ({"if": True, "then": False}, ""),
    ],
)
def test_an_empty_schema_is_refused_with_the_place_of_the_clash(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsatisfiableSchema) as caught:
        tf.json_schema(schema).compile(VOCABULARY)
    assert caught.value.pointer == pointer


def test_a_circle_of_references_without_a_value_in_it_is_refused() -> None:
    for schema in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"not": {"$ref": "#"}}):
        with pytest.raises(InvalidSchema):
            tf.json_schema(schema)
