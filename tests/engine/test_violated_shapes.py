"""Keys that alternatives must not allow are searched for within few steps, or the search is refused: steps of
work are counted, so these bounds are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from benchmarks.suites.hostile_inputs.formulas import needs
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf
from tokenform.errors import LimitExceeded, TokenRejected, UnsatisfiableSchema

VOCABULARY = byte_vocabulary()


@contextmanager
def limited(work: int) -> Iterator[None]:
    """What a call may need, the reading of a constraint included."""
    usual = tf.engine.Limits()
    tf.engine.set_limits(tf.engine.Limits(work=work))
    try:
        yield
    finally:
        tf.engine.set_limits(usual)


def walked(schema: Any, text: bytes, work: int) -> Any:
    """An automaton and its state behind the text; no call, masks included, may need more work."""
    with limited(work):
        automaton = tf.json_schema(schema, order="any").compile(
            VOCABULARY, limits=tf.engine.Limits(work=work)
        )
        state = automaton.start
        automaton.mask(state)
        for byte in text:
            state = automaton.advance(state, byte)
            automaton.mask(state)
        return automaton, state


def tagged(n: int, *, required: bool) -> dict[str, Any]:
    """Alternatives that a tag tells apart; each has a key of its own."""
    kinds = [
        {
            **needs("kind", *([f"p{i}"] if required else [])),
            "properties": {"kind": {"const": f"k{i}"}, f"p{i}": {"type": "integer"}},
        }
        for i in range(n)
    ]
    return {"oneOf": kinds}


@pytest.mark.parametrize("n", [12, 20, 30])
@pytest.mark.parametrize("required", [False, True])
def test_alternatives_with_a_tag_cost_hundreds_of_steps_each(n: int, required: bool) -> None:
    last = n - 1
    texts = [
        f'{{"kind": "k{last}", "p{last}": 3',
        f'{{"p{n // 2}": 3, "kind": "k{n // 2}", "q": 0',
        f'{{"z": [], "p0": 1, "p{last}": 7, "kind": "k0"',
    ]
    for text in texts:
        automaton, state = walked(tagged(n, required=required), text.encode(), 650 * n)
        assert automaton.is_accepting(automaton.step_bytes(state, b"}"))
    automaton, state = walked(
        tagged(n, required=required), f'{{"kind": "k{last}", "p{last}": '.encode(), 650 * n
    )
    with pytest.raises(TokenRejected):
        automaton.step_bytes(state, b'"')


def unviolable(n: int) -> dict[str, Any]:
    """Objects that none of n shapes of three keys allows, nor one that allows what the rest does."""
    shapes = [{"properties": {f"{key}{i}": {"type": "integer"} for key in "pqr"}} for i in range(n)]
    barred = [*shapes, {"properties": {"kind": {"type": "number"}}}]
    return {"type": "object", "properties": {"kind": {"type": "integer"}}, "not": {"anyOf": barred}}


@pytest.mark.parametrize("n", [12, 20, 30])
def test_a_shape_that_no_key_violates_is_found_before_the_others_are_combined(n: int) -> None:
    # three keys a shape: 3^12 combinations are more than half a million
    with limited(3000 * n), pytest.raises(UnsatisfiableSchema):
        tf.json_schema(unviolable(n), order="any")
    walked({"anyOf": [unviolable(n), {"type": "null"}]}, b"null", 3000 * n)
    automaton, state = walked({"anyOf": [unviolable(n), {"type": "null"}]}, b"", 3000 * n)
    assert automaton.allowed_tokens(state).tolist() == [ord("n")]


def pigeons(holes: int) -> dict[str, Any]:
    """One more value than there are keys, each of which some key has."""
    keys = [f"k{i}" for i in range(holes)]
    values = range(holes + 1)
    return {
        "type": "object",
        "properties": {key: {"enum": list(values)} for key in keys},
        "additionalProperties": False,
        "allOf": [{"not": {"properties": {key: {"not": {"const": j}} for key in keys}}} for j in values],
    }


def test_a_search_without_end_is_refused_by_the_limit() -> None:
    with pytest.raises(UnsatisfiableSchema):
        tf.json_schema(pigeons(4), order="any")
    for work in (10**5, 10**6):
        with limited(work), pytest.raises(LimitExceeded, match=f"{work} steps of work"):
            tf.json_schema(pigeons(12), order="any")
    # the engine is as before
    assert walked(tagged(12, required=True), b'{"kind": "k3", "p3": 1}', 650 * 12)


@pytest.mark.parametrize("n", [4, 10, 14, 40])
def test_conditions_on_one_tag_keep_the_declared_order(n: int) -> None:
    """Multiplied out, n conditions are 2^n alternatives; n can hold, and each is found in a few steps."""
    kinds = [f"k{i}" for i in range(n)]
    conditions = [
        {
            "if": {"properties": {"kind": {"const": kind}}},
            "then": {"properties": {"kind": {"const": kind}, "size": {"type": "integer", "minimum": i}}},
        }
        for i, kind in enumerate(kinds)
    ]
    base = {"type": "object", "properties": {"kind": {"enum": kinds}}, "required": ["kind"]}
    schema = {"allOf": [base, *conditions]}
    last = n - 1
    with limited(25_000 * n):
        automaton = tf.json_schema(schema).compile(VOCABULARY, limits=tf.engine.Limits(work=25_000 * n))
        assert automaton.matches(f'{{"kind": "k{last}", "size": {last}}}'.encode())
        assert not automaton.matches(f'{{"kind": "k{last}", "size": {last - 1}}}'.encode())
        assert not automaton.matches(f'{{"size": {last}, "kind": "k{last}"}}'.encode())
