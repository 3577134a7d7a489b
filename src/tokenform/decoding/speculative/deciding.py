"""Values that are decided as wholes, within the driver's steps.

Purpose: before a pass, the paths of values that may begin where its tree stands are added to the tree; after
it,
the draw at such a place is replaced by the decision: the tokens of one whole value (`choosing.py`).
Invariant: where something else may stand at the place too (a space, the end of an array), the draw of a token
says whether a value begins, and the decision which.  A text stops before a value that is not decided yet; the
next pass scores more of it.  So drafts and batches change no value.
Complexity: values behind a draft are scored with it where that is likely to save more than it costs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch

from tokenform.decoding.draws import Drawn
from tokenform.decoding.draws.lazy import draw_row
from tokenform.decoding.keyed_random import race_key

from .choices import Choices, Places
from .choosing import WIDTH, Choosing, Chosen, Learnt
from .node import Node
from .request import UNKNOWN
from .scores import Listed, Scores
from .tree import ROOT

if TYPE_CHECKING:
    from .live import Live
    from .matching import Logits

_PASS = 8.0  # scored nodes that cost as much as a pass of one


@dataclass(frozen=True)
class Decision:
    """A value that was decided as a whole.

    Attributes:
        place: tokens of the text before it.
        value: what was left of the value there, as bytes.
        logprobs: of each value that was possible, as `value` is; None where not all are known.
    """

    place: int
    value: bytes
    logprobs: dict[bytes, float] | None


class Told(NamedTuple):
    """A value in tokens.

    Attributes:
        tokens: with the one that completes it.
        logprobs: of each, under the model alone.
        refused: for each, what the budget refused in its place (`Drawn.refused`).
        nodes: of the draft's tree before each; None where a pass before this one has scored some of them.
    """

    tokens: list[int]
    logprobs: list[float]
    refused: list[int | None]
    nodes: list[int] | None


class Deciding:
    """For one thread at a time.

    Args:
        places: what is known of states.
    """

    def __init__(self, places: Places | None = None) -> None:
        self._places = places or Places()

    def prepare(self, live: Live) -> None:
        """Adds to the tree of a sequence what decides values."""
        live.weighs = False
        if live.request.sampler.local.values != "whole" or live.request.automaton is None:
            return
        choosing = self._choosing_at(live, live.output.state, 0)
        if choosing is None and not live.tree.tokens:
            return
        chain = any(part.mode != "tree" for part, _ in live.seqs)
        if choosing is not None:
            live.weighs = True
            if chain:
                live.draft_nothing()
            self._add(live, ROOT, choosing, choosing.wanted(WIDTH, chain))
        if not chain:
            self._add_behind(live, WIDTH)

    def tell(
        self, live: Live, logits: Logits, node: int, drawn: Drawn, node_of: Callable[[int], Node]
    ) -> Told | None:
        """The tokens of a whole value at a node: none where it is not decided yet, None where no value
        begins.

        Args:
            drawn: the draw of a token there.
            node_of: gives the `Node` of a number in the tree.
        """
        choosing = None if drawn.error is not None else self._choosing(live, node)
        if choosing is None or not (choosing.settled or choosing.choices.begins(drawn.token)):
            return None
        mapped = self._mapped(live, node, choosing.choices)
        fresh = self._learn(live, logits, mapped, choosing, node_of)
        chosen = choosing.settle()
        if chosen is None:
            if node == ROOT and (not fresh or not choosing.wanted(1, True)):
                return None  # no memory for a path, or no probability: token by token
            choosing.settled, live.choosing = True, choosing
            return Told([], [], [], [])
        told = self._told(live, node, choosing, chosen, mapped)
        if told is not None:
            if told.refused[0] is None and _elsewhere(drawn.refused, choosing.choices):
                told.refused[0] = drawn.refused
            begun = choosing.position - len(live.request.prompt)
            value = choosing.choices.options[chosen.option]
            live.output.decided.append(Decision(begun, value, choosing.logprobs))
        return told

    def _choosing(self, live: Live, node: int) -> Choosing | None:
        """What decides at a node of the tree; None where no value may begin there."""
        depth = 0 if node == ROOT else live.tree.depths[node]
        return self._choosing_at(live, live.session.states.get(node), depth)

    def _choosing_at(self, live: Live, state: Any, depth: int) -> Choosing | None:
        request = live.request
        if request.automaton is None or request.sampler.local.values != "whole":
            return None
        assert live.spelling is not None
        choices = self._places.at(request.automaton, state, live.spelling, request.eos)
        if choices is None:
            return None
        position, begun = len(live.text) + depth, live.choosing
        if begun is None or begun.position != position or begun.choices is not choices:
            key = request.seed, request.number, position
            begun = Choosing(choices, request.sampler.local, key, live.remaining - depth, live.room - depth)
        if depth == 0:
            live.choosing = begun
        return begun if begun.possible else None

    def _add(self, live: Live, node: int, choosing: Choosing, wanted: Sequence[int]) -> None:
        """Adds nodes of a value's tree below a node."""
        choices, new = choosing.choices, {ROOT: node}
        for one in wanted:
            state, parent = choices.state(one), new.get(choices.tree.parents[one])
            if state is not None and parent is not None:
                new[one] = live.session.add(live.tree, parent, choices.tree.tokens[one], state)

    def _add_behind(self, live: Live, room: int) -> None:
        """The same for values behind a draft."""
        tree, chances = live.tree, list[float]()
        room -= len(tree)
        for node in range(len(tree)):
            above = tree.parents[node]
            chances.append(tree.confidences[node] * (chances[above] if above >= 0 else 1.0))
            if chances[-1] < 0.5:
                continue
            choosing = self._choosing(live, node)
            if choosing is None:
                continue
            size = len(choosing.choices.tree)
            if size <= room and size * (1 - chances[-1]) <= _PASS * chances[-1]:
                live.weighs = True
                self._add(live, node, choosing, choosing.wanted(size, False))
                room -= size

    def _mapped(self, live: Live, node: int, choices: Choices) -> dict[int, int]:
        """Nodes of a value's tree, and those of the draft's tree that they are."""
        found, todo = {ROOT: node}, [ROOT]
        while todo:
            one = todo.pop()
            for child in choices.tree.children(one):
                there = live.tree.child(found[one], choices.tree.tokens[child])
                if there is not None and there in live.session.states:
                    found[child] = there
                    todo.append(child)
        return found

    def _learn(
        self,
        live: Live,
        logits: Logits,
        mapped: dict[int, int],
        choosing: Choosing,
        node_of: Callable[[int], Node],
    ) -> bool:
        """Takes what the pass says at the nodes that are not known; False where that is nothing."""
        choices, sampler = choosing.choices, live.request.sampler
        new = sorted(one for one in mapped if one not in choosing.learnt and choices.state(one) is not None)
        rows = [logits[0][mapped[one] + 1] for one in new]
        if any(isinstance(row, Listed) for row in rows) or not rows:
            return False
        own = torch.stack(cast("list[torch.Tensor]", rows))
        wanted = [[choices.tree.tokens[c] for c in choices.tree.children(one)] for one in new]
        ends = [choices.ends(one) for one in new]
        tokens = [
            np.concatenate([np.array(w, np.int64), *(e.tokens for e in es)])
            for w, es in zip(wanted, ends, strict=True)
        ]
        at = np.repeat(np.arange(len(new)), [len(part) for part in tokens])
        alone = _picked(own, at, np.concatenate(tokens))
        mixed = alone
        if not sampler.untouched:
            parts = [
                sampler.free([_row(part, mapped[one] + 1) for part in logits], node_of(mapped[one]))
                for one in new
            ]
            mixed = _picked(torch.stack(parts), at, np.concatenate(tokens))
        start = 0
        for one, w, es in zip(new, wanted, ends, strict=True):
            cuts = np.cumsum([start, len(w), *(len(e.tokens) for e in es)])
            split = [[scores[a:b] for a, b in itertools.pairwise(cuts)] for scores in (mixed, alone)]
            choosing.learn(
                one, Learnt(split[0][0].tolist(), split[0][1:], split[1][0].tolist(), split[1][1:])
            )
            start = int(cuts[-1])
        return True

    def _told(
        self, live: Live, node: int, choosing: Choosing, chosen: Chosen, mapped: dict[int, int]
    ) -> Told | None:
        """The tokens that write what was chosen; None where its end does not fit the budget."""
        choices, sampler, request = choosing.choices, live.request.sampler, live.request
        path, one = list[int](), chosen.leaf
        while one != ROOT:
            path.insert(0, one)
            one = choices.tree.parents[one]
        before = [] if node == ROOT else live.tree.path(node)
        tokens = [choices.tree.tokens[one] for one in path]
        leaf = Node(
            live.text, [*before, *tokens], len(request.prompt), request.automaton, choices.state(chosen.leaf),
            live.remaining - len(before) - len(tokens), request.seed, request.number,
        )  # fmt: skip
        ids, scores = chosen.ends, chosen.scores
        key = race_key(request.seed, request.number, leaf.position)
        end = draw_row(Listed(ids, scores, sampler.size), ids, sampler.local, key)
        wished = end
        if not sampler.fits(leaf, end):
            fits = np.array([sampler.fits(leaf, int(one)) for one in ids])
            if not np.isfinite(scores[fits]).any():
                return None
            ids, scores = ids[fits], scores[fits]
            end = draw_row(Listed(ids, scores, sampler.size), ids, sampler.local, key)
        logprobs = []
        for one in path:
            above = choices.tree.parents[one]
            logprobs.append(choosing.learnt[above].own_children[choices.tree.children(above).index(one)])
        for ends, own in zip(choices.ends(chosen.leaf), choosing.learnt[chosen.leaf].own_ends, strict=True):
            if ends.option == chosen.option:
                logprobs.append(float(own[np.flatnonzero(ends.tokens == end)[0]]))
        nodes = [mapped.get(one) for one in (ROOT, *path)]
        known = None if None in nodes else cast("list[int]", nodes)
        refused: list[int | None] = [*[None] * len(tokens), None if end == wished else wished]
        if chosen.refused:
            refused[0] = UNKNOWN
        return Told([*tokens, end], logprobs, refused, known)


def _elsewhere(refused: int | None, choices: Choices) -> bool:
    """Whether the budget refused a token in whose place no value would begin: a space, say."""
    return refused is not None and (refused == UNKNOWN or not choices.begins(refused))


def _picked(rows: torch.Tensor, at: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Log-probabilities float64 of tokens, each at a row [V]; one transfer."""
    wide = rows if rows.dtype == torch.float64 else rows.float()
    total = wide.logsumexp(-1).double()
    where, ids = torch.from_numpy(at).to(rows.device), torch.from_numpy(tokens).to(rows.device)
    return np.array((wide[where, ids].double() - total[where]).tolist())


def _row(part: torch.Tensor | Scores, row: int) -> torch.Tensor:
    return cast("torch.Tensor", part[row])
