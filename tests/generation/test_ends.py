"""A budget that cuts into a text says so, and of which values; the judge is the run with a large budget."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import tokenform as tf
from tokenform import errors
from tokenform.decoding.results import Result

LARGE = 120
BUDGETS = 4  # to each large one
MISSING = object()

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"item": TEXT, "total": WHOLE}, "required": ["item", "total"]},
    {
        "type": "object",
        "properties": {"name": TEXT, "born": WHOLE, "alive": {"type": "boolean"}, "note": TEXT},
        "required": ["name"],
        "additionalProperties": False,
    },
    {"type": "array", "items": NUMBER, "maxItems": 12},
    {
        "type": "object",
        "properties": {
            "lines": {
                "type": "array",
                "maxItems": 5,
                "items": {
                    "type": "object",
                    "properties": {"what": {"type": "string", "maxLength": 30}, "price": NUMBER},
                    "required": ["what", "price"],
                },
            },
            "kind": {"enum": ["invoice", "receipt", "reminder"]},
        },
        "required": ["lines", "kind"],
        "additionalProperties": False,
    },
    {"type": "integer"},
    {"type": "string", "maxLength": 40},
]
PROMPTS = [
    "They bought a desk for 89 dollars and a lamp for 12.50.",
    "Ada Lovelace was born in London in 1815 and wrote about engines.",
    "The invoice lists 3 chairs at 120.75 each, and 1 table at 1,499.",
    "Grüße aus Köln: die Lampe kostet 1024 Euro.",
]


def values_of(document: Any, pointer: str = "") -> dict[str, Any]:
    """Every value of a document by its pointer."""
    found = {pointer: document}
    inside = document.items() if isinstance(document, dict) else ()
    inside = enumerate(document) if isinstance(document, list) else inside
    for name, value in inside:
        found |= values_of(value, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    return found


def said(pointer: str, cut: list[str]) -> bool:
    """Whether a pointer, what is around it or something inside of it is listed."""
    return any(
        pointer == one or pointer.startswith(f"{one}/") or one.startswith(f"{pointer}/") for one in cut
    )


def check(short: Result, long: Result) -> None:
    """What the short run says of itself is what the long one shows."""
    assert (short.reason == "length") == (short.cut_at is not None)
    if short.reason == "end":
        assert short.tokens == long.tokens and short.cut == [] and long.reason == "end"
        return
    if short.tokens == long.tokens:  # a value of few without room is not scored: it might have been chosen
        assert set(short.cut) <= {"/kind", "/alive"}
    assert long.text[: short.cut_at] == short.text[: short.cut_at]
    mine, theirs = values_of(json.loads(short.text)), values_of(json.loads(long.text))
    marked = [*short.cut, *long.cut]
    for pointer, value in mine.items():
        if type(value) is not type(other := theirs.get(pointer, MISSING)) or value != other:
            assert said(pointer, marked), (pointer, short, long)
    for pointer in theirs.keys() - mine.keys():  # what is not there is said by what holds it
        while pointer not in mine:
            pointer = pointer.rpartition("/")[0]
        assert said(pointer, marked), (pointer, short, long)
    for pointer in short.cut:  # and no more than these: what is listed is there
        assert pointer in mine


def random_runs(generator: tf.Generator, count: int, seed: int) -> list[str]:
    """Runs with random budgets against runs with a large one; the reasons of the former."""
    rng, reasons = random.Random(seed), []
    for _ in range(count // BUDGETS):
        schema, prompt = rng.choice(SCHEMAS), rng.choice(PROMPTS)
        sampler = tf.Local(temperature=rng.choice([0.0, 0.7, 1.0]), top_p=rng.choice([1.0, 0.9]))
        options: dict[str, Any] = {"seed": rng.getrandbits(30), "sampler": sampler}
        long = generator.sample(prompt, schema, max_tokens=LARGE, **options)[0]
        automaton = tf.json_schema(schema).compile(generator.vocabulary)
        least = automaton.distance(automaton.start)
        most = max(min(len(long.tokens) + 2, LARGE - 1), least)
        for budget in [rng.randint(least, most) for _ in range(BUDGETS)]:
            short = generator.sample(prompt, schema, max_tokens=budget, **options)[0]
            if long.reason == "end" or short.tokens != long.tokens:
                check(short, long)
            reasons.append(short.reason)
    return reasons


# in round 2 top-p leaves a value out where those that the budget has no room for count
ROUNDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed not in (0, 2))) for seed in range(11)]


@pytest.mark.parametrize("which", ["built-in", "random"])
@pytest.mark.parametrize("seed", ROUNDS)
def test_what_a_larger_budget_makes_another_is_marked(generator: tf.Generator, which: str, seed: int) -> None:
    made = tf.Generator() if which == "built-in" else generator
    reasons = random_runs(made, 48, seed)
    assert reasons.count("length") > 6
    assert which == "random" or "end" in reasons


def test_drafts_and_batches_change_nothing(generator: tf.Generator) -> None:
    plain = tf.Generator(generator.model, generator.tokenizer, drafter=None)
    for seed in range(6):
        schema = SCHEMAS[seed % len(SCHEMAS)]
        options: dict[str, Any] = {"seed": seed, "max_tokens": 30, "sampler": tf.Local()}
        drafted = generator.sample(PROMPTS, schema, **options)
        for prompt, (one,) in zip(PROMPTS, drafted, strict=True):
            (alone,) = plain.sample(prompt, schema, **options)
            assert (one.text, one.reason, one.cut, one.cut_at) == (
                alone.text, alone.reason, alone.cut, alone.cut_at
            )  # fmt: skip


def test_on_a_device_the_same_is_said(generator: tf.Generator) -> None:
    from tokenform.decoding.decoder import Decoder
    from tokenform.decoding.speculative.matching import DeviceDraws

    reasons = set()
    for seed, sampler in enumerate([tf.Local(), tf.Local(top_p=0.8), tf.Local(temperature=0)]):
        outcomes = []
        for whole in (False, True):
            decoder: Decoder = generator.decoder(sampler, 4)
            decoder._draws = DeviceDraws(decoder.backbone.device, None, whole=whole)
            decoder._passes._draws = decoder._draws
            grammar = tf.json_schema(SCHEMAS[3])
            rows = [row for p in PROMPTS for row in generator.rows(p, grammar, 1, seed, 26)]
            for _ in decoder.run(rows, 4):
                pass
            outcomes.append([(row.output.tokens, row.output.reason, row.output.cut) for row in rows])
        assert outcomes[0] == outcomes[1]
        reasons |= {reason for _, reason, _ in outcomes[0]}
    assert "length" in reasons


def test_the_end_of_the_budget_is_no_cut_by_itself(generator: tf.Generator) -> None:
    """A text that ends with its last token is one that the model ended."""
    whole = generator.sample("A", tf.regex("[a-z ]{1,40}"), seed=3, sampler=tf.Local(), max_tokens=60)[0]
    assert whole.reason == "end"
    exact = {"seed": 3, "sampler": tf.Local(), "max_tokens": len(whole.tokens)}
    again = generator.sample("A", tf.regex("[a-z ]{1,40}"), **exact)[0]
    assert (again.text, again.reason) == (whole.text, "end")
    less = generator.sample("A", tf.regex("[a-z ]{1,40}"), **{**exact, "max_tokens": len(whole.tokens) - 1})[
        0
    ]
    assert (less.reason, less.cut) == ("length", [""]) and less.text[: less.cut_at] == whole.text[
        : less.cut_at
    ]


def test_a_text_that_was_cut_can_be_an_error(generator: tf.Generator) -> None:
    options: dict[str, Any] = {"seed": 0, "max_tokens": 16, "on_length": "raise"}
    with pytest.raises(errors.BudgetTooSmall, match="Raise max_tokens") as caught:
        generator.sample(PROMPTS, SCHEMAS[0], **options)
    assert caught.value.result.reason == "length" and caught.value.results is not None
    back = generator.sample(PROMPTS, SCHEMAS[0], on_error="return", **options)
    assert all(isinstance(one, errors.BudgetTooSmall) and one.result.cut for (one,) in back)
    with pytest.raises(errors.BudgetTooSmall):
        "".join(generator.stream(PROMPTS[0], SCHEMAS[0], seed=0, max_tokens=16, on_length="raise"))
    with pytest.raises(errors.OptionError, match="on_length"):
        generator.sample("A", SCHEMAS[0], on_length="shorten")


@pytest.mark.parametrize("sampler", [tf.SMC(4), tf.CARS()], ids=lambda one: type(one).__name__)
def test_samplers_of_whole_texts_say_when_the_last_token_was_forced(
    generator: tf.Generator, sampler: Any
) -> None:
    """Their target is the texts that fit."""
    found = generator.sample("A", tf.regex("[a-z]+"), n=24, seed=1, max_tokens=2, sampler=sampler)
    assert {result.reason for result in found} == {"end", "length"}
    for result in found:
        assert (result.reason == "length") == (len(result.tokens) == 2)
    (result,) = generator.sample("A", tf.regex("[ab]"), seed=1, max_tokens=1, sampler=sampler)
    assert result.reason == "end"
