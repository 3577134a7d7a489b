"""Drafts of the constraint in vLLM, where it drafts by n-grams."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
from benchmarks.suites.hosts.texts import random_model
from benchmarks.suites.hosts.vllm_manager import Engine

SIZE = 2080  # wider than the tokenizer's 2,048
FORM = {
    "type": "object",
    "properties": {
        "customer_name": {"enum": ["Maria Rossi", "John Smith"]},
        "delivery_address": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}},
        "order_status": {"enum": ["pending", "shipped"]},
        "paid": {"type": "boolean"},
    },
    "required": ["customer_name", "delivery_address", "order_status", "paid"],
    "additionalProperties": False,
}
TAGS = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f="],
        "at_least_one": True,
        "stop_after_first": True,
        "tags": [
            {
                "type": "tag",
                "begin": f"<f={name}>",
                "content": {"type": "json_schema", "json_schema": FORM},
                "end": "</f>",
            }
            for name in ("one", "two")
        ],
    },
}
PROMPT = list(range(100, 140))


@pytest.fixture
def engine(needs, model_folder):
    needs("vllm.v1.core.sched.scheduler")
    from tokenform.integrations.vllm.plugin import register

    assert register()
    made = []

    def make(drafts=6, folder=model_folder, **options):
        options = {"method": "ngram"} | options if drafts else options
        made.append(Engine(folder, size=SIZE, drafts=drafts, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def asked(max_tokens: int = 90, temperature: float = 0.0, **constraint):
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    outputs = StructuredOutputsParams(**constraint)
    return SamplingParams(max_tokens=max_tokens, temperature=temperature, structured_outputs=outputs)


def greedy(one: Engine, seed: int = 0):
    """A model that writes what is longest and no whitespace, and chooses among equals by the place alone."""
    pieces = [len(one.tokenizer.decode([token]).strip()) for token in range(len(one.tokenizer))]
    lengths = np.array([*pieces, *[0] * (SIZE - len(pieces))], float)
    lengths[one.tokenizer.eos_token_id] = 99

    def draw(row, place):
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[:SIZE].astype(bool)
        chance = np.random.default_rng((seed, place)).random(SIZE)
        return int(np.argmax(np.where(allowed, lengths + chance, -1)))

    return draw


def written(one: Engine, constraint: dict, count: int = 8, budget: int = 90):
    """Texts of so many requests, and the steps that they took."""
    texts = [one.add(str(number), asked(budget, **constraint), prompt=PROMPT) for number in range(count)]
    one.settle()
    draw, steps = greedy(one), 0
    while one.step(draw):
        steps += 1
    assert all(text.reason == "stop" for text in texts), [text.error for text in texts]
    return [text.tokens for text in texts], steps


@pytest.mark.parametrize(
    "constraint",
    [
        {"json": FORM},
        {"json_object": True},
        {"structural_tag": json.dumps(TAGS)},
        {"choice": ["a long answer", "another long answer", "no"]},
        {"regex": r"(red|rose|ruby)-(one|two)-[0-9]{4}"},
        {"grammar": 'root ::= item ("; " item)*\nitem ::= "name: " [a-f]+ " value: " [0-9]+'},
    ],
    ids=lambda one: next(iter(one)),
)
def test_texts_are_those_without_drafts_in_fewer_steps(engine, constraint):
    plain, steps = written(engine(drafts=0), constraint)
    drafted, fewer = written(engine(), constraint)
    assert drafted == plain
    assert fewer < steps


def test_a_form_takes_less_than_half_the_steps(engine):
    (text, *_), steps = written(engine(drafts=8), {"json": FORM})
    assert 2 * steps < len(text)


@pytest.mark.parametrize("budget", [30, 45, 90])
def test_random_texts_are_valid_and_within_max_tokens(engine, budget):
    one = engine()
    for number in range(12):
        one.add(str(number), asked(budget, json=FORM), prompt=PROMPT)
    one.run(random_model(SIZE, budget))
    for text in one.texts.values():
        assert text.reason == "stop" and len(text.tokens) <= budget, text.error
        jsonschema.Draft202012Validator(FORM).validate(json.loads(text.written(one.tokenizer)))


def test_a_thought_has_no_drafts_of_the_constraint(engine, thinking_folder):
    one = engine(reasoning="deepseek_r1", folder=thinking_folder)
    think, close = one.tokenizer.convert_tokens_to_ids(["<think>", "</think>"])
    for number in range(8):
        one.add(str(number), asked(json=FORM), prompt=[1, think])
    writes = greedy(one)

    def draw(row, place):
        if (row.view(np.int32) == -1).all():  # in a thought
            return close if place == 5 else 100 + place
        return writes(row, place)

    one.settle()
    steps = 0
    while one.step(draw):
        steps += 1
    for text in one.texts.values():
        assert text.reason == "stop" and text.tokens[5] == close, text.error
        assert steps < len(text.tokens)
        document = one.tokenizer.decode(text.tokens[6:-1])
        jsonschema.Draft202012Validator(FORM).validate(json.loads(document))


def test_wide_batches_and_other_ways_of_drafting_are_left_alone(engine, monkeypatch):
    from tokenform.integrations.vllm import backend, plugin

    proposed = []
    own = backend.VllmGrammar.drafted
    monkeypatch.setattr(backend.VllmGrammar, "drafted", lambda *a: proposed.append(a) or own(*a))
    for options, count in (
        ({}, plugin.DRAFTED + 1),
        ({"method": "eagle"}, 2),
        ({"method": "draft_model"}, 2),
    ):
        written(engine(**options), {"json": FORM}, count)
        assert not proposed
    written(engine(), {"json": FORM}, plugin.DRAFTED)
    assert proposed


def test_requests_with_a_temperature_are_left_to_vllm(engine):
    one = engine()
    text = one.add("x", asked(temperature=1.0, json=FORM), prompt=PROMPT)
    one.settle()
    draw, steps = greedy(one), 0
    while one.step(draw):
        steps += 1
    assert text.reason == "stop" and steps == len(text.tokens)


@pytest.mark.parametrize("where", ["_begin", "_likely"])
def test_a_fault_of_the_drafter_ends_its_drafts_alone(engine, monkeypatch, caplog, where):
    from tokenform.integrations import drafts

    def broken(*_):
        raise RuntimeError("injected")

    plain, _ = written(engine(drafts=0), {"json": FORM}, 2)
    monkeypatch.setattr(drafts.RequestDrafts, where, broken)
    drafted, _ = written(engine(), {"json": FORM}, 2)
    assert drafted == plain
    assert "no drafts for a request any more" in caplog.text


def test_a_long_prompt_is_read_in_part(engine):
    from tokenform.integrations import drafts

    one = engine()
    text = one.add("x", asked(json=FORM), prompt=[100 + i % 900 for i in range(3 * drafts.TAIL)])
    one.settle()
    grammar = text.request.structured_output_request.grammar
    assert len(grammar._drafts._context.tokens) == drafts.TAIL
    one.run(greedy(one))
    assert text.reason == "stop"
