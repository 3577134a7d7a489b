"""Decides one value of a list, by the probabilities of whole values.

Purpose: a value of a choice, an enum or a boolean is drawn as if it were one token.
Distribution: a value's probability is the model's own (after mixture, penalties and transforms), the sum
over its paths (`choices.py`), its end included, given that one of the values follows.  Temperature, top-k,
top-p and min-p apply to these probabilities as they do to those of tokens; a temperature of 0 takes the
likeliest value.
Then its path is drawn by the same rule, and then the token that completes it.
Invariant: the decision is the one after scoring all paths at once.
Complexity: one pass scores `WIDTH` nodes.  Beyond, best first: the scored part of a path bounds its value's
probability, so most are never scored.  A draw with a temperature adds each value's own number of a race,
which is known beforehand.  Truncation needs all values' probabilities.
Source: A* sampling over a prefix tree with fixed perturbations (Maddison, Tarlow, Minka 2014; Kool et al.
2019).
Rejected: the probability of the tempered tokens (in the limit of temperature 0 that is not the likeliest
value).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tokenform.decoding.keyed_random import keyed, uniform
from tokenform.decoding.samplers.local import Local

from .choices import Choices
from .tree import ROOT

WIDTH = 64
"""Nodes that one pass scores for one value."""

_NEVER = -math.inf
_VALUE, _PATH = 1 << 40, 1 << 41  # streams of numbers apart from tokens'


class Learnt(NamedTuple):
    """The log-probabilities at a scored node.

    Attributes:
        children: log-probability of each child's token.
        ends: of the tokens that complete each option here, in the order of `Choices.ends`.
        own_children, own_ends: the same under the model alone, before mixture, penalties and transforms.
    """

    children: Sequence[float]
    ends: Sequence[np.ndarray]
    own_children: Sequence[float]
    own_ends: Sequence[np.ndarray]


class Chosen(NamedTuple):
    """The chosen value.

    Attributes:
        option: the value, a place in `Choices.options`.
        leaf: where its path ends.
        ends, scores: the tokens that may complete it, and their log-probabilities.
        refused: whether a value that does not fit the budget might have been chosen.
    """

    option: int
    leaf: int
    ends: np.ndarray
    scores: np.ndarray
    refused: bool


class SpelledValue(NamedTuple):
    """A value in tokens.

    Attributes:
        tokens: with the one that completes it.
        logprobs: of each, under the model alone.
        refused: for each, the token that the budget refused in its place (`Drawn.refused`).
        nodes: of the draft's tree before each; None where an earlier pass has scored some of them.
    """

    tokens: list[int]
    logprobs: list[float]
    refused: list[int | None]
    nodes: list[int] | None


class Choosing:
    """Args:
    choices: the values.
    local: draws them.
    seed, number, position: key of the draw.
    remaining: tokens that may still be written.
    deepest: most tokens of a path.
    """

    def __init__(
        self,
        choices: Choices,
        local: Local,
        key: tuple[int, int, int],
        remaining: int,
        deepest: int,
    ) -> None:
        self.place = self.choices = choices
        self.tree, self.begins, self.state = choices.tree, choices.begins, choices.state
        self.child = self.tree.child
        self.position, self._local, self._key = key[2], local, key
        self.learnt: dict[int, Learnt] = {}
        self.value_begins = False
        """Whether a value certainly begins here."""
        self._reach: dict[int, float] = {ROOT: 0.0}
        self._paths: dict[int, list[int]] = {}
        self._refused: dict[int, list[int]] = {}
        fits, tree = choices.fits, choices.tree
        for option, leaves in enumerate(choices.leaves):
            fitting = list[int]()
            for n in leaves:
                depth = 0 if n == ROOT else tree.depths[n]
                if (n == ROOT or depth <= deepest) and fits(option, n, remaining - depth):
                    fitting.append(n)
            if fitting:
                self._paths[option] = fitting
            if len(fitting) < len(leaves):  # also where another path of it fits: it counts for less then
                self._refused[option] = [n for n in leaves if n not in fitting]
        weighed = {*self._paths, *self._refused}
        self._races = dict.fromkeys(weighed, 0.0)
        if local.temperature:
            self._races = {option: self._race(option) for option in weighed}

    @property
    def possible(self) -> bool:
        """Whether any value fits."""
        return bool(self._paths)

    @property
    def logprobs(self) -> dict[bytes, float] | None:
        """The log-probability of each value that fits; None where some are not known."""
        found = {}
        for option, paths in self._paths.items():
            if not all(map(self.learnt.__contains__, paths)):
                return None
            found[self.choices.options[option]] = self._score(option)[0]
        return found

    def tokens_to_score(self, node: int) -> list[np.ndarray]:
        """The tokens to score at a node: its children's, and those that end options."""
        kids = np.array(list(self.tree.kids.get(node, ())), np.int64)
        return [kids, *(end.tokens for end in self.choices.ends(node))]

    def learn(self, node: int, scores: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> None:
        """Takes a pass's log-probabilities of `tokens_to_score(node)`, and the model's own."""
        if node in self.learnt:
            return
        learnt = self.learnt[node] = Learnt(scores[0].tolist(), scores[1:], own[0].tolist(), own[1:])
        for child, logprob in zip(self.tree.children(node), learnt.children, strict=True):
            self._reach[child] = self._reach[node] + logprob

    def value(self, chosen: Chosen) -> bytes:
        return self.choices.options[chosen.option]

    def own(self, node: int) -> float:
        """The log-probability of a node's token under the model alone."""
        above = self.tree.parents[node]
        return self.learnt[above].own_children[self.tree.children(above).index(node)]

    def own_end(self, chosen: Chosen, end: int) -> float:
        """The same of the token that completes the chosen value."""
        ends = zip(self.choices.ends(chosen.leaf), self.learnt[chosen.leaf].own_ends, strict=True)
        (found,) = (own[one.tokens == end] for one, own in ends if one.option == chosen.option)
        return float(found[0])

    def logprob(self, chosen: Chosen) -> float:
        """The log-probability of the chosen value."""
        return self._score(chosen.option)[0]

    @property
    def refused(self) -> float:
        """The log-probability that no value exceeds for which the budget has no room; -inf: there is none."""
        bounds = [self._path_bound(option, one) for option, some in self._refused.items() for one in some]
        return max(bounds, default=_NEVER)

    def decide(self) -> Chosen | None:
        """The decision; None while too little is known."""
        scores_of = {option: self._score(option) for option in self._paths}
        truncation, temperature = self._local.truncation, self._local.temperature
        greedy = self._local.greedy
        if not greedy and not truncation.off:
            if not all(exact for _, exact in scores_of.values()):
                return None
            scores = np.array([score for score, _ in scores_of.values()]) / temperature
            least = truncation.row_threshold(scores)
            scores_of = {
                o: one for (o, one), score in zip(scores_of.items(), scores, strict=True) if score >= least
            }
        best, bound = -1, _NEVER
        top = _NEVER
        for option, (score, exact) in scores_of.items():
            key = score if greedy else score / temperature + self._races[option]
            if not exact:
                bound = max(bound, key)
            elif key > top:
                best, top = option, key
        if best < 0 or bound >= top:
            return None
        chosen = self._chosen(best, greedy)
        return chosen._replace(
            refused=self._budget_decides(best, chosen.leaf, top, greedy)
            or self._budget_truncates(best, greedy)
        )

    def _budget_decides(self, best: int, leaf: int, top: float, greedy: bool) -> bool:
        """Whether a value or a path that does not fit the budget may be likelier than the chosen one."""
        for option, leaves in self._refused.items():
            parts = [self._path_bound(option, one) for one in leaves]
            if option == best:
                if max(parts) >= self._path_bound(option, leaf):
                    return True
                continue
            parts += [self._path_bound(option, one) for one in self._paths.get(option, ())]
            bound = _logsum(np.array(parts))
            if (bound if greedy else bound / self._local.temperature + self._races[option]) >= top:
                return True
        return False

    def _budget_truncates(self, best: int, greedy: bool) -> bool:
        """Whether truncation would drop the chosen value if those that don't fit the budget counted."""
        truncation = self._local.truncation
        if greedy or truncation.off or not self._refused:
            return False
        most = []
        for option in self._races:
            ways = [*self._paths.get(option, ()), *self._refused.get(option, ())]
            most.append(_logsum(np.array([self._path_bound(option, one) for one in ways])))
        temperature = self._local.temperature
        return bool(
            self._score(best)[0] / temperature < truncation.row_threshold(np.array(most) / temperature)
        )

    def _path_bound(self, option: int, leaf: int) -> float:
        """The log-probability of a value's path, or an upper bound of it."""
        if leaf not in self.learnt:
            return self._bound(leaf)
        return self._reach[leaf] + _logsum(self._ends(option, leaf)[1])

    def nodes_to_score(self, most: int, chain: bool) -> list[int]:
        """Nodes for the next pass, each after its parent.

        Args:
            chain: one path alone.
        """
        tree = self.tree
        temperature = 1.0 if self._local.temperature == 0 else self._local.temperature
        race = self._local.temperature != 0
        order: list[tuple[int, float, int, int, int]] = []
        for refused, listed in enumerate((self._paths, self._refused)):  # the latter: what the budget cut
            for option, paths in listed.items():
                for leaf in paths:
                    if leaf in self.learnt:
                        continue
                    bound = self._bound(leaf) / temperature + (self._races[option] if race else 0.0)
                    order.append((refused, -bound, 0 if leaf == ROOT else tree.depths[leaf], option, leaf))
        order.sort()
        nodes: dict[int, None] = {}
        for *_, leaf in order:
            new = [node for node in tree.line(leaf) if node not in nodes]
            remaining = most - len(nodes)
            nodes.update(dict.fromkeys(new[:remaining]))
            if chain or len(nodes) >= most:
                break
        return list(nodes)

    def _score(self, option: int) -> tuple[float, bool]:
        """A value's log-probability or an upper bound of it, and whether it is exact."""
        paths = self._paths[option]
        parts = [self._path_bound(option, leaf) for leaf in paths]
        return _logsum(np.array(parts)), all(map(self.learnt.__contains__, paths))

    def _bound(self, node: int) -> float:
        while node not in self._reach:
            node = self.tree.parents[node]
        return self._reach[node]

    def _ends(self, option: int, leaf: int) -> tuple[np.ndarray, np.ndarray]:
        for end, scores in zip(self.choices.ends(leaf), self.learnt[leaf].ends, strict=True):
            if end.option == option:
                return end.tokens, scores
        raise AssertionError("an option's leaf knows its ends")

    def _chosen(self, option: int, greedy: bool) -> Chosen:
        paths = self._paths[option]
        totals = [self._reach[leaf] + _logsum(self._ends(option, leaf)[1]) for leaf in paths]
        keys = list(totals)
        if not greedy and len(paths) > 1:
            temperature = self._local.temperature
            least = self._local.truncation.row_threshold(np.array(totals) / temperature)
            numbers = [_gumbel(uniform(*self._key, stream=_PATH + place)) for place in range(len(paths))]
            keys = [
                t / temperature + g if t / temperature >= least else _NEVER
                for t, g in zip(totals, numbers, strict=True)
            ]
        leaf = paths[max(range(len(paths)), key=keys.__getitem__)]
        return Chosen(option, leaf, *self._ends(option, leaf), refused=False)

    def _race(self, option: int) -> float:
        digest = hashlib.blake2b(self.choices.options[option], digest_size=8).digest()
        return _gumbel((keyed(*self._key, _VALUE, int.from_bytes(digest, "little")) >> 11) / (1 << 53))


def _gumbel(u: float) -> float:
    """-log of an exponential number."""
    return -math.log(-math.log(u + 2.0**-54))


def _logsum(parts: np.ndarray) -> float:
    top = float(parts.max(initial=_NEVER))
    return top if top == _NEVER else top + math.log(float(np.exp(parts - top).sum()))
