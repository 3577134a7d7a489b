"""Types as people write them, each with what pydantic takes and what it refuses."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import typing
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    create_model,
)

import tokenform as tf
from tokenform import errors
from tokenform.frontends.meanings import MEANING

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
UTC = datetime.timezone.utc


class Plain(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    name: str = ""


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: int


class Note(BaseModel):
    kind: Literal["note"] = "note"
    inside: pydantic.Json[list[int]]  # type: ignore[type-arg]


class Alias(BaseModel):
    kind: Literal["cat"] = Field("cat", alias="petType")


class Other(BaseModel):
    kind: Literal["dog"] = Field("dog", alias="petType")


class Meeting(BaseModel):
    start: datetime.datetime
    opens: datetime.time


class Row(NamedTuple):
    day: datetime.date
    count: int = 0


class Named(BaseModel):
    value: int = Field(validation_alias=AliasChoices("v", AliasPath("more", 0)))


def length(value: Any) -> str:
    return "many" if isinstance(value, dict) and "tricks" in value else "few"


Found = Annotated[Annotated[Cat, Tag("few")] | Annotated[Dog, Tag("many")], Discriminator(length)]
Price = Annotated[decimal.Decimal, Field(ge=0, max_digits=6, decimal_places=2)]
Day = Annotated[datetime.date, Field(ge=datetime.date(2024, 1, 1))]
Shift = Annotated[datetime.timedelta, Field(gt=datetime.timedelta(0), le=datetime.timedelta(hours=12))]
Stamp = Annotated[datetime.datetime, Field(ge=datetime.datetime(2024, 1, 1, tzinfo=UTC))]

CASES: list[tuple[Any, list[str], list[str]]] = [
    (
        Meeting,
        [
            '{"start": "2024-03-17T10:30:00", "opens": "09:00:00"}',
            '{"start": "2024-03-17T10:30:00Z", "opens": "09:00"}',
        ],
        ['{"start": "2024-03-17T10:30:60", "opens": "09:00:00"}', '{"start": "2024", "opens": "09:00:00"}'],
    ),
    (datetime.datetime, ['"2024-03-17T09:30:00.123456-05:00"'], ['"2024-03-17T09:30:00.1234567"']),
    (pydantic.NaiveDatetime, ['"2024-03-17T09:30:00"'], ['"2024-03-17T09:30:00Z"']),
    (pydantic.AwareDatetime, ['"2024-03-17T09:30:00+00:00"'], ['"2024-03-17T09:30:00"']),
    (datetime.timedelta, ['"PT1.5S"', '"-P1D"', '"P1DT2H"', '"P1Y35DT2H"', '"PT90M"'], ['"1 hour"', '"PT"']),
    (Day, ['"2024-01-01"', '"2031-12-31"'], ['"2023-12-31"', '"2024-02-30"']),
    (Shift, ['"PT8H"', '"PT12H"', '"PT7H30M"', '"PT450M"'], ['"PT12H1S"', '"P1D"', '"PT0S"', '"-PT1H"']),
    (Stamp, ['"2024-01-01T00:00:00Z"', '"2024-01-01T05:00:00"'], ['"2023-12-31T23:59:59Z"']),
    (Price, ['"1.10"', "1.1", '"9999.99"'], ['"-1"', '"1.111"', '"10000"', "-1"]),
    (decimal.Decimal, ['"1E-7"', "0.1"], ['"abc"', '"NaN"']),
    (ipaddress.IPv4Network, ['"10.0.0.0/8"', '"10.0.0.1"', '"0.0.0.0/0"'], ['"10.0.0.1/8"', '"10.0.0.0/33"']),
    (ipaddress.IPv6Network, ['"2001:db8::/32"', '"::/0"'], ['"2001:db8::1/32"', '"::/129"']),
    (ipaddress.IPv6Interface, ['"2001:db8::1/64"'], ['"2001:db8::1/129"']),
    (pydantic.UUID4, ['"3fa85f64-5717-4562-b3fc-2c963f66afa6"'], ['"3fa85f64-5717-1562-b3fc-2c963f66afa6"']),
    (dict[Annotated[str, Field(pattern="^[a-z]+$")], int], ['{"ab": 1}', "{}"], ['{"A_b": 1}']),
    (dict[Annotated[int, Field(ge=1, le=12)], int], ['{"12": 1}'], ['{"13": 1}', '{"0": 1}', '{"x": 1}']),
    (dict[Literal["a", "b"], int], ['{"a": 1}'], ['{"c": 1}']),
    (dict[datetime.date, int], ['{"2024-02-29": 1}'], ['{"2023-02-29": 1}', '{"today": 1}']),
    (dict[Plain, int], ['{"red": 1}'], ['{"blue": 1}']),
    (dict[bool, int], ['{"true": 1}'], ['{"yes": 1}']),
    (Annotated[Cat | Dog, Field(discriminator="kind")], ['{"kind": "cat"}'], ["{}", '{"name": "x"}']),
    (int | Annotated[Note | Dog, Field(discriminator="kind")],
        ['{"kind": "note", "inside": "[1]"}', "3"], ['{"kind": "note", "inside": "[a]"}']),
    (Annotated[Alias | Other, Field(discriminator="kind")], ['{"petType": "cat"}'], ["{}"]),
    (Plain, ['"red"'], ["[1, 2]", '"blue"']),
    (Literal[b"x"] | int, ["1"], ['"x"']),
    (Row, ['["2024-01-01"]', '["2024-01-01", 3]'], ['["2024-13-01"]', "[]"]),
    (Named, ['{"v": 1}'], ['{"value": 1}', "{}"]),
    (pydantic.Json[dict[str, int]], [r'"{\"a\": 1}"'], ['"{}x"', '"[1]"']),  # type: ignore[type-arg]
    (list[pydantic.Json], ['["1", "null"]'], ['["a"]']),  # type: ignore[type-arg]
    (typing.OrderedDict[int, str], ['{"1": "a"}'], ['{"a": "a"}']),
]  # fmt: skip


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    OWN = 8


class Modes(enum.IntFlag):
    A = 1
    B = 2
    C = 4


class Asked(BaseModel):
    model_config = ConfigDict(validate_default=True)
    size: Annotated[int, Field(ge=5)] = 3
    name: str = "x"
    tags: Annotated[list[str], Field(min_length=1)] = Field(default_factory=list, validate_default=False)


class Tagged(BaseModel):
    tags: Annotated[list[str], Field(min_length=1, validate_default=True)] = Field(default_factory=list)


CASES += [
    (Tagged, ['{"tags": ["a"]}'], ["{}"]),
    (Access, ["0", "3", "11"], ["4", "12"]),
    (list[Modes], ["[0, 7]"], ["[-1]"]),
    (Asked, ['{"size": 5}'], ["{}", '{"name": "y"}']),
    (create_model("Optional", size=(int, Field(None, validate_default=True))), ['{"size": 5}'], ["{}"]),
    (set[Any], ['["a", 1, null, false]', "[]"], ["[[1]]", '[{"a": 1}]']),
    (set, ['["a"]'], ["[[]]"]),
    (set[list[int]] | list[list[int]], ["[[1]]"], ["[1]"]),
]


@pytest.mark.parametrize(("tp", "taken", "refused"), CASES, ids=lambda part: str(part)[:40])
def test_masks_are_what_pydantic_takes(tp: Any, taken: list[str], refused: list[str]) -> None:
    automaton = tf.from_type(tp).compile(BYTES)
    adapter: TypeAdapter[Any] = TypeAdapter(tp)
    for text in taken:
        adapter.validate_json(text)
        assert automaton.matches(text.encode()), text
    for text in refused:
        assert not automaton.matches(text.encode()), text


class Coloured(BaseModel):
    colour: Literal[Plain.RED]


class Deep(BaseModel):
    inner: list[Coloured]


class Basket(BaseModel):
    cats: set[Cat]


class Hue(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Red(BaseModel):
    kind: Literal[Hue.RED]


class Blue(BaseModel):
    kind: Literal[Hue.BLUE] = Hue.BLUE


class AtPath(BaseModel):
    first: int = Field(validation_alias=AliasPath("names", 0))


class Pairs(BaseModel):
    by_place: dict[tuple[int, int], str]


@pytest.mark.parametrize(
    ("tp", "said"),
    [
        (Coloured, "field 'colour' of Coloured .*use the Enum itself"),
        (Deep, "field 'colour' of Coloured"),
        (Literal[b"x"], "no JSON"),
        (AtPath, "field 'first' of AtPath .*AliasChoices"),
        (Pairs, "field 'by_place' of Pairs .*list of pairs"),
        (dict[Literal[1, 2], int], "list of pairs"),
        (Basket, "field 'cats' of Basket .*no hash; use a list"),
        (frozenset[dict[str, int]], "no hash"),
        (set[tuple[int, list[int]]], "no hash"),
        (Annotated[Red | Blue, Field(discriminator="kind")], "field 'kind' of Red .*use the Enum itself"),
        (Literal[b"x"] | type[int], "no JSON"),
        (list[type[int]], "a class, which no document holds"),
    ],
)
def test_what_no_document_can_say_is_said_at_once(tp: Any, said: str) -> None:
    with pytest.raises(errors.InvalidType, match=said):
        tf.from_type(tp)


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (Stamp, '"2023-12-31T23:30:00-11:00"'),  # in the mask and valid
        (pydantic.FutureDatetime, '"2001-01-01T00:00:00Z"'),
        (Annotated[decimal.Decimal, Field(multiple_of=decimal.Decimal("0.05"))], '"0.04"'),
        (pydantic.HttpUrl, '"http://xn--0/"'),
        (Annotated[bytes, Field(min_length=2)], '"a"'),
        (Found, '{"kind": "cat", "name": "x"}'),
        (set[int | list[int]], "[[1]]"),
    ],
)
def test_what_no_mask_holds_is_judged_as_validators_are(tp: Any, text: str) -> None:
    assert tf.from_type(tp).shapes.coded


@pytest.mark.parametrize("tp", [int, Day, Price, Meeting, dict[int, str], pydantic.Json[int], Row])  # type: ignore[type-arg]
def test_what_masks_hold_is_not_judged_again(tp: Any) -> None:
    assert not tf.from_type(tp).shapes.coded


def test_bytes_are_read_as_the_model_says() -> None:
    class Raw(BaseModel):
        model_config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
        data: Annotated[bytes, Field(min_length=2, max_length=3)]

    automaton = tf.from_type(Raw).compile(BYTES)
    for data, fits in ((b"a", False), (b"ab", True), (b"abc", True), (b"abcd", False)):
        assert automaton.matches(Raw.model_construct(data=data).model_dump_json().encode()) == fits


def test_prompts_show_what_the_author_wrote() -> None:
    grammar = tf.from_type(Meeting)
    assert grammar.schema == TypeAdapter(Meeting).json_schema()
    assert MEANING not in grammar.source and MEANING not in str(tf.from_type(Price).schema)


def test_json_in_a_string_may_not_hold_itself() -> None:
    class Loop(BaseModel):
        inner: pydantic.Json[Loop] | None = None  # type: ignore[type-arg]

    Loop.model_rebuild(_types_namespace={"Loop": Loop})
    with pytest.raises(errors.InvalidType, match="without end"):
        tf.from_type(Loop)
