"""From scored trees to committed tokens, for a whole batch.

Purpose: the sampler draws at each node, and a sequence goes down its tree while what is drawn is drafted
(sample-and-match).  That is exact for any sampler and any draft, for the draft decides nothing but which
distributions are known already; with keyed numbers the text is that of plain decoding.
Invariant: no distribution leaves the device.
Complexity: on a device one draw call a step over all nodes of all trees, which brings some bytes a node
home; on the host a call a level over the nodes that are reached.
Source: the point-mass case of speculative sampling (Leviathan et al. 2023), on trees.
Rejected: rules for drafts with a distribution of their own (`removed.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tokenform.decoding.draws import NO_WISH, Drawn, MaskedSampler, Wish
from tokenform.decoding.draws.base import FAILED, Rows
from tokenform.errors import TokenformError, own_error
from tokenform.masking import MaskTable

from .choices import Places
from .deciding import Deciding
from .grammar import goes_on
from .live import Live
from .node import Node
from .node_draws import NodeDraws
from .scores import Columns, Scores
from .tree import ROOT, VALUES

Logits = list[torch.Tensor | Scores]
"""[nodes + 1, V] of a sequence's model, then of each companion."""

Scored = tuple[Live, Logits]

_DRAW_ALONE = Wish(logprob=False)


class Verdict(NamedTuple):
    """What a step gives a sequence.

    Attributes:
        tokens: those that are committed, an end-of-text included, perhaps with some behind it.
        logprobs: of each, under the model's own distribution.
        refused: for each, what the budget refused in its place (`Drawn.refused`).
        drawn: at each row of the tree, where all were drawn at on a device; else None.
    """

    tokens: list[int]
    logprobs: list[float]
    refused: list[int | None]
    drawn: list[Drawn | None] | None = None


Verdicts = dict[int, "Verdict | TokenformError"]


class DeviceDraws(NodeDraws):
    """Draws of the model's own step, which decide what is committed.

    Args:
        places: what is known of states at which values begin.
    """

    def __init__(
        self,
        device: torch.device,
        table: MaskTable | None = None,
        places: Places | None = None,
        whole: bool | None = None,
    ) -> None:
        super().__init__(device, table, whole)
        self.deciding = Deciding(places)

    def columns(self, live: Live) -> Columns | None:
        """At each row of a sequence's tree the tokens at whose logits alone `match` looks; None for all.

        Masks are asked for along the drafted paths as far as few tokens are allowed: below others as many
        are, mostly, and a mask of a node that is never reached is work for nothing.
        """
        request = live.request
        if request.logprobs or request.alternatives or request.companions:
            return None
        if live.session.wish != NO_WISH or request.automaton is None or live.weighs:
            return None
        found: list[np.ndarray | None] = [None] * (len(live.tree) + 1)
        asked = [ROOT]
        while asked:
            node = asked.pop()
            if node != ROOT and not _goes_on(live, node):
                found[node + 1] = np.empty(0, np.int64)
            elif (ids := self.listed(request.sampler, _node(live, node))) is not None:
                found[node + 1] = ids
                asked += live.tree.children(node)
        return None if found[0] is None else found

    def match(self, scored: Sequence[Scored]) -> Verdicts:
        """The committed tokens of each sequence, or why there are none."""
        drawn: dict[tuple[int, int], Drawn] = {}
        waiting, whole, found = [], self.whole, dict[int, Verdict | TokenformError]()
        for live, logits in scored:
            if not (whole or live.tree.tokens or live.weighs):
                found[live.number] = self._next(live, logits)
                continue
            sources = live.tree.sources if whole else ()  # nobody draws on the way through a value
            nodes = [n for n, source in enumerate(sources) if source != VALUES and _goes_on(live, n)]
            waiting += [(live, logits, node) for node in (ROOT, *nodes)]
        while waiting:
            self._draw(waiting, drawn)
            reached, waiting = waiting, []
            for live, logits, node in () if whole else reached:
                child = self._below(live, logits, node, drawn)
                if child is not None:
                    waiting.append((live, logits, child))
        for live, logits in scored if whole else ():
            at: int | None = ROOT
            while at is not None and (live.number, at) in drawn:
                at = self._below(live, logits, at, drawn)
        for live, _ in scored:
            if live.number not in found:
                found[live.number] = _walk(live, drawn, whole)
        return found

    def _next(self, live: Live, logits: Logits) -> Verdict | TokenformError:
        """The next token of a sequence without a draft, drawn on the host."""
        request, state = live.request, live.output.state
        live.output.report.evaluations += 1
        try:
            forced = None if state is None or live.forced is None else live.forced.next
            node = Node(
                live.text, (), len(request.prompt), request.automaton, state, live.remaining, request.seed,
                request.number, forced,
            )  # fmt: skip
            wish = NO_WISH if request.logprobs else _DRAW_ALONE
            rows: list[Rows] = [[logits[0][0]]]
            for part in logits[1:]:
                rows.append([part[0]])
            (one,) = self._lazy.draw(request.sampler, rows, [node], wish)
        except Exception as error:
            return own_error(error, FAILED)
        return Verdict([one.token], [one.logprob], [one.refused]) if one.error is None else one.error

    def _below(
        self, live: Live, logits: Logits, node: int, drawn: dict[tuple[int, int], Drawn]
    ) -> int | None:
        """The drafted node to which the draw at a node leads, values that begin there decided as wholes."""
        told = self.deciding.tell(
            live, logits, node, drawn[live.number, node], functools.partial(_node, live)
        )
        if told is not None:
            if told.nodes is None or not told.tokens:
                drawn.pop((live.number, node))
                live.decided = told  # which ends the walk
                return None
            for token, logprob, refused, node in zip(*told[:3], told.nodes, strict=True):
                there = drawn.get(
                    (live.number, node), Drawn(token, logprob)
                )  # with what was wished for there
                drawn[live.number, node] = there._replace(token=token, logprob=logprob, refused=refused)
        child = live.tree.child(node, drawn[live.number, node].token)
        return child if child is not None and _goes_on(live, child) else None

    def _draw(self, wanted: Sequence[tuple[Live, Logits, int]], drawn: dict[tuple[int, int], Drawn]) -> None:
        groups: dict[MaskedSampler, list[tuple[Live, Logits, int]]] = {}
        for one in wanted:
            groups.setdefault(one[0].request.sampler, []).append(one)
        for sampler, group in groups.items():
            rows: list[list[Any]] = [[] for _ in group[0][1]]
            nodes, best, logprob = list[Node](), 0, False
            for live, logits, node in group:
                for part, found_there in zip(rows, logits, strict=True):
                    part.append(found_there[node + 1])
                nodes.append(_node(live, node))
                logprob = logprob or live.request.logprobs
                best = max(best, live.session.wish.best) if self.whole else 0
            wish = Wish(best, logprob=logprob)
            try:
                found = self.draw(sampler, rows, nodes, wish)
            except Exception as error:  # nothing of one row: the shapes, or the device
                found = [Drawn(-1, 0.0, own_error(error, FAILED))] * len(group)
            for (live, _, node), answer in zip(group, found, strict=True):
                live.output.report.evaluations += 1
                drawn[live.number, node] = answer


def _goes_on(live: Live, node: int) -> bool:
    """Whether a token may follow a drafted node."""
    return goes_on(live.tree, node, live.session.states, live.request.automaton, live.request.eos)


def _node(live: Live, node: int) -> Node:
    """A place in a tree; behind an end of the text, where nothing is ever committed, without a constraint."""
    request = live.request
    path = live.tree.path(node) if node >= 0 else ()
    automaton, state = request.automaton, live.session.states[node]
    if node >= 0 and automaton is not None and not _goes_on(live, node):
        automaton = state = None
    return Node(
        live.text, path, len(request.prompt), automaton, state,
        live.remaining - len(path), request.seed, request.number,
        None if state is None else live.forced_token(node),
    )  # fmt: skip


def _walk(live: Live, drawn: dict[tuple[int, int], Drawn], whole: bool) -> Verdict | TokenformError:
    """What is drawn from the root down, as long as it is drafted."""
    passed: list[Drawn] = []
    node: int | None = ROOT
    while node is not None and (one := drawn.get((live.number, node))) is not None:
        passed.append(one)
        node = live.tree.child(node, one.token) if one.error is None else None
    if not passed:  # the value that begins here is not decided yet, or an earlier pass has scored it
        assert live.decided is not None
        return Verdict(live.decided.tokens, live.decided.logprobs, live.decided.refused)
    if passed[-1].error is not None:
        return passed[-1].error
    rows = [drawn.get((live.number, n)) for n in range(ROOT, len(live.tree))] if whole else None
    tokens = [one.token for one in passed]
    return Verdict(tokens, [one.logprob for one in passed], [one.refused for one in passed], rows)
