"""`/v1/completions` is of bare text, also where the model has a chat template."""

from __future__ import annotations

import httpx
import pytest
import torch
from running import running
from transformers import LlamaConfig, LlamaForCausalLM

import tokenform as tf
from tokenform.builtin import load
from tokenform.server import Engine, create_app


@pytest.fixture(scope="module")
def writer() -> tf.Generator:
    """Random weights with the built-in model's tokenizer, which carries a chat template."""
    tokenizer = load()[1]
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=2, initializer_range=0.5, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return tf.Generator(LlamaForCausalLM(config).eval(), tokenizer, drafter=None)


def test_what_each_endpoint_reads(writer: tf.Generator) -> None:
    with running(create_app(Engine(writer), playground=False)) as base, httpx.Client(base_url=base) as client:

        def asked(path: str, **body: object) -> dict[str, object]:
            answer = client.post(path, json={"structured_outputs": {"regex": "[a-z]{12}"}, **body})
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        bare = asked("/v1/completions", prompt="Hi")
        chat = asked("/v1/chat/completions", messages=[{"role": "user", "content": "Hi"}])
    grammar = tf.regex("[a-z]{12}")
    read = writer.show("Hi", grammar, raw=True), writer.show([{"role": "user", "content": "Hi"}], grammar)
    assert [one["usage"]["prompt_tokens"] for one in (bare, chat)] == [len(one.ids) for one in read]  # type: ignore[index]
    assert len(read[0].ids) < len(read[1].ids)
