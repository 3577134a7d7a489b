"""Every kind of value that pydantic documents, with a strategy for values of it; some break its rules."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import re
import typing
import uuid
from typing import Annotated, Any, Literal

import pydantic
from hypothesis import strategies as st
from pydantic import Field, StringConstraints

Kind = tuple[Any, st.SearchStrategy[Any]]
UTC = datetime.timezone.utc
delta = datetime.timedelta
_v4, _v6 = st.ip_addresses(v=4).map(int), st.ip_addresses(v=6).map(int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    TEXT = "a"
    NUMBER = 2
    HALF = 1.5
    PAIR = (1, 2)


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


class Sign(str, enum.Enum):
    X = "x"
    QUOTE = '"y'


def text(**options: Any) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=8, **options)


def network(make: Any, numbers: st.SearchStrategy[int], most: int) -> st.SearchStrategy[Any]:
    return st.builds(lambda number, length: make((number, length)), numbers, st.integers(0, most))


def loose(make: Any) -> Any:
    return lambda pair: make(pair, strict=False)


offsets = [UTC, datetime.timezone(delta(hours=5, minutes=30)), datetime.timezone(-delta(hours=9))]
moments = st.one_of(st.datetimes(), st.datetimes(timezones=st.sampled_from(offsets)))
clocks = st.one_of(st.times(), st.times(timezones=st.just(UTC)))
floats = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(10**18), 10**18)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
prices = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**6), max_value=10**6)
paths = text().filter(lambda name: "\0" not in name).map(pathlib.PurePosixPath)

PLAIN: list[Kind] = [
    (int, whole), (float, floats), (bool, st.booleans()), (str, text()), (type(None), st.none()),
    (bytes, st.binary(max_size=8)), (decimal.Decimal, decimals), (uuid.UUID, st.uuids()),
    (complex, st.complex_numbers(allow_nan=False, allow_infinity=False)),
    (fractions.Fraction, st.fractions()),
    (pathlib.PurePath, paths), (re.Pattern, st.sampled_from(["a+", "(?P<n>x)", r"\d"]).map(re.compile)),
    (Any, st.one_of(whole, text(), st.none(), st.lists(whole, max_size=2))),
]  # fmt: skip
TIMES: list[Kind] = [
    (datetime.date, st.dates()), (datetime.datetime, moments), (datetime.time, clocks),
    (datetime.timedelta, st.timedeltas()), (pydantic.AwareDatetime, moments),
    (pydantic.NaiveDatetime, moments),
    (pydantic.PastDate, st.dates()), (pydantic.FutureDate, st.dates()), (pydantic.PastDatetime, moments),
    (pydantic.FutureDatetime, moments),
]  # fmt: skip
NAMED: list[Kind] = [
    (pydantic.UUID1, st.uuids(version=1)), (pydantic.UUID4, st.uuids(version=4)),
    (pydantic.Base64Bytes, st.binary(max_size=8)), (pydantic.Base64UrlBytes, st.binary(max_size=8)),
    (pydantic.Base64Str, text()), (pydantic.SecretStr, text().map(pydantic.SecretStr)),
    (pydantic.ByteSize, st.integers(0, 10**9).map(pydantic.ByteSize)),
    (pydantic.Json[list[int]], st.lists(whole, max_size=3)),  # type: ignore[type-arg]
    (pydantic.AnyUrl, st.sampled_from(
        ["http://a.example/x?y#z", "mailto:a@b.c", "https://[::1]:80/", "ftp://u:p@h/", "urn:a:b"]
    ).map(pydantic.AnyUrl)),
    (pydantic.HttpUrl, st.sampled_from(
        ["http://a.example", "https://1.2.3.4:8080/é", "https://bücher.example/", "http://3com.com/a|b"]
    ).map(pydantic.HttpUrl)),
    (pydantic.PostgresDsn, st.sampled_from(
        ["postgresql://me:pw@db:5432,other:1/app", "postgres://u@h/d?x=y"]
    ).map(pydantic.PostgresDsn)),
]  # fmt: skip
NETS: list[Kind] = [
    (ipaddress.IPv4Address, st.ip_addresses(v=4)), (ipaddress.IPv6Address, st.ip_addresses(v=6)),
    (pydantic.IPvAnyAddress, st.ip_addresses()),
    (ipaddress.IPv4Network, network(loose(ipaddress.IPv4Network), _v4, 32)),
    (ipaddress.IPv6Network, network(loose(ipaddress.IPv6Network), _v6, 128)),
    (ipaddress.IPv4Interface, network(ipaddress.IPv4Interface, _v4, 32)),
    (ipaddress.IPv6Interface, network(ipaddress.IPv6Interface, _v6, 128)),
    (pydantic.IPvAnyNetwork, network(loose(ipaddress.IPv6Network), _v6, 128)),
    (pydantic.IPvAnyInterface, network(ipaddress.IPv4Interface, _v4, 32)),
]  # fmt: skip
MEMBERS: list[Kind] = [
    (Colour, st.sampled_from(Colour)), (Level, st.sampled_from(Level)), (Sign, st.sampled_from(Sign)),
    (Mixed, st.sampled_from(Mixed)), (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (Literal[Sign.X], st.just(Sign.X)), (Literal[True, 2], st.sampled_from([True, 2])),
]  # fmt: skip
RULED: list[Kind] = [
    (Annotated[int, Field(ge=-5, lt=100)], st.integers(-6, 101)),
    (Annotated[int, Field(multiple_of=7)], st.integers(-50, 50)),
    (Annotated[float, Field(gt=0, le=1e6)], floats),
    (Annotated[float, Field(multiple_of=0.5)], st.integers(-99, 99).map(lambda half: half / 2)),
    (Annotated[decimal.Decimal, Field(ge=0, lt=1000, decimal_places=2)], prices),
    (Annotated[decimal.Decimal, Field(max_digits=5)], prices),
    (Annotated[decimal.Decimal, Field(gt=decimal.Decimal("1.5"))], prices),
    (Annotated[decimal.Decimal, Field(multiple_of=decimal.Decimal("0.25"))], prices),
    (Annotated[str, Field(min_length=2, max_length=4)], text()),
    (Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)], text().map(str.strip)),
    (Annotated[str, StringConstraints(to_lower=True)], text()),
    (Annotated[str, Field(pattern="^[a-c]+$")], st.text("abcd", max_size=4)),
    (Annotated[bytes, Field(min_length=2, max_length=5)], st.binary(max_size=7)),
    (Annotated[datetime.date, Field(ge=datetime.date(2024, 1, 1), lt=datetime.date(2025, 3, 1))],
     st.dates(datetime.date(2023, 6, 1), datetime.date(2025, 6, 1))),
    (Annotated[datetime.datetime, Field(gt=datetime.datetime(2024, 1, 1, 12))], moments),
    (Annotated[datetime.datetime, Field(le=datetime.datetime(2024, 1, 1, 12, tzinfo=UTC))], moments),
    (Annotated[datetime.time, Field(ge=datetime.time(9), lt=datetime.time(17, 30))], clocks),
    (Annotated[delta, Field(ge=delta(0), le=delta(hours=36))], st.timedeltas(delta(hours=-1), delta(days=2))),
    (Annotated[delta, Field(gt=delta(days=-3))], st.timedeltas(delta(days=-4), delta(days=400))),
    (Annotated[list[int], Field(min_length=1, max_length=3)], st.lists(whole, max_size=4)),
    (Annotated[set[datetime.date], Field(min_length=2)], st.sets(st.dates(), max_size=3)),
]  # fmt: skip
SCALARS = [*PLAIN, *TIMES, *NAMED, *NETS, *MEMBERS, *RULED]
KEYS: list[Kind] = [
    (str, text()), (int, whole), (float, floats), (bool, st.booleans()), (datetime.date, st.dates()),
    (datetime.datetime, moments), (datetime.timedelta, st.timedeltas()), (uuid.UUID, st.uuids()),
    (decimal.Decimal, decimals), (bytes, st.binary(max_size=5)), (pathlib.PurePath, paths),
    (ipaddress.IPv4Address, st.ip_addresses(v=4)), (int | str, st.one_of(whole, text())),
    (Colour, st.sampled_from(Colour)), (Level, st.sampled_from(Level)), (Mixed, st.sampled_from(Mixed)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Annotated[int, Field(ge=0, le=12)], st.integers(-1, 13)),
    (Annotated[float, Field(ge=0, lt=10)], st.floats(0, 11)),
    (Annotated[str, Field(pattern="^[a-c]+$")], st.text("abcd", max_size=4)),
    (Annotated[str, Field(min_length=1)], text()),
    (typing.Optional[int], st.one_of(st.none(), whole)),  # noqa: UP045
]  # fmt: skip
