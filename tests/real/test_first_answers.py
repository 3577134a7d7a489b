"""First answers, as a newcomer gets them: a text for a prompt, nothing set up; a GGUF file; tools."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

import tokenform as tf


class Person(BaseModel):
    name: str
    born: int
    city: str


class Meeting(BaseModel):
    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    time: str
    people: list[str]


PERSON = "Ines Duarte was born in 1990 and lives in Porto."
MEETING = "Let us meet on Monday at 09:30; Anna and Ben will be there."


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


def add_event(title: str, day: str) -> str:
    """Puts an event into the calendar."""
    return f"{title} on {day}"


def convert(amount: float, currency: str) -> str:
    """Converts an amount of euros into another currency."""
    return f"{amount} {currency}"


def send_mail(to: str, subject: str) -> str:
    """Sends an e-mail."""
    return f"{to}: {subject}"


def test_a_text_is_answered_as_a_chat(smol: tf.Generator) -> None:
    prompts, kinds = [PERSON, MEETING, f"Extract the person: {PERSON}"], [Person, Meeting, Person]
    person = Person(name="Ines Duarte", born=1990, city="Porto")
    meeting = Meeting(day="Monday", time="09:30", people=["Anna", "Ben"])
    written = [one.value for (one,) in smol.sample(prompts, kinds, max_tokens=100)]
    written[1].time = written[1].time.zfill(5)
    assert written == [person, meeting, person]


def test_letters_with_accents_stay(smol: tf.Generator) -> None:
    class Customer(BaseModel):
        full_name: str = Field(pattern=r"^[\w\s]+$")

    asked = "Extract the full name as JSON: The customer is José Núñez."
    assert smol.generate(asked, Customer, max_tokens=40).value == Customer(full_name="José Núñez")


def test_what_the_model_read_is_shown(smol: tf.Generator) -> None:
    (result,) = smol.sample("Is the sky blue?", tf.choice(["yes", "no"]), system="Be brief.")
    assert str(result.prompt) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nAnswer with one of: yes, no\n\n"
        "Is the sky blue?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_gguf_file_by_its_path_its_folder_and_its_name(model_file: str, tmp_path: Path) -> None:
    os.symlink(model_file, tmp_path / "one.gguf")
    by_path = tf.Generator(model_file)
    (result,) = by_path.sample(PERSON, Person, max_tokens=100)
    assert result.value.name == "Ines Duarte" and "<|im_start|>user" in str(result.prompt)
    for writer in (tf.Generator(str(tmp_path)), tf.Generator(str(tmp_path), gguf_file="one.gguf")):
        assert writer.sample(PERSON, Person, max_tokens=100)[0].text == result.text


def test_tools_that_the_template_leaves_out_are_called(smol: tf.Generator) -> None:
    grammar = tf.tools(
        [get_weather, add_event, convert, send_mail], format="hermes", tool_choice="required", parallel=False
    )
    asked = {
        "What is the weather in Paris?": ("get_weather", "Paris"),
        "How warm is it in Oslo today?": ("get_weather", "Oslo"),
        "Put a dentist appointment into my calendar for Monday.": ("add_event", "Monday"),
        "Convert 50 euros into dollars.": ("convert", "50"),
        "Send a mail to anna@post.org with the subject Lunch.": ("send_mail", "anna@post.org"),
        "Will it rain in Lisbon?": ("get_weather", "Lisbon"),
    }
    right = 0
    for (result,), (name, value) in zip(
        smol.sample(list(asked), grammar, max_tokens=80), asked.values(), strict=True
    ):
        # a call that the budget cut is none
        right += any(call.name == name and value in str(call.arguments) for call in result.tool_calls)
    assert right >= 4


ONE_CALL = [
    *("Weather in Kyoto?", "Is it cold in Quito today?", "What is the weather like in Nairobi?"),
    *("What's the weather in Paris?", "How warm is it in Oslo right now?", "Tell me the weather for Berlin."),
    *("Is it raining in Lima?", "How much is 80 CHF in USD?", "Please convert 12 EUR to GBP."),
    *("How many dollars are 20 euros?", "Convert 100 USD to JPY.", "What is 55 GBP in EUR?"),
    *("Add a run on Sunday to my calendar.", "Put the exam on Tuesday into my calendar."),
    *("Put lunch with Anna on Friday into my calendar.", "Add dentist on Monday to the calendar."),
    "Remind me of the concert on Saturday in my calendar.",
]


def test_no_call_is_written_twice(smol: tf.Generator) -> None:
    grammar = tf.tools([get_weather, add_event, convert, send_mail], format="hermes", tool_choice="required")
    for (result,) in smol.sample(ONE_CALL, grammar, max_tokens=200):
        assert len(result.tool_calls) == 1, result.text


@pytest.mark.parametrize("number", range(3))
def test_first_use_from_several_threads(model_folder: str, number: int) -> None:
    from tests.integrations.test_opening import FROM_THREADS, run

    schema = '{"properties": {"name": {"type": "string"}}, "required": ["name"]}'
    written = run(FROM_THREADS, model_folder, schema, PERSON)
    assert len({*written["texts"], written["after"]}) == 1  # type: ignore[misc]
    assert "Ines Duarte" in str(written["after"])


BARE = [
    ("How many pupils are in the class? The class has 26 pupils and two teachers.", int, 26),
    ("How old is the bridge? The bridge is 118 years old.", int, 118),
    ("How many pages has the book? The book has 342 pages.", int, 342),
    ("What does the ticket cost? The ticket costs 7.25 dollars.", float, 7.25),
    ("How long is the rope? The rope is 3.5 metres long.", float, 3.5),
    ("Give the number to call. For questions call 555-0164.", re.compile("[0-9]{3}-[0-9]{4}"), "555-0164"),
    ("What is the ticket's number? Your ticket TK-48213 was closed.", tf.regex("TK-[0-9]+"), "TK-48213"),
    ("When does it end? The sale ends on 9 April 2021.", datetime.date, datetime.date(2021, 4, 9)),
    ("What is the room? The meeting is in room B214.", tf.regex("[A-F][0-9]{3}"), "B214"),
]


def test_a_bare_value_is_the_one_of_the_text(smol: tf.Generator) -> None:
    texts, constraints, right = zip(*BARE, strict=True)
    written = [one.value for (one,) in smol.sample(list(texts), list(constraints), max_tokens=24)]
    assert sum(one == wanted for one, wanted in zip(written, right, strict=True)) >= 8, written


STANDING = [
    ("What is the e-mail address? You can reach us at jane.doe@example.org on weekdays.",
     r"[a-z.]+@[a-z]+\.[a-z]+", "jane.doe@example.org"),
    ("Give me the link. The page is at https://acme.com/support now.", r"https?://[a-z./]+",
     "https://acme.com/support"),
    ("Which version is installed? We run version 3.5.4 of it.", r"\d+\.\d+\.\d+", "3.5.4"),
    ("Who wrote it? The report was written by Karl Berg.", "[A-Z][a-z]+ [A-Z][a-z]+", "Karl Berg"),
    ("What is the capital of France?", "[A-Z][a-z]+", "Paris"),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "pattern", "right"), STANDING)
def test_a_value_that_stands_in_the_prompt_is_copied_and_no_other(
    smol: tf.Generator, prompt: str, pattern: str, right: str
) -> None:
    result = smol.generate(prompt, tf.regex(pattern), max_tokens=32)
    assert result.text == right
    assert "".join(smol.stream(prompt, tf.regex(pattern), max_tokens=32)) == right


LISTS = [
    ("What did he buy? He bought milk, bread and cheese.", list[str], ["milk", "bread", "cheese"]),
    ("Who is on duty? Nadia, Omar and Ruth are on duty.", list[str], ["Nadia", "Omar", "Ruth"]),
    (
        "Which subjects does she teach? Physics, chemistry and music.",
        list[str],
        ["physics", "chemistry", "music"],
    ),
    ("Give the numbers drawn: 7, 12, 33 and 41 were drawn.", list[int], [7, 12, 33, 41]),
    (
        "Which doors are open? The left and the back door are open.",
        list[Literal["left", "back", "front"]],
        ["left", "back"],
    ),
    ("Give the pairs: 3 and 4, 5 and 6, 7 and 8.", list[list[int]], [[3, 4], [5, 6], [7, 8]]),
]


NUMBERS = [
    ("The fair had 12,500 visitors.", int, 12500),
    ("The bridge is 2,737 m long.", int, 2737),
    ("Mary paid $1,299.99 for the sofa.", float, 1299.99),
    ("Die Lampe kostet 12,95 Euro.", float, 12.95),
    ("Was kostet es? Das Rad kostet 1.299,00 Euro.", float, 1299.0),
    ("What does it cost? It costs 20 euros, not 1,500.", int, 20),
]


@pytest.mark.parametrize(("prompt", "kind", "right"), NUMBERS)
def test_a_number_with_marks_between_its_digits_is_read_as_a_whole(
    smol: tf.Generator, prompt: str, kind: type, right: float
) -> None:
    assert smol.generate(prompt, kind, max_tokens=24).value == right


def test_a_list_holds_what_the_text_names(smol: tf.Generator) -> None:
    texts, constraints, right = zip(*LISTS, strict=True)
    written = [one.value for (one,) in smol.sample(list(texts), list(constraints), max_tokens=40)]
    same = [str(one).lower() == str(wanted).lower() for one, wanted in zip(written, right, strict=True)]
    assert sum(same) >= 5, written


def test_a_number_ends_where_the_model_would_go_on_with_a_word(smol: tf.Generator) -> None:
    grammar = tf.lark('start: "wait " NUMBER\nNUMBER: /[0-9]+/')
    written = [
        smol.generate(f"Wait for {minutes} minutes, then call.", grammar, max_tokens=24).text
        for minutes in (4, 15, 30)
    ]
    assert written == ["wait 4", "wait 15", "wait 30"]


def test_a_string_without_room_ends_behind_a_word(smol: tf.Generator) -> None:
    """What it says is the beginning of what the model says with more room, in whole words."""
    prompts = ["Describe the sea in one sentence.", "Describe a cat.", "What is a lake?"]

    def said(most: int) -> list[str]:
        schema = tf.json_schema({"type": "string", "maxLength": most})
        return [str(one.value) for one in smol.generate(prompts, schema, max_tokens=120)]

    whole = said(300)
    for most in (40, 60, 80):
        for short, long in zip(said(most), whole, strict=True):
            assert long.startswith(short) and not long[len(short)].isalnum(), (most, short, long)


def test_a_word_before_one_character_ends(smol: tf.Generator) -> None:
    pairs = tf.lark('start: pair ("," pair)*\npair: /[a-z]+/ "=" /[0-9]+/')
    (one,) = smol.sample("bread costs 3 and milk costs 2", pairs, sampler=tf.Local(0.0), max_tokens=32)
    assert one.text == "bread=3,milk=2"


def test_a_programs_number_ends_where_its_text_goes_on(smol: tf.Generator) -> None:
    program = tf.Program(smol) + "The hotel has 30 rooms and a pool.\nNumber of rooms: "
    program += tf.gen("rooms", regex="[0-9]+", max_tokens=20)
    assert program["rooms"] == "30"
