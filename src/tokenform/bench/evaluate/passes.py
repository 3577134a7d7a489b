"""Forward passes of one model for the decoding loop, shared by the engines that write on the same prompt.

Purpose: engines that agree on the beginning of a text need the same distributions; a scoreboard's greedy
texts agree mostly, and a pass costs a hundred masks.
Invariant: `after` gives the logits after the prompt and the tokens written, and the seconds (the processor's
and the clock's) of the pass that computed them, whoever asked first: an engine pays for every pass it needs.
Complexity: one pass a new beginning, whatever was written in between; memory V floats a token of one prompt.
Rejected: a batch of all engines (a pass of five texts costs as two, but who pays for it?).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.backbone.prompt_cache import common
from tokenform.decoding.speculative.tree import DraftTree


@dataclass(frozen=True)
class Pass:
    """Logits float [1, V], and what they cost."""

    logits: torch.Tensor
    seconds: float
    cpu_seconds: float


class Passes:
    """The passes over one prompt at a time; `shared` keeps them for the next text after the same prompt."""

    def __init__(self, backbone: Backbone, *, shared: bool = False) -> None:
        self._backbone, self._shared = backbone, shared
        self._prompt: tuple[int, ...] = ()
        self._seq: int | None = None
        self._known: dict[tuple[int, ...], Pass] = {}

    def begin(self, prompt: Sequence[int]) -> None:
        """What follows is written after this prompt."""
        if self._shared and tuple(prompt) == self._prompt:
            return
        self.end()
        self._seq, self._prompt = self._backbone.open(prompt), tuple(prompt)

    def end(self) -> None:
        """Forget the prompt and all that was computed after it."""
        if self._seq is not None:
            self._backbone.drop(self._seq)
        self._seq, self._prompt, self._known = None, (), {}

    def after(self, written: Sequence[int]) -> Pass:
        """The pass after the tokens written so far."""
        key = tuple(written)
        if key not in self._known:
            assert self._seq is not None, "begin(prompt) comes first"
            begun, cpu = time.perf_counter(), time.process_time()
            whole = (*self._prompt, *key)
            held = common(self._backbone.tokens(self._seq), whole)
            self._backbone.truncate(self._seq, held)
            self._backbone.commit(self._seq, whole[held:])
            logits = self._backbone.score({self._seq: DraftTree()})[self._seq]
            made = Pass(logits, time.perf_counter() - begun, time.process_time() - cpu)
            if not self._shared:
                return made
            self._known[key] = Pass(logits.clone(), made.seconds, made.cpu_seconds)
        return self._known[key]
