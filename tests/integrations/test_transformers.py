"""The logits processor in the loops of transformers: sampling, beams, several grammars, assisted."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, PreTrainedTokenizerFast

import tokenform as tf
from tokenform.errors import BudgetTooSmall, ModelError, OptionError, SamplingError
from tokenform.integrations.custom_generate import custom_generate
from tokenform.integrations.transformers import GrammarLogitsProcessor

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
CODE = r"[A-Z]{2}-[0-9]{1,3}"


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(["</s>", "<pad>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="</s>", pad_token="<pad>", padding_side="left"
    )


@pytest.fixture(scope="module")
def model(tokenizer) -> LlamaForCausalLM:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 6,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        initializer_range=0.6,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def written(model, tokenizer, prompts, processor, **options) -> list[str]:
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    options = {"max_new_tokens": 41, "do_sample": False} | options
    ids = model.generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        logits_processor=[processor],
        **options,
    )
    return tokenizer.batch_decode(ids[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "temperature": 1.5, "num_return_sequences": 3},
        {"num_beams": 4, "num_return_sequences": 2},
        {"prompt_lookup_num_tokens": 3},
    ],
    ids=["greedy", "sampled", "beams", "lookup"],
)
def test_every_text_is_complete_and_accepted(model, tokenizer, options):
    torch.manual_seed(1)
    processor = GrammarLogitsProcessor(tf.json_schema(SCHEMA), tokenizer, model=model, max_tokens=40)
    prompts = ["Ada"] if "prompt_lookup_num_tokens" in options else ["Ada", "a longer prompt"]
    texts = written(model, tokenizer, prompts, processor, **options)
    assert len(texts) == len(prompts) * options.get("num_return_sequences", 1)
    for text in texts:
        jsonschema.validate(json.loads(text), SCHEMA)


@pytest.mark.parametrize("beams", [1, 3])
def test_each_prompt_has_a_grammar_of_its_own(model, tokenizer, beams):
    processor = GrammarLogitsProcessor([tf.regex(CODE), tf.choice(["yes", "no"])], tokenizer, model=model)
    for prompts in (["x", "y"], ["x", "y"], ["a third", "call"]):
        code, answer = written(model, tokenizer, prompts, processor, num_beams=beams)
        assert re.fullmatch(CODE, code) and answer in {"yes", "no"}


def test_greedy_is_that_of_a_generator(model, tokenizer):
    processor = GrammarLogitsProcessor(tf.regex(CODE), tokenizer, model=model)
    (text,) = written(model, tokenizer, ["Ada"], processor)
    local = tf.Local(0.0, values="token")  # a host draws by masks
    assert text == tf.Generator(model, tokenizer).sample("Ada", tf.regex(CODE), sampler=local)[0].text


def test_a_second_turn_that_begins_with_the_first_starts_anew(model, tokenizer):
    processor = GrammarLogitsProcessor(tf.choice(["yes", "no"]), tokenizer, model=model)
    (first,) = written(model, tokenizer, ["Ada"], processor)
    (second,) = written(model, tokenizer, [f"Ada{first} and so"], processor)
    assert {first, second} <= {"yes", "no"}


def test_a_prompt_that_is_the_first_with_its_text_starts_anew_behind_a_reset(model, tokenizer):
    processor = GrammarLogitsProcessor(tf.choice(["yes", "no"]), tokenizer, model=model)
    prompt = "Ada"
    for _ in range(3):
        processor.reset()
        (text,) = written(model, tokenizer, [prompt], processor)
        assert text in {"yes", "no"}
        prompt += text


def test_beams_beyond_the_texts_there_are(model, tokenizer):
    processor = GrammarLogitsProcessor(tf.choice(["yes", "no"]), tokenizer, model=model)
    (text,) = written(model, tokenizer, ["Ada"], processor, num_beams=5)
    assert text in {"yes", "no"}


def test_what_does_not_fit_is_refused(model, tokenizer):
    with pytest.raises(BudgetTooSmall):
        GrammarLogitsProcessor(tf.regex("a{9}"), tokenizer, max_tokens=8)
    with pytest.raises(OptionError, match="3 rows"):
        two = GrammarLogitsProcessor([tf.regex("a"), tf.regex("b")], tokenizer)
        two(torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, len(tokenizer)))
    with pytest.raises(ModelError, match="logits"):
        GrammarLogitsProcessor(tf.regex("a"), tokenizer)(
            torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 5)
        )


def test_custom_generate_is_greedy_decoding_with_fewer_passes(model, tokenizer):
    grammar = tf.json_schema(SCHEMA)
    inputs = tokenizer(["Ada", "a longer prompt"], return_tensors="pt", padding=True)
    ids = model.generate(
        **{k: inputs[k] for k in ("input_ids", "attention_mask")},
        custom_generate=custom_generate(grammar, tokenizer),
        max_new_tokens=60,
        do_sample=False,
    )
    texts = tokenizer.batch_decode(ids[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
    written = tf.Generator(model, tokenizer).sample(["Ada", "a longer prompt"], grammar, max_tokens=59)
    assert texts == [r.text for (r,) in written]


def test_custom_generate_keeps_the_options_of_generate(model, tokenizer):
    inputs = tokenizer(["Ada"], return_tensors="pt")
    options = {"max_new_tokens": 12, "do_sample": True, "temperature": 2.0, "num_return_sequences": 5}
    method = custom_generate(tf.regex(CODE), tokenizer, seed=3)
    ids = model.generate(inputs.input_ids, custom_generate=method, repetition_penalty=1.3, **options)
    texts = tokenizer.batch_decode(ids[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
    assert len(texts) == 5 and len(set(texts)) > 1
    assert all(re.fullmatch(CODE, text) for text in texts)
    with pytest.raises(OptionError, match="beams"):
        model.generate(inputs.input_ids, custom_generate=method, num_beams=2, max_new_tokens=12)
    with pytest.raises(BudgetTooSmall):
        model.generate(inputs.input_ids, custom_generate=method, max_new_tokens=3)


def test_what_other_processors_leave_empty_is_an_error(model, tokenizer):
    class NoDigits(LogitsProcessor):
        def __call__(self, input_ids, scores):
            scores = scores.clone()
            scores[:, tokenizer.convert_tokens_to_ids(list("0123456789"))] = float("-inf")
            return scores

    inputs = tokenizer("a", return_tensors="pt")
    grammar = tf.regex("[0-9]{3}")
    processor = GrammarLogitsProcessor(grammar, tokenizer, model=model)
    with pytest.raises(SamplingError, match="row 0 has no token left after 0 tokens"):
        model.generate(**inputs, logits_processor=[NoDigits(), processor], max_new_tokens=9, do_sample=False)
    with pytest.raises(SamplingError, match="after 3 tokens"):
        processor = GrammarLogitsProcessor(grammar, tokenizer, model=model)
        model.generate(
            **inputs, logits_processor=[processor], max_new_tokens=9, min_new_tokens=6, do_sample=False
        )


def test_without_a_model_its_files_name_the_ends(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    pad = tokenizer.pad_token_id
    (tmp_path / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [tokenizer.eos_token_id, pad]})
    )
    processor = GrammarLogitsProcessor(tf.regex("a"), PreTrainedTokenizerFast.from_pretrained(tmp_path))
    assert sorted(processor.vocabulary.eos) == sorted([tokenizer.eos_token_id, pad])
    with pytest.warns(UserWarning, match="pass model="):
        GrammarLogitsProcessor(tf.regex("a"), tokenizer)
