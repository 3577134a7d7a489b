"""What a chat model reads for a prompt: a template, a system message, words about the answer; or the text."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
from pathlib import Path
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from tests.generation.conftest import small_llama
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from typer.testing import CliRunner

import tokenform as tf
from tokenform.batch import Generate
from tokenform.cli import app
from tokenform.errors import ModelError, OptionError

CHAT = [{"role": "user", "content": "Hi"}]


class Person(BaseModel):
    name: str = Field(description="first name")
    born: int


class Family(BaseModel):
    father: Person = Field(description="the eldest")
    children: list[Person]


class Endless(BaseModel):
    inner: Endless | None = None


@pytest.fixture(scope="module")
def chatting(chat_tokenizer: PreTrainedTokenizerFast) -> tf.Generator:
    return tf.Generator(small_llama(len(chat_tokenizer) + 5, context=4096), chat_tokenizer)


@pytest.fixture(scope="module")
def folder(chatting: tf.Generator, tmp_path_factory: Any) -> str:
    place = tmp_path_factory.mktemp("chatting")
    chatting.model.save_pretrained(place)
    chatting.tokenizer.save_pretrained(place)
    return str(place)


def test_a_text_is_the_users_message_after_what_the_answer_looks_like(chatting: tf.Generator) -> None:
    words = "Answer with JSON with the fields name (first name), born."
    assert str(chatting.show("Ada, 1815.", Person)) == f"user: {words}\n\nAda, 1815.\nassistant: "
    assert str(chatting.show("Ada, 1815.")) == "user: Ada, 1815.\nassistant: "  # free text: no words


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (tf.choice(["new", "paid"]), "new, paid"),
        (Literal["new", "paid"], '"new", "paid"'),
        (tf.regex("[0-9]{4}"), "[0-9]{4}"),
        (Person, "name (first name), born"),
        (list[Person], "JSON list of objects with the fields name (first name), born."),
        (
            Family,
            "father (the eldest; with name (first name), born), children (with name (first name), born).",
        ),
        (Endless, "inner (with inner (with inner))."),
        (
            {"properties": {"on": {"type": "string", "format": "date", "description": "the day"}}},
            "on (the day; a date as YYYY-MM-DD).",
        ),
        ({"properties": {f"{i}" * 20: {"type": "null"} for i in range(100)}}, "Answer with JSON."),
        (int, "Answer with JSON."),
        (list[int], "Answer with a JSON list of integers."),
        (dict[str, int], "Answer with a JSON dictionary of integers."),
        (dict[str, Optional[float]], "Answer with a JSON dictionary of numbers."),  # noqa: UP045
        (dict[str, list[int]], "Answer with JSON."),
        (tuple[int, int], "Answer with a JSON list of 2 integers."),
        (tuple[str, int], "Answer with JSON."),
        (datetime.date, "Answer with a date as YYYY-MM-DD."),
        (list[Optional[str]], "Answer with a JSON list of strings."),  # noqa: UP045
        (tf.json_schema('{"type": "object"}'), "JSON"),
        (tf.combinators.any_text(), ""),
        (tf.regex("a" * 2000), ""),
        (tf.choice([f"option {i}" for i in range(500)]), ""),
        (tf.lark('start: "a"'), ""),
    ],
    ids=str,
)
def test_the_words_fit_the_constraint(chatting: tf.Generator, constraint: Any, words: str) -> None:
    shown, bare = str(chatting.show("Hi", constraint)), "user: Hi\nassistant: "
    assert (shown == bare) if not words else (words in shown and shown != bare)
    assert str(chatting.show("Hi", constraint, show_schema=False)) == bare


@pytest.mark.parametrize(
    ("constraint", "begun"),
    [
        *((int, True), (float | None, True), (bool, True), (datetime.date, False)),
        *((tf.regex("[0-9]{4}"), True), (re.compile("[0-9]{4}"), True)),
        ({"type": "string", "pattern": "^[A-Z]{3}$"}, False),
        *((str, False), (list[int], False), (Person, False), (Literal[1, 2], False), (dict[str, int], False)),
        *((int | str, False), (tf.choice(["new", "paid"]), False), (tf.lark('start: "a"'), False)),
        *((tf.combinators.any_text(), False), (None, False)),
    ],
    ids=str,
)
def test_the_models_turn_is_begun_before_a_bare_value(
    chatting: tf.Generator, constraint: Any, begun: bool
) -> None:
    turn = "assistant: The answer is:\n\n"
    assert str(chatting.show("Hi", constraint)).endswith(turn) == begun
    for other in ({"show_schema": False}, {"raw": True}):
        assert not str(chatting.show("Hi", constraint, **other)).endswith(turn)
    assert not str(chatting.show(CHAT, constraint)).endswith(turn)
    assert str(chatting.show("Hi", constraint, system="Be brief.")).endswith(turn) == begun


def test_the_schema_is_shown_where_it_is_asked_for(chatting: tf.Generator) -> None:
    for prompt in ("Hi", CHAT):
        shown = str(chatting.show(prompt, Person, show_schema=True))
        schema = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
        assert schema["properties"]["name"]["description"] == "first name"
    for grammar in (tf.lark('start: "a" "b"'), tf.gbnf('root ::= "a"'), tf.regex("[0-9]" * 400)):
        assert grammar.source in str(chatting.show("Hi", grammar, show_schema=True))


def test_chat_messages_are_rendered_as_they_are(chatting: tf.Generator) -> None:
    assert str(chatting.show(CHAT, Person)) == "user: Hi\nassistant: "
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    assert "Answer with JSON" in str(chatting.show(parts, Person, show_schema=True))
    last = [*CHAT, {"role": "assistant", "content": "Yes?"}]
    shown = str(chatting.show(last, Person, show_schema=True))
    assert shown.index("JSON Schema") < shown.index("Yes?")


def test_a_system_message_and_the_text_alone(chatting: tf.Generator, folder: str) -> None:
    brief = "system: Be brief.\nuser: Hi\nassistant: "
    assert str(chatting.show("Hi", system="Be brief.")) == brief
    assert str(chatting.show(CHAT, system="Be brief.")) == brief
    assert str(chatting.show("Hi", Person, raw=True)) == "Hi"
    own = tf.Generator(folder, system="Be brief.")
    assert str(own.show("Hi")) == brief and str(own.show("Hi", raw=True)) == "Hi"
    alone = tf.Generator(folder, raw=True)
    assert str(alone.show("Hi", Person)) == "Hi" and str(alone.show("Hi", raw=False)) != "Hi"
    assert str(alone.show("Hi", system="Be brief.")) == brief


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"raw": True, "system": "x"}, "leave out system="),
        ({"raw": True, "show_schema": True}, "leave out system="),
        ({"show_schema": "yes"}, "choose True, False"),
        ({"system": 3}, "system= is a text"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    chatting: tf.Generator, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        chatting.show("Hi", Person, **options)
    with pytest.raises(OptionError, match=said):
        chatting.sample("Hi", Person, **options)


def test_a_second_system_message_and_a_missing_template_are_errors(
    chatting: tf.Generator, generator: tf.Generator
) -> None:
    with pytest.raises(OptionError, match="leave out system="):
        chatting.show([{"role": "system", "content": "x"}, *CHAT], system="y")
    assert str(generator.show("Hi", Person)) == "Hi"  # no template: the text as it is
    for options in ({"system": "x"}, {"show_schema": True}):
        with pytest.raises(ModelError, match="no chat template"):
            generator.show("Hi", Person, **options)


def test_every_call_reads_what_is_shown_and_says_so(chatting: tf.Generator, folder: str) -> None:
    grammar, options = tf.regex("[a-z]{2}"), {"system": "Be brief.", "show_schema": False}
    shown = chatting.show("Hi", grammar, **options)
    every = chatting.sample(["Hi"], grammar, **options)[0]
    every += chatting.sample("Hi", grammar, sampler=tf.CARS(), seed=0, **options)
    stream = chatting.stream("Hi", grammar, **options)
    try:
        while True:
            next(stream)
    except StopIteration as end:
        every.append(end.value)
    every.append(tf.generate("Hi", schema=grammar, model=folder, **options))

    async def calls() -> list[Any]:
        async with tf.AsyncGenerator(chatting) as shared:
            (one,) = await shared.sample("Hi", grammar, **options)
            streamed = shared.stream("Hi", grammar, **options)
            assert [piece async for piece in streamed]
            return [one, streamed.result, await tf.agenerate("Hi", schema=grammar, model=folder, **options)]

    every += asyncio.run(calls())
    assert len(every) == 7
    for result in every:
        assert result.prompt.ids == shown.ids and str(result.prompt) == shown.text


def test_a_bare_vocabulary_shows_its_bytes(model: LlamaForCausalLM, generator: tf.Generator) -> None:
    writer = tf.Generator(model, generator.vocabulary)
    (result,) = writer.sample(generator.tokenizer.encode("Ada"), tf.regex("a"))
    assert result.prompt is not None and result.prompt.text == "Ada"


def test_a_program_goes_on_with_its_text(chatting: tf.Generator) -> None:
    (alone,) = chatting.sample("Once", tf.regex("[a-z]{4}"), raw=True)
    assert (tf.Program(chatting) + "Once" + tf.gen("x", regex="[a-z]{4}"))["x"] == alone.text


def test_commands_and_jobs_show_the_same(chatting: tf.Generator, folder: str, tmp_path: Path) -> None:
    grammar, options = tf.regex("[a-z]{8}"), {"system": "Be brief.", "show_schema": False}
    (wanted,) = chatting.sample("Hi", grammar, **options)
    bare = chatting.sample("Hi", grammar, raw=True)[0].text
    flags = ["--regex", "[a-z]{8}", "--model", folder]
    shown = ["--system", "Be brief.", "--no-show-schema"]
    assert CliRunner().invoke(app, ["generate", "Hi", *flags, *shown]).stdout.strip() == wanted.text
    assert CliRunner().invoke(app, ["generate", "Hi", *flags, "--raw"]).stdout.strip() == bare
    job = Generate(folder, regex="[a-z]{8}", **options)
    assert job.rows([{"id": 1, "prompt": "Hi"}])[0]["text"] == wanted.text
    assert job.fingerprint() != Generate(folder, regex="[a-z]{8}").fingerprint()


def test_the_built_in_model_keeps_its_own_format() -> None:
    writer = tf.Generator()
    shown = str(writer.show("Ada, 1815.", Person))
    assert "Answer with" not in shown and "<|schema|>" in shown
    assert "<|system|>" in str(writer.show("Ada", Person, system="Be brief."))
    assert str(writer.show("Ada", Person, raw=True)) == "Ada"
