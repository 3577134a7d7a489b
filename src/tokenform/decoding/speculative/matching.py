"""Sample-and-match for a whole batch: every sequence goes down its tree while what is drawn is drafted.

Purpose: the default rule of acceptance, without a law on the host.
Invariant: the committed tokens are those of `verifiers/sample_and_match.py`.
Complexity: on a device one draw call a step over all nodes of all trees, which brings some bytes a node
home; on the host a call a level over the nodes that are reached, for nothing else is worth its time there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenform.decoding.draws import DenseDrawer, Drawer, Drawn, LazyDrawer, MaskedSampler
from tokenform.errors import ModelError, OptionError, TokenformError
from tokenform.masking import CAPACITY, MaskTable

from .live import Live
from .node import Node
from .tree import ROOT

Scored = tuple[Live, list[torch.Tensor]]
"""A sequence, and the logits [nodes + 1, V] of its model and companions."""
Verdict = tuple[list[int], list[float]] | TokenformError


class Matcher:
    """Draws at nodes; for one thread at a time.

    Args:
        device: where logits are.
        table: masks that are there already; None begins one.
        whole: draw at all nodes in one call; None does so where the logits are not on the host.
    """

    def __init__(
        self, device: torch.device, table: MaskTable | None = None, whole: bool | None = None
    ) -> None:
        self.device, self.table = device, table
        self.whole = device.type != "cpu" if whole is None else whole
        self._drawer: Drawer | None = None

    def match(self, scored: Sequence[Scored], greedy: bool = False) -> dict[int, Verdict]:
        """The committed tokens of each sequence and their log-probabilities, or why there are none.

        Args:
            greedy: refuse samplers that are not.
        """
        drawn: dict[tuple[int, int], Drawn] = {}
        waiting = []
        for live, logits in scored:
            if greedy and _sampler(live).local.temperature != 0:
                refusal = OptionError(
                    "GreedyTree verifies greedy targets alone; use SampleAndMatch to sample"
                )
                drawn[live.number, ROOT] = Drawn(-1, 0.0, refusal)
                continue
            nodes = [n for n in range(len(live.tree)) if _goes_on(live, n)] if self.whole else []
            waiting += [(live, logits, node) for node in (ROOT, *nodes)]
        while waiting:
            self._draw(waiting, drawn)
            below = []
            for live, logits, node in waiting if not self.whole else ():
                child = live.tree.child(node, drawn[live.number, node].token)
                if child is not None and _goes_on(live, child):
                    below.append((live, logits, child))
            waiting = below
        return {live.number: _walk(live, drawn) for live, _ in scored}

    def _draw(
        self, wanted: Sequence[tuple[Live, list[torch.Tensor], int]], drawn: dict[tuple[int, int], Drawn]
    ) -> None:
        groups: dict[int, list[tuple[Live, list[torch.Tensor], int]]] = {}
        for one in wanted:
            groups.setdefault(id(one[0].request.sampler), []).append(one)
        for group in groups.values():
            sampler = _sampler(group[0][0])
            rows = [[logits[i][node + 1] for _, logits, node in group] for i in range(len(group[0][1]))]
            nodes = [_node(live, node) for live, _, node in group]
            try:
                found = self._of(sampler).draw(sampler, rows, nodes)
            except Exception as error:  # nothing of one row: the shapes, or the device
                own = error if isinstance(error, TokenformError) else _own(error)
                found = [Drawn(-1, 0.0, own)] * len(group)
            for (live, _, node), answer in zip(group, found, strict=True):
                live.output.report.evaluations += 1
                drawn[live.number, node] = answer

    def _of(self, sampler: MaskedSampler) -> Drawer:
        if self._drawer is None:
            if not self.whole:
                self._drawer = LazyDrawer()
            else:
                table = self.table or MaskTable(sampler.size, self.device, capacity=CAPACITY)
                self._drawer = DenseDrawer(table)
        return self._drawer


def _own(error: Exception) -> TokenformError:
    own = ModelError(f"the sampler failed: {type(error).__name__}: {error}")
    own.__cause__ = error
    return own


def _sampler(live: Live) -> MaskedSampler:
    sampler = live.request.sampler
    assert isinstance(sampler, MaskedSampler)
    return sampler


def _goes_on(live: Live, node: int) -> bool:
    """Whether a token may follow a drafted node."""
    if live.tree.tokens[node] in live.request.eos:
        return False
    auto, state = live.request.automaton, live.session.states[node]
    return auto is None or (state is not None and not auto.is_finished(state))


def _node(live: Live, node: int) -> Node:
    request = live.request
    path = live.tree.path(node) if node >= 0 else ()
    return Node(
        (), live.text, path, len(request.prompt), request.automaton, live.session.states[node],
        live.remaining - len(path), request.seed, request.number,
    )  # fmt: skip


def _walk(live: Live, drawn: dict[tuple[int, int], Drawn]) -> Verdict:
    tokens: list[int] = []
    logprobs: list[float] = []
    node: int | None = ROOT
    while node is not None and (one := drawn.get((live.number, node))) is not None:
        if one.error is not None:
            return one.error
        tokens.append(one.token)
        logprobs.append(one.logprob)
        node = live.tree.child(node, one.token)
    return tokens, logprobs
