"""Draws of the next token at many nodes at once: what turns logits into tokens.

Purpose: `Drawer(...).draw(logits, nodes)` masks, truncates and draws for every node of every sequence of a
step.
Invariant: a node's draw depends on its logits, its constraint and its key alone.  `dense.py` and `lazy.py`
draw the same tokens; which of them runs is a matter of where the logits are.

    dense.py   on the device: every row is masked and raced as a whole, and one transfer brings all results
    home lazy.py    on the host: only the tokens that can still win are looked at
"""

from __future__ import annotations

from tokenform.decoding.draws.base import Drawer, Drawn, MaskedSampler, Transform
from tokenform.decoding.draws.dense import DenseDrawer
from tokenform.decoding.draws.lazy import LazyDrawer

__all__ = ["DenseDrawer", "Drawer", "Drawn", "LazyDrawer", "MaskedSampler", "Transform"]
