"""The plug-in inside vLLM's own `StructuredOutputManager`, with a random model."""

from __future__ import annotations

import gc
import json
import re
import weakref

import jsonschema
import numpy as np
import pytest
from benchmarks.suites.hosts.texts import random_model
from benchmarks.suites.hosts.vllm_manager import Engine

import tokenform as tf
from tokenform.integrations.request_matcher import RequestMatcher

SIZE = 2080  # wider than the tokenizer's 2,048
HARD = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 10, "maximum": 999, "multipleOf": 7},
        "tags": {
            "type": "array",
            "items": {"enum": ["a", "b", "c"]},
            "minItems": 2,
            "uniqueItems": True,
        },
        "note": {"type": "string", "maxLength": 200},
    },
    "required": ["n", "tags", "note"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vllm(needs):
    needs("vllm.v1.structured_output")
    module = needs("vllm")
    from tokenform.integrations.vllm.plugin import register

    assert register()
    return module


@pytest.fixture
def engine(vllm, model_folder):
    made = []

    def make(folder=model_folder, **options):
        made.append(Engine(folder, size=SIZE, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def asked(max_tokens: int = 60, **constraint):
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=max_tokens, structured_outputs=StructuredOutputsParams(**constraint))


GBNF = 'root ::= item ("," item)*\nitem ::= [a-f]+ | "(" root ")"'
LARK = 'start: pair (";" pair)*\npair: NAME "=" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/'


CALL = {
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
                "content": {
                    "type": "json_schema",
                    "json_schema": {"type": "array", "items": {"enum": [1, 2]}},
                },
                "end": "</f>",
            }
            for name in ("one", "two")
        ],
    },
}
OLDER = {
    "structures": [{"begin": "<f>", "schema": {"type": "integer", "multipleOf": 3}, "end": "</f>"}],
    "triggers": ["<f"],
}


@pytest.mark.parametrize("drafts", [0, 3])
def test_structural_tags(engine, drafts):
    one = engine(drafts=drafts)
    for number in range(6):
        one.add(f"call {number}", asked(40, structural_tag=json.dumps(CALL)))
        one.add(f"older {number}", asked(40, structural_tag=json.dumps(OLDER)))
    one.run(random_model(SIZE, 7))
    for name, text in one.texts.items():
        written = text.written(one.tokenizer)
        assert text.reason == "stop" and len(text.tokens) <= 40, (name, text.error)
        if name.startswith("call"):
            found = re.fullmatch(r"<f=(one|two)>(.*)</f>", written, re.DOTALL)
            assert set(json.loads(found[2])) <= {1, 2}
        else:
            assert all(json.loads(inside) % 3 == 0 for inside in re.findall(r"<f>(.*?)</f>", written))


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_the_tags_of_vllms_own_tool_parsers(engine, needs, choice):
    registry = needs("vllm.tool_parsers.structural_tag_registry")
    protocol = needs("vllm.entrypoints.openai.chat_completion.protocol")
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 9}, "unit": {"enum": ["c", "f"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema, "strict": True}}
    tools = [protocol.ChatCompletionToolsParam(**tool)]
    if not isinstance(choice, str):
        choice = protocol.ChatCompletionNamedToolChoiceParam(**choice)
    one = engine()
    for number in range(4):
        made = registry.get_model_structural_tag("hermes", tools, choice, reasoning=False)
        one.add(str(number), asked(80, structural_tag=made.model_dump_json()))
    one.run(random_model(SIZE, 8))
    for text in one.texts.values():
        written = text.written(one.tokenizer)
        assert text.reason == "stop", (text.error, written)
        calls = re.findall(r"<tool_call>\s*(.*?)\s*</tool_call>", written, re.DOTALL)
        assert calls
        for call in map(json.loads, calls):
            assert call["name"] == "weather"
            jsonschema.validate(call["arguments"], schema)


@pytest.mark.parametrize("drafts", [0, 3])
def test_batches_of_all_kinds_are_valid_and_within_max_tokens(engine, drafts):
    one = engine(drafts=drafts)
    kinds = {
        "json": {"json": HARD},
        "text": {"json": json.dumps(HARD)},
        "object": {"json_object": True},
        "regex": {"regex": r"[A-Z]{2}-\d{2,30}"},
        "choice": {"choice": ["yes", "no", "maybe so"]},
        "gbnf": {"grammar": GBNF},
        "lark": {"grammar": LARK},
    }
    for budget in (24, 40, 90):
        for name, constraint in kinds.items():
            one.add(f"{name}-{budget}", asked(budget, **constraint))
    one.run(random_model(SIZE, drafts))
    for name, text in one.texts.items():
        kind, budget = name.split("-")
        written = text.written(one.tokenizer)
        assert text.reason == "stop" and len(text.tokens) <= int(budget), (
            name,
            text.reason,
            text.error,
            written,
        )
        if kind in ("json", "text"):
            jsonschema.Draft202012Validator(HARD).validate(json.loads(written))
        elif kind == "object":
            assert isinstance(json.loads(written), dict)
        elif kind == "regex":
            assert re.fullmatch(r"[A-Z]{2}-\d{2,30}", written)
        elif kind == "choice":
            assert written in ("yes", "no", "maybe so")
        else:
            grammar = tf.gbnf(GBNF) if kind == "gbnf" else tf.lark(LARK)
            assert grammar.compile(
                tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
            ).matches(written.encode())


def test_a_wide_batch_is_filled_from_several_threads(engine):
    one = engine(seats=256)
    for number in range(150):
        one.add(str(number), asked(30, json={"type": "array", "items": {"type": "integer"}, "maxItems": 3}))
    one.run(random_model(SIZE, 1))
    assert all(
        text.reason == "stop" and isinstance(json.loads(text.written(one.tokenizer)), list)
        for text in one.texts.values()
    )


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ({"json": {"type": "object", "properties": {"a": {"type": "strin"}}}}, "/properties/a"),
        ({"json": '{"type": '}, "InvalidSchema"),
        ({"json": {"type": "integer", "minimum": 3, "maximum": 2}}, "UnsatisfiableSchema"),
        ({"regex": "(a"}, "InvalidRegex"),
        ({"regex": r"(a)\1"}, "UnsupportedRegex"),
        ({"grammar": 'root ::= "a'}, "line 1"),
        ({"grammar": "start: missing"}, "missing"),
        ({"grammar": "  "}, "empty"),
        ({"choice": []}, "no choice"),
        ({"json": {"type": "string", "minLength": 900}}, "max_tokens"),
        ({"json": {"type": "string"}, "whitespace_pattern": " *"}, "whitespace_pattern"),
        ({"json_object": False}, "json_object"),
        ({"structural_tag": json.dumps({"format": {"type": "unheard_of"}})}, "/format"),
    ],
)
def test_what_is_wrong_is_refused_in_the_front_end(engine, constraint, message):
    from vllm.exceptions import VLLMValidationError

    with pytest.raises(VLLMValidationError, match=re.escape(message)):
        engine().add("x", asked(**constraint))


def test_masks_of_first_texts_are_there_before_the_first_step(engine):
    one = engine()
    text = one.add("first", asked(json=HARD))
    one.settle()
    assert text.request.structured_output_request.grammar._automaton.state_count > 20
    one.run(random_model(SIZE, 8))
    assert text.reason == "stop"


def test_flags_of_the_engine_and_of_a_request(engine):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }
    closed = {"disable_additional_properties": True}
    one = engine(flags={"disable_any_whitespace": True})
    for number in range(5):
        one.add(f"engine {number}", asked(json=schema, **closed))
    other = engine()
    for number in range(5):
        other.add(f"request {number}", asked(json=schema, disable_any_whitespace=True, **closed))
    for serving in (one, other):
        serving.run(random_model(SIZE, 2))
        for text in serving.texts.values():
            written = text.written(serving.tokenizer)
            assert not re.search(r"\s", written) and set(json.loads(written)) == {"a", "b"}


def test_stop_token_ids_end_texts_and_stand_nowhere_else(engine):
    one = engine()
    stop = one.tokenizer.convert_tokens_to_ids("th")
    params = asked(json={"type": "string", "minLength": 3, "maxLength": 8})
    params.stop_token_ids = [stop]
    params._all_stop_token_ids.add(stop)
    ends = set()
    for number in range(40):
        one.add(str(number), params)
    one.run(random_model(SIZE, 3))
    for text in one.texts.values():
        ends.add(text.tokens[-1])
        assert stop not in text.tokens[:-1] and text.reason == "stop"
        assert 3 <= len(json.loads(one.tokenizer.decode(text.tokens[:-1]))) <= 8
    assert ends == {stop, one.tokenizer.eos_token_id}


def test_padded_ids_are_never_allowed(engine):
    one = engine()
    one.add("x", asked(json={"type": "string"}))
    one.settle()
    row = one.manager.grammar_bitmask({"x": one.texts["x"].request}, ["x"], {})
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    assert bits[: len(one.tokenizer)].any() and not bits[len(one.tokenizer) :].any()


def test_rows_of_drafts_are_those_of_the_text_after_them(engine):
    drafted, plain = engine(drafts=3), engine()
    constraint = {"json": HARD}
    one, other = drafted.add("x", asked(**constraint)), plain.add("x", asked(**constraint))
    drafted.settle(), plain.settle()
    grammar = one.request.structured_output_request.grammar
    draw = random_model(SIZE, 4)
    reference = other.request.structured_output_request.grammar
    tokens, rows = [], []
    for place in range(4):
        row = plain.manager.grammar_bitmask({"x": other.request}, ["x"], {}).copy()
        rows.append(row[0])
        tokens.append(draw(row[0].view(np.uint32), place))
        assert reference.accept_tokens("x", tokens[-1:])
    found = drafted.manager.grammar_bitmask({"x": one.request}, ["x"], {"x": tokens[:3]})
    assert np.array_equal(found, np.stack(rows))
    assert grammar.validate_tokens([*tokens[:2], SIZE + 7, 1]) == tokens[:2]
    assert np.array_equal(drafted.manager.grammar_bitmask({"x": one.request}, ["x"], {})[0], rows[0])


@pytest.mark.parametrize("drafts", [0, 3])
def test_a_steps_rows_are_those_that_vllm_would_fill_one_by_one(engine, monkeypatch, drafts):
    from tokenform.integrations.vllm.backend import VllmBackend

    one, draw, calls = engine(drafts=drafts), random_model(SIZE, 3), []
    batched = VllmBackend.fill_blocks
    monkeypatch.setattr(VllmBackend, "fill_blocks", lambda *a: calls.append(batched(*a)) or calls[-1])
    plainly = type(one.manager).grammar_bitmask.__wrapped__
    for number in range(5):
        one.add(str(number), asked(90, **({"json": HARD} if number % 2 else {"grammar": GBNF})))
    one.settle()
    ids = list(one.texts)
    requests = {name: text.request for name, text in one.texts.items()}
    one.manager.grammar_bitmask(requests, ids, {})  # makes the tensor
    for step in range(12):
        scheduled = {}
        for name in ids[: 4 if drafts else 0]:
            proposed = one.random.integers(SIZE, size=drafts).tolist()
            good = one.manager.validate_tokens(requests[name], proposed)
            scheduled[name] = (good + [-1] * drafts)[: one.random.integers(drafts + 1)]
        one.manager._grammar_bitmask.fill_(7)
        found = one.manager.grammar_bitmask(requests, ids, scheduled).copy()
        one.manager._grammar_bitmask.fill_(7)
        assert np.array_equal(found, plainly(one.manager, requests, ids, scheduled))
        for at, name in enumerate(ids):
            token = draw(found[at * (1 + drafts)].view(np.uint32), step)
            if token != one.tokenizer.eos_token_id:
                assert one.manager.accept_tokens(requests[name], [token])
    assert calls == [True] * 12


def test_rows_of_a_draft_that_may_not_stand_are_vllms_own(engine):
    one = engine(drafts=3)
    for name in ("x", "y"):
        one.add(name, asked(json=HARD))
    one.settle()
    requests = {name: text.request for name, text in one.texts.items()}
    one.manager.grammar_bitmask(requests, ["x", "y"], {})
    begin = one.tokenizer.convert_tokens_to_ids("{")
    found = one.manager.grammar_bitmask(requests, ["x", "y"], {"x": [begin, begin, begin]}).copy()
    plainly = type(one.manager).grammar_bitmask.__wrapped__
    assert np.array_equal(found, plainly(one.manager, requests, ["x", "y"], {"x": [begin, begin, begin]}))
    assert np.array_equal(found[1], found[2]) and found[2].any()


def test_rows_after_an_end_are_open_as_vllms_own(engine):
    one = engine(drafts=2)
    for name in ("ended", "ends", "goes on"):
        one.add(name, asked(choice=["a"] if name != "goes on" else ["a", "b"]))
    one.settle()
    requests, ids = {name: text.request for name, text in one.texts.items()}, list(one.texts)
    letter, end = one.tokenizer.convert_tokens_to_ids("a"), one.tokenizer.eos_token_id
    assert one.manager.accept_tokens(requests["ended"], [letter, end])
    one.manager.grammar_bitmask(requests, ids, {})
    for scheduled in ({}, {"ends": [letter, end]}, {"ended": [], "ends": [letter, -1]}):
        one.manager._grammar_bitmask.fill_(7)
        found = one.manager.grammar_bitmask(requests, ids, scheduled).copy()
        one.manager._grammar_bitmask.fill_(7)
        plainly = type(one.manager).grammar_bitmask.__wrapped__
        assert np.array_equal(found, plainly(one.manager, requests, ids, scheduled))
        assert (found[0] == -1).all() and not (found[[3, 6]] == -1).all()


def test_a_prompt_that_leaves_no_room_is_an_error_of_its_request(engine):
    one = engine(context=40)
    for name, used in (("room", 5), ("none", 30)):
        one.add(name, asked(json=HARD), prompt=[1] * used)
    one.run(random_model(SIZE, 9))
    assert one.texts["room"].reason == "stop" and len(one.texts["room"].tokens) <= 35
    assert one.texts["none"].reason == "error" and not one.texts["none"].tokens
    assert re.search(r"max_tokens=10: the shortest .* [0-9]+ tokens", one.texts["none"].error)


def test_nothing_stays_of_texts_that_have_ended_or_were_aborted(engine):
    one, alive = engine(), []
    for number in range(60):
        one.add(str(number), asked(json={"type": "array", "items": {"enum": list(range(number + 1))}}))
    one.settle()
    for _ in range(3):
        one.step(random_model(SIZE, 4))
    for text in one.texts.values():
        alive.append(weakref.ref(text.request.structured_output_request.grammar))
    del text
    one.texts.clear()
    gc.collect()
    assert not any(ref() for ref in alive)


def test_the_rows_of_vllm_0_32_follow_each_other(engine, monkeypatch):
    one = engine(drafts=2)
    for name in ("x", "y"):
        one.add(name, asked(json=HARD))
    one.settle()
    requests = {name: text.request for name, text in one.texts.items()}
    begin = one.tokenizer.convert_tokens_to_ids("{")
    fixed = one.manager.grammar_bitmask(requests, ["x", "y"], {"x": [begin]}).copy()
    monkeypatch.delattr(type(one.manager), "_masked_reasoning_ends")
    found = one.manager.grammar_bitmask(requests, ["x", "y"], {"x": [begin]})
    assert np.array_equal(found, fixed[[0, 1, 3]])


def test_texts_begin_where_grammars_compile_unless_a_thought_comes_first(engine, thinking_folder):
    """Not in the first step of a batch, which would begin them all."""
    for one, begun in ((engine(), True), (engine(reasoning="deepseek_r1", folder=thinking_folder), False)):
        text = one.add("x", asked(json=HARD))
        one.settle()
        assert (text.request.structured_output_request.grammar.going is not None) == begun


@pytest.mark.parametrize("drafts", [0, 3])
def test_the_constraint_begins_after_the_thought_and_ends_in_time(engine, thinking_folder, drafts):
    one = engine(reasoning="deepseek_r1", folder=thinking_folder, drafts=drafts)
    think, close = one.tokenizer.convert_tokens_to_ids(["<think>", "</think>"])
    cut = random_model(2048, 6)
    for number in range(20):
        one.add(str(number), asked(60, json=HARD), prompt=[1, think])

    def draw(row, place):
        if row.view(np.int32).min() == -1 == row.view(np.int32).max():  # nothing is asked of a thought
            return close if place == 20 else cut(row, place)
        return cut(row, place)

    one.run(draw)
    for text in one.texts.values():
        assert text.reason == "stop" and len(text.tokens) <= 60, text.error
        document = one.tokenizer.decode(text.tokens[text.tokens.index(close) + 1 : -1])
        jsonschema.Draft202012Validator(HARD).validate(json.loads(document))


class PanicException(BaseException):
    """What a panic of compiled code is in Python, by its name."""


@pytest.mark.parametrize(
    "fault", [tf.errors.EngineError, tf.errors.LimitExceeded, ValueError, PanicException]
)
@pytest.mark.parametrize("call", ["fill_mask", "accept_tokens", "validate_tokens"])
def test_a_fault_fails_one_request_alone(engine, monkeypatch, fault, call):
    one = engine(drafts=3)
    good, bad = one.add("good", asked(json=HARD)), one.add("bad", asked(json=HARD))
    one.settle()
    text = bad.request.structured_output_request.grammar
    inner = text.begin()

    def broken(*_):
        raise fault("broken")

    calls = {name: getattr(inner, name) for name in ("fill_mask", "accept_tokens", "validate_tokens")}
    calls |= {name: getattr(inner, name) for name in ("is_terminated", "rollback", "fill_draft_masks")}
    monkeypatch.setattr(text, "going", type("Broken", (), {**calls, call: broken})())
    one.run(random_model(SIZE, 5))
    assert (good.reason, bad.reason) == ("stop", "error")


@pytest.mark.parametrize("fault", [tf.errors.EngineError, tf.errors.LimitExceeded, PanicException])
def test_a_fault_where_a_text_begins_fails_one_request_alone(engine, monkeypatch, fault):
    def broken(_):
        raise fault("broken")

    one = engine(drafts=3)
    with monkeypatch.context() as patched:
        patched.setattr(RequestMatcher, "begin", broken)
        bad = one.add("bad", asked(json=HARD))
        one.settle()
    good = one.add("good", asked(json=HARD))
    one.settle()
    one.run(random_model(SIZE, 5))
    assert (good.reason, bad.reason) == ("stop", "error")


def test_a_fault_in_the_front_end_is_a_400_of_its_request(engine, monkeypatch):
    from vllm.exceptions import VLLMValidationError

    from tokenform.frontends import grammar_text

    def broken(text, **_):
        raise PanicException("broken")

    monkeypatch.setitem(grammar_text._READERS, "regex", broken)
    one = engine()
    with pytest.raises(VLLMValidationError, match=r"EngineError.*PanicException"):
        one.add("bad", asked(regex="a fault"))
    one.add("good", asked(json=HARD))
    one.run(random_model(SIZE, 5))
    assert one.texts["good"].reason == "stop"


def test_other_backends_are_left_alone(engine):
    one = engine(backend="xgrammar")
    one.add("x", asked(json={"type": "array", "items": {"type": "boolean"}, "maxItems": 2}))
    one.settle()
    assert type(one.manager.backend).__name__ == "XgrammarBackend"


def test_registering_twice_changes_nothing(vllm):
    from vllm.sampling_params import SamplingParams

    from tokenform.integrations.vllm.plugin import register

    before = SamplingParams._validate_structured_outputs
    assert register() and SamplingParams._validate_structured_outputs is before


def test_an_unknown_version_is_left_alone(vllm, monkeypatch, caplog):
    from tokenform.integrations.vllm import plugin

    monkeypatch.setattr(vllm, "__version__", "0.99.1")
    assert not plugin.register()
    assert "0.32 and 0.33" in caplog.text and "0.99.1" in caplog.text
