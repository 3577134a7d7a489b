"""Rows of the model's own cache: ragged batches give each row the logits that a pass of its own would."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, Qwen3Config, T5Config
from transformers import Gemma3TextConfig as Gemma3Config

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.errors import ModelError

SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,
}
ARCHITECTURES = {
    "llama": LlamaConfig(**SMALL),
    "qwen3": Qwen3Config(**SMALL),
    "gpt2": GPT2Config(
        vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.5, attn_pdrop=0
    ),
    "mistral, sliding window": MistralConfig(**SMALL, sliding_window=5),
    "gemma3": Gemma3Config(**SMALL, sliding_window=5),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("mode", ["chain", "plain"])
@torch.inference_mode()
def test_rows_are_as_if_alone(name, mode):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(ARCHITECTURES[name]).double().eval()

    def alone(ids: list[int]) -> torch.Tensor:
        return model(torch.tensor([ids]), use_cache=False).logits[0, -1]

    texts = [[3, 4, 5, 6, 7, 8, 9], [11], [3, 4, 5, 6, 7, 8, 9], [20, 21, 22]]
    backbone = Backbone(model, mode)
    rows = {backbone.open(text): text for text in texts}
    # Rows leave in the middle, among them one of the two that share a prompt.
    for kept in ([0, 1, 2, 3], [0, 2, 3], [1, 2], [0, 1], [1]):
        positions = backbone.counters.positions
        for seq, logits in backbone.score({seq: DraftTree() for seq in rows}).items():
            torch.testing.assert_close(logits[0], alone(rows[seq]), atol=1e-9, rtol=0)
        for place, seq in enumerate(list(rows)):
            if place in kept:
                backbone.commit(seq, [30 + place])
                rows[seq] = [*rows[seq], 30 + place]
            else:
                backbone.drop(seq)
                del rows[seq]
    (logits,) = backbone.score({seq: DraftTree() for seq in rows}).values()
    torch.testing.assert_close(logits[0], alone(*rows.values()), atol=1e-9, rtol=0)
    assert backbone.counters.positions - positions < 10  # a row's text is not run again


def test_what_is_no_causal_model_is_refused():
    config = T5Config(vocab_size=50, d_model=16, d_ff=16, num_layers=1, num_heads=2, d_kv=8)
    from transformers import T5ForConditionalGeneration

    with pytest.raises(ModelError, match="encoder-decoder"):
        Backbone(T5ForConditionalGeneration(config))
    with pytest.raises(ModelError, match="int is not a model"):
        Backbone(7)
