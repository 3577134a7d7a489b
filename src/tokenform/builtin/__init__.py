"""The built-in small model and its weights; it is trained by `benchmarks/training` of the repository.

Purpose: the first run works offline.  `load()` and `load_draft()` read two Llama-style decoders, and
`load_diffusion()` a bidirectional model that fills canvases; they share one byte-level BPE tokenizer, and
`format_prompt` writes what they were trained to read.
Invariant: nothing here touches the network, and importing this package does not import torch.
"""

from __future__ import annotations

from tokenform.builtin.loading import load, load_diffusion, load_draft
from tokenform.builtin.prompt import format_prompt

__all__ = ["format_prompt", "load", "load_diffusion", "load_draft"]
