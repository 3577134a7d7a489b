"""Where a stop text ends a text: at its first place before which the constraint accepts what was written."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenform as tf
from tokenform.decoding.pieces import TextPieces
from tokenform.errors import OptionError

PATTERN = r"(?s)[a-z ]*(\.[A-Z]*)*"
PROMPTS = ["a", "The cat", "Name three fruits."]
texts = st.text("abé", max_size=12)


def cut(text: str, stop: list[str], complete: Any) -> tuple[str, str | None]:
    """By the definition: place by place."""
    for end in range(len(text)):
        for one in sorted(stop):
            if text.startswith(one, end) and complete(text[:end]):
                return text[:end], one
    return text, None


@given(texts, st.lists(st.text("abé", min_size=1, max_size=3), max_size=3), st.integers(0, 7), st.data())
def test_pieces_end_at_the_first_stop_before_which_the_text_is_complete(text, stop, every, data):
    def complete(before: str) -> bool:
        return len(before) % 3 == 0 or not every & 1 << len(before) % 3

    pieces, given_, raw = TextPieces(stop, complete), "", text.encode()
    while raw:
        size = data.draw(st.integers(1, len(raw)))
        given_ += pieces.feed(raw[:size])
        raw = raw[size:]
        assert text.startswith(given_)
    given_ += pieces.finish()
    wanted, stopped = cut(text, stop, complete)
    assert given_ == wanted and pieces.ended == (stopped is not None)


@pytest.mark.parametrize("stop", [["."], [" ", "e"], ["th"], ["zzzz"]])
def test_a_text_of_a_pattern_ends_where_it_could(generator, stop):
    """The draws are keyed by place, so that the text without a stop is the judge's own."""
    options: dict[str, Any] = {"n": 3, "seed": 5, "max_tokens": 30, "temperature": 1.0}
    whole = generator.sample(PROMPTS, tf.regex(PATTERN), **options)
    stopped = generator.sample(PROMPTS, tf.regex(PATTERN), stop=stop, **options)
    plain = generator.sample(PROMPTS, tf.regex(PATTERN), stop=stop, drafter=None, **options)
    ended = 0
    for one, other, judge in zip(*(chain(*each) for each in (stopped, plain, whole)), strict=True):
        text, at = cut(judge.text, stop, lambda before: re.fullmatch(PATTERN, before))
        assert (one.text, one.stopped, one.value) == (text, at, text)
        assert (other.text, other.tokens, other.stopped) == (one.text, one.tokens, one.stopped)
        assert one.tokens == judge.tokens[: len(one.tokens)]
        assert len(one.token_logprobs) == len(one.tokens) == len(one.guessed)
        assert one.logprob == pytest.approx(sum(one.token_logprobs), abs=1e-4)
        assert one.reason == ("end" if at or judge.reason == "end" else "length")
        ended += at is not None
    assert ended or stop == ["zzzz"]


def test_streams_and_jobs_end_there_too(generator):
    options: dict[str, Any] = {"stop": [" ", "e"], "seed": 5, "max_tokens": 30, "temperature": 1.0}

    async def both(prompt: str) -> tuple[str, str]:
        async with tf.AsyncGenerator(generator) as writer:
            result = await writer.generate(prompt, tf.regex(PATTERN), **options)
            stream = writer.stream(prompt, tf.regex(PATTERN), **options)
            return result.text, "".join([piece async for piece in stream])

    for prompt in PROMPTS:
        one = generator.generate(prompt, tf.regex(PATTERN), **options)
        assert "".join(generator.stream(prompt, tf.regex(PATTERN), **options)) == one.text
        assert asyncio.run(both(prompt)) == (one.text, one.text)


def test_no_document_is_cut(generator):
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}
    for constraint in (schema, {"type": "number"}, dict[str, int]):
        options: dict[str, Any] = {"seed": 1, "max_tokens": 40}
        one = generator.generate("a", constraint, stop=["\n", '"', ".", "1", "{"], **options)
        assert one.text == generator.generate("a", constraint, **options).text
        json.loads(one.text)


def test_no_call_is_cut(generator):
    tools = tf.tools(
        [{"name": "find", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}],
        format="hermes",
        tool_choice="required",
    )
    one = generator.generate("a", tools, stop=["<", "{", '"', "f"], max_tokens=60, seed=2)
    assert one.text.endswith("</tool_call>") and one.stopped is None


def test_the_text_before_calls_ends_there(generator):
    tools = tf.tools([{"name": "find", "parameters": {"type": "object"}}], format="hermes")
    options: dict[str, Any] = {"max_tokens": 40, "seed": 3, "temperature": 1.0, "n": 6}
    stopped = 0
    for one in generator.generate("a", tools, stop=["e", " "], **options):
        content = one.value.content or ""
        stopped += one.stopped is not None
        assert one.value or not re.search("[e ]", content)
    assert stopped


def test_a_faithful_sampler_leaves_the_stop_out(generator):
    for sampler in (tf.CARS(), tf.SMC(8)):
        for schema in (None, tf.regex(PATTERN)):
            options: dict[str, Any] = {"max_tokens": 12, "sampler": sampler, "n": 8, "seed": 4}
            for one in generator.generate("a", schema, stop=["e", " "], **options):
                assert not re.search("[e ]", one.text) and one.value == one.text


def test_what_is_no_stop_is_refused(generator):
    for stop in (5, [""], ["a", 5], b"a"):
        with pytest.raises(OptionError, match="stop="):
            generator.generate("a", stop=stop)
    with pytest.raises(OptionError, match="predicate"):
        generator.generate("a", tf.predicate(lambda text: True), stop="a", sampler=tf.CARS())
