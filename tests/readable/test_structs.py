"""msgspec's types against msgspec itself, in both directions."""

from __future__ import annotations

import datetime
import decimal
import random
import uuid
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenform as tf
from tokenform import errors

from .test_random_types import BYTES, drawn, quick
from .values import Colour, Kind, Level, clocks, decimals, floats, moments, text, whole

msgspec = pytest.importorskip("msgspec", reason="msgspec is not installed: pip install msgspec")
Meta = msgspec.Meta


class Note(msgspec.Struct, tag="note"):
    at: datetime.datetime
    keys: dict[int, datetime.date] = msgspec.field(default_factory=dict)


class Count(msgspec.Struct, tag="count"):
    n: Annotated[int, Meta(ge=1)] = 1


class Pair(msgspec.Struct, array_like=True):
    clock: datetime.time
    raw: bytes


notes = st.builds(Note, moments, st.dictionaries(whole, st.dates(), max_size=2))
KINDS: list[Kind] = [
    (int, whole), (float, floats), (bool, st.booleans()), (str, text()), (datetime.date, st.dates()),
    (datetime.datetime, moments), (Annotated[datetime.datetime, Meta(tz=False)], moments),
    (Annotated[datetime.datetime, Meta(tz=True)], moments), (datetime.time, clocks),
    (Annotated[datetime.time, Meta(tz=False)], clocks), (datetime.timedelta, st.timedeltas()),
    (decimal.Decimal, decimals), (bytes, st.binary(max_size=8)), (uuid.UUID, st.uuids()),
    (Annotated[bytes, Meta(min_length=2, max_length=4)], st.binary(max_size=5)),
    (Colour, st.sampled_from(Colour)), (Level, st.sampled_from(Level)),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (Annotated[int, Meta(ge=0, lt=10)], st.integers(-1, 11)),
    (Annotated[str, Meta(pattern="^[ab]+$")], st.text("abc", max_size=3)),
    (datetime.datetime | None, st.one_of(st.none(), moments)),
    (int | datetime.date, st.one_of(whole, st.dates())),
    (tuple[datetime.time, bytes], st.tuples(clocks, st.binary(max_size=3))),
    (set[datetime.date], st.sets(st.dates(), max_size=2)),
    (Note | Count, st.one_of(notes, st.builds(Count, st.integers(0, 4)))),
    (list[Note], st.lists(notes, max_size=2)),
    (Pair, st.builds(Pair, clocks, st.binary(max_size=3))), (Note | None, st.one_of(st.none(), notes)),
]  # fmt: skip
NAMES: list[Kind] = [
    (str, text()), (int, whole), (Annotated[int, Meta(ge=0)], st.integers(-1, 5)), (float, floats),
    (datetime.date, st.dates()), (datetime.datetime, moments), (datetime.timedelta, st.timedeltas()),
    (decimal.Decimal, decimals), (uuid.UUID, st.uuids()), (bytes, st.binary(max_size=3)),
    (Colour, st.sampled_from(Colour)), (Level, st.sampled_from(Level)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])), (Literal[1, 2], st.sampled_from([1, 2])),
    (Annotated[str, Meta(pattern="^a")], st.text("ab", max_size=3)),
]  # fmt: skip
MAPPINGS: list[Kind] = [(dict[key, int], st.dictionaries(keys, whole, max_size=2)) for key, keys in NAMES]


@pytest.mark.parametrize("kind", [*KINDS, *MAPPINGS], ids=lambda kind: str(kind[0])[:60])
@quick
@given(data=st.data(), seed=st.integers(0, 10**9))
def test_both_directions(kind: Kind, data: Any, seed: int) -> None:
    tp, values = kind
    made = msgspec.defstruct("Made", [("f", tp)])
    grammar = tf.from_type(made)
    automaton = grammar.compile(BYTES)
    written = msgspec.json.encode(made(data.draw(values)))
    try:
        msgspec.json.decode(written, type=made)
    except msgspec.ValidationError:
        pass
    else:
        assert automaton.matches(written), (tp, written)
    rng = random.Random(seed)
    for _ in range(3):
        grammar.parse(drawn(automaton, rng))


def test_moments_are_no_other_strings() -> None:
    automaton = tf.from_type(Note).compile(BYTES)
    head = '{"type": "note", "at": '
    assert automaton.matches((head + '"2024-03-17T09:30:00", "keys": {"1": "2024-01-01"}}').encode())
    for wrong in ('"soon"}', '"2024-03-17"}', '"2024-03-17T09:30:00", "keys": {"a": "2024-01-01"}}'):
        assert not automaton.matches((head + wrong).encode())


Held = TypeVar("Held")


class Box(msgspec.Struct, Generic[Held], tag=True):
    held: Held
    days: dict[datetime.date, Held]

    def __post_init__(self) -> None:
        if len(self.days) > 5:
            raise ValueError("too many")


class Crate(msgspec.Struct, Generic[Held], tag=True):
    at: datetime.datetime


class Frozen(msgspec.Struct, frozen=True):
    inside: tuple[Frozen, ...] = ()


class ByIdentity(msgspec.Struct, eq=False):
    n: int = 0


@pytest.mark.parametrize(
    "tp",
    [
        Box[int], Box[Box[datetime.date]], Box[int] | Crate[datetime.time], list[Note | Count | None],
        dict[str, Box[int] | Crate[str] | int | None], Note | Count | None, set[Frozen], set[ByIdentity],
        set[Any], frozenset[tuple[int, str]], set[frozenset[int]], set[int | str | Frozen | None],
    ],
    ids=lambda tp: str(tp)[:60],
)  # fmt: skip
def test_what_is_written_is_read(tp: Any) -> None:
    made = msgspec.defstruct("Made", [("f", tp)])
    automaton, rng = tf.from_type(made).compile(BYTES), random.Random(3)
    for _ in range(40):
        text = drawn(automaton, rng)
        try:
            msgspec.json.decode(text, type=made)
        except msgspec.ValidationError as error:
            assert "too many" in str(error), text


def test_a_struct_with_arguments_is_one() -> None:
    grammar = tf.from_type(Box[int])
    assert grammar.shapes.coded
    value = grammar.parse('{"type": "Box", "held": 1, "days": {}}')
    assert value == msgspec.json.decode(b'{"type": "Box", "held": 1, "days": {}}', type=Box[int])


@pytest.mark.parametrize(
    "tp", [set[Note], set[list[int]], frozenset[tuple[int, dict[str, int]]], dict[bool, int]]
)
def test_what_can_be_no_member_or_key(tp: Any) -> None:
    made = msgspec.defstruct("Made", [("f", tp)])
    with pytest.raises(errors.InvalidType, match="use a list"):
        tf.from_type(made)
