"""Drafts of a whole batch, made in lockstep.

Purpose: a drafter that runs a model would run it once for every sequence and token.  Drafting is
therefore a coroutine: it asks for a pass over its own sequence and is answered with the logits.
`together` collects what all drafts of a step ask for and makes one pass of each model of it.
Invariant: a draft is what it would be alone, for a pass over several sequences gives each its own
logits.  A pass that fails is raised in the drafts that asked for it, and in no other.
Complexity: as many passes of a model as the longest draft asks for, whatever the batch; a failing
pass costs two more for each halving, until the sequence that fails is alone.
Source: continuous batching, applied to the second model; design, "the shared speculative backbone".
Rejected: drafters that take the whole batch (each would need its own bookkeeping of who has ended,
and two of them in one tree would not share passes).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from .backbone import Backbone
from .tree import DraftTree

_AT_ONCE = 1 << 22  # logits that are copied to the CPU in one piece: 32 MiB there

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a pass; `backbone.score({seq: tree}, skip=skip)` alone."""

    backbone: Backbone
    seq: int
    tree: DraftTree
    skip: frozenset[int] = frozenset()


class Scored(NamedTuple):
    """The answer to an `Ask`.

    Attributes:
        rows: float64 [n + 1, V]: row 0 after the committed tokens, row i + 1 after node i.
        seconds: this sequence's share of the pass.
    """

    rows: np.ndarray | list[np.ndarray]
    seconds: float


Drafting = Generator[Ask, Scored, _Result]
"""A draft (or a part of one) in the making."""


class Draft(NamedTuple):
    """A draft that is made; `seconds`: its own time and its shares of the passes."""

    tree: DraftTree
    seconds: float


def together(draftings: Iterable[Drafting[DraftTree]]) -> list[Draft]:
    """Runs all to their ends; what one of them raises goes to the caller, and the others are closed."""
    courses = [_Course(drafting) for drafting in draftings]
    try:
        asking = [course for course in courses if course.resume(None)]
        while asking:
            answers = _answers([course.ask for course in asking])
            asking = [c for c, answer in zip(asking, answers, strict=True) if c.resume(answer)]
    finally:
        for course in courses:
            course.drafting.close()
    return [Draft(course.tree, course.seconds) for course in courses]


def alone(drafting: Drafting[DraftTree]) -> DraftTree:
    """The draft of one sequence by itself."""
    return together([drafting])[0].tree


class _Course:
    """One drafting on its way."""

    __slots__ = ("ask", "drafting", "seconds", "tree")

    ask: Ask
    tree: DraftTree

    def __init__(self, drafting: Drafting[DraftTree]) -> None:
        self.drafting, self.seconds = drafting, 0.0

    def resume(self, answer: Scored | Exception | None) -> bool:
        """Goes on to the next ask; False at the end."""
        began = time.perf_counter()
        try:
            if isinstance(answer, Exception):
                self.ask = self.drafting.throw(answer)
            elif answer is None:
                self.ask = next(self.drafting)
            else:
                self.seconds += answer.seconds
                self.ask = self.drafting.send(answer)
        except StopIteration as end:
            self.tree = end.value
            return False
        finally:
            self.seconds += time.perf_counter() - began
        return True


def _answers(asks: Sequence[Ask]) -> list[Scored | Exception]:
    """One pass for each model (and set of layers left out) that is asked for; answers in order."""
    groups: dict[tuple[int, frozenset[int]], list[int]] = {}
    for i, ask in enumerate(asks):
        groups.setdefault((id(ask.backbone), ask.skip), []).append(i)
    answers: dict[int, Scored | Exception] = {}
    for members in groups.values():
        answers.update(zip(members, _pass([asks[i] for i in members]), strict=True))
    return [answers[i] for i in range(len(asks))]


def _pass(asks: Sequence[Ask]) -> Sequence[Scored | Exception]:
    """One pass over sequences of one model; halves of it where it fails."""
    began = time.perf_counter()
    try:
        scored = asks[0].backbone.score({ask.seq: ask.tree for ask in asks}, skip=asks[0].skip)
        rows = _rows([scored[ask.seq] for ask in asks])
    except Exception as error:
        if len(asks) == 1:
            return [error]
    else:
        share = (time.perf_counter() - began) / len(asks)
        return [Scored(own, share) for own in rows]
    half = len(asks) // 2  # out of the handler: the error holds what the failed pass has allocated
    return [*_pass(asks[:half]), *_pass(asks[half:])]


def _rows(logits: Sequence[torch.Tensor]) -> Sequence[np.ndarray]:
    """float64 on the CPU; small batches in one copy, large ones one by one, so that memory stays small."""
    if sum(part.numel() for part in logits) > _AT_ONCE:
        return [part.to("cpu", torch.float64).numpy() for part in logits]
    one = logits[0] if len(logits) == 1 else torch.cat(list(logits))
    whole: np.ndarray = one.to("cpu", torch.float64).numpy()
    ends = list(itertools.accumulate(len(part) for part in logits))
    return [whole[end - len(part) : end] for part, end in zip(logits, ends, strict=True)]
