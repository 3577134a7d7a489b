"""Types of msgspec and attrs: documents are read by the library itself, validators included."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Annotated, Any, Generic, Literal, TypeVar

import attrs
import pytest
from pydantic import Field, TypeAdapter

import tokenform as tf
from tokenform import errors

msgspec = pytest.importorskip("msgspec", reason="msgspec is not installed: pip install msgspec")
BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def accepts(grammar: tf.Grammar, text: str) -> bool:
    return grammar.compile(BYTES).check(text.encode()) is None


class Point(msgspec.Struct):
    x: Annotated[int, msgspec.Meta(ge=0, le=99)]
    y: int = 0


class Tree(msgspec.Struct, tag="tree"):
    name: str
    under: list[Tree] = msgspec.field(default_factory=list)


class Leaf(msgspec.Struct, tag="leaf"):
    weight: float


class Times(msgspec.Struct):
    day: datetime.date
    at: datetime.datetime
    clock: datetime.time
    took: datetime.timedelta
    price: decimal.Decimal
    raw: bytes
    key: uuid.UUID


class Even(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=0, le=9)]

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("odd")


@attrs.define
class Item:
    sku: Annotated[str, Field(pattern="^[A-Z]{2}-[0-9]{3}$")]
    count: int = attrs.field(default=1, validator=attrs.validators.ge(1))


@attrs.frozen
class Order:
    _customer: str
    items: list[Item]
    status: Literal["new", "paid"] = "new"
    total: float = attrs.field(init=False, default=0.0)


@attrs.define
class Loop:
    inside: list[Loop]


Held = TypeVar("Held")


@attrs.define
class Box(Generic[Held]):
    held: Held
    more: list[Held | None] = attrs.field(factory=list)


@attrs.define
class Crate(Box[list[Held]]):
    label: Held = attrs.field(kw_only=True)


def shipped(item: Item, to: str) -> None:
    """Ships it."""


@pytest.mark.parametrize(
    ("tp", "good", "bad"),
    [
        (Point, ['{"x": 3, "y": -4}', '{"x": 99}'], ['{"x": 100}', '{"y": 1}', '{"x": 1, "z": 2}']),
        (list[Point], ["[]", '[{"x": 1}]'], ['{"x": 1}']),
        (
            Tree | Leaf,
            ['{"type": "tree", "name": "a", "under": []}', '{"type": "leaf", "weight": 0.5}'],
            ["{}"],
        ),
        (
            Times,
            [
                '{"day": "2024-02-29", "at": "2024-02-29T10:00:00Z", "clock": "10:00:00", "took": "P1DT2H", '
                '"price": "1.50", "raw": "aGk=", "key": "a3bb189e-8bf9-3888-9912-ace4e6543002"}'
            ],
            ['{"day": "0000-02-29"}'],
        ),
        (Item, ['{"sku": "AB-123", "count": 2}', '{"sku": "AB-123"}'], ['{"sku": "ab-1"}', '{"count": 1}']),
        (Order, ['{"customer": "Ada", "items": [{"sku": "AB-123"}]}'], ['{"customer": "Ada"}']),
        (Box[Item], ['{"held": {"sku": "AB-123"}, "more": [null]}'], ['{"held": 1}']),
        (Box[Box[int]], ['{"held": {"held": 1}}'], ['{"held": 1}', '{"held": {"held": "Item"}}']),
        (Crate[int] | Item, ['{"held": [1], "label": 2}'], ['{"held": 1, "label": 2}', '{"held": [1]}']),
        (dict[str, Item] | None, ["null", '{"a": {"sku": "AB-123"}}'], ["1"]),
    ],
    ids=str,
)  # fmt: skip
def test_documents_of_the_schema_and_no_others(tp: Any, good: list[str], bad: list[str]) -> None:
    grammar = tf.from_type(tp)
    for text in good:
        assert accepts(grammar, text)
        value = grammar.parse(text)
        if not any(name in repr(tp) for name in ("Item", "Order", "Box")):
            assert value == msgspec.json.decode(text, type=tp)
    assert not any(accepts(grammar, text) for text in bad)


def test_values_are_made_by_the_class() -> None:
    order = tf.from_type(Order).parse('{"customer": "Ada", "items": [{"sku": "AB-123"}], "status": "paid"}')
    assert order == Order("Ada", [Item("AB-123", 1)], "paid")
    crate = tf.from_type(Crate[int]).parse('{"held": [1], "more": [null, [2]], "label": 3}')
    assert crate == Crate([1], more=[None, [2]], label=3)
    given = tf.from_type(shipped).parse('{"item": {"sku": "AB-123"}, "to": "Oslo"}')
    assert given == {"item": Item("AB-123", 1), "to": "Oslo"}
    assert TypeAdapter(int).validate_json("3") == tf.from_type(Point).parse('{"x": 3e0}').x


def test_what_the_class_refuses_has_a_place() -> None:
    with pytest.raises(errors.InvalidType, match="must be >= 1") as caught:
        tf.from_type(list[Item]).parse('[{"sku": "AB-123", "count": 0}]')
    assert caught.value.pointer == "/0"
    with pytest.raises(errors.InvalidType, match="odd") as caught:
        tf.from_type(list[Even]).parse('[{"n": 2}, {"n": 3}]')
    assert caught.value.pointer == "/1" and caught.value.partial == [{"n": 2}, {"n": 3}]
    with pytest.raises(errors.InvalidType, match="holds itself"):
        tf.from_type(Loop)


@pytest.mark.parametrize("tp", [Even, list[Even]], ids=str)
def test_written_values_are_valid(small: tf.Generator, tp: Any) -> None:
    grammar = tf.from_type(tp, whitespace="compact", strings="canonical")
    for result in small.sample("x", grammar, n=6, seed=1, sampler=tf.Local()):
        found = result.value if isinstance(result.value, list) else [result.value]
        assert all(one.n % 2 == 0 for one in found)
    assert json.loads(result.text) == msgspec.to_builtins(result.value)


def test_attrs_validators_guide(small: tf.Generator) -> None:
    @attrs.define
    class Big:
        n: Annotated[int, Field(ge=0, le=9)] = attrs.field(validator=attrs.validators.gt(6))

    seen: list[Any] = []
    for result in small.sample("x", Big, n=6, seed=1, sampler=tf.Local()):
        assert isinstance(result.value, Big) and result.value.n > 6
    stream = small.stream("x", tf.from_type(Point), partial=True, on_field={"/x": seen.append})
    *_, last = stream
    assert isinstance(last, Point) and seen == [last.x]


@pytest.mark.parametrize("sampler", [tf.Local(), tf.SMC(2)], ids=["local", "smc"])
def test_a_schema_that_is_none_costs_its_own_row(small: tf.Generator, sampler: Any) -> None:
    asked = [tf.choice(["x"]), {"type": "integr"}, tf.choice(["y"])]
    first, bad, last = small.sample(["a", "b", "c"], asked, on_error="return", sampler=sampler)
    assert first[0].text == "x" and last[0].text == "y" and isinstance(bad[0], errors.InvalidSchema)
    with pytest.raises(errors.InvalidSchema):
        small.sample(["a", "b", "c"], asked, sampler=sampler)
    with pytest.raises(errors.InvalidSchema):
        small.sample("a", {"type": "integr"}, on_error="return", sampler=sampler)
