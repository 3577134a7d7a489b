"""Drafts of a whole batch, made in lockstep.

Purpose: a drafter that runs a model would run it once for every sequence and token.  Drafting is
therefore a coroutine: it requests a pass over its own sequence, and draws at some of its rows.
`together` collects the requests of all drafts of a step into one pass of each model.
Invariant: a draft is the one it would be alone, because a pass over several sequences gives each its own
logits.  A pass that fails is raised in the drafts that requested it, and in no other.  Logits stay where the
model put them; draws come to the host, in one transfer a pass.
Complexity: as many passes of a model as the longest draft requests, whatever the batch; a failing
pass costs two more for each halving, until the sequence that fails is alone.
Source: continuous batching, applied to the second model; design, "the shared speculative backbone".
Rejected: drafters that take the whole batch (each would need its own bookkeeping of who has ended,
and two of them in one tree would not share passes).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch

from tokenform.decoding.clock import Clock, Elapsed, Span
from tokenform.decoding.draws import DEFAULT_OUTPUTS, Drawn, MaskedSampler, RequestedOutputs
from tokenform.decoding.speculative.node import Node

from .backbone import Backbone
from .node_draws import NodeDraws
from .tree import DraftTree

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a pass: `backbone.score({seq: tree})` alone, and for draws of its rows.

    Attributes:
        nodes: (row of the pass, place) at which something is drawn; row 0 is the root.
        sampler: draws there.
        copies: 1 + companions of the sampler; each gets the same logits.
        convert: logits [n, V'] of the model -> [n, V] of the target's ids; None leaves them.
        outputs: what is requested beside each draw.
    """

    backbone: Backbone
    seq: int
    tree: DraftTree
    nodes: Sequence[tuple[int, Node]] = ()
    sampler: Any = None
    copies: int = 1
    convert: Callable[[torch.Tensor], torch.Tensor] | None = None
    outputs: RequestedOutputs = DEFAULT_OUTPUTS


class Scored:
    """The answer to an `Ask`."""

    def __init__(self, ask: Ask, logits: torch.Tensor, draws: NodeDraws, span: Span, sharing: int) -> None:
        self.ask, self._span, self._sharing = ask, span, sharing
        self._draws, self.all_drawn = draws, list[Drawn]()  # what was drawn at all nodes at once
        rows = [row for row, _ in ask.nodes]
        self.rows = logits if rows == list(range(len(logits))) else logits[rows]
        if ask.convert is not None and rows:
            self.rows = ask.convert(self.rows)

    @property
    def elapsed(self) -> Elapsed | None:
        """This sequence's share of the pass's time; None while its draws have not arrived."""

        elapsed = self._span.elapsed()
        return elapsed and Elapsed(elapsed.work / self._sharing, elapsed.wall / self._sharing)

    @property
    def logits(self) -> list[Any]:
        """Rows of the model and its companions, at the nodes."""
        return [self.rows] * self.ask.copies

    def drawn(self, place: int) -> Drawn:
        """The sampler's draw at the node with this number in `ask.nodes`; on the host it is made now."""
        if self.all_drawn:
            return self.all_drawn[place]
        rows = [part[place][None] for part in self.logits]
        node = self.ask.nodes[place][1]
        return self._draws.draw(self.ask.sampler, rows, [node], self.ask.outputs)[0]


Drafting = Generator[Ask, Scored, _Result]
"""A draft (or a part of one) in the making."""


class Draft(NamedTuple):
    """A finished draft; `seconds`: its own time and its shares of the passes."""

    tree: DraftTree
    seconds: float


def together(draftings: Iterable[Drafting[DraftTree]], draws: NodeDraws | None = None) -> list[Draft]:
    """Runs all to their ends; if one raises, the caller gets the error, and the others are closed.

    Args:
        draws: makes draws; None makes one on the host.
    """
    draws = draws or NodeDraws(torch.device("cpu"))
    runs, asking = list[_DraftRun](), list[_DraftRun]()
    try:
        for drafting in draftings:
            runs.append(_DraftRun(drafting))
        for run in runs:
            if run.resume(None):
                asking.append(run)
        while asking:
            answers = _answers([run.ask for run in asking], draws)
            asking = [c for c, answer in zip(asking, answers, strict=True) if c.resume(answer)]
    finally:
        for run in runs:
            run.drafting.close()
    return [Draft(run.tree, run.seconds) for run in runs]


def alone(drafting: Drafting[DraftTree]) -> DraftTree:
    """The draft of one sequence by itself."""
    return together([drafting])[0].tree


class _DraftRun:
    """One running drafting."""

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
                elapsed = answer.elapsed
                self.seconds += elapsed.wall if elapsed is not None else 0.0
                self.ask = self.drafting.send(answer)
        except StopIteration as end:
            self.tree = end.value
            return False
        finally:
            self.seconds += time.perf_counter() - began
        return True


def _answers(asks: Sequence[Ask], draws: NodeDraws) -> list[Scored | Exception]:
    """One pass for each requested model; answers in order."""
    groups: dict[int, list[int]] = {}
    for i, ask in enumerate(asks):
        groups.setdefault(id(ask.backbone), []).append(i)
    answers: dict[int, Scored | Exception] = {}
    for members in groups.values():
        there = draws.on(asks[members[0]].backbone.device)
        answers.update(zip(members, _pass([asks[i] for i in members], there), strict=True))
    return [answers[i] for i in range(len(asks))]


def _pass(asks: Sequence[Ask], draws: NodeDraws) -> Sequence[Scored | Exception]:
    """One pass over sequences of one model; halves of it where it fails."""
    span = Clock(asks[0].backbone.device).begin()
    try:
        logits = asks[0].backbone.score({ask.seq: ask.tree for ask in asks})
        scored = [Scored(ask, logits[ask.seq], draws, span, len(asks)) for ask in asks]
        span.end()  # before its draws: when those have arrived, it has ended
        if draws.whole:
            _draw([one for one in scored if one.ask.nodes], draws)
    except Exception as error:
        if len(asks) == 1:
            return [error]
    else:
        return scored
    half = len(asks) // 2  # outside of the handler, whose error holds the failed pass's memory
    return [*_pass(asks[:half], draws), *_pass(asks[half:], draws)]


def _draw(scored: Sequence[Scored], draws: NodeDraws) -> None:
    """The samplers' draws, in one transfer for each sampler."""
    groups: dict[tuple[MaskedSampler, RequestedOutputs], list[Scored]] = {}
    for one in scored:
        groups.setdefault((one.ask.sampler, one.ask.outputs), []).append(one)
    for (sampler, outputs), group in groups.items():
        rows = [torch.cat([one.rows for one in group])] * group[0].ask.copies
        nodes = [node for one in group for _, node in one.ask.nodes]
        drawn = draws.draw(sampler, rows, nodes, outputs)
        for one in group:
            one.all_drawn = drawn[: len(one.ask.nodes)]
            drawn = drawn[len(one.ask.nodes) :]
