"""Draws on the device: all rows are masked, truncated and raced as one tensor, and one transfer brings them
home.

Purpose: what stays on the device stays there.  Up go row numbers of masks and keys of races, some bytes a
node; down comes one table float64 [N, 3] of token, log-probability and largest score.
Invariant: one transfer a call, and one more where a draw would leave the budget (see `base.py`).
Complexity: a copy of the rows, one pass of the mask, and a race over them; a sort where top-p is on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from tokenform.decoding.draws.base import Drawn, MaskedSampler, Rows
from tokenform.decoding.keyed_random import BLOCK, block_numbers, race_key, token_numbers
from tokenform.decoding.samplers.local import Local, hopeless
from tokenform.decoding.speculative.node import Node
from tokenform.errors import TokenformError
from tokenform.masking import MaskTable, Wanted

_NEVER = float("-inf")


class DenseDrawer:
    """See the module's header; for one thread at a time.

    Args:
        table: masks on the logits' device.
    """

    def __init__(self, table: MaskTable) -> None:
        self._table = table

    @torch.inference_mode()
    def draw(self, sampler: MaskedSampler, logits: Sequence[Rows], nodes: Sequence[Node]) -> list[Drawn]:
        sampler.check([rows[0] for rows in logits])
        most = self._table.capacity
        if len(nodes) > most:
            first = self.draw(sampler, [rows[:most] for rows in logits], nodes[:most])
            return first + self.draw(sampler, [rows[most:] for rows in logits], nodes[most:])
        found: list[Drawn] = [Drawn(-1, 0.0)] * len(nodes)
        own = torch.stack(list(logits[0]))
        free, places = self._free(sampler, [own, *logits[1:]], nodes, found)
        if not places:
            return found
        edge = [nodes[i].automaton is not None and sampler.at_edge(nodes[i]) for i in places]
        self._settle(sampler, own, free, nodes, places, edge, found)
        late = [
            (at, i)
            for at, i in enumerate(places)
            if not edge[at] and found[i].error is None and not sampler.fits(nodes[i], found[i].token)
        ]
        if late:
            rows = torch.tensor([at for at, _ in late], device=free.device)
            self._settle(sampler, own, free[rows], nodes, [i for _, i in late], [True] * len(late), found)
        return found

    def _free(
        self,
        sampler: MaskedSampler,
        logits: Sequence[torch.Tensor | Rows],
        nodes: Sequence[Node],
        found: list[Drawn],
    ) -> tuple[torch.Tensor, list[int]]:
        """Scores before the mask of the nodes that have any, and which these are; the others' errors are
        kept.
        """
        if sampler.untouched:
            return torch.as_tensor(logits[0])[:, : sampler.size], list(range(len(nodes)))
        rows, places = [], []
        for i, node in enumerate(nodes):
            try:
                rows.append(sampler.free([one[i] for one in logits], node))
                places.append(i)
            except TokenformError as error:
                found[i] = Drawn(-1, 0.0, error)
        return (torch.stack(rows) if rows else torch.empty(0, sampler.size)), places

    def _settle(
        self,
        sampler: MaskedSampler,
        own: torch.Tensor,
        free: torch.Tensor,
        nodes: Sequence[Node],
        places: Sequence[int],
        edge: Sequence[bool],
        found: list[Drawn],
    ) -> None:
        """Draws at the nodes of these places into `found`; `edge`: under the budget's mask."""
        try:
            masked, least = self._masked(sampler, own, free, nodes, places, edge)
        except TokenformError as error:
            if len(places) == 1:
                found[places[0]] = Drawn(-1, 0.0, error)
                return
            for at, i in enumerate(places):  # which of the masks can't be had: one by one
                self._settle(sampler, own, free[at : at + 1], nodes, [i], [edge[at]], found)
            return
        top, best = masked.max(-1)
        if sampler.local.temperature > 0:
            keys = [race_key(n.seed, n.sequence, n.position) for n in (nodes[i] for i in places)]
            best = race(masked, least, sampler.local.temperature, keys)
        whole = own if len(places) == len(nodes) else own[torch.tensor(places)]
        wide = whole.float() if whole.dtype != torch.float64 else whole
        logprob = wide.gather(-1, best[:, None])[:, 0].double() - wide.logsumexp(-1).double()
        table = torch.stack([best.double(), logprob, top.double()], 1).tolist()  # the transfer
        for i, (token, chance, largest) in zip(places, table, strict=True):
            found[i] = Drawn(int(token), chance) if math.isfinite(largest) else Drawn(-1, 0.0, hopeless())

    def _masked(
        self,
        sampler: MaskedSampler,
        own: torch.Tensor,
        free: torch.Tensor,
        nodes: Sequence[Node],
        places: Sequence[int],
        edge: Sequence[bool],
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Scores under the masks [n, V], and the least score that truncation leaves in each row [n, 1]."""
        local, truncated = sampler.local, not sampler.local.truncation.off
        here = [nodes[i] for i in places]
        ample: list[Wanted | None] = [
            None if n.automaton is None or n.state is None else (n.automaton, n.state) for n in here
        ]
        tight: list[Wanted | None] = [
            (n.automaton, n.state, n.remaining) if close and n.state is not None else one
            for n, one, close in zip(here, ample, edge, strict=True)
        ]
        if local.temperature == 0 or not truncated or not any(edge):
            masked = self._applied(free, tight)
            return masked, _least(masked, local)
        wide = self._applied(free, ample)
        least = _least(wide, local)
        assert least is not None
        masked = self._applied(free, tight)
        if sampler.mixture is not None:  # that leaves nothing which fits: the model's own law decides
            alone = self._applied(own[torch.tensor(places), : sampler.size].to(free.dtype), tight)
            masked = torch.where(masked.amax(-1, keepdim=True) > _NEVER, masked, alone)
        over = masked.amax(-1, keepdim=True).double() / local.temperature >= least
        fallback = _least(masked, local)
        assert fallback is not None
        return masked, torch.where(over, least, fallback)

    def _applied(self, free: torch.Tensor, wanted: Sequence[Wanted | None]) -> torch.Tensor:
        """A copy of the scores under the masks; None is no mask."""
        rows = self._table.rows(wanted)
        return self._table.apply(free, rows, out=torch.empty_like(free))


def _least(masked: torch.Tensor, local: Local) -> torch.Tensor | None:
    if local.temperature == 0 or local.truncation.off:
        return None
    return local.truncation.threshold(masked.double() / local.temperature)


def race(
    masked: torch.Tensor, least: torch.Tensor | None, temperature: float, keys: Sequence[tuple[int, int]]
) -> torch.Tensor:
    """The winner of each row's race, int64 [n].

    Args:
        masked: scores [n, V], -inf where nothing may be drawn.
        least: [n, 1], the least score over the temperature that may be drawn.
    """
    first, second = torch.tensor(keys, dtype=torch.int32, device=masked.device)[:, :, None].unbind(1)
    size = masked.shape[-1]
    tokens = torch.arange(size, dtype=torch.int32, device=masked.device)[None]
    blocks = torch.arange((size + BLOCK - 1) // BLOCK, dtype=torch.int32, device=masked.device)[None]
    numbers, leaders = block_numbers(first, second, blocks)
    numbers = numbers.repeat_interleave(BLOCK, 1)[:, :size]
    leaders = leaders.repeat_interleave(BLOCK, 1)[:, :size]
    scores = masked.double() / temperature
    if least is not None:
        scores = scores.masked_fill_(scores < least, _NEVER)
    return scores.sub_(token_numbers(first, second, tokens, numbers, leaders).log_()).argmax(-1)
