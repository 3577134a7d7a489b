"""Draws of the next token at many nodes at once: what turns logits into tokens.

Purpose: a drawer masks, truncates and draws for every node of every sequence of a step.
Invariant: a node's draw depends on its logits, its constraint and its key alone.  `dense.py` and `lazy.py`
draw the same tokens; which of them runs is a matter of where the logits are.

    dense.py   on the device: every row is masked and raced as a whole; one transfer brings all results home
    lazy.py    on the host: only the tokens that can still win are looked at
"""

from __future__ import annotations

from tokenform.decoding.draws.base import NO_WISH, Drawn, MaskedSampler, Transform, Wish
from tokenform.decoding.draws.dense import DenseDrawer
from tokenform.decoding.draws.lazy import LazyDrawer

__all__ = [
    "NO_WISH",
    "DenseDrawer",
    "Drawn",
    "LazyDrawer",
    "MaskedSampler",
    "Transform",
    "Wish",
]
