"""Every spelling of a number against exact decimals, and numbers that a model would never end."""

from __future__ import annotations

import json
import math
import random
import re
from decimal import Decimal, localcontext
from typing import Any

import pytest
from benchmarks.suites.maskcheck import byte_vocabulary
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tokenform as tf

VOCABULARY = byte_vocabulary()
# Digits before and after the point under numbers="natural", as the documentation states them.
WHOLE, PLACES = 80, 40

DIGITS = st.text("0123456789", min_size=1, max_size=4)


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A number as JSON may spell it, often near the bounds that the schemas have."""
    whole = str(draw(st.integers(0, 300))) if draw(st.booleans()) else draw(st.sampled_from("01579"))
    fraction = draw(st.none() | DIGITS)
    exponent = draw(st.none() | st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), DIGITS))
    text = draw(st.sampled_from(["", "-"])) + whole + ("" if fraction is None else "." + fraction)
    return text if exponent is None else text + exponent[0] + exponent[1] + exponent[2][:3]


BOUNDS = st.sampled_from(
    ["-120", "-3", "-0.5", "0", "0.05", "0.3", "1", "1.5", "3", "10", "70", "100", "1e2", "2.5e3"]
)
UNITS = st.sampled_from(["1", "2", "7", "10", "0.5", "0.01", "0.3", "2.5"])


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """The text of a schema of numbers, its own numbers spelled in several ways."""
    if draw(st.integers(0, 4)) == 0:
        return '{{"enum": [{}]}}'.format(", ".join(draw(st.lists(BOUNDS, min_size=1, max_size=3))))
    said = [f'"type": "{draw(st.sampled_from(["number", "number", "integer"]))}"']
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if draw(st.integers(0, 2)) == 0:
            said.append(f'"{key}": {draw(BOUNDS)}')
    if draw(st.integers(0, 3)) == 0:
        said.append(f'"multipleOf": {draw(UNITS)}')
    if draw(st.integers(0, 6)) == 0:
        said.append(f'"not": {{"multipleOf": {draw(UNITS)}}}')
    return "{" + ", ".join(said) + "}"


def exact(schema: str) -> Any:
    return json.loads(schema, parse_int=Decimal, parse_float=Decimal)


def valid(schema: dict[str, Any], value: Decimal) -> bool:
    """The keywords by exact arithmetic."""
    with localcontext() as context:
        context.prec = 3000
        multiple = lambda unit: value % unit == 0  # noqa: E731
        return (
            ("enum" not in schema or value in schema["enum"])
            and (schema.get("type") != "integer" or multiple(1))
            and ("minimum" not in schema or value >= schema["minimum"])
            and ("maximum" not in schema or value <= schema["maximum"])
            and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
            and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
            and ("multipleOf" not in schema or multiple(schema["multipleOf"]))
            and ("not" not in schema or not multiple(schema["not"]["multipleOf"]))
        )


def only_integers(schema: dict[str, Any], value: Decimal) -> bool:
    """Whether the place of this value holds integers alone."""
    if "enum" in schema:
        return value == value.to_integral_value()
    return schema["type"] == "integer" or schema.get("multipleOf", Decimal("0.1")) % 1 == 0


def natural(schema: dict[str, Any], text: str) -> bool:
    value = Decimal(text)
    whole, _, fraction = re.split("[eE]", text.lstrip("-"))[0].partition(".")
    if not valid(schema, value) or len(whole) > WHOLE or len(fraction) > PLACES:
        return False
    if only_integers(schema, value):
        return text.lstrip("-").isdigit()
    return math.isfinite(float(text)) and (float(text) != 0 or value == 0)


def automaton(schema: str, numbers: str) -> tf.TokenAutomaton | None:
    try:
        return tf.json_schema(schema, numbers=numbers).compile(VOCABULARY)  # type: ignore[arg-type]
    except tf.TokenformError:
        return None


@settings(deadline=None)
@given(schemas(), st.lists(spellings(), min_size=1, max_size=12))
@example('{"type": "number", "minimum": 3}', ["0.7e2", "0.5e1", "0.3e1", "0.2e1", "0.07e2"])
@example('{"type": "number", "exclusiveMaximum": -3}', ["-0.5E1", "-0.05E2", "-0.3e1", "-0.31e1"])
@example('{"enum": [70]}', ["0.7e2", "700e-1", "70.0"])
@example('{"enum": [1, 1.5]}', ["1", "1.0", "1.50", "15e-1", "1e0"])
@example(
    '{"type": "number"}', ["17976931348623157e292", "18e307", "1e309", "5e-324", "2e-324", "0e999", "0.0"]
)
def test_every_spelling_is_judged_by_its_value(schema: str, texts: list[str]) -> None:
    for numbers in ("any", "natural"):
        compiled = automaton(schema, numbers)
        for text in texts:
            judge = valid(exact(schema), Decimal(text)) if numbers == "any" else natural(exact(schema), text)
            assert (compiled is not None and compiled.matches(text.encode())) is judge, (
                schema,
                numbers,
                text,
            )


@st.composite
def nearly_canonical(draw: st.DrawFn) -> str:
    """A number as a JSON writer spells it, often with a digit or a zero more or less at the end."""
    number = draw(
        st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-0.0, 15.0, 1.5e16, 2e-5])
    )
    text = json.dumps(draw(st.integers(-300, 300)) if draw(st.booleans()) else number)
    text = text[: len(text) - draw(st.sampled_from([0, 0, 1, 2]))] + draw(st.sampled_from(["", "", "0", "5"]))
    # what is signed and zero depends on whether the set is one of integers
    return text if re.fullmatch(r"(?!-0(\.0*)?$)-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d{1,3})?", text) else "1"


@settings(deadline=None)
@given(st.lists(schemas(), min_size=1, max_size=2), st.lists(nearly_canonical(), min_size=1, max_size=12))
@example(
    ['{"type": "integer"}', '{"type": "number", "minimum": 1}'], ["1.5e+1", "1.5e+16", "1.50", "1.5", "15"]
)
@example(
    ['{"type": "number", "minimum": 2, "exclusiveMaximum": 2}', '{"type": "number", "multipleOf": 1}'],
    ["1e+16", "10000000000000000", "1.5"],
)
@example(['{"type": "number", "exclusiveMaximum": 70}'], ["-0", "0", "-0.0", "1e-0", "1e-05", "1.0", "1.00"])
def test_what_is_canonical_does_not_hang_on_the_bounds(parts: list[str], texts: list[str]) -> None:
    every = automaton('{"type": "number"}', "canonical")
    compiled = automaton('{"anyOf": [' + ", ".join(parts) + "]}", "canonical")
    assert every is not None
    # a part that no number satisfies says nothing of how others are spelled
    integral = all(
        all(only_integers(exact(part), value) for value in exact(part).get("enum", [Decimal("0.5")]))
        for part in parts
        if automaton(part, "any") is not None
    )
    for text in texts:
        judge = every.matches(text.encode()) and any(valid(exact(part), Decimal(text)) for part in parts)
        judge &= not integral or re.fullmatch(r"(0|-?[1-9]\d*)(\.0)?", text) is not None
        assert (compiled is not None and compiled.matches(text.encode())) is judge, (parts, text)


def walk(compiled: tf.TokenAutomaton, choose: Any, least: int) -> str:
    """Bytes of some text: the chooser's as long as it has one, then whichever ends it soonest."""
    state, text = compiled.start, ""
    for _ in range(2000):
        allowed = [chr(t) for t in compiled.allowed_tokens(state) if t < 256]
        ends = compiled.is_accepting(state)
        assert ends or allowed, f"a dead end after {text!r}"
        wanted = choose(allowed, text)
        if wanted is None and ends:
            return text
        if wanted is None:
            before = compiled.distance(state)
            wanted = next(c for c in allowed if compiled.distance(compiled.advance(state, ord(c))) < before)
        state, text = compiled.advance(state, ord(wanted)), text + wanted
    pytest.fail(f"without end: {text[:200]!r}")


@settings(deadline=None)
@given(schemas(), st.integers(0, 2**32))
def test_what_may_begin_can_end(schema: str, seed: int) -> None:
    rng = random.Random(seed)
    compiled = automaton(schema, "natural")
    if compiled is None:
        return

    def some(allowed: list[str], text: str) -> str | None:
        digits = [c for c in allowed if c in "0123456789.eE-+"]
        return rng.choice(digits) if digits and rng.random() < 0.9 else None

    for _ in range(4):
        text = walk(compiled, some, 0)
        assert natural(exact(schema), text), text


@pytest.mark.parametrize("wanted", ["9", "0", "0.", "3.", "90."])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number"},
        {"type": "integer"},
        {"type": "number", "minimum": 0},
        {"type": "number", "minimum": 0, "maximum": 100},
        {"type": "number", "multipleOf": 0.01},
        {"type": "integer", "multipleOf": 7},
        {"const": 0.5},
        {"type": "integer", "minimum": 10**100},
        {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 1.0000000000000002},
    ],
)
def test_a_model_that_never_stops_writing_digits_is_stopped(schema: dict[str, Any], wanted: str) -> None:
    """Its first choices, then one digit over and over, then whatever digit is allowed."""
    compiled = automaton(json.dumps(schema), "natural")
    assert compiled is not None

    def digit(allowed: list[str], text: str) -> str | None:
        if len(text) < len(wanted) and wanted[len(text)] in allowed:
            return wanted[len(text)]
        return next((c for c in (wanted[0], *"0123456789") if c in allowed), None)

    text = walk(compiled, digit, 0)
    assert len(re.split("[eE]", text)[0]) <= max(WHOLE, 105) + 1 + PLACES
    assert valid(exact(json.dumps(schema)), Decimal(text))


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 17))
def test_what_writers_write_is_taken(number: float, places: int) -> None:
    compiled = automaton('{"type": "number"}', "natural")
    assert compiled is not None
    texts = [json.dumps(number), f"{number:.{places}e}", f"{number:.{places}E}"]
    if abs(number) < 1e20:
        texts += [f"{number:.{places}f}", f"{number:.2f}"]
    for text in texts:
        if math.isfinite(float(text)) and (float(text) != 0 or Decimal(text) == 0):
            assert compiled.matches(text.encode()), text


def test_prices_and_powers_are_taken_as_they_are_written() -> None:
    schema = {
        "type": "object",
        "properties": {"price": {"type": "number", "minimum": 0}, "n": {"type": "integer"}},
    }
    grammar = tf.json_schema(schema).compile(VOCABULARY)
    for text in ("19.90", "3e-4", "1e6", "1E+06", "0.00", "100.000", "1e-07", "1.50E+2", "5"):
        assert grammar.matches(f'{{"price": {text}, "n": 3}}'.encode()), text
    for text in ("1.0", "1e0", "10E1", "1.", "01", "-"):
        assert not grammar.matches(f'{{"price": 1, "n": {text}}}'.encode()), text


LONG = [
    {"type": "integer", "multipleOf": 3},
    {"type": "number", "multipleOf": 3},
    {"type": "integer", "multipleOf": 2},
    {"type": "integer", "multipleOf": 1300},
    {"type": "integer", "multipleOf": 7, "minimum": 50_000},
    {"type": "integer", "multipleOf": 7, "maximum": -50_000},
    {"type": "integer", "multipleOf": 7, "not": {"multipleOf": 5}},
    {"type": "integer", "not": {"multipleOf": 3}},
    {"type": "number", "multipleOf": 2.5},
]


@pytest.mark.parametrize("numbers", ["natural", "any", "canonical"])
@pytest.mark.parametrize("schema", LONG, ids=json.dumps)
def test_multiples_of_many_digits(schema: dict[str, Any], numbers: Any) -> None:
    automaton = tf.json_schema(schema, numbers=numbers).compile(VOCABULARY)
    draw, unit = random.Random(7), Decimal(str(schema.get("multipleOf", 1)))
    most = 15 if numbers == "canonical" and schema["type"] == "number" else 24  # longer ones have an exponent
    for _ in range(400):
        n = draw.randrange(10 ** draw.randint(1, most)) * draw.choice((1, -1))
        for value in (n, int(n // unit * unit)):
            right = value % unit == 0 and schema.get("minimum", value) <= value <= schema.get(
                "maximum", value
            )
            right &= "not" not in schema or value % schema["not"]["multipleOf"] != 0
            assert automaton.matches(str(value).encode()) == right, value
