"""Models at random, and what pydantic exports of them, in both modes; or FastAPI, in an OpenAPI document.

Source: pydantic's documentation ("Types", "Fields", "Unions", "JSON Schema"); FastAPI's OpenAPI documents.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import random
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, TypeAdapter
from pydantic.json_schema import models_json_schema
from typing_extensions import TypedDict

Value = Callable[[random.Random], Any]
Kind = tuple[Any, Value]
UTC = datetime.timezone.utc
Item = TypeVar("Item")


class Colour(enum.Enum):
    """An Enum."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """Numbers."""

    ONE = 1
    TWO = 2


class Page(BaseModel, Generic[Item]):
    """A generic."""

    items: list[Item]
    next: Optional[int] = None  # noqa: UP045


class Tree(BaseModel):
    """A recursive reference."""

    name: str
    under: list[Tree] = []
    by: dict[str, Tree] = Field(default_factory=dict)


class Point(NamedTuple):
    """A tuple with names."""

    x: int
    y: float = 0.0


def _text(rng: random.Random) -> str:
    return "".join(rng.choices('abcxyz AZ09_-é"\\/\n', k=rng.randint(0, 8)))


def _whole(rng: random.Random) -> int:
    return rng.choice([0, 1, -1, 7, 100, rng.randint(-(10**9), 10**9)])


def _number(rng: random.Random) -> float:
    return round(rng.choice([0.0, 1.5, -2.25, rng.uniform(-1e4, 1e4)]), 3)


def _date(rng: random.Random) -> datetime.date:
    return datetime.date(rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28))


def _moment(rng: random.Random) -> datetime.datetime:
    at = datetime.time(rng.randint(0, 23), rng.randint(0, 59), rng.randint(0, 59))
    return datetime.datetime.combine(_date(rng), at, UTC)


def _tree(rng: random.Random, depth: int = 2) -> Tree:
    many = rng.randint(0, depth)
    under = [_tree(rng, depth - 1) for _ in range(many)]
    return Tree(name=_text(rng), under=under, by={"k": _tree(rng, 0)} if many else {})


def _of(*values: Any) -> Value:
    return lambda rng: rng.choice(values)


def _cents(rng: random.Random) -> decimal.Decimal:
    return decimal.Decimal(rng.randint(0, 99_999)) / 100


SCALARS: list[Kind] = [
    (int, _whole), (float, _number), (bool, _of(True, False)), (str, _text), (type(None), _of(None)),
    (bytes, lambda rng: _text(rng).encode()), (decimal.Decimal, _cents),
    (uuid.UUID, lambda rng: uuid.UUID(int=rng.getrandbits(128), version=4)),
    (pydantic.UUID4, lambda rng: uuid.UUID(int=rng.getrandbits(128), version=4)),
    (datetime.date, _date), (datetime.datetime, _moment), (pydantic.AwareDatetime, _moment),
    (datetime.time, lambda rng: _moment(rng).timetz()),
    (datetime.timedelta, lambda rng: datetime.timedelta(seconds=rng.randint(0, 10**6))),
    (pathlib.PurePath, lambda rng: pathlib.PurePosixPath("a") / rng.choice("bcd")),
    (ipaddress.IPv4Address, lambda rng: ipaddress.IPv4Address(rng.getrandbits(32))),
    (ipaddress.IPv6Address, lambda rng: ipaddress.IPv6Address(rng.getrandbits(128))),
    (ipaddress.IPv4Network, lambda rng: ipaddress.IPv4Network((rng.getrandbits(32), 24), strict=False)),
    (pydantic.IPvAnyAddress, lambda rng: ipaddress.IPv6Address(rng.getrandbits(128))),
    (pydantic.AnyUrl, _of(pydantic.AnyUrl("https://a.example/x?y=z"))),
    (pydantic.HttpUrl, _of(pydantic.HttpUrl("http://a.example/"))),
    (pydantic.SecretStr, lambda rng: pydantic.SecretStr(_text(rng))),
    (pydantic.Json[list[int]], lambda rng: [_whole(rng)]),  # type: ignore[type-arg]
    (pydantic.Base64Bytes, lambda rng: b"ab"),
    (pydantic.ByteSize, lambda rng: pydantic.ByteSize(rng.randint(0, 99))),
    (Any, lambda rng: rng.choice([None, _whole(rng), _text(rng), [1, "a"], {"k": 1}])),
    (Colour, _of(*Colour)), (Level, _of(*Level)), (Literal["a", 1, None], _of("a", 1, None)),
    (Literal["only"], _of("only")), (Tree, _tree), (Point, lambda rng: Point(_whole(rng), _number(rng))),
    (pydantic.PositiveInt, lambda rng: rng.randint(1, 99)),
    (pydantic.NonNegativeFloat, lambda rng: abs(_number(rng))),
    (pydantic.StrictBool, _of(True, False)), (pydantic.StrictStr, _text), (pydantic.FiniteFloat, _number),
    (Annotated[int, Field(ge=-5, lt=100)], lambda rng: rng.randint(-5, 99)),
    (Annotated[int, Field(multiple_of=7)], lambda rng: 7 * rng.randint(-9, 9)),
    (Annotated[float, Field(gt=0, le=1e6)], lambda rng: abs(_number(rng)) + 1),
    (Annotated[decimal.Decimal, Field(max_digits=7, decimal_places=2)], _cents),
    (Annotated[decimal.Decimal, Field(ge=0, lt=1000)], _cents),
    (Annotated[str, Field(min_length=1, max_length=9)], lambda rng: "x" + _text(rng)),
    (Annotated[str, Field(pattern=r"^[a-c]+$")], lambda rng: "".join(rng.choices("abc", k=3))),
    (Annotated[str, Field(pattern=r"^\w+@\w+\.[a-z]{2,}$")], _of("me@example.org", "a@b.co")),
    (Annotated[str, Field(pattern=r"^(?P<y>\d{4})-\d\d\z")], _of("2024-05")),
    (Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=4)], _of("ab", "")),
    (Annotated[bytes, Field(max_length=4)], _of(b"", b"ab")),
    (Annotated[datetime.date, Field(gt=datetime.date(1980, 1, 1))], _date),
    (Annotated[list[int], Field(min_length=1, max_length=3)], lambda rng: [_whole(rng)]),
    (Annotated[set[str], Field(max_length=3)], lambda rng: {_text(rng)}),
]  # fmt: skip
KEYS: list[Kind] = [
    (str, _text), (int, _whole), (uuid.UUID, SCALARS[7][1]), (datetime.date, _date), (Colour, _of(*Colour)),
    (Annotated[str, Field(pattern="^[a-c]+$")], _of("a", "abc")), (Literal["a", "b"], _of("a", "b")),
    (Annotated[str, Field(min_length=1)], lambda rng: "k" + _text(rng)),
]  # fmt: skip


def kind(rng: random.Random, depth: int) -> Kind:
    """A type, and what makes values of it."""
    if depth == 0 or rng.random() < 0.35:
        return rng.choice(SCALARS)
    shape = rng.choice([_container, _mapping, _either, _model, _model, _record, _tagged, _root, _page])
    return shape(rng, depth - 1)


def _container(rng: random.Random, depth: int) -> Kind:
    first: Any
    second: Any
    (first, one), (second, two) = kind(rng, depth), kind(rng, depth)
    made: list[Kind] = [
        (list[first], lambda rng: [one(rng) for _ in range(rng.randint(0, 3))]),
        (tuple[first, second], lambda rng: (one(rng), two(rng))),
        (tuple[first, ...], lambda rng: (one(rng),)),
        (Annotated[first, Field(title="T", description="d", examples=[1])], one),
    ]
    return rng.choice(made)


def _mapping(rng: random.Random, depth: int) -> Kind:
    key: Any
    value: Any
    (key, make), (value, one) = rng.choice(KEYS), kind(rng, depth)
    return dict[key, value], lambda rng: {make(rng): one(rng) for _ in range(rng.randint(0, 2))}


def _either(rng: random.Random, depth: int) -> Kind:
    first: Any
    second: Any
    (first, one), (second, two) = kind(rng, depth), kind(rng, depth)
    if rng.random() < 0.5:
        return Optional[first], lambda rng: rng.choice([None, one(rng)])  # noqa: UP045
    return Union[first, second], lambda rng: rng.choice([one, two])(rng)  # noqa: UP007


def _fields(rng: random.Random, depth: int) -> dict[str, Kind]:
    return {name: kind(rng, depth) for name in rng.sample(["a", "b_c", "long_name", "d"], rng.randint(1, 4))}


def _model(rng: random.Random, depth: int) -> Kind:
    spec: dict[str, Any] = {}
    makes: dict[str, Value] = {}
    for name, (tp, one) in _fields(rng, depth).items():
        alias = rng.choice([None, None, name.upper(), name + "-x"])
        how = rng.random()
        default: Any = ... if how < 0.5 else None
        spec[name] = (tp if default is ... else Optional[tp], Field(default, alias=alias))  # noqa: UP045
        makes[alias or name] = one
    config = ConfigDict(extra=rng.choice(["ignore", "forbid", "allow"]), use_attribute_docstrings=True)
    model = pydantic.create_model(f"Made{rng.randrange(10**6)}", __config__=config, **spec)
    required = {field.alias or name for name, field in model.model_fields.items() if field.is_required()}

    def make(rng: random.Random) -> Any:
        given = {name: one(rng) for name, one in makes.items() if name in required or rng.random() < 0.6}
        return model.model_validate(given)

    return model, make


def _record(rng: random.Random, depth: int) -> Kind:
    fields = _fields(rng, depth)
    typed: dict[str, Any] = {name: tp for name, (tp, _) in fields.items()}
    if rng.random() < 0.5:
        made: Any = TypedDict("Made", typed, total=rng.random() < 0.5)  # type: ignore[misc, operator]
        return made, lambda rng: {name: one(rng) for name, (_, one) in fields.items()}
    cls = dataclasses.make_dataclass("Made", list(typed.items()))
    return cls, lambda rng: cls(**{name: one(rng) for name, (_, one) in fields.items()})


def _with_tag(model: Any, tag: str, one: Value) -> Value:
    return lambda rng: model.model_validate({"kind": tag, "v": one(rng)})


def _tagged(rng: random.Random, depth: int) -> Kind:
    members: list[Any] = []
    makes: list[Value] = []
    for number in range(rng.randint(2, 3)):
        tp, one = kind(rng, depth)
        tag = f"k{number}"
        fields: dict[str, Any] = {"kind": (Literal[tag], ...), "v": (tp, ...)}  # type: ignore[valid-type]
        model = pydantic.create_model(f"Tagged{number}", **fields)
        members.append(model)
        makes.append(_with_tag(model, tag, one))
    return Annotated[Union[tuple(members)], Field(discriminator="kind")], lambda rng: rng.choice(makes)(rng)  # noqa: UP007


def _root(rng: random.Random, depth: int) -> Kind:
    tp, one = kind(rng, depth)
    model = pydantic.create_model("Root", __base__=RootModel[tp])  # type: ignore[valid-type]
    return model, lambda rng: model.model_construct(one(rng))


def _page(rng: random.Random, depth: int) -> Kind:
    tp, one = kind(rng, depth)
    page: Any = Page[tp]  # type: ignore[valid-type]
    return page, lambda rng: page(items=[one(rng) for _ in range(rng.randint(0, 2))])


def _documents(rng: random.Random, adapter: TypeAdapter[Any], make: Value) -> list[Any]:
    """What pydantic writes of values, where it reads it again."""
    found = []
    for _ in range(6):
        try:
            text = adapter.dump_json(
                make(rng), by_alias=True, warnings=False, exclude_none=rng.random() < 0.3
            )
            adapter.validate_json(text)
        except (ValueError, TypeError):
            continue
        found.append(json.loads(text))
    return found


def make(rng: random.Random) -> tuple[Any, list[Any]]:
    """A schema as pydantic exports it."""
    while True:
        tp, one = kind(rng, 3)
        adapter: TypeAdapter[Any] = TypeAdapter(tp)
        schema = adapter.json_schema(mode=rng.choice(["validation", "serialization"]), by_alias=True)
        documents = _documents(rng, adapter, one)
        if documents:
            return schema, documents


def make_fastapi(rng: random.Random) -> tuple[Any, list[Any]]:
    """The body of a request in the OpenAPI document of an application, with the components that it names."""
    while True:
        model, one = _model(rng, 2)
        _, definitions = models_json_schema(
            [(model, "validation"), (Tree, "validation")], ref_template="#/components/schemas/{model}"
        )
        documents = _documents(rng, TypeAdapter(model), one)
        if not documents:
            continue
        schemas = {**definitions["$defs"], **_ERRORS}
        name = next(name for name in schemas if name == model.__name__)
        body = {"$ref": f"#/components/schemas/{name}"}
        return {**body, "components": {"schemas": schemas}}, documents


# What FastAPI adds to every document.
_ERRORS: dict[str, Any] = {
    "HTTPValidationError": {
        "properties": {
            "detail": {
                "items": {"$ref": "#/components/schemas/ValidationError"},
                "type": "array",
                "title": "Detail",
            }
        },
        "type": "object",
        "title": "HTTPValidationError",
    },
    "ValidationError": {
        "properties": {
            "loc": {
                "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "type": "array",
                "title": "Location",
            },
            "msg": {"type": "string", "title": "Message"},
            "type": {"type": "string", "title": "Error Type"},
        },
        "type": "object",
        "required": ["loc", "msg", "type"],
        "title": "ValidationError",
    },
}
