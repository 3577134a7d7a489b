"""Generation end to end on a small random model: completeness, batching, budgets, seeds, streams."""

from __future__ import annotations

import json
import math
import re

import jsonschema
import pytest
import torch

import tokenform as tf
from tokenform import errors

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "bc"]}},
        "alive": {"type": "boolean"},
    },
    "required": ["name", "age", "tags", "alive"],
    "additionalProperties": False,
}
CODE = tf.regex(r"[A-Z]{3}-[0-9]{1,4}")


def test_what_is_printed_is_one_short_line():
    result = tf.generate("The order has been paid.", {"enum": ["new", "paid"]})
    assert repr(result) == f"Result('\"paid\"', value='paid', tokens={len(result.tokens)})"
    long = tf.Result(
        text="a\n" * 5000, tokens=[1] * 9, value="a\n" * 5000, logprob=0.0, reason="length", cut=[""]
    )
    assert len(repr(long)) < 400 and "\n" not in repr(long)
    assert repr(long).endswith("..., tokens=9, reason='length', cut=[''])")
    automaton = tf.regex("a").compile(tf.Vocabulary([b"a", b""], eos=[1]))
    assert repr(automaton) == "<TokenAutomaton over Vocabulary(2 tokens, eos=[1])>"
    assert (repr(tf.CARS()), repr(tf.SMC(5))) == ("CARS(...)", "SMC(...)")
    assert repr(tf.stream("x", bool, partial=True)) == "<Partials, to be read>"
    assert repr(tf.astream("x", bool)) == "<AsyncStream, to be read>"
    assert repr(tf.AsyncGenerator()).startswith("<AsyncGenerator of <Generator of ")


def test_the_names_of_the_package_are_its_own():
    assert {name for name in dir(tf) if not name.startswith("_")} >= {"generate", "CARS", "TokenAutomaton"}
    assert not {"TYPE_CHECKING", "annotations", "import_module", "warn_outside", "Any"} & set(dir(tf))


def test_a_document_is_valid_and_parsed(generator):
    (result,) = generator.sample("Ada", tf.json_schema(PERSON), max_tokens=60, sampler=tf.Local(), seed=3)
    jsonschema.validate(result.value, PERSON)
    assert json.loads(result.text) == result.value
    assert b"".join(generator.vocabulary.tokens[t] for t in result.tokens).decode() == result.text
    assert result.stats.tokens == len(result.tokens) <= 60
    assert 0 < result.stats.forwards <= len(result.tokens) + 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slack", [0, 1, 5, 40])
def test_a_budget_never_cuts_a_document(generator, seed, slack):
    grammar = tf.json_schema(PERSON)
    automaton = grammar.compile(generator.vocabulary)
    budget = automaton.distance(automaton.start) + slack
    (result,) = generator.sample(
        "x", grammar, max_tokens=budget, seed=seed, sampler=tf.Local(temperature=2.0)
    )
    jsonschema.validate(result.value, PERSON)
    assert len(result.tokens) <= budget


def test_budget_too_small_is_said_beforehand(generator):
    grammar = tf.json_schema(PERSON)
    automaton = grammar.compile(generator.vocabulary)
    shortest = automaton.distance(automaton.start)
    with pytest.raises(errors.BudgetTooSmall, match=str(shortest)):
        generator.sample("x", grammar, max_tokens=shortest - 1)


def test_batches_with_different_constraints_equal_single_calls(generator):
    prompts = ["Ada Lovelace", "a", "The quick brown fox jumps over the lazy dog", "b"]
    grammars = [tf.json_schema(PERSON), CODE, tf.choice(["yes", "no", "perhaps"]), CODE]
    sampler = tf.Local(temperature=1.5)
    batch = generator.sample(prompts, grammars, n=2, seed=11, max_tokens=80, sampler=sampler)
    for prompt, grammar, together in zip(prompts, grammars, batch, strict=True):
        alone = generator.sample(prompt, grammar, n=2, seed=11, max_tokens=80, sampler=sampler)
        assert [r.tokens for r in alone] == [r.tokens for r in together]
        assert [r.logprob for r in alone] == pytest.approx([r.logprob for r in together], abs=1e-9)


def test_texts_without_log_probabilities_are_the_same(generator):
    sampler, asked = tf.Local(temperature=1.5), {"n": 2, "seed": 5, "max_tokens": 60}
    for grammar in (tf.json_schema(PERSON), CODE, None):
        told = generator.sample("Ada", grammar, sampler=sampler, **asked)
        untold = generator.sample("Ada", grammar, sampler=sampler, logprobs=False, **asked)
        assert [one.tokens for one in told] == [one.tokens for one in untold]
        assert all(math.isfinite(one.logprob) and len(one.token_logprobs) == len(one.tokens) for one in told)
        assert all(math.isnan(one.logprob) and one.token_logprobs == [] for one in untold)
    with pytest.raises(errors.OptionError, match="logprobs=False"):
        tf.debug(untold[0])
    stream = generator.stream("Ada", CODE, seed=5, sampler=sampler, logprobs=False)
    try:
        while True:
            next(stream)
    except StopIteration as end:
        assert math.isnan(end.value.logprob)
        (alone,) = generator.sample("Ada", CODE, seed=5, sampler=sampler)
        assert end.value.tokens == alone.tokens


def test_results_do_not_depend_on_the_batch_size(model, tokenizer):
    prompts = [f"number {i} " * (1 + i % 3) for i in range(7)]
    texts = []
    for size in (1, 3, 7):
        writer = tf.Generator(model, tokenizer, batch_size=size, sampler=tf.Local(temperature=2.0))
        results = writer.sample(prompts, CODE, seed=5)
        texts.append([result.text for (result,) in results])
    assert texts[0] == texts[1] == texts[2]
    assert all(re.fullmatch(r"[A-Z]{3}-[0-9]{1,4}", text) for text in texts[0])


def test_seeds_key_the_draws(generator):
    sampler = tf.Local(temperature=3.0)
    first = generator.sample("x", CODE, n=6, seed=1, sampler=sampler)
    again = generator.sample("x", CODE, n=6, seed=1, sampler=sampler)
    other = generator.sample("x", CODE, n=6, seed=2, sampler=sampler)
    assert [r.text for r in first] == [r.text for r in again]
    assert [r.text for r in first] != [r.text for r in other]
    assert len({r.text for r in first}) > 1


def test_logprob_is_the_models_own(generator, model, tokenizer):
    (result,) = generator.sample("Ada", CODE, seed=0, sampler=tf.Local(temperature=2.0))
    prompt = tokenizer.encode("Ada")
    with torch.inference_mode():
        distribution = model(torch.tensor([prompt + result.tokens])).logits[0].double().log_softmax(-1)
    expected = sum(float(distribution[len(prompt) - 1 + i, token]) for i, token in enumerate(result.tokens))
    assert result.logprob == pytest.approx(expected, abs=1e-9)


def test_greedy_takes_the_likeliest_allowed_token(generator, model, tokenizer):
    (result,) = generator.sample("Ada", CODE)
    automaton = CODE.compile(generator.vocabulary)
    ids, state = tokenizer.encode("Ada"), automaton.start
    for token in result.tokens:
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, -1]
        allowed = torch.from_numpy(automaton.allowed_tokens(state).astype("int64"))
        assert token == int(allowed[logits[allowed].argmax()])
        ids, state = [*ids, token], automaton.advance(state, token)
    assert automaton.is_accepting(state)


def test_stream_pieces_join_to_the_text(generator):
    grammar = tf.regex("[äöü東京é]{5}")
    stream = generator.stream("x", grammar, seed=4, sampler=tf.Local(temperature=2.0))
    pieces = []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            result = end.value
            break
    assert "".join(pieces) == result.text
    assert "\ufffd" not in result.text and len(result.text) == 5
    assert (
        result.tokens == generator.sample("x", grammar, seed=4, sampler=tf.Local(temperature=2.0))[0].tokens
    )


def test_a_stream_has_its_result_once_it_has_ended(generator):
    def passed_on():
        return (yield from generator.stream("x", choices=["ab"]))

    with generator.stream("x", choices=["ab"]) as stream:
        assert stream.result is None and "".join(stream) == stream.result.text == "ab"
        assert next(stream, None) is None and stream.result.value == "ab"
    stream = passed_on()
    with pytest.raises(StopIteration) as ended:
        while True:
            next(stream)
    assert ended.value.value.text == "ab"


def test_stream_can_be_abandoned(generator):
    stream = generator.stream("x", tf.json_schema(PERSON), seed=0, max_tokens=80)
    next(stream)
    stream.close()
    assert not torch.is_inference_mode_enabled()
    assert generator.sample("x", CODE)[0].text


def test_a_text_that_can_only_end_costs_no_forward(generator):
    (result,) = generator.sample("x", tf.choice(["a"]))
    assert result.text == "a" and result.stats.forwards == 1
    (empty,) = generator.sample("x", tf.regex(""))
    assert empty.text == "" and empty.stats.forwards == 0


def test_prompts_as_text_messages_and_ids(generator, model, tokenizer, chat_tokenizer):
    messages = [{"role": "user", "content": "Ada"}]
    chatting, read = tf.Generator(model, chat_tokenizer), "user: Ada\nassistant: "
    (chat,) = chatting.sample(messages, CODE)
    (text,) = generator.sample(read, CODE)
    (ids,) = generator.sample(tokenizer.encode(read), CODE)
    assert chat.tokens == text.tokens == ids.tokens
    assert [r[0].tokens for r in chatting.sample([messages, messages], CODE)] == [chat.tokens] * 2


def test_no_constraint_is_any_text(generator):
    (result,) = generator.sample("x", None, max_tokens=12, seed=0, sampler=tf.Local())
    assert "\ufffd" not in result.text and len(result.tokens) <= 12


@pytest.mark.parametrize("message", [{"rol": "user", "content": "Hi"}, {"role": 3}, {}])
def test_a_chat_message_has_a_role(generator, message):
    with pytest.raises(errors.OptionError, match="message 1 has no role"):
        generator.sample([{"role": "user", "content": "Hi"}, message], tf.regex("a"))


def test_empty_batches_and_prompts(generator):
    assert generator.sample([], CODE) == []
    assert generator.sample("", CODE)[0].text


def test_models_without_a_cache_or_positions(tokenizer, model):
    class Bare:
        """Only `forward(input_ids, attention_mask)`, no cache: every step reads the whole text again."""

        config = model.config

        def __call__(self, input_ids, attention_mask):
            positions = (attention_mask.cumsum(1) - 1).clamp(min=0)
            return model(input_ids, attention_mask=attention_mask, position_ids=positions, use_cache=False)

    bare, whole = tf.Generator(Bare(), tokenizer), tf.Generator(model, tokenizer)
    prompts = ["a", "Ada Lovelace"]
    expected = [r[0].tokens for r in whole.sample(prompts, CODE)]
    assert [r[0].tokens for r in bare.sample(prompts, CODE)] == expected


def test_transforms_come_before_the_mask(model, tokenizer, generator):
    favoured = generator.vocabulary.tokens.index(b"Q")

    def favour(tokens, logits):
        return logits.index_fill(0, torch.tensor([favoured]), 1e6)

    writer = tf.Generator(model, tokenizer, transforms=[favour])
    assert writer.sample("x", CODE)[0].text.startswith("QQQ-")


def test_bare_ids_with_a_vocabulary(model, generator):
    writer = tf.Generator(model, generator.vocabulary)
    assert writer.sample([5, 6, 7], CODE)[0].tokens == generator.sample([5, 6, 7], CODE)[0].tokens
    with pytest.raises(errors.OptionError, match="token ids"):
        writer.sample("text", CODE)


def test_generate_takes_each_kind_of_constraint(model, tokenizer):
    options = {"model": model, "tokenizer": tokenizer, "max_tokens": 60}
    assert tf.generate("x", regex="[ab]{2}", **options).text in {"aa", "ab", "ba", "bb"}
    assert tf.generate("x", choices=["one", "two"], **options).value in {"one", "two"}
    assert set(tf.generate("x", schema=PERSON, **options).value) == set(PERSON["properties"])
    assert isinstance(tf.generate("x", schema=bool, **options).value, bool)
    results = tf.generate(["x", "y"], schema=[CODE, tf.choice(["z"])], **options)
    assert results[1].text == "z"
    assert len(tf.generate("x", schema=CODE, n=3, temperature=1.0, seed=0, **options)) == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"max_tokens": 0}, errors.OptionError),
        ({"max_tokens": 2.5}, errors.OptionError),
        ({"max_tokens": "10"}, errors.OptionError),
        ({"max_tokens": True}, errors.OptionError),
        ({"seed": "a"}, errors.OptionError),
        ({"seed": 1.5}, errors.OptionError),
        ({"prompt": "\ud800"}, errors.OptionError),
        ({"n": 0}, errors.OptionError),
        ({"grammar": None, "stop": ""}, errors.OptionError),
        ({"grammar": None, "stop": ["a", 7]}, errors.OptionError),
        ({"prompt": [99999]}, errors.OptionError),
        ({"prompt": 7}, errors.OptionError),
        ({"prompt": ["a", 7]}, errors.OptionError),
        ({"prompt": "word " * 300}, errors.PromptTooLong),
        ({"prompt": ["a", "b"], "grammar": [CODE]}, errors.OptionError),
        ({"grammar": 7}, errors.OptionError),
    ],
)
def test_bad_input_is_refused_in_one_sentence(generator, arguments, error):
    call = {"prompt": "x", "grammar": CODE} | arguments
    with pytest.raises(error) as caught:
        generator.sample(**call)
    assert "\n" not in str(caught.value)


def test_bad_models_are_refused(tokenizer, model):
    for wrong in ({"model": "./no/such/model"}, {"model": model}, {"tokenizer": tokenizer}, {"model": 7}):
        with pytest.raises(errors.ModelError) as caught:
            tf.generate("x", regex="a", **wrong)
        assert "\n" not in str(caught.value)
    with pytest.raises(errors.OptionError, match="regex and choices"):
        tf.generate("x", regex="a", choices=["b"], model=model, tokenizer=tokenizer)


def test_a_saved_model_is_opened_by_path(tmp_path, model, tokenizer, generator):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert (
        tf.generate("Ada", schema=CODE, model=str(tmp_path)).tokens == generator.sample("Ada", CODE)[0].tokens
    )


def test_a_model_of_nothing_but_nan_is_an_error(tokenizer, model):
    def broken(tokens, logits):
        return logits * float("nan")

    with pytest.raises(errors.SamplingError):
        tf.Generator(model, tokenizer, transforms=[broken]).sample("x", CODE)


def test_a_generator_says_what_it_is(generator):
    assert re.fullmatch(r"<Generator of \w+, [\d,]+ tokens, Local\(.*\)>", repr(generator))
