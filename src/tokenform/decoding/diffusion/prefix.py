"""Writes texts from left to right, for constraints with too many states for a canvas.

Purpose: where open positions have too many states (`tf.Canvas`: keys that no schema names), the first open
position is still bound exactly, by the mask of the state before it.
Invariant: every text is valid and fits: each mask allows only tokens after which the text can still end in
the remaining positions.
Law of a pass: the first open position is drawn from its distribution under its mask; the next ones likewise,
by the same logits, as long as their token has at least `SURE` of its distribution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tokenform.decoding.diffusion.denoisers import Known
from tokenform.decoding.results import Stats
from tokenform.decoding.samplers.local import no_token_error
from tokenform.engine import TokenAutomaton
from tokenform.engine.packed import mask_bits

SURE = 0.9


class PrefixText:
    """A text whose first tokens are known; the methods are those of `CanvasText`."""

    def __init__(self, automaton: TokenAutomaton, length: int, seed: np.random.SeedSequence) -> None:
        self.automaton, self._length, self._state = automaton, length, automaton.start
        self._tokens: list[int] = []
        self._random = np.random.default_rng(seed)
        self.logprob, self.log_weight, self.stats = 0.0, 0.0, Stats()

    @property
    def known(self) -> Known:
        return [*self._tokens, *[None] * (self._length - len(self._tokens))]

    @property
    def canvases(self) -> list[Known]:
        return [self.known]

    @property
    def open(self) -> bool:
        return len(self._tokens) < self._length

    def take(self, rows: Sequence[NDArray[np.float32]], temperature: float, _: Sequence[int]) -> None:
        begin, first = time.perf_counter(), len(self._tokens)
        self.stats.forwards += 1
        self.stats.evaluations += self._length - first
        ends = self.automaton.vocabulary.eos
        for at in range(first, self._length):
            token, chance, logprob = self._drawn(
                rows[0][at].astype(np.float64), self._length - at, temperature
            )
            if at > first and chance < SURE:
                break
            self.logprob += logprob
            if token in ends:
                self._tokens += [token] * (self._length - at)
                break
            self._tokens.append(token)
            self._state = self.automaton.advance(self._state, token)
        self.stats.seconds_mask += time.perf_counter() - begin

    def _drawn(self, row: NDArray[np.float64], left: int, temperature: float) -> tuple[int, float, float]:
        """A token, its part of what its mask keeps, and the logarithm of its part of all."""
        size = self.automaton.vocabulary.size
        ids = np.flatnonzero(mask_bits(self.automaton.mask_within(self._state, left), size))
        kept = row[ids]
        if not (kept < np.inf).all() or kept.max() == -np.inf:  # NaN is not below
            raise no_token_error()
        shares = np.exp(kept - kept.max())
        place = int(kept.argmax())
        if temperature > 0:
            heated = np.exp((kept - kept.max()) / temperature)
            place = int(self._random.choice(len(ids), p=heated / heated.sum()))
        total = float(kept.max()) + math.log(np.exp(row - kept.max()).sum())
        return int(ids[place]), float(shares[place] / shares.sum()), float(kept[place]) - total
