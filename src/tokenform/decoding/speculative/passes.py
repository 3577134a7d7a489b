"""The forward passes of a step: one of each model for all sequences, or several where memory runs out.

Invariant: a pass that fails ends the sequences that were in it, and leaves nothing in the cache.  Where
memory runs out the pass is run again without drafts, then in halves, then once more for one sequence alone.
Rejected: dropping a batch that ran out of memory.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from tokenform.decoding.clock import Clock, Span
from tokenform.errors import ModelError, TokenformError, own_error

from .backbone import Backbone
from .backbone.facts import out_of_memory
from .live import Live
from .matching import DeviceDraws, Logits
from .request import Report
from .scores import Columns, Scores
from .tree import DraftTree


class _Timed(NamedTuple):
    """A pass whose time is not reported yet.

    Attributes:
        tokens: how many it ran; None where its time says nothing about other passes.
        span, drafting: of the pass and of the step's drafts.
        reports: of the sequences that shared it.
    """

    tokens: float | None
    span: Span
    drafting: Span | None
    reports: list[Report]


class Passes:
    """Args:
        backbone: of the model.
        draws: say which tokens' logits are needed.
        report: counts passes, and has notes on repeated ones.
    Attributes:
        padding: cost of a padded position relative to a scored token, in the last pass.
        timed: passes whose time is not reported yet.
    """

    def __init__(self, backbone: Backbone, draws: DeviceDraws, report: Report) -> None:
        self._backbone, self._draws, self._report = backbone, draws, report
        self.padding = backbone.padding
        self._clock, self.timed = Clock(backbone.device), deque[_Timed]()

    def score(
        self, batch: list[Live], drafting: Span | None, alone_again: bool = False
    ) -> list[tuple[Live, Logits | TokenformError]]:
        """Logits of the model and the companions for each sequence of a step, or why there are none.

        Args:
            drafting: time of the step's drafts; None where nobody drafts: then the time of the pass is not
                reported.
            alone_again: memory has run out for one sequence alone.
        """
        try:
            return self._pass(batch, drafting)
        except Exception as error:
            if not out_of_memory(error):
                failure = own_error(error, "the model's forward pass failed")
                return [(live, failure) for live in batch]
        # outside of the handler, which holds the failed pass's memory
        return self._retry_smaller(batch, drafting, alone_again)

    def timings(self) -> Iterator[tuple[float, float, float]]:
        """(tokens, seconds, seconds of drafting) of the passes whose time is known now, each once, in order.

        On a device that is as a rule the step's own pass, because its draws have arrived.
        """
        while self.timed:
            tokens, span, drafting, reports = self.timed[0]
            elapsed, drafting_elapsed = span.elapsed(), None if drafting is None else drafting.elapsed()
            if elapsed is None or (drafting_elapsed is None and drafting is not None):
                return
            self.timed.popleft()
            for report in reports:
                report.seconds_model += elapsed.wall / len(reports)
            if tokens is not None and drafting_elapsed is not None:
                yield tokens, elapsed.work, drafting_elapsed.work

    def _pass(self, batch: list[Live], drafting: Span | None) -> list[tuple[Live, Logits | TokenformError]]:
        columns = self._columns(batch) if self._backbone.sliced else {}
        counters = self._backbone.counters
        plain = drafting is None and self._clock.host
        span, began = None if plain else self._clock.begin(), time.perf_counter()
        run = counters.positions, counters.scored, counters.unusual
        scored = self._logits(batch, columns)
        self._report.forwards += 1
        padding = self._backbone.padding  # where few logits are wanted of a token, the head costs little
        self.padding = padding + (1 - padding) * len(columns) / len(batch)
        if span is None:
            seconds = (time.perf_counter() - began) / len(batch)
            for live in batch:
                live.output.report.seconds_model += seconds
        else:
            span.end()
            positions, heads = counters.positions - run[0], counters.scored - run[1]
            representative = counters.unusual == run[2]  # a pass that compiles takes longer
            tokens = self.padding * positions + (1 - self.padding) * heads if representative else None
            self.timed.append(_Timed(tokens, span, drafting, [live.output.report for live in batch]))
        results: list[tuple[Live, Logits | TokenformError]] = []
        for live in batch:
            live.output.report.forwards += 1
            results.append((live, scored[live.number]))
        return results

    def _retry_smaller(
        self, batch: list[Live], drafting: Span | None, alone_again: bool
    ) -> list[tuple[Live, Logits | TokenformError]]:
        """The same where memory has run out."""
        if any(len(live.tree) for live in batch):
            self._note("out of memory: a pass was run again without drafts")
            for live in batch:
                live.draft_nothing()
            return self.score(batch, drafting)
        if len(batch) > 1:
            self._note("out of memory: a batch was run in halves")
            half = len(batch) // 2
            return [*self.score(batch[:half], drafting), *self.score(batch[half:], drafting)]
        if not alone_again:
            gc.collect()  # its traceback may still hold the failed pass's memory
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            return self.score(batch, drafting, alone_again=True)
        failure = ModelError("out of memory for one sequence without drafts; shorten the prompt")
        failure.__cause__ = MemoryError()  # the pass's own error holds what the pass has allocated
        return [(batch[0], failure)]

    def _columns(self, batch: Sequence[Live]) -> dict[int, Columns]:
        """The tokens whose logits are needed, for the sequences that need only some."""
        found = {}
        for live in batch:
            columns = self._draws.columns(live)
            if columns is not None:
                found[live.seqs[0][1]] = columns
        return found

    def _logits(self, batch: Sequence[Live], columns: Mapping[int, Columns]) -> dict[int, Logits]:
        trees_of_model: dict[int, tuple[Backbone, dict[int, DraftTree]]] = {}
        for live in batch:
            for part, seq in live.seqs:
                trees_of_model.setdefault(id(part), (part, {}))[1][seq] = live.tree
        scored: dict[int, Mapping[int, torch.Tensor | Scores]] = {}
        for key, (part, trees) in trees_of_model.items():
            if columns and part is self._backbone:
                scored[key] = part.score_listed(trees, columns)
            else:
                scored[key] = part.score(trees)
        logits: dict[int, Logits] = {}
        for live in batch:
            logits[live.number] = rows = []
            for part, seq in live.seqs:
                rows.append(scored[id(part)][seq])
        return logits

    def _note(self, note: str) -> None:
        if note not in self._report.notes:
            self._report.notes.append(note)
