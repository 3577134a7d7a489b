"""Draws on the host, which read only the tokens that can still win.

Purpose: on a CPU, masking and racing whole rows costs as much as a small model's pass.  A mask of few tokens
is a list, and only these are read.  Under any other mask, greedy decoding takes the best of the whole row if
it is allowed; a race reads blocks of tokens, the most promising first, and stops when no other can win.
Invariant: the draws are those of `dense.py`.
Complexity: one pass over the row for its largest values and one for its normaliser; a few more with
truncation.  A race reads `_BLOCKS` blocks of `BLOCK` tokens, then all that can still win (seldom any).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
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
from tokenform.decoding.speculative.scores import Listed
from tokenform.engine import State
from tokenform.engine.packed import mask_bits
from tokenform.errors import TokenformError, own_error

_LISTED = 4096  # allowed tokens up to which a mask is a list
_CACHED_LISTS = 4096  # lists that are kept
_BLOCKS = 32
NUMPY_FLOATS = (torch.float32, torch.float64)
"""Floats that numpy knows."""
_NO_KEY = (0, 0)  # of greedy draws, which race for nothing

Row = np.ndarray | Listed

Allowed = np.ndarray | None
"""Sorted ids, or bool [V]; None for every token."""


class LazyDrawer:
    """See the module's header; for one thread at a time."""

    def __init__(self) -> None:
        self._lists: OrderedDict[Hashable, np.ndarray] = OrderedDict()

    def draw(
        self,
        sampler: MaskedSampler,
        logits: Sequence[Rows],
        nodes: Sequence[Node],
        outputs: RequestedOutputs = DEFAULT_OUTPUTS,
    ) -> list[Drawn]:
        """As `DenseDrawer.draw`."""
        sampler.check([rows[0] for rows in logits])
        return [
            self.one(sampler, [rows[place] for rows in logits], node, outputs)
            for place, node in enumerate(nodes)
        ]

    def one(
        self,
        sampler: MaskedSampler,
        rows: Sequence[Any],
        node: Node,
        outputs: RequestedOutputs = DEFAULT_OUTPUTS,
    ) -> Drawn:
        """The draw at one node, or its error.

        Args:
            rows: [V'] of the model, then of each companion: tensors, listed tokens, or (where the sampler
                leaves logits as they are) arrays.
        """
        try:
            row: Row = on_host(rows[0]) if isinstance(rows[0], torch.Tensor) else rows[0]
            if row.shape[-1] < sampler.size or len(rows) > 1:
                sampler.check(rows)
            own = row if isinstance(row, Listed) else row[: sampler.size]
            free = own if sampler.untouched else on_host(sampler.free(rows, node).detach())
            local, auto, refused = sampler.local, node.automaton, None
            key = _NO_KEY if local.temperature == 0 else race_key(node.seed, node.sequence, node.position)
            if auto is None:
                allowed: Allowed = None
            elif node.forced is not None and (isinstance(row, Listed) or math.isfinite(free[node.forced])):
                allowed = np.array([node.forced])
            else:
                allowed = self._allowed(auto, node.state, sampler.size)
            if node.without and allowed is not None:
                allowed = _without(allowed, node.without)
            token = draw_row(free, allowed, local, key)
            if auto is not None and not sampler.fits(node, token):
                refused, token = token, self._within(sampler, own, free, allowed, node, key)
            if isinstance(row, Listed):  # of nodes without further requested outputs
                return Drawn(token, math.nan, refused=refused)
            total = _normaliser(row) if outputs.logprob or outputs.chances else math.nan
            best = _best_of(row, outputs.best) if outputs.best else ()
            chances = [math.exp(float(row[t]) - total) for t in best] if outputs.chances else ()
            return Drawn(token, float(row[token]) - total, None, best, chances, refused)
        except Exception as error:  # a transform is the caller's own
            return Drawn(-1, 0.0, own_error(error, FAILED))

    def _within(
        self, sampler: MaskedSampler, own: Row, free: Row, allowed: Allowed, node: Node, key: Key
    ) -> int:
        """The draw among the tokens after which the text can still end within the budget."""
        within = _listed(np.asarray(node.automaton.mask_within(node.state, node.remaining)), sampler.size)
        if node.without:
            within = _without(within, node.without)
        if sampler.mixture is not None and not np.isfinite(_scores_of(free, within)).any():
            return draw_row(own, within, sampler.local, key)
        return draw_row(free, within, sampler.local, key, _threshold(free, allowed, sampler.local))

    def listed(self, sampler: MaskedSampler, node: Node) -> np.ndarray | None:
        """The only ids whose logits a draw reads; None for all, or where that is not known."""
        if not sampler.untouched or node.automaton is None:
            return None
        try:
            if node.forced is not None and sampler.fits(node, node.forced):
                return np.array([node.forced])
            allowed = self._allowed(node.automaton, node.state, sampler.size)
        except TokenformError:  # the draw raises it again
            return None
        return None if allowed.dtype == np.bool_ else allowed

    def _allowed(self, automaton: Any, state: Any, size: int) -> np.ndarray:
        key = state if isinstance(state, State) else (automaton, state)  # the engine's states are unique
        known = self._lists.get(key)
        if known is not None:
            self._lists.move_to_end(key)
            return known
        bits = mask_bits(automaton.mask(state), size)
        if np.count_nonzero(bits) > _LISTED:  # cheaper to unpack than to cache
            return bits
        allowed = self._lists[key] = np.flatnonzero(bits)
        if len(self._lists) > _CACHED_LISTS:
            self._lists.popitem(last=False)
        return allowed


def draw_row(row: Row, allowed: Allowed, local: Local, key: Key, least: float | None = None) -> int:
    """The draw from one row of scores [V], floating point.

    Args:
        allowed: of the mask.
        least: threshold of a wider mask's distribution; tokens below it are drawn only if there is no other.
    Raises:
        SamplingError: no allowed token has a finite score.
    """
    few = allowed is not None and allowed.dtype != np.bool_
    if local.temperature == 0:
        if few:
            assert allowed is not None
            token = int(allowed[row[allowed].argmax()]) if len(allowed) else -1
        else:
            assert isinstance(row, np.ndarray)
            token = int(row.argmax())
            if allowed is not None and not (allowed[token] and math.isfinite(row[token])):
                token = int(np.where(allowed, row, -np.inf).argmax())
                token = token if allowed[token] else -1
        if token < 0 or not math.isfinite(row[token]):
            raise no_token_error()
        return token
    if few or not local.truncation.off:
        scores = _scores_of(row, allowed).astype(np.float64) / local.temperature
        if not len(scores) or not math.isfinite(top := scores.max()):
            raise no_token_error()
        if least is None or top < least:
            least = local.truncation.row_threshold(scores) if not local.truncation.off else -math.inf
        kept = np.flatnonzero(scores >= least)
        if few or len(kept) <= _LISTED:
            tokens = kept if allowed is None or not few else allowed[kept]
            return int(tokens[np.argmax(_keys(scores[kept], tokens, key))])
    assert isinstance(row, np.ndarray)
    return _race(row, allowed, local.temperature, key, -math.inf if least is None else least)


def _race(row: np.ndarray, allowed: Allowed, temperature: float, key: Key, least: float) -> int:
    """The winner among all tokens whose score is at least `least`."""
    whole = len(row) // BLOCK * BLOCK
    tops = row[:whole].reshape(-1, BLOCK).max(1)
    if whole < len(row):
        tops = np.append(tops, row[whole:].max())
    blocks = np.arange(len(tops), dtype=np.int32)
    numbers, leaders = block_numbers(*key, blocks)
    with np.errstate(invalid="ignore"):
        reach = tops.astype(np.float64) / temperature
        reach = np.where(reach < least, -np.inf, reach - np.log(numbers))
    if np.isnan(reach).any():
        reach = np.where(np.isnan(tops), np.inf, reach)  # may stand at a token that is not allowed
    winner, best = -1, -math.inf
    candidates = np.argpartition(-reach, _BLOCKS)[:_BLOCKS] if len(reach) > _BLOCKS else blocks
    while len(candidates):
        tokens = ((candidates[:, None] * BLOCK).astype(np.int32) + np.arange(BLOCK, dtype=np.int32)).ravel()
        inside = np.repeat(numbers[candidates], BLOCK), np.repeat(leaders[candidates], BLOCK)
        if tokens[-1] >= len(row) or (tokens >= len(row)).any():
            in_row = tokens < len(row)
            tokens, inside = tokens[in_row], (inside[0][in_row], inside[1][in_row])
        scores = row[tokens].astype(np.float64) / temperature
        if allowed is not None:
            scores[~allowed[tokens]] = -np.inf
        if np.isnan(scores).any() or (scores == np.inf).any():
            raise no_token_error()
        scores[scores < least] = -np.inf
        scores -= np.log(token_numbers(*key, tokens, *inside))
        place = int(scores.argmax())
        if scores[place] > best:
            winner, best = int(tokens[place]), float(scores[place])
        reach[candidates] = -np.inf
        candidates = np.flatnonzero(reach > best)
    if winner < 0:
        raise no_token_error()
    return winner


def _keys(scores: np.ndarray, tokens: np.ndarray, key: Key) -> np.ndarray:
    """The scores of a race, for listed tokens."""
    ids = tokens.astype(np.int32)
    keys: np.ndarray = scores - np.log(token_numbers(*key, ids, *block_numbers(*key, ids // BLOCK)))
    return keys


def _threshold(row: Row, allowed: Allowed, local: Local) -> float | None:
    if local.temperature == 0 or local.truncation.off:
        return None
    scores = _scores_of(row, allowed).astype(np.float64) / local.temperature
    return local.truncation.row_threshold(scores)


def _scores_of(row: Row, allowed: Allowed) -> np.ndarray:
    """The scores of listed tokens; of all others [V], -inf where nothing is allowed."""
    if allowed is not None and allowed.dtype != np.bool_:
        listed: np.ndarray = row[allowed]
        return listed
    assert isinstance(row, np.ndarray)
    if allowed is not None:
        masked: np.ndarray = np.where(allowed, row, row.dtype.type(-np.inf))
        return masked
    return row


def _listed(words: np.ndarray, size: int) -> np.ndarray:
    """A mask of few tokens as their ids, any other as bool [V]."""
    bits = mask_bits(words, size)
    return np.flatnonzero(bits) if int(np.count_nonzero(bits)) <= _LISTED else bits


def _without(allowed: np.ndarray, without: Sequence[int]) -> np.ndarray:
    """The allowed tokens without some."""
    if allowed.dtype != np.bool_:
        kept: np.ndarray = allowed[~np.isin(allowed, without)]
    else:
        kept = allowed.copy()
        kept[list(without)] = False
    return kept


def _best_of(row: np.ndarray, count: int) -> list[int]:
    """The likeliest tokens, best first."""
    some = np.argpartition(-row, min(count, len(row)) - 1)[:count]
    found: list[int] = some[np.argsort(-row[some], kind="stable")].tolist()
    return found


def _normaliser(row: np.ndarray) -> float:
    top = row.max()
    shifted = row - top
    return float(top) + math.log(float(np.exp(shifted, out=shifted).sum(dtype=np.float64)))


def on_host(rows: torch.Tensor) -> np.ndarray:
    """The same memory, for floats that numpy knows."""
    if rows.device.type != "cpu":
        rows = rows.cpu()
    if rows.dtype not in NUMPY_FLOATS:
        rows = rows.float()
    view: np.ndarray = np.from_dlpack(rows.detach())
    return view
