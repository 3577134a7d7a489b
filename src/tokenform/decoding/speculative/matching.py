"""From scored trees to committed tokens, for a whole batch.

Purpose: the sampler draws at each node, and a sequence goes down its tree while what is drawn is drafted
(sample-and-match).  That is exact for any sampler and any draft, for the draft decides nothing but which
distributions are known already; with keyed numbers the text is that of plain decoding.
Invariant: no distribution leaves the device.
Complexity: on a device one draw call a step over all nodes of all trees, which brings some bytes a node
home; on the host a call a level over the nodes that are reached.
Source: the point-mass case of speculative sampling (Leviathan et al. 2023), on trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tokenform.decoding.draws import NO_WISH, Drawn, MaskedSampler, Wish
from tokenform.decoding.draws.base import FAILED
from tokenform.decoding.draws.lazy import NUMPY_FLOATS, on_host
from tokenform.decoding.speculative.node import Node
from tokenform.errors import TokenformError, own_error
from tokenform.masking import MaskTable

from .deciding import Deciding
from .live import Live
from .node_draws import NodeDraws
from .places import Places
from .scores import Columns, Scores
from .tree import ROOT, VALUES
from .word_end import WordEnd

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
        found: list[np.ndarray | None] = [None] * (len(live.tree.tokens) + 1)
        asked = [ROOT]
        while asked:
            node = asked.pop()
            if node != ROOT and not live.goes_on(node):
                found[node + 1] = np.empty(0, np.int64)
            elif (ids := self.listed(request.sampler, live.node(node, live.tree.path(node)))) is not None:
                found[node + 1] = ids
                asked += live.tree.children(node)
        return None if found[0] is None else found

    def match(self, scored: Sequence[Scored]) -> Verdicts:
        """The committed tokens of each sequence, or why there are none."""
        drawn: dict[tuple[int, int], Drawn] = {}
        if self.whole:
            waiting = list[tuple[Live, Logits, int]]()
            for live, logits in scored:  # nobody draws on the way through a value
                sources = live.tree.sources
                nodes = [n for n, source in enumerate(sources) if source != VALUES and live.goes_on(n)]
                waiting += [(live, logits, node) for node in (ROOT, *nodes)]
            self._draw(waiting, drawn)
        found: Verdicts = {}
        for live, logits in scored:
            try:
                found[live.number] = self._walk(live, logits, drawn)
            except Exception as error:
                found[live.number] = own_error(error, FAILED)
        return found

    def _walk(
        self, live: Live, logits: Logits, drawn: dict[tuple[int, int], Drawn]
    ) -> Verdict | TokenformError:
        """What is drawn from the root down, as long as it is drafted; values that begin there as wholes.

        Args:
            drawn: at each (sequence, node), where all was drawn at once.
        """
        request, tree, whole, rows = live.request, live.tree, self.whole, list[Any](logits)
        sampler, automaton, states = request.sampler, request.automaton, live.session.states
        wish, known = NO_WISH if request.logprobs else _DRAW_ALONE, self.deciding.known
        last = live.text[-1] if live.output.tokens else None
        forced, spelt = live.forced, () if live.spelling is None else live.spelling.tokens
        encode = live.spelling.encode if live.wholes and live.spelling is not None else None
        if (
            not whole
            and sampler.untouched
            and isinstance(rows[0], torch.Tensor)
            and rows[0].dtype in NUMPY_FLOATS
        ):
            rows = [on_host(part) for part in rows]  # once for all places, which costs nothing
        tokens, logprobs, refused = list[int](), list[float](), list[int | None]()
        every: dict[int, Drawn | None] = {}
        if whole:
            every = {node: drawn.get((live.number, node)) for node in range(ROOT, len(tree))}
        node: int | None = ROOT
        while node is not None and node in states:
            state, told = states[node], None
            if node != ROOT and automaton is not None and automaton.is_finished(state):
                break
            one = every.get(node)
            if not whole:
                live.output.report.evaluations += 1
                here = [part[node + 1] for part in rows] if len(rows) > 1 else [rows[0][node + 1]]
                one = self._lazy.one(sampler, here, live.node(node, tokens), wish)
            if one is None:
                break
            if one.error is not None:
                return one.error
            if (
                forced is not None
                and (one.refused is not None or spelt[one.token].isspace())
                and forced.joined(state, one.token, one.refused) is not None
            ):
                one = every[node] = self._unjoined(live, rows, node, tokens, one)
            place: Any = None if encode is None else known.get((state, encode), live)
            if place is live:  # not known yet
                place = self.deciding.place(live, state)
            if isinstance(place, WordEnd):
                before = tokens[-1] if tokens else last
                if before is not None and place.after[before]:
                    told = self.deciding.end(live, logits, node, one, place)
            elif place is not None:
                told = self.deciding.tell(live, logits, node, one, place)
            if told is None:
                tokens.append(one.token)
                logprobs.append(one.logprob)
                refused.append(one.refused)
            elif told.nodes is None or not told.tokens:  # not decided yet, or scored in part before
                every[node] = None
                if not tokens:
                    return Verdict(told.tokens, told.logprobs, told.refused)
                break
            else:
                for at, token, logprob, cut in zip(told.nodes, *told[:3], strict=True):
                    there = every.get(at) or one  # with what was wished for there
                    every[at] = there._replace(token=token, logprob=logprob, refused=cut)
                tokens += told.tokens
                logprobs += told.logprobs
                refused += told.refused
                node = told.nodes[-1]
            kids = tree.kids.get(node)
            node = None if kids is None else kids.get(tokens[-1])
        return Verdict(tokens, logprobs, refused, list(every.values()) if whole else None)

    def _unjoined(
        self, live: Live, rows: Sequence[Any], node: int, path: Sequence[int], drawn: Drawn
    ) -> Drawn:
        """The draw at a node without tokens of whitespace that the tokenizer joins with what follows, whether
        they were drawn or would have been without the budget."""
        assert live.forced is not None
        found, place, wish = drawn, live.node(node, path), Wish(logprob=live.request.logprobs)
        while (token := live.forced.joined(place.state, found.token, found.refused)) is not None:
            place.without += (token,)
            again = self.draw(live.request.sampler, [[part[node + 1]] for part in rows], [place], wish)[0]
            if again.error is not None:  # transforms leave nothing else
                return drawn
            found = drawn._replace(token=again.token, logprob=again.logprob, refused=again.refused)
        return found

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
                nodes.append(live.node(node, live.tree.path(node)))
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
