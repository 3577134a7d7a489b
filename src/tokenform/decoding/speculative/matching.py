"""From scored trees to committed tokens, for a whole batch.

Purpose: the sampler draws at each node, and a sequence walks down its tree while the drawn token is in it
(sample-and-match).  That is exact for any sampler and any draft, because the draft only decides which
distributions are known already; with keyed numbers the text is that of plain decoding.
Invariant: no distribution leaves the device.
Complexity: on a device one draw call a step over all nodes of all trees, with a transfer of some bytes a
node; on the host a call a level over the nodes that are reached.
Source: the point-mass case of speculative sampling (Leviathan et al. 2023), on trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tokenform.decoding.draws import DEFAULT_OUTPUTS, Drawn, MaskedSampler, RequestedOutputs
from tokenform.decoding.draws.base import FAILED
from tokenform.decoding.draws.lazy import NUMPY_FLOATS, on_host
from tokenform.decoding.speculative.node import Node
from tokenform.errors import TokenformError, own_error
from tokenform.masking import MaskTable

from .choices import Choices
from .choosing import SpelledValue
from .deciding import Deciding
from .live import Live
from .node_draws import NodeDraws
from .places import Places, Short
from .scores import Columns, Scores
from .tree import ROOT, VALUES
from .weighing import weigh
from .word_end import WordEnd

Logits = list[torch.Tensor | Scores]
"""[nodes + 1, V] of a sequence's model, then of each companion."""

Scored = tuple[Live, Logits]

_DRAW_ALONE = RequestedOutputs(logprob=False)


class Verdict(NamedTuple):
    """The result of a step for a sequence.

    Attributes:
        tokens: those to commit, perhaps with an end-of-text and some after it.
        logprobs: of each, under the model's own distribution.
        refused: for each, the token that the budget refused in its place (`Drawn.refused`).
        drawn: at each row of the tree, where a device drew at all of them; else None.
    """

    tokens: list[int]
    logprobs: list[float]
    refused: list[int | None]
    drawn: list[Drawn | None] | None = None


Verdicts = dict[int, "Verdict | TokenformError"]


class DeviceDraws(NodeDraws):
    """Draws of the model's own step, which decide the committed tokens.

    Args:
        places: cache of the places at which values begin.
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
        """At each row of a sequence's tree the only tokens whose logits `match` reads; None for all.

        Masks are computed along the drafted paths while few tokens are allowed.  Below a node that allows
        many, most nodes do, too, and the mask of a node that is never reached is wasted.
        """
        request = live.request
        if request.logprobs or request.alternatives or request.companions:
            return None
        if live.session.wish != DEFAULT_OUTPUTS or request.automaton is None or live.decides_values:
            return None
        columns: list[np.ndarray | None] = [None] * (len(live.tree.tokens) + 1)
        pending = [ROOT]
        while pending:
            node = pending.pop()
            if node != ROOT and not live.goes_on(node):
                columns[node + 1] = np.empty(0, np.int64)
            elif (ids := self.listed(request.sampler, live.node(node, live.tree.path(node)))) is not None:
                columns[node + 1] = ids
                pending += live.tree.children(node)
        return None if columns[0] is None else columns

    def match(self, scored: Sequence[Scored]) -> Verdicts:
        """The committed tokens of each sequence, or why there are none."""
        drawn: dict[tuple[int, int], Drawn] = {}
        if self.whole:
            waiting = list[tuple[Live, Logits, int]]()
            for live, logits in scored:  # no draws on the path through a value
                sources = live.tree.sources
                nodes = [n for n, source in enumerate(sources) if source != VALUES and live.goes_on(n)]
                waiting += [(live, logits, node) for node in (ROOT, *nodes)]
            self._draw(waiting, drawn)
        verdicts: Verdicts = {}
        for live, logits in scored:
            try:
                verdicts[live.number] = self._walk(live, logits, drawn)
            except Exception as error:
                verdicts[live.number] = own_error(error, FAILED)
        return verdicts

    def _walk(
        self, live: Live, logits: Logits, drawn: dict[tuple[int, int], Drawn]
    ) -> Verdict | TokenformError:
        """Draws from the root down while the draws are in the tree; values that begin there are decided as
        wholes.

        Args:
            drawn: at each (sequence, node), where all were drawn at once.
        """
        request, tree, whole, rows = live.request, live.tree, self.whole, list[Any](logits)
        sampler, automaton, states = request.sampler, request.automaton, live.session.states
        outputs, known = DEFAULT_OUTPUTS if request.logprobs else _DRAW_ALONE, self.deciding.known
        last = live.text[-1] if live.output.tokens else None
        forced, token_bytes = live.forced, () if live.spelling is None else live.spelling.tokens
        encode = live.spelling.encode if live.wholes and live.spelling is not None else None
        if (
            not whole
            and sampler.untouched
            and isinstance(rows[0], torch.Tensor)
            and rows[0].dtype in NUMPY_FLOATS
        ):
            rows = [on_host(part) for part in rows]  # once for all nodes, without a copy
        tokens, logprobs, refused = list[int](), list[float](), list[int | None]()
        draws: dict[int, Drawn | None] = {}
        spans, opened = live.spans, list[tuple[int, int]]()
        if whole:
            draws = {node: drawn.get((live.number, node)) for node in range(ROOT, len(tree))}
        node: int | None = ROOT
        while node is not None and node in states:
            state, value = states[node], None
            if node != ROOT and automaton is not None and automaton.is_finished(state):
                break
            one = draws.get(node)
            if not whole:
                live.output.report.evaluations += 1
                here = [part[node + 1] for part in rows] if len(rows) > 1 else [rows[0][node + 1]]
                one = self._lazy.one(sampler, here, live.node(node, tokens), outputs)
            if one is None:
                break
            if one.error is not None:
                return one.error
            if (
                forced is not None
                and (one.refused is not None or token_bytes[one.token].isspace())
                and forced.joined(state, one.token, one.refused) is not None
            ):
                one = draws[node] = self._unjoined(live, rows, node, tokens, one)
            place: Any = None if encode is None else known.get((state, encode), live)
            if place is live:  # not known yet
                place = self.deciding.place(live, state)
            if isinstance(place, WordEnd):
                before = tokens[-1] if tokens else last
                if before is not None and place.after[before]:
                    value = self.deciding.decide_word_end(live, logits, node, one, place)
            elif place is not None:
                value = self.deciding.decide_value(live, logits, node, one, place)
            if (
                spans is not None
                and tokens
                and spans.opens[tokens[-1]]
                and not isinstance(place, Choices | Short)
            ):
                opened.append((len(tokens), node))
            if value is None:
                tokens.append(one.token)
                logprobs.append(one.logprob)
                refused.append(one.refused)
            elif value.nodes is None or not value.tokens:  # not decided yet, or scored in part before
                draws[node] = None
                if not tokens:
                    return Verdict(value.tokens, value.logprobs, value.refused)
                break
            else:
                for draft_node, token, logprob, cut in zip(value.nodes, *value[:3], strict=True):
                    draw = draws.get(draft_node) or one  # with the requested outputs
                    draws[draft_node] = draw._replace(token=token, logprob=logprob, refused=cut)
                tokens += value.tokens
                logprobs += value.logprobs
                refused += value.refused
                node = value.nodes[-1]
            kids = tree.kids.get(node)
            node = None if kids is None else kids.get(tokens[-1])
        if spans is not None:
            written = SpelledValue(tokens, logprobs, refused, None)
            tokens, logprobs, refused, _ = weigh(self.deciding, live, logits, spans, written, opened)
        return Verdict(tokens, logprobs, refused, list(draws.values()) if whole else None)

    def _unjoined(
        self, live: Live, rows: Sequence[Any], node: int, path: Sequence[int], drawn: Drawn
    ) -> Drawn:
        """The draw at a node without whitespace tokens that the tokenizer would join with the next text."""
        assert live.forced is not None
        found, here, outputs = drawn, live.node(node, path), RequestedOutputs(logprob=live.request.logprobs)
        while (token := live.forced.joined(here.state, found.token, found.refused)) is not None:
            here.without += (token,)
            again = self.draw(live.request.sampler, [[part[node + 1]] for part in rows], [here], outputs)[0]
            if again.error is not None:  # transforms leave no other token
                return drawn
            found = drawn._replace(token=again.token, logprob=again.logprob, refused=again.refused)
        return found

    def _draw(
        self, requests: Sequence[tuple[Live, Logits, int]], drawn: dict[tuple[int, int], Drawn]
    ) -> None:
        groups: dict[MaskedSampler, list[tuple[Live, Logits, int]]] = {}
        for one in requests:
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
            outputs = RequestedOutputs(best, logprob=logprob)
            try:
                found = self.draw(sampler, rows, nodes, outputs)
            except Exception as error:  # of no single row: the shapes, or the device
                found = [Drawn(-1, 0.0, own_error(error, FAILED))] * len(group)
            for (live, _, node), answer in zip(group, found, strict=True):
                live.output.report.evaluations += 1
                drawn[live.number, node] = answer
