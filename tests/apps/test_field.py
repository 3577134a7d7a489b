"""Fields of a result: where they stand, in characters and tokens, and the probability of these tokens."""

from __future__ import annotations

import json
import math

import pytest

import tokenform as tf
from tokenform.decoding.results import Result
from tokenform.errors import OptionError

VALUE = {"näme": "Zoë", "items": [{"price": 12.5}, {"price": -3}], "a/b~c": True, "none": None}


def result(document: str, cuts: list[bytes]) -> Result:
    """A document as these tokens wrote it."""
    end = len(cuts) + 256
    spelled = [*cuts, *(bytes([byte]) for byte in range(256)), b"<end>"]
    vocabulary = tf.Vocabulary(spelled, eos=[end], special=[end])
    automaton = tf.json_schema(True).compile(vocabulary)
    logprobs = [-(2.0**-place) for place in range(len(cuts))]
    return Result(
        document, list(range(len(cuts))), None, sum(logprobs), token_logprobs=logprobs, automaton=automaton
    )


def at(pointer: str):
    """The value at a pointer, by a way of its own."""
    value = VALUE
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


POINTERS = ["", "/näme", "/items", "/items/0", "/items/0/price", "/items/1/price", "/a~1b~0c", "/none"]


@pytest.mark.parametrize("pointer", POINTERS)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_field_has_the_tokens_of_its_characters(pointer: str, size: int) -> None:
    document = json.dumps(VALUE, ensure_ascii=False, indent=1)
    whole = document.encode()
    cuts = [whole[place : place + size] for place in range(0, len(whole), size)]
    made = result(document, cuts)
    field = made.field(pointer)
    assert field.value == at(pointer) and json.loads(field.text) == field.value
    assert document[field.start : field.end] == field.text
    first, last = len(document[: field.start].encode()), len(document[: field.end].encode())
    holding = [
        place for place in range(len(cuts)) if place * size < last and place * size + len(cuts[place]) > first
    ]
    assert list(field.tokens) == holding
    assert field.logprob == math.fsum(made.token_logprobs[place] for place in holding)
    assert field.probability == math.exp(field.logprob)


def test_a_key_that_comes_twice_counts_as_it_comes_last() -> None:
    text = '{"a": 1, "a": 22}'
    assert result(text, [text.encode()]).field("/a").text == "22"


@pytest.mark.parametrize(("text", "pointer"), [("{}", "/a"), ("[1]", "/1"), ("[1]", "0"), ("so [1]", "/0")])
def test_what_is_not_there_is_said(text: str, pointer: str) -> None:
    with pytest.raises(OptionError):
        result(text, [text.encode()]).field(pointer)


def test_a_written_field_is_as_likely_as_its_tokens() -> None:
    schema = {
        "type": "object",
        "properties": {"status": {"enum": ["new", "paid", "shipped"]}},
        "required": ["status"],
        "additionalProperties": False,
    }
    made = tf.generate("The order is now shipped.", schema=schema)
    field = made.field("/status")
    assert field.value == "shipped" and made.text[field.start : field.end] == '"shipped"'
    assert made.logprob <= field.logprob <= 0
    weighted = tf.generate("The order is now shipped.", schema=schema, sampler=tf.CARS(), seed=0)
    assert weighted.field("/status").logprob is None
