"""A program as users write it: `make check` reads it with `mypy --strict`; promised types are asserted."""

from dataclasses import dataclass
from typing import Any, Literal

import attrs
import msgspec
from pydantic import BaseModel
from typing_extensions import TypedDict, assert_type

import tokenform as tf


class Person(BaseModel):
    name: str
    born: int


@dataclass
class Point:
    x: int
    y: int


def written() -> str:
    person = tf.generate("Ada Lovelace, born 1815.", schema=Person)
    assert_type(person, tf.Result[Person])
    several = tf.generate("Ada Lovelace, born 1815.", schema=Person, n=3, temperature=0.7)
    assert_type(several, list[tf.Result[Person]])
    batch = tf.generate(["Ada", "Alan"], schema=Point, seed=0)
    assert_type(batch, list[tf.Result[Point]])
    free = tf.generate("Is it red?", choices=["yes", "no"])
    assert_type(free.text, str)
    chat = tf.generate([{"role": "user", "content": "Ada, born 1815."}], schema=Person)
    return person.value.name + several[0].value.name + str(batch[0].value.x) + chat.value.name


def sampled(generator: tf.Generator) -> int:
    one = generator.sample("Ada Lovelace, born 1815.", Person, n=2)
    assert_type(one, list[tf.Result[Person]])
    many = generator.sample(["Ada", "Alan"], Person, sampler=tf.CARS())
    assert_type(many, list[list[tf.Result[Person]]])
    untyped = generator.sample("x", tf.json_schema({"type": "integer"}), max_tokens=8)
    grammar: tf.Grammar = tf.regex("[a-z]+") | "x"
    automaton: tf.TokenAutomaton = grammar.compile(generator.vocabulary)
    return one[0].value.born + len(untyped[0].text) + len(many) + automaton.mask_words


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Look up the weather of a city."""
    return f"{city}: {unit}"


def called() -> list[str]:
    turn = tf.tools([weather], format="hermes", tool_choice="required")
    result = tf.generate("The weather in Lisbon?", schema=turn)
    return [call.name for call in result.tool_calls]


def refused() -> str | None:
    try:
        tf.json_schema({"type": "objekt"})
    except tf.TokenformError as error:
        return error.pointer
    return None


class Address(TypedDict):
    city: str


class Ship(msgspec.Struct):
    name: str


@attrs.define
class Box:
    size: int


def forms(generator: tf.Generator) -> None:
    colour = tf.generate("It is red.", schema=Literal["red", "blue"])
    assert_type(colour, tf.Result[Literal["red", "blue"]])
    either = tf.generate("Ada", schema=Person | Address)
    assert_type(either, tf.Result[Person | Address])
    assert_type(tf.generate("1, 2", schema=list[int]), tf.Result[list[int]])
    assert_type(tf.generate(["1, 2"], schema=list[int], n=2), list[list[tf.Result[list[int]]]])
    assert_type(tf.generate("Ada", schema=Ship), tf.Result[Ship])
    assert_type(tf.generate("Ada", schema=list[Ship] | None), tf.Result[list[Ship] | None])
    assert_type(tf.generate("Ada", schema=Box).value.size, int)
    assert_type(tf.generate("Lisbon", schema=weather), tf.Result[dict[str, Any]])
    assert_type(generator.sample("x", Literal["a", "b"]), list[tf.Result[Literal["a", "b"]]])
    assert_type(generator.sample("x", weather), list[tf.Result[dict[str, Any]]])
    assert_type(generator.sample("x", Ship | Box), list[tf.Result[Ship | Box]])
    assert_type(tf.generate("x", schema={"type": "integer"}), tf.Result)
    assert_type(tf.generate("x", schema='{"type": "integer"}'), tf.Result)
    for part in generator.stream("x", list[Ship], partial=True):
        assert_type(part, list[Ship])


async def awaited() -> int:
    person = await tf.agenerate("Ada Lovelace, born 1815.", schema=Person)
    assert_type(person, tf.Result[Person])
    assert_type(await tf.agenerate("Ada", schema=Ship, n=2), list[tf.Result[Ship]])
    assert_type(await tf.agenerate(["Ada"], schema=Literal["a"]), list[tf.Result[Literal["a"]]])
    assert_type(await tf.agenerate("Lisbon", schema=weather), tf.Result[dict[str, Any]])
    async with tf.AsyncGenerator() as generator:
        async for piece in generator.stream("Ada"):
            print(piece)
    return person.value.born


def grown(generator: tf.Generator) -> str:
    names = ""
    prompt = "Ada Lovelace, born 1815."
    for person in generator.stream(prompt, Person, partial=True, on_field={"/name": print}):
        assert_type(person, Person)
        names += person.name
    for piece in generator.stream("Ada", logprobs=False):
        assert_type(piece, str)
    address = tf.generate("London", schema=Address, on_invalid="return", max_tries=10)
    assert_type(address, tf.Result[Address])
    assert_type(address.valid_share, float | None)
    return names + address.value["city"]
