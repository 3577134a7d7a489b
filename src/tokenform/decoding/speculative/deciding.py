"""Values that are decided as wholes, and words that end, within the driver's steps.

Purpose: before a pass, the paths of values that may begin at its nodes are added to the tree; after it, the
draw at such a place is replaced by the tokens of one whole value (`choosing.py`).  Where a word may end, one
row decides; the draw is replaced where it disagrees (`word_end.py`).
Invariant: where something else is allowed at the place too (a space, the end of an array), the draw of a
token decides whether a value begins, and `choosing.py` which.  A text stops before a value that is not
decided yet; the next pass scores more of it.  So drafts and batches change no value.
Complexity: values behind a draft are scored with it where that is likely to save more than it costs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from tokenform.decoding.draws import Drawn
from tokenform.decoding.draws.lazy import draw_row
from tokenform.decoding.keyed_random import race_key
from tokenform.decoding.speculative.node import Node
from tokenform.engine import State

from .choices import Choices
from .choosing import WIDTH, Choosing, Chosen, SpelledValue
from .places import Place, Places, Short
from .request import UNKNOWN
from .scores import Listed, Scores, picked
from .searching import Search
from .tree import ROOT
from .values import ValueChoices
from .weighing import add_weighed
from .word_end import WordEnd

if TYPE_CHECKING:
    from .live import Live
    from .matching import Logits

Decider = Choosing | Search
"""A value being decided: of a list, or of a language."""

_NONE = np.empty(0, np.int64)
_PASS = 8.0  # scored nodes that cost as much as a pass of one


@dataclass(frozen=True)
class Decision:
    """A value that was decided as a whole.

    Attributes:
        place: tokens of the text before it.
        value: the rest of the value there, as bytes.
        logprobs: of each possible value, as `value` is; None where not all are known.
    """

    place: int
    value: bytes
    logprobs: dict[bytes, float] | None


class Deciding:
    """For one thread at a time.

    Args:
        places: cache of what is decided at states.
    """

    def __init__(self, places: Places | None = None) -> None:
        self._places = places or Places()
        self.known = self._places.known  # None where no value begins
        # of the last word only: there may be thousands of places with half of the vocabulary each
        self._word: tuple[WordEnd | None, tuple[np.ndarray, np.ndarray]] = None, (_NONE, _NONE)

    def prepare(self, live: Live) -> None:
        """Adds the paths of values to the tree of a sequence."""
        live.decides_values = False
        if not live.wholes:
            return
        tree, state = live.tree, live.output.state
        assert live.spelling is not None
        place: Any = self.known.get((state, live.spelling.encode), live)
        weighing = None if live.spans is None else live.spans.here(live)
        if place is None and not tree.tokens and weighing is None:
            return
        if place is live:  # not known yet
            place = self.place(live, state)
        if weighing is not None and not isinstance(place, Choices | Short):
            add_weighed(self, live, weighing)
        elif isinstance(place, WordEnd):
            live.decides_values = follows_word(live, ROOT, place)
        elif place is not None and (choosing := self._choosing(live, ROOT, place)) is not None:
            live.decides_values = True
            if live.chains:
                live.draft_nothing()
            self.add(live, ROOT, choosing, choosing.nodes_to_score(WIDTH, live.chains))
        if not live.chains:
            self._add_after_draft(live, WIDTH)

    def place(self, live: Live, state: State | None) -> Place:
        """What is decided at a state."""
        assert live.spelling is not None
        return self._places.at(live.request.automaton, state, live.spelling, live.request.eos)

    def decide_value(
        self, live: Live, logits: Logits, node: int, drawn: Drawn, place: Choices | Short
    ) -> SpelledValue | None:
        """The tokens of a whole value at a node; empty where it is not decided yet, None where no value
        begins.

        Args:
            drawn: the draw of a token there.
        """
        choosing = self._choosing(live, node, place)
        if choosing is None or not (choosing.value_begins or choosing.begins(drawn.token)):
            return None
        mapped = self.draft_nodes(live, node, choosing)
        fresh = self.learn(live, logits, mapped, choosing)
        chosen = choosing.decide()
        if chosen is None:
            if node == ROOT and (not fresh or not choosing.nodes_to_score(1, True)):
                return None  # no memory for a path, or no probability: token by token
            choosing.value_begins, live.choosing = True, choosing
            return SpelledValue([], [], [], [])
        spelled = self.spelled(live, node, choosing, chosen, mapped)
        if spelled is not None:
            if spelled.refused[0] is None and _begins_no_value(drawn.refused, choosing):
                spelled.refused[0] = drawn.refused
            if isinstance(choosing.place, ValueChoices | Short):
                place_in_text = choosing.position - len(live.request.prompt)
                live.output.decided.append(Decision(place_in_text, choosing.value(chosen), choosing.logprobs))
        return spelled

    def _choosing(self, live: Live, node: int, place: Choices | Short) -> Decider | None:
        """The decider at a node of the tree; None where no value may begin there."""
        request, local = live.request, live.request.sampler.local
        if isinstance(place, Short) and (not local.greedy or live.forced_token(node) is not None):
            return None
        depth = 0 if node == ROOT else live.tree.depths[node]
        position, current = len(live.text) + depth, live.choosing
        if current is None or current.position != position or current.place is not place:
            limits = live.remaining - depth, live.max_depth - depth
            if isinstance(place, Short):
                current = Search(place, position, *limits)
            else:
                current = Choosing(place, local, (request.seed, request.number, position), *limits)
        if depth == 0:
            live.choosing = current
        return current if current.possible else None

    def add(self, live: Live, node: int, choosing: Decider, nodes: Sequence[int]) -> None:
        """Adds nodes of a value's tree below a node."""
        tree, new = choosing.tree, {ROOT: node}
        for one in nodes:
            state, parent = choosing.state(one), new.get(tree.parents[one])
            if state is not None and parent is not None:
                new[one] = live.session.add(live.tree, parent, tree.tokens[one], state)

    def _add_after_draft(self, live: Live, remaining: int) -> None:
        """Adds the paths of values after a draft."""
        tree, states, chances = live.tree, live.session.states, list[float]()
        assert live.spelling is not None
        encode, size = live.spelling.encode, len(tree.tokens)
        remaining -= size
        for node, (above, confidence) in enumerate(zip(tree.parents[:], tree.confidences[:], strict=True)):
            chances.append(confidence * (chances[above] if above >= 0 else 1.0))
            if chances[-1] < 0.5:
                continue
            place: Any = self.known.get((states.get(node), encode), live)
            if place is live:
                place = self.place(live, states.get(node))
            if place is None:
                continue
            if isinstance(place, WordEnd):
                live.decides_values = live.decides_values or follows_word(live, node, place)
                continue
            choosing = self._choosing(live, node, place)
            if choosing is None:
                continue
            size = len(choosing.tree)  # 0: the tree of a search grows from pass to pass
            if size <= remaining and size * (1 - chances[-1]) <= _PASS * chances[-1]:
                live.decides_values = True
                self.add(live, node, choosing, choosing.nodes_to_score(size, False))
                remaining -= size

    def decide_word_end(
        self, live: Live, logits: Logits, node: int, drawn: Drawn, place: WordEnd
    ) -> SpelledValue | None:
        """The token after a word, where it is not the drawn one; None: it is."""
        request, row = live.request, logits[0][node + 1]
        if isinstance(row, Listed):  # too few logits are known: the next pass computes all
            return None if node == ROOT else SpelledValue([], [], [], [])
        sampler, depth = request.sampler, 0 if node == ROOT else live.tree.depths[node]
        wide = own = row[: sampler.size]
        if not sampler.untouched:
            here = live.node(node, () if node == ROOT else live.tree.path(node))
            wide = sampler.free([_row(part, node + 1) for part in logits], here)
        if self._word[0] is not place:
            self._word = place, place.parts()
        ends, longer = self._word[1]
        more = torch.softmax(wide if wide.dtype in (torch.float32, torch.float64) else wide.float(), -1)[
            torch.from_numpy(longer).to(wide.device)
        ]
        total, most = torch.stack([more.sum(), more.max()]).tolist()
        key = request.seed, request.number, len(live.text) + depth
        ending = place.ends(total, most, sampler.local, key)
        ids = ends if ending else longer
        if drawn.refused is None and (ids == drawn.token).any():
            return None
        scores = wide[torch.from_numpy(ids).to(wide.device)].double().cpu().numpy()
        if not np.isfinite(scores).any():
            return None
        token = unbudgeted = draw_row(Listed(ids, scores, sampler.size), ids, sampler.local, race_key(*key))
        here = live.node(node, () if node == ROOT else live.tree.path(node))
        if not sampler.fits(here, token):
            # `drawn` is the first token that fits; if it is none of these, another end may fit
            fits = [ending and sampler.fits(here, int(one)) for one in ids]
            token = drawn.token
            if not (ids == token).any() and np.isfinite(scores[fits]).any():
                fitting = Listed(ids[fits], scores[fits], sampler.size)
                token = draw_row(fitting, fitting.ids, sampler.local, race_key(*key))
        own = own.double()
        logprob = float(own[token] - own.logsumexp(-1))
        return SpelledValue([token], [logprob], [None if token == unbudgeted else unbudgeted], [node])

    def draft_nodes(self, live: Live, node: int, choosing: Decider) -> dict[int, int]:
        """Nodes of a value's tree, and the same nodes in the draft's tree."""
        nodes, todo = {ROOT: node}, [ROOT]
        while todo:
            one = todo.pop()
            for token, there in live.tree.kids.get(nodes[one], {}).items():
                child = choosing.child(one, token)
                if child is not None and there in live.session.states:
                    nodes[child] = there
                    todo.append(child)
        return nodes

    def learn(self, live: Live, logits: Logits, mapped: dict[int, int], choosing: Decider) -> bool:
        """Takes the pass's log-probabilities at new nodes; False where there are none."""
        sampler, before = live.request.sampler, len(choosing.learnt)
        new, rows = list[int](), list[torch.Tensor]()
        for one in sorted(mapped):
            if one in choosing.learnt or choosing.state(one) is None:
                continue
            row = logits[0][mapped[one] + 1]
            if isinstance(row, Listed):
                return False
            new.append(one)
            rows.append(row)
        if not rows:
            return False
        own = torch.stack(rows)
        tokens_of_node = [choosing.tokens_to_score(one) for one in new]
        tokens = [np.concatenate(parts) for parts in tokens_of_node]
        at = np.repeat(np.arange(len(new)), [len(part) for part in tokens])
        model_logprobs = picked(own, at, np.concatenate(tokens))
        mixed = model_logprobs
        if not sampler.untouched:
            parts = [
                sampler.free(
                    [_row(part, mapped[one] + 1) for part in logits],
                    live.node(mapped[one], live.tree.path(mapped[one])),
                )
                for one in new
            ]
            mixed = picked(torch.stack(parts), at, np.concatenate(tokens))
        start = 0
        for one, each in zip(new, tokens_of_node, strict=True):
            *cuts, end = list(itertools.accumulate(map(len, each), initial=start))[1:]
            at = np.array(cuts, int) - start
            choosing.learn(one, np.split(mixed[start:end], at), np.split(model_logprobs[start:end], at))
            start = end
        return len(choosing.learnt) > before

    def spelled(
        self, live: Live, node: int, choosing: Decider, chosen: Chosen, mapped: dict[int, int]
    ) -> SpelledValue | None:
        """The tokens of the chosen value; None where its end does not fit the budget."""
        sampler, request, tree = live.request.sampler, live.request, choosing.tree
        path = tree.line(chosen.leaf)
        before = [] if node == ROOT else live.tree.path(node)
        tokens = [tree.tokens[one] for one in path]
        state = choosing.state(chosen.leaf)
        leaf = Node(
            live.text, [*before, *tokens], len(request.prompt), request.automaton, state,
            live.remaining - len(before) - len(tokens), request.seed, request.number,
        )  # fmt: skip
        ids, scores = chosen.ends, chosen.scores
        key = race_key(request.seed, request.number, leaf.position)
        end = draw_row(Listed(ids, scores, sampler.size), ids, sampler.local, key)
        unbudgeted = end
        if not sampler.fits(leaf, end):
            fits = np.array([sampler.fits(leaf, int(one)) for one in ids])
            if not np.isfinite(scores[fits]).any():
                return None
            ids, scores = ids[fits], scores[fits]
            end = draw_row(Listed(ids, scores, sampler.size), ids, sampler.local, key)
        logprobs = [*map(choosing.own, path), choosing.own_end(chosen, end)]
        nodes = [mapped.get(one) for one in (ROOT, *path)]
        draft_nodes = None if None in nodes else cast("list[int]", nodes)
        refused: list[int | None] = [*[None] * len(tokens), None if end == unbudgeted else unbudgeted]
        if chosen.refused:
            refused[0] = UNKNOWN
        return SpelledValue([*tokens, end], logprobs, refused, draft_nodes)


def follows_word(live: Live, node: int, place: WordEnd) -> bool:
    """Whether the token at a node of the tree may come before the place (`WordEnd.after`)."""
    if node == ROOT and not live.output.tokens:
        return False
    return bool(place.after[live.text[-1] if node == ROOT else live.tree.tokens[node]])


def _begins_no_value(refused: int | None, choosing: Decider) -> bool:
    """Whether the budget refused a token that begins no value: a space, say."""
    return refused is not None and (refused == UNKNOWN or not choosing.begins(refused))


def _row(part: torch.Tensor | Scores, row: int) -> torch.Tensor:
    return cast("torch.Tensor", part[row])
