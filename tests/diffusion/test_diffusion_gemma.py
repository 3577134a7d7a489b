"""A tiny DiffusionGemma of transformers with random weights, under constraints."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import tokenform as tf
from tokenform.decoding.diffusion import (
    Blocks,
    Confidence,
    Credit,
    EarlyAnswer,
    EntropyBound,
    LeftToRight,
    LocalDeterminism,
    Threshold,
)

modeling = pytest.importorskip("transformers.models.diffusion_gemma.modeling_diffusion_gemma")
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny(260)


def tiny(size: int) -> Any:
    """A model of random weights for so many tokens."""
    import torch
    from transformers.models.diffusion_gemma.configuration_diffusion_gemma import (
        DiffusionGemmaConfig,
        DiffusionGemmaTextConfig,
    )
    from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig

    torch.manual_seed(0)
    text = DiffusionGemmaTextConfig(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        global_head_dim=16,
        num_experts=2,
        top_k_experts=1,
        moe_intermediate_size=32,
        layer_types=["sliding_attention", "full_attention"],
    )
    vision = Gemma4VisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, head_dim=16
    )  # fmt: skip
    config = DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=24)
    return modeling.DiffusionGemmaForBlockDiffusion(config).eval()


POLICIES = [
    EntropyBound(1.0),
    Confidence(4),
    Threshold(0.3),
    LeftToRight(4),
    Blocks(8, Confidence(2)),
    EarlyAnswer(first=0.3, last=0.1),
    Credit(0.3),
    LocalDeterminism(0.3, 0.1),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0, 5.0])
def test_every_text_is_valid(model: Any, policy: Any, temperature: float) -> None:
    tokens = [b"<pad>", b"<eos>", b"<bos>", b"<mask>"] + [bytes([b]) for b in range(256)]
    vocabulary = tf.Vocabulary(tokens, eos=[1], special=[0, 1, 2, 3])
    writer = tf.DiffusionGenerator(model, vocabulary, policy=policy, temperature=temperature)
    assert writer.length == 24
    for result in writer.generate([2, 70, 80], SCHEMA, n=2, seed=1):
        jsonschema.validate(json.loads(result.text), SCHEMA)
        assert result.stats.forwards <= 24


def test_the_prompt_is_read_once(model: Any) -> None:
    """Its keys and values are kept, and say what reading it again says."""
    import torch

    from tokenform.integrations.diffusion import DiffusionGemma

    prompt, canvases = [2, 70, 80], [[None] * 4, [5, None, 7, None], [None, 6, None, 9]]
    kept = DiffusionGemma(model).begin(prompt, 3)
    assert kept.logits([0, 1, 2], canvases).shape == (3, 4, 260)
    first = dict(enumerate(kept._before.values()))
    kept._before = {}
    kept._random.manual_seed(5)
    again = kept.logits([0, 2], [canvases[0], canvases[2]])  # one of them has ended
    fresh = DiffusionGemma(model).begin(prompt, 5)
    torch.testing.assert_close(again, fresh.logits([0, 2], [canvases[0], canvases[2]]), atol=1e-5, rtol=1e-4)
    assert len(first) == 3
