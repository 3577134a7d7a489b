"""Draws on the device: all rows are masked, truncated and raced as one tensor; one transfer brings the
results to the host.

Purpose: logits stay on the device.  The host sends row numbers of masks and keys of races, some bytes a node,
and gets one float64 table of token, log-probability, largest score and the requested outputs.
Invariant: one transfer a call, and one more where a draw would leave the budget (see `base.py`).
Complexity: a copy of the rows, one pass of the mask, and a race over them; a sort where top-p is on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch

from tokenform.decoding.draws.base import (
    DEFAULT_OUTPUTS,
    FAILED,
    Drawn,
    MaskedSampler,
    RequestedOutputs,
    Rows,
)
from tokenform.decoding.keyed_random import BLOCK, Key, block_numbers, race_key, token_numbers
from tokenform.decoding.samplers.local import Local, no_token_error
from tokenform.decoding.speculative.node import Node
from tokenform.errors import TokenformError, own_error
from tokenform.masking import MaskRequest, MaskTable

_NEVER = float("-inf")
_PAIR = 1 << 26  # two token ids fit one float64


class DenseDrawer:
    """See the module's header; for one thread at a time.

    Args:
        table: masks on the logits' device.
    """

    def __init__(self, table: MaskTable) -> None:
        self._table = table

    @torch.inference_mode()
    def draw(
        self,
        sampler: MaskedSampler,
        logits: Sequence[Rows],
        nodes: Sequence[Node],
        outputs: RequestedOutputs = DEFAULT_OUTPUTS,
    ) -> list[Drawn]:
        """The draw at each of N nodes.

        Args:
            logits: N rows [V'] of the model, then of each companion; V' at least the vocabulary's size.
        """
        sampler.check([rows[0] for rows in logits])
        outputs = outputs._replace(best=min(outputs.best, logits[0][0].shape[-1]))
        most = self._table.capacity
        if len(nodes) > most:
            first = self.draw(sampler, [rows[:most] for rows in logits], nodes[:most], outputs)
            return first + self.draw(sampler, [rows[most:] for rows in logits], nodes[most:], outputs)
        own = logits[0]
        if not isinstance(own, torch.Tensor):
            own = torch.stack(cast("list[torch.Tensor]", own))
        return _Draws(self._table, sampler, own, nodes, outputs).draw_all([own, *logits[1:]])


class _Draws:
    """Those of one call.

    Args:
        own: the model's logits [N, V'].
    """

    def __init__(
        self,
        table: MaskTable,
        sampler: MaskedSampler,
        own: torch.Tensor,
        nodes: Sequence[Node],
        outputs: RequestedOutputs,
    ) -> None:
        self._table, self._sampler, self._own = table, sampler, own
        self._nodes, self._outputs = nodes, outputs
        self._found: list[Drawn] = [Drawn(-1, 0.0)] * len(nodes)

    def draw_all(self, logits: Sequence[Rows]) -> list[Drawn]:
        """The draws; a node that fails has its error."""
        free, places = self._free(logits)
        if not places:
            return self._found
        self._draw_rows(free, places, within_budget=False)
        found, nodes, fits = self._found, self._nodes, self._sampler.fits
        over_budget = [
            (at, i)
            for at, i in enumerate(places)
            if found[i].error is None and not fits(nodes[i], found[i].token)
        ]
        if over_budget:
            refused = [found[i].token for _, i in over_budget]
            rows = torch.tensor([at for at, _ in over_budget], device=free.device)
            self._draw_rows(free[rows], [i for _, i in over_budget], within_budget=True)
            for (_, i), token in zip(over_budget, refused, strict=True):
                found[i] = found[i]._replace(refused=token)
        return found

    def _free(self, logits: Sequence[Rows]) -> tuple[torch.Tensor, list[int]]:
        """Scores before the mask, and the nodes that they are of; the others have errors."""
        sampler, nodes = self._sampler, self._nodes
        if sampler.untouched:
            return self._own[:, : sampler.size], list(range(len(nodes)))
        rows, places = [], []
        for i, node in enumerate(nodes):
            try:
                rows.append(sampler.free([cast("torch.Tensor", one[i]) for one in logits], node))
                places.append(i)
            except Exception as error:  # a transform is the caller's own
                self._found[i] = Drawn(-1, 0.0, own_error(error, FAILED))
        return (torch.stack(rows) if rows else torch.empty(0, sampler.size)), places

    def _draw_rows(self, free: torch.Tensor, places: Sequence[int], *, within_budget: bool) -> None:
        """Draws at the nodes of these places; `within_budget`: under the budget's mask."""
        local, own, outputs = self._sampler.local, self._own, self._outputs
        try:
            masked, least = self._masked(free, places, within_budget)
        except TokenformError as error:
            if len(places) == 1:
                self._found[places[0]] = Drawn(-1, 0.0, error)
                return
            for at, i in enumerate(places):  # one by one, to find the masks that can't be had
                self._draw_rows(free[at : at + 1], [i], within_budget=within_budget)
            return
        top, best = masked.max(-1)
        if local.temperature > 0:
            keys = [race_key(n.seed, n.sequence, n.position) for n in (self._nodes[i] for i in places)]
            best = race(masked, least, local.temperature, keys)
        whole = own if len(places) == len(self._nodes) else own[torch.tensor(places)]
        wide = whole.float() if whole.dtype != torch.float64 else whole
        total = wide.logsumexp(-1)[:, None].double()
        logprob = wide.gather(-1, best[:, None]).double() - total
        columns = [best[:, None].double(), logprob, top[:, None].double()]
        columns += _output_columns(wide, total, outputs)
        table = torch.cat(columns, 1).tolist()  # the transfer
        for i, (token, chance, largest, *more) in zip(places, table, strict=True):
            failure = None if math.isfinite(largest) else no_token_error()
            self._found[i] = _drawn_of(int(token), chance, failure, outputs, more)

    def _masked(
        self, free: torch.Tensor, places: Sequence[int], within_budget: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Scores under the masks [n, V], and the least score that truncation leaves in each row [n, 1]."""
        local, here = self._sampler.local, [self._nodes[i] for i in places]
        masks: list[MaskRequest | None] = [
            None if n.automaton is None or n.state is None else (n.automaton, n.state) for n in here
        ]
        if not within_budget:
            masked = self._applied(free, masks)
            _keep_forced(masked, here)
            _leave_out(masked, here)
            return masked, _least(masked, local)
        budget_masks: list[MaskRequest | None] = [
            one if n.state is None else (n.automaton, n.state, n.remaining)
            for n, one in zip(here, masks, strict=True)
        ]
        masked, truncated = (
            self._applied(free, budget_masks),
            local.temperature > 0 and not local.truncation.off,
        )
        if truncated and self._sampler.mixture is not None:  # which leaves nothing that fits: the model's own
            own = self._own[torch.tensor(places), : self._sampler.size].to(free.dtype)
            masked = torch.where(
                masked.amax(-1, keepdim=True) > _NEVER, masked, self._applied(own, budget_masks)
            )
        _leave_out(masked, here)
        least = _least(masked, local)
        wide = _least(self._applied(free, masks), local) if truncated else None
        if wide is None or least is None:
            return masked, None
        over = masked.amax(-1, keepdim=True).double() / local.temperature >= wide
        return masked, torch.where(over, wide, least)

    def _applied(self, free: torch.Tensor, masks: Sequence[MaskRequest | None]) -> torch.Tensor:
        """A copy of the scores under the masks; None is no mask."""
        rows = self._table.rows(masks)
        return self._table.apply(free, rows, out=torch.empty_like(free))


def _keep_forced(masked: torch.Tensor, nodes: Sequence[Node]) -> None:
    """Leaves in each row [V] of a node with a forced token that token alone, if it has a score."""
    rows = [row for row, node in enumerate(nodes) if node.forced is not None]
    if not rows:
        return
    places = torch.tensor([rows, [nodes[row].forced for row in rows]], device=masked.device)
    score = masked[places[0], places[1]][:, None]
    alone = torch.full_like(masked[places[0]], _NEVER).scatter_(1, places[1][:, None], score)
    masked[places[0]] = torch.where(score > _NEVER, alone, masked[places[0]])


def _leave_out(masked: torch.Tensor, nodes: Sequence[Node]) -> None:
    """Masks the tokens that are excluded at each row's node."""
    for row, node in enumerate(nodes):
        if node.without:
            masked[row, list(node.without)] = _NEVER


def _least(masked: torch.Tensor, local: Local) -> torch.Tensor | None:
    if local.temperature == 0 or local.truncation.off:
        return None
    return local.truncation.threshold(masked.double() / local.temperature)


def _output_columns(wide: torch.Tensor, total: torch.Tensor, outputs: RequestedOutputs) -> list[torch.Tensor]:
    """Columns of the requested outputs, float64 [n, .]: two token ids share a number."""
    columns: list[torch.Tensor] = []
    if outputs.best:
        scores, tokens = wide.topk(outputs.best, -1)
        ids = torch.nn.functional.pad(tokens, (0, tokens.shape[1] % 2)).double()
        columns.append(ids[:, ::2] * _PAIR + ids[:, 1::2])
        if outputs.chances:
            columns.append((scores.double() - total).exp())
    return columns


def _drawn_of(
    token: int, logprob: float, error: TokenformError | None, outputs: RequestedOutputs, more: Sequence[float]
) -> Drawn:
    pairs = (outputs.best + 1) // 2
    best = [one for pair in more[:pairs] for one in divmod(int(pair), _PAIR)][: outputs.best]
    return Drawn(token, logprob, error, best, more[pairs : pairs + outputs.best * outputs.chances])


def race(
    masked: torch.Tensor, least: torch.Tensor | None, temperature: float, keys: Sequence[Key]
) -> torch.Tensor:
    """The winner of each row's race, int64 [n]; source and reasons: `decoding/keyed_random.py`.

    Args:
        masked: scores [n, V], -inf where nothing may be drawn.
        least: [n, 1], the least score over the temperature that may be drawn.
    """
    scores = masked.double() / temperature
    if least is not None:
        scores = scores.masked_fill_(scores < least, _NEVER)
    return _race_scores(scores, keys).argmax(-1)


def _race_scores(scores: torch.Tensor, keys: Sequence[Key]) -> torch.Tensor:
    """log p - log E of each token; the scores float64 [n, V] are overwritten."""
    first, second = torch.tensor(keys, dtype=torch.int32, device=scores.device)[:, :, None].unbind(1)
    size = scores.shape[-1]
    tokens = torch.arange(size, dtype=torch.int32, device=scores.device)[None]
    blocks = torch.arange((size + BLOCK - 1) // BLOCK, dtype=torch.int32, device=scores.device)[None]
    numbers, leaders = block_numbers(first, second, blocks)
    numbers = numbers.repeat_interleave(BLOCK, 1)[:, :size]
    leaders = leaders.repeat_interleave(BLOCK, 1)[:, :size]
    return scores.sub_(token_numbers(first, second, tokens, numbers, leaders).log_())
