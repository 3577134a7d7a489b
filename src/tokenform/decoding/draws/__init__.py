"""Draws of the next token at many nodes at once, from their logits.

Purpose: a drawer masks, truncates and draws for every node of every sequence of a step.
Invariant: a node's draw depends only on its logits, its constraint and its key.  `dense.py` and `lazy.py`
draw the same tokens; the logits' device decides which of them runs.

    dense.py   on the device: every row is masked and raced as a whole; one transfer brings all results
    lazy.py    on the host: only the tokens that can still win are read
"""

from __future__ import annotations

from tokenform.decoding.draws.base import DEFAULT_OUTPUTS, Drawn, MaskedSampler, RequestedOutputs, Transform
from tokenform.decoding.draws.dense import DenseDrawer
from tokenform.decoding.draws.lazy import LazyDrawer

__all__ = [
    "DEFAULT_OUTPUTS",
    "DenseDrawer",
    "Drawn",
    "LazyDrawer",
    "MaskedSampler",
    "RequestedOutputs",
    "Transform",
]
