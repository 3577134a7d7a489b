"""Five small random models in float64, one for each kind of cache and mask."""

from __future__ import annotations

import functools
from typing import Any

import torch
import transformers as hf

VOCABULARY = 61
ARCHITECTURES = ("llama", "qwen3", "gpt2", "mistral", "gemma3")


@functools.cache
def model(
    name: str, seed: int = 0, layers: int = 3, attention: str = "sdpa", vocabulary: int = VOCABULARY
) -> Any:
    """A model of two heads and 32 dimensions; sliding windows are 7 tokens."""
    torch.manual_seed(seed)
    common = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
        "attn_implementation": attention,
    }
    if name == "llama":
        out = hf.LlamaForCausalLM(hf.LlamaConfig(**common))
    elif name == "qwen3":
        out = hf.Qwen3ForCausalLM(hf.Qwen3Config(**common))
    elif name == "mistral":
        out = hf.MistralForCausalLM(hf.MistralConfig(**common, sliding_window=7))
    elif name == "gemma3":
        types = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"][:layers]
        out = hf.Gemma3ForCausalLM(
            hf.Gemma3TextConfig(**common, sliding_window=7, layer_types=types, query_pre_attn_scalar=8)
        )
    elif name == "gpt2":
        out = hf.GPT2LMHeadModel(
            hf.GPT2Config(
                vocab_size=vocabulary,
                n_embd=32,
                n_layer=layers,
                n_head=4,
                n_positions=512,
                initializer_range=0.3,
                attn_implementation=attention,
            )
        )
    else:
        raise ValueError(name)
    for module in out.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = functools.partial(_norm, module, float(name == "gemma3"))
    return out.double().eval()


def _norm(module: Any, offset: float, x: torch.Tensor) -> torch.Tensor:
    """The norm in the numbers' own precision.

    transformers' own is in float32: where the last bit of a float64 sum differs, as in a row with one hidden
    slot more, one value in a billion is rounded the other way, and the plain model's logits differ by 2e-7.
    """
    eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (module.weight + offset)


def replay(net: Any, tokens: list[int]) -> torch.Tensor:
    """Logits [V] after `tokens`, from one plain forward pass without any cache."""
    with torch.inference_mode():
        return net(torch.tensor([tokens]), use_cache=False).logits[0, -1]
