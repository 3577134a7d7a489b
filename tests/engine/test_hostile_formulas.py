"""What is asked of hostile formulas is answered exactly, or refused by a limit: never a dead end, never "no
document satisfies" where some does.
"""

from __future__ import annotations

import contextlib
import decimal
import fractions
import itertools
import json
import random
import re
from typing import Any

import jsonschema_rs
import pytest
from benchmarks.suites.hostile_inputs.formulas import needs, tower
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf
from tokenform.errors import LimitExceeded, TokenformError, UnsatisfiableSchema

VOCABULARY = byte_vocabulary()
EOS = 256
BOOLEANS = {"type": "array", "maxItems": 2, "items": {"type": "boolean"}}


def compiled(schema: Any, **options: Any) -> Any:
    return tf.json_schema(schema, **options).compile(VOCABULARY)


def walk(automaton: Any, rng: random.Random, longest: int = 4000) -> bytes:
    """A random text, ended by the shortest way once it is long."""
    state, out = automaton.start, b""
    while not automaton.is_finished(state):
        allowed = automaton.allowed_tokens(state)
        assert len(allowed), out
        left = automaton.distance(state)
        if len(out) > 40 and left:
            allowed = [
                t for t in allowed.tolist() if (automaton.distance(automaton.advance(state, t)) or 0) < left
            ]
        token = int(rng.choice(allowed))
        if len(out) > 40 and automaton.is_accepting(state):
            return out
        state = automaton.advance(state, token)
        out += bytes([token]) if token < 256 else b""
        assert len(out) < longest
    return out


@pytest.mark.parametrize(
    ("schema", "least"),
    [
        ({"type": "string", "pattern": "a{30000}"}, 30_002),
        (needs("k" * 100_000), 100_000),
        ({"type": "object", "minProperties": 1, "required": ["k"]}, 6),
    ],
)
def test_distances_of_long_ways_are_linear(schema: Any, least: int) -> None:
    automaton = compiled(schema)
    # the vocabulary has no token of more than a byte
    assert automaton.distance(automaton.start, 64) is None or least < 64
    assert automaton.distance(automaton.start) >= least


def test_what_plainly_needs_more_tokens_than_there_are_is_not_spelled_out() -> None:
    pairs = tower(
        30,
        lambda i, low: {"type": "array", "minItems": 2, "items": False, "prefixItems": [low, low]},
        {"type": "integer"},
    )
    automaton = compiled(pairs)
    assert automaton.distance(automaton.start) is None and automaton.distance(automaton.start, 256) is None
    small = compiled(
        json.loads(json.dumps(pairs).replace('"l30": {"type": "integer"}', '"l30": {}').replace("l30", "l4"))
    )
    assert small.distance(small.start, 3) is None or small.distance(small.start) > 3


@pytest.mark.parametrize("longest", [16, 17, 24])
def test_four_kinds_of_four_characters_never_end_in_a_dead_end(longest: int) -> None:
    pattern = r"^(?=(.*[A-Z]){4})(?=(.*[0-9]){4})(?=(.*[!@#]){4})(?=(.*[a-z]){4}).*$"
    grammar = tf.json_schema({"type": "string", "maxLength": longest, "pattern": pattern})
    # the shortest way out of 24 characters takes more steps than the usual limit
    automaton = grammar.compile(VOCABULARY, limits=tf.engine.Limits(work=10**8))
    judge = re.compile(pattern)
    for seed in range(4):
        text = json.loads(walk(automaton, random.Random(seed)))
        assert len(text) <= longest and judge.match(text), text


def test_what_has_too_few_different_values_is_refused() -> None:
    def unique(least: int, item: Any) -> Any:
        return {"type": "array", "uniqueItems": True, "minItems": least, "items": item}

    three = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "additionalProperties": False}
    nested = {"type": "array", "minItems": 1, "maxItems": 2, "items": three, "uniqueItems": True}
    for item, values in ((BOOLEANS, 7), (three, 3), (nested, 9), ({"enum": list(range(300))}, 300)):
        assert compiled(unique(values, item)).start is not None
        with pytest.raises(UnsatisfiableSchema):
            compiled(unique(values + 1, item))
    endless = {"type": "array", "maxItems": 1, "items": {"$ref": "#/items"}}
    assert compiled(unique(50, endless)) and compiled(unique(2000, {"type": "string", "maxLength": 4}))


def test_a_unique_array_of_all_values_is_written_whole() -> None:
    automaton = compiled({"type": "array", "uniqueItems": True, "minItems": 7, "items": BOOLEANS})
    for seed in range(3):
        value = json.loads(walk(automaton, random.Random(seed)))
        assert len(value) == 7 and len({json.dumps(v) for v in value}) == 7


def test_a_limit_is_never_told_as_emptiness() -> None:
    letters = {
        c: {"multipleOf": p} for c, p in zip("abcdefghij", (2, 3, 5, 7, 11, 13, 17, 19, 23, 29), strict=True)
    }
    automaton = compiled({"type": "object", "minProperties": 1, "patternProperties": letters})
    assert automaton.matches(b'{"abj": 174}') and not automaton.matches(b'{"abj": 29}')
    contains = [
        {"contains": {"type": "integer", "multipleOf": p}} for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
    ]
    for count in (2, 11):
        schema = {"type": "array", "allOf": contains[:count] + contains[count - 1 :]}
        try:
            assert compiled(schema).start is not None
        except TokenformError as error:
            assert isinstance(error, LimitExceeded), error


BRANCHES: list[dict[str, Any]] = [
    {"properties": {"a": {"type": "integer"}}},
    {"properties": {"b": {"type": "string"}}, "required": ["b"]},
    {"patternProperties": {"^c": {"type": "boolean"}}},
    {"required": ["d"], "additionalProperties": {"type": "null"}},
]


def _unevaluated() -> list[Any]:
    keyed: list[Any] = [
        {"anyOf": BRANCHES[:2], "unevaluatedProperties": False},
        {"anyOf": BRANCHES, "properties": {"d": {}}, "unevaluatedProperties": {"type": "number"}},
        {"oneOf": [BRANCHES[1], BRANCHES[3]], "unevaluatedProperties": False},
        {
            "if": BRANCHES[1],
            "then": {"properties": {"a": {}}},
            "else": BRANCHES[2],
            "unevaluatedProperties": False,
        },
        {
            "dependentSchemas": {"a": BRANCHES[2], "b": {"properties": {"d": {}}}},
            "properties": {"a": {}, "b": {}},
            "unevaluatedProperties": False,
        },
        {
            "allOf": [{"anyOf": [BRANCHES[0], {"not": BRANCHES[1]}]}, BRANCHES[2]],
            "unevaluatedProperties": False,
        },
        {"anyOf": [{"anyOf": BRANCHES[:2]}, BRANCHES[3]], "unevaluatedProperties": False},
    ]
    items: list[Any] = [
        {
            "anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [True, {"const": 2}]}],
            "unevaluatedItems": False,
        },
        {"contains": {"const": 1}, "unevaluatedItems": {"const": 2}},
        {"anyOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "unevaluatedItems": False},
        {"if": {"prefixItems": [{"const": 1}]}, "else": {"items": {"const": 2}}, "unevaluatedItems": False},
    ]
    return [{"type": "object", **s} for s in keyed] + [{"type": "array", **s} for s in items]


@pytest.mark.parametrize("schema", _unevaluated(), ids=range(len(_unevaluated())))
def test_unevaluated_keywords_mean_what_the_judge_says(schema: Any) -> None:
    judge = jsonschema_rs.Draft202012Validator(schema)
    if schema["type"] == "array":
        documents: list[Any] = [list(p) for n in range(4) for p in itertools.product((1, 2, 3), repeat=n)]
    else:
        values = (1, "x", True, None)
        documents = [
            dict(zip(keys, chosen, strict=True))
            for n in range(4)
            for keys in itertools.combinations(("a", "b", "c1", "d", "e"), n)
            for chosen in itertools.product(values, repeat=n)
        ]
    automaton = compiled(schema, order="any")
    wrong = [d for d in documents if automaton.matches(json.dumps(d).encode()) != judge.is_valid(d)]
    assert not wrong, wrong[:5]


def test_what_is_too_much_to_decide_is_refused_when_it_is_compiled() -> None:
    itself = {"unevaluatedProperties": False, "allOf": [{"$ref": "#/$defs/n"}]}
    with pytest.raises(TokenformError):
        tf.json_schema({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": itself}})
    contains = [{"contains": {"const": i}} for i in range(12)]
    with pytest.raises(LimitExceeded):
        tf.json_schema({"properties": {"a": {"unevaluatedItems": False, "anyOf": contains}}})


def test_towers_of_one_of_are_what_they_say() -> None:
    schema = tower(6, lambda i, low: {"oneOf": [low, {"required": [f"k{i}"]}]}, {"type": "object"})
    judge = jsonschema_rs.Draft202012Validator(schema)
    automaton = compiled(schema, order="any")
    for n in range(7):
        for keys in itertools.combinations([f"k{i}" for i in range(6)], n):
            document = dict.fromkeys(keys, 1)
            assert automaton.matches(json.dumps(document).encode()) == judge.is_valid(document), document


def test_until_a_long_word() -> None:
    word = "a" * 500 + "b"
    automaton = tf.until(word).compile(VOCABULARY)
    for text, good in ((word, True), ("aa" + word, True), (word[1:], False), (word + word, False)):
        assert automaton.matches(text.encode()) is good


def test_the_first_number_that_no_unit_divides_is_found_however_far_it_is() -> None:
    # 5,003 is the least prime beyond all units, and every number from 2 to there is a multiple of one
    schema = {"type": "integer", "minimum": 2, "allOf": [{"not": {"multipleOf": n}} for n in range(2, 5003)]}
    with contextlib.suppress(LimitExceeded):
        assert compiled(schema).matches(b"5003")
    small = {"type": "integer", "minimum": 2, "allOf": [{"not": {"multipleOf": n}} for n in range(2, 40)]}
    automaton = compiled(small)
    assert automaton.matches(b"41")
    assert not automaton.matches(b"39")


def test_a_call_that_would_hold_too_much_is_refused() -> None:
    schema = tower(
        20,
        lambda i, low: {"type": "array", "minItems": 2, "uniqueItems": True, "items": low},
        {"type": "boolean"},
    )
    with pytest.raises(LimitExceeded, match=r"Limits\.work"):
        compiled(schema).mask(compiled(schema).start)
    assert compiled({"type": "integer"}).matches(b"17")


def test_an_object_of_many_required_keys_is_read_in_any_order() -> None:
    names = [f"k{i}" for i in range(500)]
    automaton = compiled(needs(*names), order="any")
    random.Random(0).shuffle(names)
    text = json.dumps(dict.fromkeys(names, 0), separators=(",", ":"))
    assert automaton.matches(text.encode())
    assert not automaton.matches(text.replace(f'"{names[7]}"', '"other"').encode())


@pytest.mark.parametrize("excluded", ["7e-299", "7", "7e300", "21e-5"])
@pytest.mark.parametrize("unit", ["3e300", "3", "3e-5"])
def test_multiples_of_one_number_and_not_of_another(unit: str, excluded: str) -> None:
    """The excluded number may be far below the unit: what it takes away is counted in units."""
    schema = f'{{"type":"number","multipleOf":{unit},"not":{{"multipleOf":{excluded}}},"minimum":1}}'
    taken = fractions.Fraction(decimal.Decimal(unit)), fractions.Fraction(decimal.Decimal(excluded))
    try:
        automaton = compiled(schema)
    except UnsatisfiableSchema:
        assert (taken[0] / taken[1]).denominator == 1
        return
    for seed in range(3):
        rng, state, written = random.Random(seed), automaton.start, b""
        while not automaton.is_finished(state) and len(written) < 500:
            allowed = automaton.allowed_tokens(state).tolist()
            assert allowed, written
            token = EOS if automaton.is_accepting(state) else rng.choice(allowed)
            state, written = automaton.advance(state, token), written + bytes([token] * (token != EOS))
        number = fractions.Fraction(decimal.Decimal(written.decode()))
        assert (number / taken[0]).denominator == 1 and (number / taken[1]).denominator != 1, written


@pytest.mark.parametrize(
    ("schema", "work"),
    [
        # each key's shape named all the others
        (
            {
                "type": "object",
                "unevaluatedProperties": False,
                "anyOf": [{"properties": {f"k{i}": {"type": "integer"}}} for i in range(4000)],
            },
            1_200_000,
        ),
        # the negation of a branch was made once for each of the others
        (
            {"type": "string", "oneOf": [{"pattern": f"{c}{i}"} for i in range(80) for c in "abcde"]},
            3_000_000,
        ),
    ],
    ids=["unevaluatedProperties", "oneOf of patterns"],
)
def test_keywords_over_many_branches_grow_no_faster_than_they_must(schema: Any, work: int) -> None:
    compiled_within = tf.json_schema(schema).compile(VOCABULARY, limits=tf.engine.Limits(work=work))
    assert len(compiled_within.allowed_tokens(compiled_within.start))
