"""The forward passes of a step: one of each model for all sequences, or several where memory runs out.

Invariant: a pass that fails costs the sequences that were in it, and leaves nothing in the cache.  Where
memory runs out the pass is made again without drafts, then in halves, then once more for one sequence alone.
Rejected: dropping a batch that ran out of memory.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence

import torch

from tokenform.decoding.clock import clock
from tokenform.errors import ModelError, TokenformError, own_error

from .backbone import Backbone
from .backbone.failures import out_of_memory
from .live import Live
from .matching import DeviceDraws, Logits
from .report import Report
from .scores import Columns, Scores
from .tree import DraftTree


class Passes:
    """Args:
        backbone: of the model.
        draws: say which tokens' logits are looked at.
        report: passes are counted there, and what was run again is noted.
        listed: whether nothing but the draws looks at logits.
    Attributes:
        timed: (tokens, seconds) of the passes of the last step.
        padding: what padding costs beside a scored token, in the last pass.
    """

    def __init__(self, backbone: Backbone, draws: DeviceDraws, report: Report, *, listed: bool) -> None:
        self._backbone, self._draws, self._report, self._listed = backbone, draws, report, listed
        self.timed: list[tuple[float, float]] = []
        self.padding = backbone.padding
        self._clock = clock(backbone.device)

    def score(self, batch: list[Live]) -> list[tuple[Live, Logits | TokenformError]]:
        """Logits of the model and the companions for each sequence of a step, or why there are none."""
        self.timed.clear()
        return list(self._score(batch))

    def _score(
        self, batch: list[Live], again: bool = False
    ) -> Iterator[tuple[Live, Logits | TokenformError]]:
        columns = self._columns(batch)
        began, worked = time.perf_counter(), self._clock()
        run, prepared = self._run(), self._backbone.counters.prepared
        try:
            scored = self._logits(batch, columns)
        except Exception as error:
            if not out_of_memory(error):
                failure = own_error(error, "the model's forward pass failed")
                yield from ((live, failure) for live in batch)
                return
        else:
            seconds = time.perf_counter() - began
            self._report.forwards += 1
            positions, heads = (after - before for after, before in zip(self._run(), run, strict=True))
            own = self._backbone.padding  # where few logits are wanted of a token, the head costs little
            self.padding = own + (1 - own) * len(columns) / len(batch)
            tokens = self.padding * positions + (1 - self.padding) * heads
            if self._backbone.counters.prepared == prepared:  # compiling tells nothing of what passes take
                self.timed.append((tokens, self._clock() - worked))
            for live in batch:
                live.output.report.forwards += 1
                live.output.report.seconds_model += seconds / len(batch)
                yield live, scored[live.number]
            return
        if any(len(live.tree) for live in batch):
            self._note("out of memory: a pass was run again without drafts")
            for live in batch:
                live.draft_nothing()
            yield from self._score(batch)
        elif len(batch) > 1:
            self._note("out of memory: a batch was run in halves")
            yield from self._score(batch[: len(batch) // 2])
            yield from self._score(batch[len(batch) // 2 :])
        elif not again:
            gc.collect()  # the failed pass, held by its traceback, may be what there is no room beside
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            yield from self._score(batch, again=True)
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
