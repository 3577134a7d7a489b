"""Partial values: at every cut what a slow reader of the cut text says, typed where a type was asked for."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import json
import random
from itertools import pairwise
from typing import Any, Literal

import pytest
from benchmarks.suites.validators import TYPES
from pydantic import BaseModel, Field, computed_field
from typing_extensions import TypedDict

import tokenform as tf
from tokenform import errors
from tokenform.frontends.json_reader import MISSING, JsonReader
from tokenform.frontends.partial_value import Fields, partial_value
from tokenform_bench.data import read_maskbench, shared_file
from tokenform_bench.documents import respelled, write

from . import reference

HAND = [
    '{"a": [1, -2.5e3, {"b": "x\\u00e9\\ud83d\\ude00\\n\\/"}], "": null, "d": true, "e": "", "f": [[], {}]}',
    ' [ 1 , "a\\"b\\\\" , false ]\n',
    '"a\\ud83d\\ud83d\\ude00 lone \\udc00"',
    "{}", "[]", "-0.5", "null", '"\\\\\\\\"',
]  # fmt: skip


def check_every_cut(text: str) -> None:
    reader = JsonReader()
    for end, char in enumerate(text):
        reader.feed(char)
        want = reference.read(text[: end + 1])
        got = reader.value()
        assert (got is MISSING and want is reference.NOTHING) or repr(got) == repr(want), text[: end + 1]
    reader.finish()
    assert reader.value() == json.loads(text)


@pytest.mark.parametrize("text", HAND)
def test_written_by_hand(text: str) -> None:
    check_every_cut(text)


def documents(count: int, longest: int) -> list[str]:
    try:
        path = shared_file("maskbench-dev.jsonl.xz")
    except errors.DataError as error:
        pytest.skip(str(error))
    rng, found = random.Random(7), []
    for case in read_maskbench(path):
        for document in case.documents:
            text = write(document.data)
            if len(text) <= longest:
                found.append(text if len(found) % 2 else respelled(document.data, rng))
        if len(found) >= count:
            break
    return found[:count]


def test_real_documents_at_every_cut() -> None:
    for text in documents(120, 400):
        check_every_cut(text)


@pytest.mark.slow
def test_a_thousand_real_documents_at_every_cut() -> None:
    found = documents(1000, 4000)
    assert len(found) == 1000
    for text in found:
        check_every_cut(text)


def test_pieces_may_be_cut_anywhere() -> None:
    rng = random.Random(3)
    for text in HAND * 20:
        reader, at = JsonReader(), 0
        while at < len(text):
            size = rng.randint(1, 9)
            reader.feed(text[at : at + size])
            at += size
        reader.finish()
        assert reader.value() == json.loads(text)


def test_earlier_values_stay_as_they_were() -> None:
    reader, seen = JsonReader(), []
    for char in HAND[0]:
        reader.feed(char)
        seen.append((reader.value(), repr(reader.value())))
    assert all(repr(value) == shown for value, shown in seen)


def test_where_values_stand() -> None:
    text = HAND[0]
    reader = JsonReader(on_value=lambda path, value, start, end: spans.append((path, value, text[start:end])))
    spans: list[Any] = []
    reader.feed(text)
    assert (("a", 2, "b"), "xé😀\n/", '"x\\u00e9\\ud83d\\ude00\\n\\/"') in spans
    assert all(json.loads(part) == value for _, value, part in spans)


@pytest.mark.parametrize("text", ["[1}", "{1:2}", "[tru]", "]", "nul", "1 2", "[1]x"])
def test_what_is_no_json_is_refused(text: str) -> None:
    reader = JsonReader()
    with pytest.raises(errors.InvalidSchema):
        reader.feed(text + " ")


class Item(BaseModel):
    name: str
    price: float


class Cat(BaseModel):
    kind: Literal["cat"]
    name: str


class Dog(BaseModel):
    kind: Literal["dog"]
    toys: list[str] = []


class Part(TypedDict):
    left: int
    right: str


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Order(BaseModel):
    customer: str = Field(alias="who")
    day: datetime.date
    items: list[Item]
    pet: Cat | Dog
    choice: Item | str | None
    part: Part
    point: Point
    by_key: dict[str, Item]


ORDER = (
    '{"who":"Ada","day":"1843-10-18","items":[{"name":"engine","price":3},{"name":"card","price":0.5}],'
    '"pet":{"kind":"dog","toys":["ball"]},"choice":"free text","part":{"left":1,"right":"r"},'
    '"point":{"x":1,"y":2},"by_key":{"a":{"name":"n","price":1}}}'
)


def raw(value: Any) -> Any:
    """What a typed partial value says in JSON; fields that are not written are left out."""
    if isinstance(value, BaseModel):
        names = {name: field.alias or name for name, field in type(value).model_fields.items()}
        return {names[name]: raw(getattr(value, name)) for name in value.model_fields_set}
    if dataclasses.is_dataclass(value):
        return {key: raw(part) for key, part in vars(value).items() if part is not None}
    if isinstance(value, dict):
        return {key: raw(part) for key, part in value.items()}
    if isinstance(value, list):
        return [raw(part) for part in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def within(known: Any, whole: Any) -> bool:
    """Whether a value may become another by writing on."""
    if isinstance(known, dict) and isinstance(whole, dict):
        return all(key in whole and within(part, whole[key]) for key, part in known.items())
    if isinstance(known, list) and isinstance(whole, list):
        return len(known) <= len(whole) and all(within(a, b) for a, b in zip(known, whole, strict=False))
    if isinstance(known, str) and isinstance(whole, str):
        return whole.startswith(known)
    return bool(known == whole)


def test_typed_values_grow_to_the_whole() -> None:
    told: list[tuple[str, Any]] = []
    grammar = tf.from_type(Order)
    reader = partial_value(grammar, lambda pointer, value: told.append((pointer, value)))
    kinds = set()
    for char in ORDER:
        reader.feed(char)
        value = reader.value()
        assert isinstance(value, Order)
        assert within(raw(value), json.loads(ORDER))
        kinds |= {(name, type(getattr(value, name))) for name in value.model_fields_set}
    assert reader.value() == grammar.parse(ORDER)
    assert kinds == {
        ("customer", str), ("day", datetime.date), ("items", list), ("pet", Dog), ("choice", str),
        ("part", dict), ("point", Point), ("by_key", dict),
    }  # fmt: skip
    assert ("/items/0/price", 3.0) in told and ("/items/1", Item(name="card", price=0.5)) in told


@pytest.mark.parametrize("tp", TYPES, ids=lambda tp: tp.__name__)
def test_refused_early_is_refused_whole(tp: Any) -> None:
    """Random documents of each type: the reader refuses one exactly where pydantic refuses the whole."""
    grammar = tf.from_type(tp, whitespace="compact", strings="canonical")
    vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
    automaton, rng = grammar.compile(vocabulary), random.Random(1)
    shape = grammar.shapes.checks()
    refused = 0
    for _ in range(40):
        state, text = automaton.start, ""
        while not (automaton.is_accepting(state) and rng.random() < 0.5):
            tokens = [token for token in automaton.allowed_tokens(state).tolist() if token != 256]
            if not tokens:
                break
            token = rng.choice(tokens)
            state, text = automaton.advance(state, token), text + chr(token)
        early = False
        reader = JsonReader(shape)
        try:
            for char in text:
                reader.feed(char)
        except errors.InvalidType:
            early = True
        try:
            grammar.parse(text)
            whole = False
        except errors.InvalidType:
            whole = True
        assert early == whole, text
        refused += whole
    assert refused or tp.__name__ == "Anything"


def test_a_stream_of_values(small: tf.Generator) -> None:
    items = {"type": "array", "items": {"enum": ["x", "yy"]}, "maxItems": 3}
    schema = {"type": "object", "properties": {"a": items}, "required": ["a"]}
    told: list[Any] = []
    stream = small.stream("x", schema, seed=1, partial=True, on_field={"/a/*": told.append})
    values = list(stream)
    assert stream.result is not None and values[-1] == stream.result.value == json.loads(stream.result.text)
    assert told == values[-1]["a"]
    assert all(within(before, after) for before, after in pairwise(values))
    assert stream.result.text == small.sample("x", schema, seed=1)[0].text
    with small.stream("x", schema, partial=True) as left:
        next(left)
    with pytest.raises(errors.OptionError):
        small.stream("x", tf.regex("a"), partial=True)
    with pytest.raises(errors.OptionError):
        small.stream("x", schema, on_field={"/a": print})
    with pytest.raises(errors.OptionError):
        Fields({"a": print})


def test_a_stream_of_tool_calls(small: tf.Generator) -> None:
    def pick(colour: Literal["red", "green"], many: bool) -> None:
        """Pick apples."""

    grammar = tf.tools([pick], format="hermes", tool_choice="required", parallel=False, reasoning="none")
    told: list[Any] = []
    stream = small.stream(
        "x", grammar, partial=True, max_tokens=200, on_field={"/0/arguments/colour": told.append}
    )
    values = list(stream)
    assert stream.result is not None and values[-1] == stream.result.tool_calls
    assert told == [values[-1][0].arguments["colour"]]
    assert len({call[0].id for call in values if call} | {stream.result.tool_calls[0].id}) == 1

    async def ids() -> set[str]:
        async with tf.AsyncGenerator(small) as generator:
            stream = generator.stream("x", grammar, partial=True, max_tokens=200)
            found = {call[0].id async for call in stream if call}
            return found | {stream.result.tool_calls[0].id}

    assert len(asyncio.run(ids())) == 1
    grown = [call[0].arguments for call in values if call]
    assert all(within(before, after) for before, after in pairwise(grown))


class Basket(BaseModel):
    name: str
    items: list[Sold]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> float:
        return sum(item.cost for item in self.items)


class Sold(BaseModel):
    price: float
    count: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cost(self) -> float:
        return self.price * self.count


def test_computed_fields_wait_for_the_whole_instance() -> None:
    text = '{"name": "a", "items": [{"price": 2.5, "count": 2}, {"price": 1, "count": 3}]}'
    reader = JsonReader(tf.from_type(Basket).shapes.typed())
    for char in text:
        reader.feed(char)
        value = reader.value()
        if value is not MISSING:
            assert isinstance(value, Basket) and repr(value).startswith("Basket(name=")
            if char != "}":
                assert "total" not in repr(value) and "total" not in value.model_dump()
            assert json.loads(value.model_dump_json(exclude_none=True)).keys() <= {"name", "items", "total"}
    assert reader.value() == Basket.model_validate_json(text) and reader.value().total == 8
    assert reader.value().model_dump()["total"] == 8


@dataclasses.dataclass(slots=True)
class Span:
    start: int
    end: int
    length: int = dataclasses.field(init=False)
    unit: str = dataclasses.field(init=False, default="m")
    notes: list[str] = dataclasses.field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.length = self.end - self.start


def test_fields_that_no_document_has_wait_for_the_whole_instance() -> None:
    text = '{"start": 2, "end": 5}'
    reader = JsonReader(tf.from_type(Span).shapes.typed())
    for char in text[:-1]:
        reader.feed(char)
        value = reader.value()
        assert isinstance(value, Span) and repr(value).startswith("Span(start=")
        assert (value.length, value.unit, value.notes) == (None, None, None)
    reader.feed(text[-1])
    assert reader.value() == Span(2, 5) and reader.value().length == 3


def test_what_the_reader_drops_is_in_no_partial_value() -> None:
    def place(start: int, end: int) -> None: ...

    for tp in (Span, Part, place):
        first, second = ("left", "right") if tp is Part else ("start", "end")
        text = f'{{"{first}": 2, "more": [1], "{second}": {json.dumps("r") if tp is Part else 5}}}'
        grammar = tf.from_type(tp, additional="schema")
        reader = JsonReader(grammar.shapes.typed())
        for char in text:
            reader.feed(char)
            value = reader.value()
            assert "more" not in repr(value)
        assert value == grammar.parse(text)
