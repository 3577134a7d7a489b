"""The forward passes of a step: one of each model for all sequences, or several where memory runs out.

Invariant: a pass that fails costs the sequences that were in it, and leaves nothing in the cache.  Where
memory runs out the pass is made again without drafts, then in halves, then once more for one sequence alone.
Rejected: dropping a batch that ran out of memory.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from tokenform.decoding.clock import Clock, Span
from tokenform.errors import ModelError, TokenformError, own_error

from .backbone import Backbone
from .backbone.failures import out_of_memory
from .live import Live
from .matching import DeviceDraws, Logits
from .report import Report
from .scores import Columns, Scores
from .tree import DraftTree


class _Timed(NamedTuple):
    """A pass that nobody has been told the time of.

    Attributes:
        tokens: what it ran; None where it tells nothing of what passes take.
        span, drafting: of the pass and of the step's drafts.
        reports: of the sequences that shared it.
    """

    tokens: float | None
    span: Span
    drafting: Span
    reports: list[Report]


class Passes:
    """Args:
        backbone: of the model.
        draws: say which tokens' logits are looked at.
        report: passes are counted there, and what was run again is noted.
        listed: whether nothing but the draws looks at logits.
    Attributes:
        padding: what padding costs beside a scored token, in the last pass.
    """

    def __init__(self, backbone: Backbone, draws: DeviceDraws, report: Report, *, listed: bool) -> None:
        self._backbone, self._draws, self._report, self._listed = backbone, draws, report, listed
        self.padding = backbone.padding
        self._clock, self._timed = Clock(backbone.device), deque[_Timed]()

    def score(self, batch: list[Live], drafting: Span) -> list[tuple[Live, Logits | TokenformError]]:
        """Logits of the model and the companions for each sequence of a step, or why there are none.

        Args:
            drafting: what the step's drafts took.
        """
        return list(self._score(batch, drafting))

    def known(self) -> Iterator[tuple[float, float, float]]:
        """(tokens, seconds, seconds of drafting) of the passes whose time is known now, each once, in order.

        Where a device runs them that is as a rule the step's own, for its draws have been waited for.
        """
        while self._timed:
            tokens, span, drafting, reports = self._timed[0]
            took, before = span.took(), drafting.took()
            if took is None or before is None:
                return
            self._timed.popleft()
            for report in reports:
                report.seconds_model += took.wall / len(reports)
            if tokens is not None:
                yield tokens, took.work, before.work

    def _score(
        self, batch: list[Live], drafting: Span, again: bool = False
    ) -> Iterator[tuple[Live, Logits | TokenformError]]:
        columns = self._columns(batch)
        span = self._clock.begin()
        run, prepared = self._run(), self._backbone.counters.prepared
        try:
            scored = self._logits(batch, columns)
        except Exception as error:
            if not out_of_memory(error):
                failure = own_error(error, "the model's forward pass failed")
                yield from ((live, failure) for live in batch)
                return
        else:
            span.end()
            self._report.forwards += 1
            positions, heads = (after - before for after, before in zip(self._run(), run, strict=True))
            own = self._backbone.padding  # where few logits are wanted of a token, the head costs little
            self.padding = own + (1 - own) * len(columns) / len(batch)
            told = self._backbone.counters.prepared == prepared  # compiling tells nothing of what passes take
            tokens = self.padding * positions + (1 - self.padding) * heads if told else None
            self._timed.append(_Timed(tokens, span, drafting, [live.output.report for live in batch]))
            for live in batch:
                live.output.report.forwards += 1
                yield live, scored[live.number]
            return
        if any(len(live.tree) for live in batch):
            self._note("out of memory: a pass was run again without drafts")
            for live in batch:
                live.draft_nothing()
            yield from self._score(batch, drafting)
        elif len(batch) > 1:
            self._note("out of memory: a batch was run in halves")
            yield from self._score(batch[: len(batch) // 2], drafting)
            yield from self._score(batch[len(batch) // 2 :], drafting)
        elif not again:
            gc.collect()  # the failed pass, held by its traceback, may be what there is no room beside
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            yield from self._score(batch, drafting, again=True)
        else:
            yield batch[0], ModelError("out of memory for one sequence without drafts; shorten the prompt")

    def _run(self) -> tuple[int, int]:
        """Positions that the backbone has run so far, and how many of them for their logits."""
        return self._backbone.counters.positions, self._backbone.counters.scored

    def _columns(self, batch: Sequence[Live]) -> dict[int, Columns]:
        """The tokens whose logits are wanted of some sequences; of the others, all of them."""
        if not self._listed or not self._backbone.sliced:
            return {}
        found = {}
        for live in batch:
            columns = self._draws.columns(live)
            if columns is not None:
                found[live.seqs[0][1]] = columns
        return found

    def _logits(self, batch: Sequence[Live], columns: Mapping[int, Columns]) -> dict[int, Logits]:
        asked: dict[int, tuple[Backbone, dict[int, DraftTree]]] = {}
        for live in batch:
            for part, seq in live.seqs:
                asked.setdefault(id(part), (part, {}))[1][seq] = live.tree
        got: dict[int, Mapping[int, torch.Tensor | Scores]] = {}
        for key, (part, trees) in asked.items():
            if columns and part is self._backbone:
                got[key] = part.score_listed(trees, columns)
            else:
                got[key] = part.score(trees)
        return {live.number: [got[id(part)][seq] for part, seq in live.seqs] for live in batch}

    def _note(self, note: str) -> None:
        if note not in self._report.notes:
            self._report.notes.append(note)
