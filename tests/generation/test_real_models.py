"""What real models and their users bring along: stop texts, chat options, training mode, images, failing
rows.
"""

from __future__ import annotations

import pytest
import torch
from tests.generation.conftest import small_llama

import tokenform as tf
from tokenform import errors


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_free_text_ends_before_a_stop_text(model, tokenizer, drafter):
    wanted = tokenizer.encode("ab.")
    writer = tf.Generator(model, tokenizer, drafter=drafter, transforms=[Favour(wanted)])
    stopped = writer.sample("x", stop=["b.", "zz"], max_tokens=20)[0]
    assert stopped.text == "a" and stopped.tokens == wanted
    pieces = writer.stream("x", stop="b.", max_tokens=20)
    assert "".join(pieces) == "a"
    assert writer.sample("x", stop="q", max_tokens=6)[0].text == ("ab." * 2)
    assert writer.sample("x", tf.regex("a(b.a)*"), stop="b", max_tokens=6)[0].text == "a"


class Favour:
    """Writes these tokens over and over."""

    def __init__(self, wanted):
        self.wanted = wanted

    def __call__(self, tokens, logits):
        logits[self.wanted[(len(tokens) - 1) % len(self.wanted)]] += 1e6
        return logits


def test_the_value_after_reasoning_is_the_document(model, tokenizer):
    grammar = tf.until(
        "</t>", then=tf.json_schema({"type": "array", "items": {"type": "boolean"}, "maxItems": 2})
    )
    assert grammar.parse("let me see [] </t>[true]") == [True]
    assert tf.until("a", then="b").parse("xab") == "xab"


def test_one_failing_text_costs_itself(model, tokenizer):
    def broken(tokens, logits):
        if tokens[0] == tokenizer.encode("B")[0]:
            raise errors.PredicateError("no.")
        return logits

    for drafter in (None, "auto"):
        writer = tf.Generator(model, tokenizer, drafter=drafter, transforms=[broken])
        grammar, prompts = tf.regex("[a-c]{3}"), ["A", "B", "C"]
        with pytest.raises(errors.PredicateError) as raised:
            writer.sample(prompts, grammar)
        assert [None if one == [None] else one[0].text for one in raised.value.results][1] is None
        got = writer.sample(prompts, grammar, on_error="return")
        assert isinstance(got[1][0], errors.PredicateError)
        good = tf.Generator(model, tokenizer, drafter=drafter).sample(["A", "C"], grammar)
        assert [got[0][0].tokens, got[2][0].tokens] == [one[0].tokens for one in good]


def test_training_mode_is_ended_and_said(tokenizer):
    net = small_llama(len(tokenizer) + 5).train()
    with pytest.warns(UserWarning, match="training mode"):
        tf.Generator(net, tokenizer)
    assert not net.training


def test_sampling_defaults_of_a_model_are_taken_when_asked_for(tokenizer):
    net = small_llama(len(tokenizer) + 5)
    assert tf.Generator(net, tokenizer, sampler="model").sampler == tf.Local(0.0)
    net.generation_config.update(do_sample=True, temperature=0.6, top_k=20, top_p=0.95)
    assert tf.Generator(net, tokenizer, sampler="model").sampler == tf.Local(0.6, 20, 0.95)
    assert tf.Generator(net, tokenizer).sampler == tf.Local(0.0)


def test_chat_options_reach_the_template_and_images_are_refused(model, tokenizer):
    tokenizer.chat_template = "{% if loud %}A{% endif %}{{ messages[0].content }}"
    try:
        ask = [{"role": "user", "content": "x"}]
        ids = [tf.Generator(model, tokenizer, chat_options=o).prompt_ids(ask) for o in (None, {"loud": True})]
        assert ids[1] == tokenizer.encode("A") + ids[0]
        image = [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image", "url": "u"}]}]
        with pytest.raises(errors.OptionError, match="image"):
            tf.Generator(model, tokenizer).prompt_ids(image)
    finally:
        tokenizer.chat_template = None


def test_a_model_by_path_is_placed_as_asked(tokenizer, tmp_path):
    small_llama(len(tokenizer) + 5).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    writer = tf.Generator(str(tmp_path), device="cpu", dtype=torch.float64)
    assert next(writer.model.parameters()).dtype == torch.float64
    with pytest.raises(errors.OptionError, match="both"):
        tf.Generator(str(tmp_path), device="cpu", device_map="auto")
    with pytest.raises(errors.OptionError, match="by path or name"):
        tf.Generator(small_llama(len(tokenizer) + 5), tokenizer, dtype=torch.float32)


def test_generate_takes_stop_texts(model, tokenizer):
    text = tf.generate("x", model=model, tokenizer=tokenizer, stop="e", max_tokens=8).text
    assert "e" not in text
    assert tf.generate("x", model=model, tokenizer=tokenizer, regex="a(ea)?", stop="e").text == "a"
