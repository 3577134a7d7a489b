"""The built-in model with wider heads: the same function, for kernels that know certain widths only.

    python tests/hosts/wide_heads.py FOLDER --head 64

Queries and keys get zeros between the halves that a rotary embedding turns together, and its base grows so
that the old angles stay; queries are scaled, as attention divides by the root of the width.  The new folder's
model is compared with the old one before it is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from tokenform.builtin.loading import load


def wide_heads(folder: Path, head: int = 64) -> None:
    """Writes the model with heads `head` wide, and its tokenizer, into a folder."""
    model, tokenizer = load()
    config = model.config.__class__.from_dict(model.config.to_dict())
    old = config.head_dim or config.hidden_size // config.num_attention_heads
    base = config.rope_parameters["rope_theta"]
    config.head_dim = head
    config.rope_parameters = {**config.rope_parameters, "rope_theta": base ** (head / old)}
    wide = LlamaForCausalLM(config).eval()
    half, new = old // 2, head // 2
    place = [*range(half), *range(new, new + half)]
    state = dict(model.state_dict())
    for name, value in state.items():
        kind = name.split(".")[-2]
        if kind in ("q_proj", "k_proj", "v_proj"):
            heads = value.shape[0] // old
            parts = torch.zeros(heads, head, value.shape[1])
            where = list(range(old)) if kind == "v_proj" else place
            parts[:, where] = value.view(heads, old, -1)
            state[name] = (parts * ((head / old) ** 0.5 if kind == "q_proj" else 1)).view(heads * head, -1)
        elif kind == "o_proj":
            heads = value.shape[1] // old
            parts = torch.zeros(value.shape[0], heads, head)
            parts[:, :, :old] = value.view(-1, heads, old)
            state[name] = parts.view(value.shape[0], -1)
    wide.load_state_dict(state)
    ids = torch.arange(3, 60)[None]
    with torch.inference_mode():
        assert torch.allclose(wide(ids).logits, model(ids).logits, atol=1e-3), "the models differ"
    wide.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--head", type=int, default=64)
    given = parser.parse_args()
    wide_heads(given.folder, given.head)
