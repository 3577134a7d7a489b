"""A generator with random weights over a small vocabulary: its distributions are strange and can be
enumerated."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import tokenform as tf

TEXTS = [
    '{"name": "Ada", "n": 36, "items": [1, 2], "kind": "cat"}',
    "Ada wrote about engines.",
    "Grüße, 東京.",
]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(TEXTS * 4, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")


@pytest.fixture(scope="session")
def bytewise() -> tf.Generator:
    """Over bytes: each text has one way to be cut, so that distributions of thousands of texts are enumerated
    soon."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=257, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        initializer_range=0.3, eos_token_id=256,
    )  # fmt: skip
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    return tf.Generator(LlamaForCausalLM(config).double().eval(), vocabulary, drafter=None, batch_size=64)


@pytest.fixture(scope="session")
def small(tokenizer: PreTrainedTokenizerFast) -> tf.Generator:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = LlamaForCausalLM(config).double().eval()
    return tf.Generator(model, tokenizer, drafter=None, batch_size=32)
