"""Types: their documents are accepted, and read back as instances."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib.util
import ipaddress
import json
import math
import random
import typing
import uuid
import zoneinfo
from typing import Annotated, Literal, Union

import pydantic
import pytest
import typing_extensions

import tokenform as tf
from tokenform import errors

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(pydantic.BaseModel):
    street: str
    number: Annotated[int, pydantic.Field(ge=1, le=9999)]


class Customer(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")
    address: Address | None = None
    colours: list[Colour] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree]


class Movie(typing.TypedDict):
    title: str
    year: int


class Shelf(typing.TypedDict, total=False):
    movies: list[Movie]


def book(title: str, pages: int = 100, *, when: datetime.date, schema: Point | None = None) -> None:
    """Never called."""
    raise AssertionError


CASES = [
    (Point, '{"x": 1, "y": 2}', Point(1, 2)),
    (Point, '{"x": 1}', Point(1)),
    (Tree, '{"value": 1, "children": [{"value": 2, "children": []}]}', Tree(1, [Tree(2, [])])),
    (Movie, '{"title": "M", "year": 1931}', {"title": "M", "year": 1931}),
    (list[Movie], '[{"title": "M", "year": 1931}]', [{"title": "M", "year": 1931}]),
    (Shelf, '{"movies": [{"title": "M", "year": 1931}]}', {"movies": [{"title": "M", "year": 1931}]}),
    (Shelf, "{}", {}),
    (Colour, '"blue"', Colour.BLUE),
    (Literal["a", 3, None], "3", 3),
    (dict[str, int], '{"k": 1}', {"k": 1}),
    (tuple[int, str], '[1, "a"]', (1, "a")),
    (Union[int, list[bool]], "[true]", [True]),  # noqa: UP007
    (Customer, '{"fullName": "Ada", "colours": ["red"]}', Customer(fullName="Ada", colours=[Colour.RED])),
    (
        Customer,
        '{"fullName": "Ada", "address": {"street": "S", "number": 1}}',
        Customer(fullName="Ada", address=Address(street="S", number=1)),
    ),
    (datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29)),
    (uuid.UUID, '"12345678-1234-5678-1234-567812345678"', uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (
        book,
        '{"title": "T", "when": "2024-01-01", "schema": {"x": 1}}',
        {"title": "T", "when": datetime.date(2024, 1, 1), "schema": Point(1)},
    ),
]
REFUSED = [
    (Point, '{"x": 1.5}'),
    (Point, '{"x": 1, "z": 2}'),
    (Movie, '{"title": "M"}'),
    (Colour, '"green"'),
    (Address, '{"street": "S", "number": 0}'),
    (tuple[int, str], "[1]"),
    (datetime.date, '"2023-02-29"'),
    (book, '{"title": "T"}'),
]


@pytest.fixture(scope="module")
def vocabulary():
    return tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])


@pytest.mark.parametrize(("tp", "text", "value"), CASES)
def test_documents_become_instances(vocabulary, tp, text, value):
    grammar = tf.from_type(tp)
    assert grammar.compile(vocabulary).matches(text.encode())
    assert grammar.parse(text) == value
    assert type(grammar.parse(text)) is type(value)


@pytest.mark.parametrize(("tp", "text"), REFUSED)
def test_other_documents_are_refused(vocabulary, tp, text):
    assert not tf.from_type(tp).compile(vocabulary).matches(text.encode())


def test_what_a_function_returns_may_be_unknown():
    def order(item: str, count: int) -> Nowhere: ...  # noqa: F821

    assert list(tf.from_type(order).schema["properties"]) == ["item", "count"]


def test_a_function_that_makes_a_grammar_is_to_be_called():
    with pytest.raises(tf.errors.InvalidType, match=r"sql makes a grammar: call it, sql\(\)\."):
        tf.from_type(tf.grammars.sql)


def test_the_arguments_of_a_function_call_it():
    def add(left: int, right: int = 10) -> int:
        return left + right

    assert add(**tf.from_type(add).parse('{"left": 1}')) == 11


def test_what_stands_for_a_function_is_not_called():
    def add(left: int, right: int = 10, *, name: str = "") -> int:
        raise AssertionError

    def shown(function):
        return list(tf.from_type(function).schema["properties"])

    assert tf.from_type(functools.partial(add, name="sum")).parse('{"left": 1}') == {"left": 1}
    assert shown(functools.partial(add, name="sum")) == ["left", "right"]
    assert shown(functools.partial(functools.partial(add, 3), name="sum")) == ["right"]
    assert shown(functools.lru_cache(add)) == ["left", "right", "name"]
    assert shown(functools.partial(add, right=1, name="")) == ["left"]
    for bare in (functools.partial(int, base=2), functools.partial(Opaque)):
        with pytest.raises(errors.InvalidType, match="give a function"):
            tf.from_type(bare)


class Opaque:
    pass


@pytest.mark.parametrize("tp", [Opaque, list[Opaque], object(), lambda x: x, lambda *rest: rest])
def test_types_without_a_schema_are_refused(tp):
    with pytest.raises(errors.InvalidType) as caught:
        tf.from_type(tp)
    assert "\n" not in str(caught.value)


RUN = "runs.append(1) or int"
runs: list[int] = []


@pytest.mark.parametrize(
    "make",
    [
        lambda: RUN,
        lambda: "int",
        lambda: "",
        lambda: list[RUN],  # type: ignore[valid-type]
        lambda: dict[str, typing.Optional[RUN]],  # type: ignore[valid-type]  # noqa: UP045
        lambda: typing.ForwardRef(RUN),
        lambda: Annotated[RUN, 3],  # type: ignore[valid-type]
        lambda: type[RUN],  # type: ignore[valid-type]
        lambda: list[typing.TypeVar("B", bound=RUN)],  # type: ignore[misc]
        lambda: typing.NewType("N", RUN),  # type: ignore[valid-newtype]
        lambda: pydantic.Json[RUN],  # type: ignore[valid-type]
        lambda: typing.Callable[[RUN], int],  # type: ignore[valid-type]
        lambda: typing_extensions.TypeAliasType("A", RUN),
        lambda: typing_extensions.TypeAliasType("A", f"list[{RUN!r}]"),
        lambda: typing_extensions.TypeAliasType("A", "list[int.__class__]"),
    ],
)
def test_a_string_in_place_of_a_type_is_refused_and_never_run(make: typing.Callable[[], typing.Any]) -> None:
    before = list(runs)
    tp = make()
    with pytest.raises(errors.InvalidType, match="strings are never run"):
        tf.from_type(tp)
    if importlib.util.find_spec("torch"):  # the base package writes nothing; text is a schema's there
        kind = errors.InvalidSchema if isinstance(tp, str) else errors.InvalidType
        with pytest.raises(kind, match="is read as a JSON Schema" if isinstance(tp, str) else "never run"):
            tf.generate("", schema=tp)
    assert runs == before


def test_an_alias_may_name_itself() -> None:
    named = typing_extensions.TypeAliasType("named", "dict[str, named] | Literal['a (b)'] | None")
    grammar = tf.from_type(named)
    assert grammar.parse('{"k": {"l": "a (b)"}}') == {"k": {"l": "a (b)"}}


class Odd:
    """pydantic's hooks may raise anything."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: typing.Any, handler: typing.Any) -> typing.Any:
        raise ZeroDivisionError


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_by_alias=False, validate_by_name=True)
    size: int = pydantic.Field(3, alias="zz")


class ByAlias(pydantic.BaseModel):
    inner: ByName = pydantic.Field(alias="in")


class AtAPath(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    size: int = pydantic.Field(validation_alias=pydantic.AliasPath("sizes", 0))


class NotAtAPath(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_by_alias=False, validate_by_name=True)
    size: int = pydantic.Field(validation_alias=pydantic.AliasPath("sizes", 0))


@pytest.mark.parametrize(
    ("tp", "read", "other"),
    [
        (ByName, {"size": 5}, {"zz": 5}),
        (ByAlias, {"in": {"size": 5}}, {"in": {"zz": 5}}),
        (AtAPath, {"size": 5}, {"sizes": [5]}),
        (NotAtAPath, {"size": 5}, {"sizes": [5]}),
    ],
)
def test_a_field_has_the_name_that_its_model_reads(
    tp: typing.Any, read: typing.Any, other: typing.Any
) -> None:
    grammar = tf.from_type(tp)
    automaton = grammar.compile(BYTES)
    assert automaton.matches(json.dumps(read)) and not automaton.matches(json.dumps(other))
    assert grammar.parse(json.dumps(read)) == pydantic.TypeAdapter(tp).validate_python(read)


class Nothing(pydantic.BaseModel):
    pass


@pytest.mark.parametrize("tp", [Nothing, dataclasses.make_dataclass("Void", []), lambda: 1])
def test_a_type_without_fields_has_no_keys(tp: typing.Any) -> None:
    automaton = tf.from_type(tp).compile(BYTES)
    assert automaton.matches("{}") and not automaton.matches('{"a": 1}')


def test_whatever_a_type_raises_becomes_an_error_of_the_library() -> None:
    class Things(enum.Enum):
        ONE = object()

    deep: typing.Any = int
    for _ in range(800):
        deep = list[deep]
    wide = typing.Union[tuple(list[Literal[i]] for i in range(21_000))]  # type: ignore[valid-type]  # noqa: UP007
    for tp, kind in [
        (Things, errors.InvalidType),
        (Odd, errors.InvalidType),
        (list[Odd], errors.InvalidType),
        (deep, errors.LimitExceeded),
        (wide, errors.LimitExceeded),
        ({}, errors.InvalidType),
        (5, errors.InvalidType),
    ]:
        with pytest.raises(kind):
            tf.from_type(tp)


def test_a_type_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError("email-validator is not installed")

    monkeypatch.setattr("pydantic.networks.import_email_validator", missing)
    with pytest.raises(errors.InvalidType, match="email-validator is not installed"):
        tf.from_type(pydantic.EmailStr)


NUMBERS_AND_TIMES = {
    "decimal": decimal.Decimal,
    "price": Annotated[decimal.Decimal, pydantic.Field(ge=0, max_digits=6, decimal_places=2)],
    "digits": Annotated[decimal.Decimal, pydantic.Field(max_digits=4)],
    "duration": datetime.timedelta,
    "float": float,
    "finite": pydantic.FiniteFloat,
    "above": Annotated[float, pydantic.Field(gt=3, lt=1e3)],
    "positive": pydantic.PositiveFloat,
    "tenths": Annotated[float, pydantic.Field(multiple_of=0.1)],
    "halves": Annotated[float, pydantic.Field(multiple_of=0.5)],
    "strict": pydantic.StrictInt,
    "integer": int,
    "list": list[decimal.Decimal],
    "keys": dict[int, float],
    "names": dict[float, int],
    "names above": dict[Annotated[float, pydantic.Field(gt=0)], int],
}


@pytest.mark.parametrize("name", NUMBERS_AND_TIMES)
@pytest.mark.parametrize("numbers", ["natural", "any"])
def test_whatever_the_grammar_lets_through_is_read(name: str, numbers: str) -> None:
    grammar = tf.from_type(NUMBERS_AND_TIMES[name], numbers=numbers)
    automaton = grammar.compile(BYTES)
    rng = random.Random(name + numbers)
    for _ in range(40):
        text = drawn(automaton, rng)
        value = grammar.parse(text)
        flat = value if isinstance(value, list) else [value]
        flat = [*value, *value.values()] if isinstance(value, dict) else flat
        for number in flat:
            if isinstance(number, decimal.Decimal):
                assert number.is_finite(), text
            if isinstance(number, float):
                assert math.isfinite(number), text
        if isinstance(value, int):
            assert value == decimal.Decimal(text)
        elif isinstance(value, float):
            assert value == pytest.approx(float(decimal.Decimal(text)))


def drawn(automaton: tf.TokenAutomaton, rng: random.Random) -> str:
    """A text by a walk that likes the signs of numbers and times."""
    state, text = automaton.start, bytearray()
    while not automaton.is_accepting(state) or (len(text) < 40 and rng.random() < 0.9):
        allowed = [token for token in automaton.allowed_tokens(state).tolist() if token != 256]
        if not allowed:
            break
        if len(text) > 40:
            allowed = [min(allowed, key=lambda token: automaton.distance(automaton.advance(state, token)))]
        liked = [token for token in allowed if chr(token) in '0123456789.eE+-PTYMDHS":']
        token = rng.choice(liked if liked and rng.random() < 0.9 else allowed)
        state = automaton.advance(state, token)
        text.append(token)
    return text.decode()


@pytest.mark.parametrize(
    ("unit", "texts"),
    [(0.01, ["19.99", "123456.78", "3999999.99"]), (0.1, ["0.3", "1000000.1"]), (0.5, ["12345678901.5"])],
)
def test_prices_are_multiples_up_to_where_doubles_tell(unit: float, texts: list[str]) -> None:
    grammar = tf.from_type(Annotated[float, pydantic.Field(multiple_of=unit)])
    for text in texts:
        assert grammar.compile(BYTES).matches(text.encode())
        assert grammar.parse(text) == float(text)


NAMES = ["HttpUrl", "PostgresDsn", "RedisDsn", "FileUrl", "IPvAnyAddress", "IPvAnyNetwork", "IPvAnyInterface"]
NAMES += ["UUID1", "UUID4", "UUID7", "Base64Bytes", "NaiveDatetime", "AwareDatetime", "ByteSize"]
FORMATS = {name: getattr(pydantic, name) for name in NAMES}
FORMATS |= {"network": ipaddress.IPv4Network, "interface": ipaddress.IPv6Interface, "flags": dict[bool, int]}
FORMATS |= {"zone": zoneinfo.ZoneInfo, "fraction": fractions.Fraction, "complex": complex}
FORMATS |= {"past": pydantic.PastDate, "future": pydantic.FutureDate}
FORMATS |= {"address": pydantic.EmailStr, "named": pydantic.NameEmail}


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_in_a_format_of_pydantic_is_read(name: str) -> None:
    if name in ("address", "named"):
        pytest.importorskip("email_validator", reason="pydantic reads addresses with email-validator")
    grammar = tf.from_type(FORMATS[name])
    automaton, rng = grammar.compile(BYTES), random.Random(name)
    for _ in range(20):
        text = drawn(automaton, rng)
        # which addresses in brackets are hosts is judged when they are read
        if "://[" not in text.replace("\\/", "/"):
            grammar.parse(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HttpUrl", "https://user:pw@www.example-site.com:8080/a/b?c=d#e"),
        ("HttpUrl", "http://127.0.0.1/"),
        ("PostgresDsn", "postgresql://me@db.internal:5432/app"),
        ("FileUrl", "file:///etc/hosts"),
        ("IPvAnyAddress", "2001:db8::1"),
        ("IPvAnyInterface", "10.0.0.7/8"),
        ("UUID4", "3fa85f64-5717-4562-b3fc-2c963f66afa6"),
        ("Base64Bytes", "aGVsbG8gd29ybGQ="),
        ("NaiveDatetime", "2024-02-29T12:30:00.5"),
    ],
)
def test_everyday_values_of_the_formats_of_pydantic_are_accepted(name: str, text: str) -> None:
    grammar = tf.from_type(FORMATS[name])
    assert grammar.compile(BYTES).matches(f'"{text}"'.encode())
    grammar.parse(f'"{text}"')


def test_a_past_date_is_before_today_and_a_future_one_after() -> None:
    today = datetime.date.today()
    for kind, sign in ((pydantic.PastDate, -1), (pydantic.FutureDate, 1)):
        automaton = tf.from_type(kind).compile(BYTES)
        for days in (-40_000, -400, -31, -1, 0, 1, 31, 400, 40_000):
            text = f'"{today + datetime.timedelta(days=days)}"'
            assert automaton.matches(text.encode()) == (days * sign > 0), text


def test_whole_numbers_in_other_spellings_are_integers_to_pydantic_too() -> None:
    grammar = tf.from_type(pydantic.StrictInt, numbers="any")
    for text, value in [("1.0", 1), ("632e291", 632 * 10**291), ("-12.50e1", -125), ("0.0", 0)]:
        assert grammar.parse(text) == value
