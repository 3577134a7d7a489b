"""Programs: ten short ones of the kinds that guidance's documentation shows, on the built-in and a small
random one; one cache, branches that do not touch each other, and what can't be added."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tokenform as tf
from tokenform.decoding.keyed_random import keyed
from tokenform.errors import ModelError, OptionError

sys.path.insert(0, str(Path(__file__).parents[1] / "suites"))
from tiny_model import save_tiny_model

ORDER = "Maria Rossi ordered a lamp and a chair for 412.50 euros; the order has been paid."


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> tf.Generator:
    folder = tmp_path_factory.mktemp("program") / "model"
    save_tiny_model(folder)
    return tf.Generator(str(folder))


def test_1_select_one_of_several() -> None:
    text = "The order has been paid. "
    program = tf.Program() + text + tf.select(["new", "paid", "shipped"], "status")
    assert program["status"] == "paid" and program.text == text + "paid"


def test_2_a_pattern(random_model: tf.Generator) -> None:
    program = tf.Program(random_model) + "20 + 5 = " + tf.gen("sum", regex="[0-9]{1,4}") + "."
    assert re.fullmatch("[0-9]{1,4}", program["sum"])
    assert program.text == f"20 + 5 = {program['sum']}."


def test_3_text_up_to_a_stop(random_model: tf.Generator) -> None:
    program = (
        tf.Program(random_model, temperature=1.0, seed=3) + "Name: " + tf.gen("name", stop="a", max_tokens=30)
    )
    assert "a" not in program["name"] and program.text == "Name: " + program["name"]


def test_4_json_of_a_schema() -> None:
    schema = {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}
    program = tf.Program() + ORDER + tf.gen("order", schema=schema, max_tokens=40)
    assert program["order"] == {"customer": "Maria Rossi"}
    assert json.loads(program.text[len(ORDER) :]) == program["order"]


def test_5_a_branch_in_python() -> None:
    program = tf.Program() + ORDER + "\nPaid? " + tf.select(["yes", "no"], "paid")
    program += " -> archive" if program["paid"] == "yes" else " -> remind"
    assert program.text.endswith(
        f"{program['paid']} -> " + {"yes": "archive", "no": "remind"}[program["paid"]]
    )


def test_6_a_loop_that_collects(random_model: tf.Generator) -> None:
    program = tf.Program(random_model, temperature=1.0) + "Three words:"
    for number in range(3):
        program += f"\n{number + 1}. " + tf.gen("word", regex="[a-z]{2,6}", append=True)
    assert len(program["word"]) == 3
    assert program.text.splitlines()[1:] == [f"{i + 1}. {word}" for i, word in enumerate(program["word"])]


def test_7_a_function_of_ones_own(random_model: tf.Generator) -> None:
    def rated(name: str) -> Any:
        def step(program: tf.Program) -> tf.Program:
            return program + f"{name}: " + tf.gen(name, regex="[1-5]") + "/5\n"

        return step

    program = tf.Program(random_model) + rated("taste") + rated("price")
    assert re.fullmatch(r"taste: [1-5]/5\nprice: [1-5]/5\n", program.text) and program["price"] in "12345"


def test_8_captures_of_a_grammar(random_model: tf.Generator) -> None:
    date = (
        tf.combinators.capture("year", tf.regex("(19|20)[0-9]{2}"))
        + "-"
        + tf.combinators.capture("month", tf.choice(["01", "12"]))
    )
    program = tf.Program(random_model) + "On " + date + " it began."
    start, end = program.captures["month"].span
    assert program.text[start:end] == program["month"] and program["month"] in ("01", "12")
    assert re.fullmatch(r"On (19|20)\d\d-\d\d it began\.", program.text)


def test_9_a_tool_called_in_between() -> None:
    program = tf.Program() + "The parcel has the number 4821.\n"
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    program += tf.gen("call", schema=schema, max_tokens=30)
    weight = {4821: "12 kg"}[program["call"]["number"]]
    program = program.set("weight", weight) + f"\nWeight: {weight}"
    assert program["weight"] == "12 kg" and program.text.endswith("Weight: 12 kg")


def test_10_a_chat(random_model: tf.Generator) -> None:
    random_model.tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    program = tf.Program(random_model) + tf.said("system", "Be brief.") + tf.said("user", "Is it raining?")
    program += "I think " + tf.select(["yes", "no"], "answer")
    again = program + tf.said("user", "Sure?") + tf.select(["yes", "no"], "second")
    assert program.text == f"I think {program['answer']}" and again["second"] in ("yes", "no")
    assert again.turns[2] == ("assistant", program.text) and "answer" in again


def test_branches_share_a_beginning_and_nothing_else(random_model: tf.Generator) -> None:
    stem = tf.Program(random_model, temperature=1.0, seed=5) + "A beginning that is read once. " * 20
    one, other = stem + tf.gen("x", regex="[a-z]{8}"), stem + tf.gen("x", regex="[a-z]{8}")
    assert one["x"] == other["x"] and "x" not in stem and stem.generated == 0
    another = tf.Program(random_model, temperature=1.0, seed=6) + stem.text + tf.gen("x", regex="[a-z]{8}")
    assert another["x"] != one["x"]
    assert (stem + tf.gen("x", regex="[a-z]{8}"))["x"] == one["x"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("pattern", ["[a-z]{3,20}", "[0-9]+", "(new|old|newest) [a-z]+"])
def test_a_program_is_what_generate_writes(
    random_model: tf.Generator, pattern: str, temperature: float
) -> None:
    grammar = tf.regex(pattern)
    result = random_model.generate("Once", grammar, raw=True, temperature=temperature, seed=keyed(5, 0))
    program = tf.Program(random_model, temperature=temperature, seed=5) + "Once" + tf.gen("x", schema=grammar)
    assert program["x"] == result.text


def test_what_can_not_be_added() -> None:
    program = tf.Program() + "text"
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed").new("RGB", (2, 2))
    for wrong in (image, b"bytes", 3, None):
        with pytest.raises(OptionError, match="Images can't be read here"):
            program + wrong
    with pytest.raises(OptionError, match="Images can't be read here"):
        tf.said("user", [{"type": "image"}])  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="returns a Program"):
        program + (lambda before: "text")
    with pytest.raises(OptionError, match="no value 'x'"):
        program["x"]
    with pytest.raises(OptionError, match="stop="):
        tf.gen("x", regex="a", stop="")
    with pytest.raises(ModelError, match="a program runs"):
        tf.Program(3) + tf.gen()
