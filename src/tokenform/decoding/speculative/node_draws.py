"""Draws at nodes, on the logits' device.

Purpose: the one place that turns logits of nodes into tokens, for the model's own step and for drafters'
models.  A device draws at all nodes at once, with one transfer; the host draws node by node, which is faster
there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tokenform.decoding.draws import (
    DEFAULT_OUTPUTS,
    DenseDrawer,
    Drawn,
    LazyDrawer,
    MaskedSampler,
    RequestedOutputs,
)
from tokenform.decoding.draws.base import Rows
from tokenform.decoding.speculative.node import Node
from tokenform.masking import CAPACITY, MaskTable


class NodeDraws:
    """For one thread at a time.

    Args:
        device: where logits are.
        table: masks on the device; None begins one.
        whole: draw at all nodes in one call; None: where the logits are not on the host.
    """

    def __init__(
        self, device: torch.device, table: MaskTable | None = None, whole: bool | None = None
    ) -> None:
        self.device = device
        self.whole = device.type != "cpu" if whole is None else whole
        self._lazy = LazyDrawer()
        self._dense = {} if table is None else {table.words: DenseDrawer(table)}
        self._others: dict[torch.device, NodeDraws] = {}

    def on(self, device: torch.device) -> NodeDraws:
        """The same for logits on another device."""
        if device == self.device:
            return self
        if device not in self._others:
            self._others[device] = NodeDraws(device, None, self.whole or None)
        return self._others[device]

    def draw(
        self,
        sampler: MaskedSampler,
        logits: Sequence[Rows],
        nodes: Sequence[Node],
        outputs: RequestedOutputs = DEFAULT_OUTPUTS,
    ) -> list[Drawn]:
        """The sampler's draw at each of N nodes; one that fails has its error.

        Args:
            logits: N rows [V'] of the model, then of each companion.
        """
        drawer = self._device_drawer(sampler) if self.whole else self._lazy
        return drawer.draw(sampler, logits, nodes, outputs)

    def listed(self, sampler: MaskedSampler, node: Node) -> np.ndarray | None:
        """The only ids whose logits the draw at a node reads; None for all, or where that is not known."""
        return None if self.whole else self._lazy.listed(sampler, node)

    def _device_drawer(self, sampler: MaskedSampler) -> DenseDrawer:
        words = (sampler.size + 31) // 32
        if words not in self._dense:
            self._dense[words] = DenseDrawer(MaskTable(sampler.size, self.device, capacity=CAPACITY))
        return self._dense[words]
