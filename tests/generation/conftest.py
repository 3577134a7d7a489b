"""A small tokenizer and small models with random weights: what is tested is the machinery, not the prose."""

from __future__ import annotations

import copy

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import tokenform as tf

TEXTS = [
    '{"name": "Ada", "age": 36, "tags": ["mathematics", "engines"], "alive": false}',
    '{"name": "Grace", "age": 85, "tags": [], "alive": true}',
    "Ada Lovelace was born in London in 1815 and wrote about engines.",
    "Grüße aus Köln, 東京 und Málaga.",
] * 4


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


@pytest.fixture(scope="session")
def chat_tokenizer(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The same with a chat template, which leaves tools out."""
    chatting = copy.deepcopy(tokenizer)
    chatting.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    return chatting


def small_llama(size: int, *, context: int = 256, seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.6,  # random logits that are far apart, so that draws differ
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    return LlamaForCausalLM(config).double().eval()


@pytest.fixture(scope="session")
def model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return small_llama(len(tokenizer) + 5)  # five ids of padding, as real models have


@pytest.fixture(scope="session")
def generator(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> tf.Generator:
    return tf.Generator(model, tokenizer)
