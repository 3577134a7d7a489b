"""From scored trees to committed tokens, for a whole batch.

Purpose: under sample-and-match every sequence goes down its tree while what is drawn is drafted; under a rule
for drawn drafts, numbers of all nodes and a draw at each come home, and the rule decides by those.
Invariant: the committed tokens are those of `verifiers/`.  No distribution leaves the device.
Complexity: on a device one draw call a step over all nodes of all trees, which brings some bytes a node
home; on the host sample-and-match makes a call a level over the nodes that are reached, for nothing else is
worth its time there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import torch

from tokenform.decoding.draws import NO_WISH, Drawn, MaskedSampler, Wish, race
from tokenform.decoding.draws.base import FAILED, Rows
from tokenform.decoding.keyed_random import KeyedChoice, race_key
from tokenform.decoding.samplers.local import hopeless
from tokenform.errors import OptionError, TokenformError, own_error
from tokenform.masking import MaskTable

from .choices import Places
from .deciding import Deciding
from .grammar import goes_on
from .live import Live
from .node import Node
from .node_draws import NodeDraws
from .request import UNKNOWN
from .scores import Columns, Scores
from .tree import ROOT, VALUES
from .verifiers import Coins, DrawnRule, Forest, SampleAndMatch

Logits = list[torch.Tensor | Scores]
"""[nodes + 1, V] of a sequence's model, then of each companion."""

Scored = tuple[Live, Logits]

_DRAW_ALONE = Wish(logprob=False)
_AT_ONCE = 1 << 26  # probabilities of a rule for drawn drafts that are weighed at once: 512 MiB


class Verdict(NamedTuple):
    """What a step gives a sequence.

    Attributes:
        tokens: those that are committed, an end-of-text included, perhaps with some behind it.
        logprobs: of each, under the model's own distribution.
        refused: for each, what the budget refused in its place: `Drawn.refused`, or `UNKNOWN`.
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

    def match(self, scored: Sequence[Scored], rule: SampleAndMatch) -> Verdicts:
        """The committed tokens of each sequence by sample-and-match, or why there are none."""
        drawn: dict[tuple[int, int], Drawn] = {}
        waiting, whole, found = [], self.whole, dict[int, Verdict | TokenformError]()
        for live, logits in scored:
            if not (whole or rule.greedy or live.tree.tokens or live.weighs):
                found[live.number] = self._next(live, logits)
                continue
            if rule.greedy and live.request.sampler.local.temperature != 0:
                refusal = OptionError(
                    "GreedyTree verifies greedy targets alone; use SampleAndMatch to sample"
                )
                drawn[live.number, ROOT] = Drawn(-1, 0.0, refusal)
                continue
            sources = live.tree.sources if whole else ()  # nobody draws on the way through a value
            nodes = [n for n, source in enumerate(sources) if source != VALUES and _goes_on(live, n)]
            waiting += [(live, logits, node) for node in (ROOT, *nodes)]
        while waiting:
            self._draw(waiting, drawn)
            waiting = [
                (live, logits, child)
                for live, logits, node in waiting
                if not whole and (child := self._below(live, logits, node, drawn)) is not None
            ]
        for live, logits in scored if whole else ():
            node: int | None = ROOT
            while node is not None and (live.number, node) in drawn:
                node = self._below(live, logits, node, drawn)
        for live, _ in scored:
            if live.number not in found:
                found[live.number] = _walk(live, drawn, rule, whole)
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

    def judge(self, scored: Sequence[Scored], rule: DrawnRule) -> Verdicts:
        """The same by a rule for drawn drafts."""
        found: Verdicts = {}
        parts: list[tuple[list[Scored], torch.Tensor]] = []
        for group in _groups(scored):
            for several in (group, *([one] for one in group)):
                some = [(live, logits) for live, logits in several if live.number not in found]
                if not some:
                    continue
                try:
                    for live, _ in some:
                        rule.check(live.tree)
                    parts.append((some, self._weighed(some, rule)))
                    break
                except Exception as error:  # of one of them: which, is found one by one
                    if len(several) == 1:
                        found[several[0][0].number] = own_error(error, FAILED)
        if not parts:
            return found
        rows = torch.cat([table for _, table in parts]).tolist()  # the transfer
        for some, _ in parts:
            for live, _ in some:
                own, rows = rows[: len(live.tree) + 1], rows[len(live.tree) + 1 :]
                found[live.number] = _decided(live, own, rule)
        return found

    def _weighed(self, scored: Sequence[Scored], rule: DrawnRule) -> torch.Tensor:
        """What the rule and the commitment need of each row, float64 [R, 7] on the device."""
        sampler = scored[0][0].request.sampler
        own, count = [cast("list[torch.Tensor]", one) for _, one in scored], len(scored[0][1])
        logits = [torch.cat([one[i] for one in own]) for i in range(count)]
        nodes = [_node(live, n) for live, _ in scored for n in range(ROOT, len(live.tree))]
        device = logits[0].device
        with torch.inference_mode():
            p, there, refused = self.distributions(sampler, logits, nodes)
            forest = Forest([live.tree for live, _ in scored], device)
            distributions = [
                _on(torch.as_tensor(distribution), device) for distribution in forest.distributions
            ]
            q = torch.stack(distributions).double() if distributions else p[:0]
            p = torch.where(there[:, None], p, 1.0 / p.shape[1])
            chance, final, lean = rule.weigh(forest, p, q)
            keys = [
                race_key(live.request.seed, live.request.number, len(live.text), 0)
                for live, _ in scored
                for _ in range(len(live.tree) + 1)
            ]
            token = race(final.log(), None, 1.0, keys)
            whole = logits[0].double()
            total = whole.logsumexp(-1)
            parents, drafted = torch.tensor([forest.parents, forest.tokens], device=device)
            guessed = whole[parents, drafted] - total[parents]
            logprob = whole.gather(1, token[:, None])[:, 0] - total
            columns = [chance, lean, there.double(), token.double(), logprob, guessed, refused]
            return torch.stack(columns, 1)

    def _draw(self, wanted: Sequence[tuple[Live, Logits, int]], drawn: dict[tuple[int, int], Drawn]) -> None:
        groups: dict[MaskedSampler, list[tuple[Live, Logits, int]]] = {}
        for one in wanted:
            groups.setdefault(one[0].request.sampler, []).append(one)
        for sampler, group in groups.items():
            rows = [[logits[i][node + 1] for _, logits, node in group] for i in range(len(group[0][1]))]
            nodes = [_node(live, node) for live, _, node in group]
            wishes = [live.session.wish for live, _, _ in group] if self.whole else []
            wish = Wish(
                max((w.best for w in wishes), default=0),
                allowed=any(w.allowed for w in wishes),
                logprob=any(live.request.logprobs for live, _, _ in group),
            )
            try:
                found = self.draw(sampler, rows, nodes, wish)
            except Exception as error:  # nothing of one row: the shapes, or the device
                found = [Drawn(-1, 0.0, own_error(error, FAILED))] * len(group)
            for (live, _, node), answer in zip(group, found, strict=True):
                live.output.report.evaluations += 1
                drawn[live.number, node] = answer


def _groups(scored: Sequence[Scored]) -> list[list[Scored]]:
    """Neighbours of one sampler, not more of them than are weighed at once."""
    groups: list[list[Scored]] = []
    held = 0
    for live, logits in scored:
        same = groups and groups[-1][0][0].request.sampler == live.request.sampler
        held += cast("torch.Tensor", logits[0]).numel()
        if same and held <= _AT_ONCE:
            groups[-1].append((live, logits))
        else:
            groups.append([(live, logits)])
            held = cast("torch.Tensor", logits[0]).numel()
    return groups


def _decided(live: Live, rows: Sequence[Sequence[float]], rule: DrawnRule) -> Verdict | TokenformError:
    """What a rule for drawn drafts commits.

    It draws no token without the budget that could be compared with the one it has.  A draw that is made
    again where it does not fit is one from the same distribution, and whether it was is a coin of its own:
    the mass that the budget refuses.
    """
    tree, request = live.tree, live.request
    live.output.report.evaluations += len(rows)
    choice = KeyedChoice(request.seed, request.number, len(live.text))
    stop = rule.stop(tree, Coins([row[0] for row in rows], [row[1] for row in rows]), choice)
    tokens = tree.path(stop) if stop != ROOT else []
    nodes = [ROOT, *tree.walk(tokens)]
    if not all(rows[node + 1][2] for node in nodes):
        return hopeless()
    logprobs = [rows[node + 1][5] for node in nodes[1:]]
    refused = [UNKNOWN if choice.accept(rows[node + 1][6]) else None for node in nodes]
    return Verdict([*tokens, int(rows[stop + 1][3])], [*logprobs, rows[stop + 1][4]], refused)


def _on(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor if tensor.device == device else tensor.to(device)


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


def _walk(
    live: Live, drawn: dict[tuple[int, int], Drawn], rule: SampleAndMatch, whole: bool
) -> Verdict | TokenformError:
    passed: list[Drawn] = []

    def token(node: int) -> int | None:
        if (one := drawn.get((live.number, node))) is None:
            return None
        passed.append(one)
        return one.token if one.error is None else None

    tokens = rule.follow(live.tree, token)
    if not passed:  # the value that begins here is not decided yet, or an earlier pass has scored it
        assert live.decided is not None
        return Verdict(live.decided.tokens, live.decided.logprobs, live.decided.refused)
    if passed[-1].error is not None:
        return passed[-1].error
    rows = [drawn.get((live.number, n)) for n in range(ROOT, len(live.tree))] if whole else None
    return Verdict(tokens, [one.logprob for one in passed], [one.refused for one in passed], rows)
