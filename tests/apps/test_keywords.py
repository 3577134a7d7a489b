"""Every face of generation takes the same keywords, and says which one is meant where it is misspelt."""

import asyncio
import dataclasses
import enum
import inspect
import pathlib
from typing import Literal

import pydantic
import pytest

import tokenform as tf
from tokenform import errors
from tokenform.decoding.options import MODEL, AnyOptions, Call, Options, Untyped

PROMPT = "The order has been paid."
Status = Literal["new", "paid"]


@pytest.fixture(scope="module")
def generator():
    return tf.Generator()


def keywords(face):
    found = inspect.signature(face).parameters
    return {name: one.default for name, one in found.items() if name not in ("self", "prompt")}


def test_all_faces_have_the_same_keywords():
    plain = keywords(tf.Generator.generate)
    for face in (
        tf.Generator.sample,
        tf.Generator.agenerate,
        tf.AsyncGenerator.generate,
        tf.AsyncGenerator.sample,
    ):
        assert keywords(face) == plain
    for face in (tf.generate, tf.sample, tf.agenerate):
        assert keywords(face) == {**plain, **dict.fromkeys(MODEL)}
    streamed = keywords(tf.Generator.stream)
    assert streamed == {**plain, "partial": False, "on_field": None, "on_reasoning": None}
    for face in (tf.Generator.astream, tf.AsyncGenerator.stream):
        assert keywords(face) == streamed
    for face in (tf.stream, tf.astream):
        assert keywords(face) == {**streamed, **dict.fromkeys(MODEL)}


def test_the_dictionaries_for_type_checkers_have_what_is_read():
    read = {one.name for one in dataclasses.fields(Call)}
    apart = {"schema", "n", "keywords", "partial", "on_field", "on_reasoning"}
    assert Options.__annotations__.keys() == read - apart
    assert (
        AnyOptions.__annotations__.keys() == Options.__annotations__.keys() | Untyped.__annotations__.keys()
    )


def test_one_result_for_a_prompt_and_a_list_for_a_list(generator):
    for face in (tf.generate, generator.generate, generator):
        assert face(PROMPT, Status).value == "paid"
        assert face(PROMPT, schema=Status, drafter=None).value == "paid"
        assert [one.value for one in face([PROMPT, PROMPT], Status, batch_size=1)] == ["paid", "paid"]
        assert len(face(PROMPT, Status, n=2, temperature=1.0, seed=0)) == 2
        assert [len(one) for one in face([PROMPT], choices=["a", "b"], n=2, temperature=1.0)] == [2]
    for face in (tf.sample, generator.sample):
        assert [one.value for one in face(PROMPT, schema=Status)] == ["paid"]
    assert tf.generate(PROMPT, Status, model=generator).value == "paid"
    assert "".join(tf.stream(PROMPT, Status, model=generator)) == '"paid"'


def test_event_loops_have_the_same(generator):
    async def written():
        options = {"drafter": None, "progress": False, "logprobs": False}
        yield (await tf.agenerate(PROMPT, Status, model=generator, **options)).value
        yield (await generator.agenerate(PROMPT, schema=Status)).value
        yield (await generator.shared().sample(PROMPT, Status))[0].value
        yield [one async for one in tf.astream(PROMPT, Status, model=generator, partial=True)][-1]
        yield [one async for one in generator.astream(PROMPT, Status, partial=True, drafter=None)][-1]

    async def main():
        return [value async for value in written()]

    assert asyncio.run(main()) == ["paid"] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shcema": Status}, "do you mean schema=?"),
        ({"temprature": 1}, "do you mean temperature=?"),
        ({"max_new_tokens": 9}, "do you mean max_tokens=?"),
        ({"response_model": Status}, "do you mean schema=?"),
        ({"tools": []}, r"tf.tools\(\[...\]\)"),
        ({"on_field": {}}, "for streams"),
        ({"temp": 1}, "do you mean temperature=?"),
        ({"random_seed": 1}, "do you mean seed=?"),
        ({"pattern": "a"}, r"do you mean schema=tf.regex\(...\)"),
        ({"messages": []}, "do you mean the first argument?"),
        ({"zzz": 1}, "it takes schema, choices, regex"),
    ],
)
def test_a_misspelt_keyword_is_answered_with_the_nearest(generator, options, message):
    for face in (
        tf.generate,
        generator.generate,
        generator.sample,
        lambda *a, **k: asyncio.run(tf.agenerate(*a, **k)),
    ):
        with pytest.raises(errors.UnknownOption, match=message):
            face(PROMPT, **options)
    with pytest.raises(errors.OptionError, match=r"it is for tf\.Generator"):
        generator.generate(PROMPT, device="cpu")


FACES = {
    "generate": tf.generate,
    "sample": tf.sample,
    "stream": lambda *a, **k: list(tf.stream(*a, **k)),
    "agenerate": lambda *a, **k: asyncio.run(tf.agenerate(*a, **k)),
    "astream": lambda *a, **k: asyncio.run(all_of(*a, **k)),
}


async def all_of(*arguments, **options):
    return [one async for one in tf.astream(*arguments, **options)]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"temprature": 1}, errors.UnknownOption, "temperature="),
        ({"max_tokens": 0}, errors.OptionError, "max_tokens=0"),
        ({"n": 0}, errors.OptionError, "n=0"),
        ({"temperature": -1.0}, errors.OptionError, "temperature=-1.0"),
        ({"seed": "a"}, errors.OptionError, "seed='a'"),
        ({"system": 3}, errors.OptionError, "system= is a text"),
        ({"thinking": "much"}, errors.OptionError, "thinking='much'"),
        ({"chat_options": "a"}, errors.OptionError, "chat_options= is a mapping"),
        ({"sampler": "model"}, errors.OptionError, "no sampler"),
        ({"schema": {"type": "objct"}}, errors.InvalidSchema, "objct"),
        ({"schema": [{"type": "objct"}]}, errors.TokenformError, "objct|a stream has one prompt"),
        ({"stop": [""]}, errors.OptionError, "stop="),
        ({"stop": 5}, errors.OptionError, "stop=5"),
        ({"max_seconds": "5"}, errors.OptionError, "max_seconds='5'|nothing is written again"),
    ],
)
def test_a_call_is_read_before_its_model_is_opened(face, options, kind, message):
    with pytest.raises(kind, match=message):
        FACES[face](PROMPT, model="/no/such/folder", **options)
    with pytest.raises(errors.ModelError, match="/no/such/folder"):
        FACES[face](PROMPT, Status, model="/no/such/folder")


class Member(enum.Enum):
    NEW = "new"


@dataclasses.dataclass
class Order:
    status: str


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": []}, "schemas: the list is empty"),
        ({"schema": ["new", "paid"]}, r"write choices=\['new', 'paid'\]"),
        ({"schema": ("new", "paid")}, r"write choices=\['new', 'paid'\]"),
        ({"schema": pathlib.Path("order.json")}, r"Path\('order.json'\).read_text"),
        ({"schema": "order.json"}, r"Path\('order.json'\).read_text"),
        ({"schema": Order("new")}, "schema=Order"),
        ({"schema": pydantic.BaseModel}, "derived from it"),
        ({"choices": Member}, "schema=Member"),
        ({"choices": list(Member)}, "schema=Member"),
        ({"choices": Status}, "give it as schema="),
        ({"choices": [1, 2]}, "give str of each"),
        ({"choices": 5}, "not int"),
        ({"schema": Status, "temperature": "0.5"}, "temperature='0.5' is not possible"),
        ({"schema": Status, "top_p": "0.5"}, "top_p='0.5' is not possible"),
        ({"schema": Status, "top_k": "5"}, "top_k='5' is not possible"),
        ({"schema": Status, "min_p": "0"}, "min_p='0' is not possible"),
        ({"schema": Status, "sampler": tf.CARS}, r"give CARS\(...\)"),
        ({"schema": Status, "model": ""}, "model= is empty"),
        ({"schema": Status, "model": "gpt-4o"}, "is a hosted model"),
        ({"schema": Status, "model": "anthropic/claude-sonnet-4"}, "is a hosted model"),
    ],
)
def test_a_wrong_value_is_answered_with_the_right_one(options, message):
    with pytest.raises(errors.TokenformError, match=message):
        tf.generate(PROMPT, **options)


def test_no_stop_is_none_too(generator):
    with_none = generator.generate(PROMPT, stop=None, max_tokens=8)
    assert with_none.text == generator.generate(PROMPT, max_tokens=8).text
    assert generator.generate(PROMPT, Status, stop=None).value == "paid"
    assert "".join(generator.stream(PROMPT, stop=None, max_tokens=8)) == with_none.text


def test_a_list_of_schemas_gives_a_list_of_results(generator):
    assert [one.value for one in generator.generate(PROMPT, [Status, Literal["paid"]])] == ["paid", "paid"]
    assert generator.generate([], []) == []


def test_generators_say_what_they_take(tmp_path):
    with pytest.raises(errors.UnknownOption, match="do you mean batch_size="):
        tf.Generator("/no/such/folder", batchsize=3)
    with pytest.raises(errors.ModelError, match="is empty"):
        tf.Generator(tmp_path)
    tokenizer = tf.Generator().tokenizer
    with pytest.raises(errors.ModelError, match=r"tf.Generator\(model, tokenizer\)"):
        tf.Generator(tokenizer)
    with pytest.raises(errors.VocabularyError, match="from_pretrained"):
        tf.Vocabulary.from_tokenizer("/path")


def test_what_does_not_go_together_is_refused(generator):
    asked = [
        ({"schema": Status, "choices": ["a"]}, "schema and choices are given"),
        ({"sampler": tf.CARS(), "temperature": 1.0}, r"give them to CARS\(...\)"),
        ({"model": generator, "device": "cpu"}, "has its own device"),
        ({"drafter": "no"}, "is not known"),
        ({"batch_size": 0}, "batch_size=0"),
    ]
    for options, message in asked:
        with pytest.raises(errors.TokenformError, match=message):
            tf.generate(PROMPT, **options)
    for options in ({"n": 2}, {"feedback": True}, {"max_tries": 3}, {"on_field": {"": print}}):
        with pytest.raises(errors.OptionError):
            tf.stream(PROMPT, Status, **options)


def test_old_names_work_and_say_the_new_one(generator):
    for old, value in (("type", Status), ("grammar", tf.choice(["new", "paid"]))):
        with pytest.warns(DeprecationWarning, match=f"{old}= is an old name; write schema=") as caught:
            assert generator.generate(PROMPT, **{old: value}).value == "paid"
        assert caught[0].filename == __file__


def test_a_generator_has_a_temperature_of_its_own():
    writer = tf.Generator(temperature=0.5, top_k=3)
    assert writer.sampler == tf.Local(temperature=0.5, top_k=3)
    with pytest.raises(errors.OptionError, match="give them to SMC"):
        tf.Generator(sampler=tf.SMC(4), temperature=0.5)
