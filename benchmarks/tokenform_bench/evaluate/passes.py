"""Forward passes of one model for texts that are written in lockstep, shared where they begin alike.

Purpose: engines agree on the beginning of a text mostly, and a pass over many rows costs little more than
one over a single row: a scoreboard in batches takes a third of the time.
Invariant: `after` gives, for each text asked for, the logits after its prompt and its tokens, and the seconds
(the processor's and the clock's) of its row: those of the pass, divided among its rows.  Texts that are equal
so far have one row, and each pays for all of it.
Complexity: a pass a call; a row for each beginning that differs.  Memory: the keys and values of those rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.tree import DraftTree

Begun = tuple[tuple[int, ...], tuple[int, ...]]
"""(prompt, tokens written)."""


@dataclass(frozen=True)
class Pass:
    """Logits float [1, V], good until the next pass, and what they cost."""

    logits: torch.Tensor
    seconds: float
    cpu_seconds: float


class Passes:
    """The passes after texts that grow token by token; what is not asked for again is forgotten."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone
        self._held: dict[Begun, int] = {}

    def end(self) -> None:
        """Forget all texts."""
        self.after([])

    def after(self, texts: Iterable[Begun]) -> dict[Begun, Pass]:
        """The passes after these texts, each of which was asked for before without its last token, or is new.

        Raises:
            OutOfMemory: the rows don't fit; all texts are forgotten.
        """
        begun, cpu, backbone = time.perf_counter(), time.process_time(), self._backbone
        held, self._held = self._held, {}
        for prompt, written in dict.fromkeys(texts):
            parent = held.get((prompt, written[:-1])) if written else None
            if parent is None or not backbone.forks:
                self._held[prompt, written] = backbone.open((*prompt, *written))
                continue
            copy = backbone.fork(parent)
            backbone.commit(copy, written[-1:])
            self._held[prompt, written] = copy
        for seq in held.values():
            backbone.drop(seq)
        if not self._held:
            return {}
        logits = backbone.score({seq: DraftTree() for seq in self._held.values()})
        rows = len(self._held)
        seconds, cpu = (time.perf_counter() - begun) / rows, (time.process_time() - cpu) / rows
        return {text: Pass(logits[seq], seconds, cpu) for text, seq in self._held.items()}
