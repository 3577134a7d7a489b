"""A chain of the sampler's own draws from a second model, several of them a pass where they can be foretold.

Purpose: drafts for sample-and-match.  A drafted token would cost the second model a pass; but what it writes
is as repetitive as any text, so a pass also scores what is likely to follow: what the grammar forces, then
what stood in the text before.  Its draws are taken from such rows as long as they are what was guessed.
Invariant: the draft is that of one pass a token, whatever is guessed (up to the model's own rounding).
Complexity: at most one pass a drafted token, over `_GUESSED` tokens more.
Source: cascade speculative drafting (Chen et al. 2023).  On the prompts of `benchmarks/speculation_models.py
assisted --count 10 --max-tokens 48`, with `Fixed`: 292 passes of the draft model instead of 507 in free text,
293 instead of 682 under a schema, for the same drafts.
Rejected: what the last draft held beyond its first rejected token as a guess (it saves no pass).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tokenform.errors import SamplingError

from ..drafting import Drafting, Scored
from ..tree import ROOT, DraftTree
from .base import Budget, Context, PassCost
from .ngram import NGram

_GUESSED = 6  # most tokens that are guessed for a pass
_SURE = 0.95  # probability of a drafted token from which on it gets no siblings

Passing = Callable[[list[int], list[int]], Drafting[Scored]]
"""(tokens drawn since the last pass, guesses after them) -> rows after the former and after each guess."""


class Foresight:
    """What a second model may write next in a sequence.

    Args:
        size: the second model's vocabulary; no other token is guessed.
    """

    def __init__(self, context: Context, size: int) -> None:
        self._size = size
        self._lookup = NGram(places=1).session(context)
        self._known = len(context.tokens)

    def guess(self, context: Context, most: int) -> list[int]:
        """At most `most` tokens after the context's path."""
        if len(context.tokens) != self._known:
            self._known = len(context.tokens)
            self._lookup.learn(context.tokens)
        most = min(most, _GUESSED)
        guessed: list[int] = []
        if context.automaton is not None and most > 0:
            guessed = [int(token) for token in context.automaton.forced(context.state)][:most]
        if len(guessed) < most:
            below = context.below((*context.path, *guessed), None) if guessed else context
            guessed += self._lookup.propose(below, Budget(most - len(guessed))).tokens
        known = next((i for i, token in enumerate(guessed) if token >= self._size), len(guessed))
        return guessed[:known]


def draw_matched(
    passing: Passing,
    context: Context,
    most: int,
    budget: Budget,
    cost: PassCost,
    foresight: Foresight | None = None,
    siblings: int = 0,
    source: str = "",
) -> Drafting[DraftTree]:
    """A chain of at most `most` draws, with runners-up beside those that are not sure.

    Args:
        passing: runs the second model; its rows are in the target's ids.
        cost: what a drafted token costs; it is told what this one's did.
        foresight: guesses for the second model; None for none.
        siblings: most runners-up of a token.
    """
    tree, node, state = DraftTree(), ROOT, context.state
    path: list[int] = []
    guessed: list[int] = []
    scored = Scored([], 0.0)  # row i follows the first i guesses
    at = ran = 0  # the row of the next draw; tokens of the path that were run
    confidence = cumulative = 1.0
    while len(path) < most and len(tree) < budget.nodes:
        known = at < len(scored.rows)
        if budget.stop(confidence, cumulative, 0.0 if known else cost.seconds):
            if not path:
                cost.spared()
            break
        if not known:
            if foresight is not None:
                below = context.below((*context.path, *path), state)
                guessed = foresight.guess(below, most - len(path) - 1)
            scored = yield from passing(path[ran:], guessed)
            ran, at = len(path), 0
        began = time.perf_counter()
        row = scored.rows[at]
        try:
            token = int(context.sampler.draw(context.node(row, path, state)))
        except SamplingError:  # no allowed token is in the second model's vocabulary
            break
        law = softmax(row)
        confidence = float(law[token])
        cumulative *= confidence
        above, node = node, tree.add(node, token, source, confidence)
        if token in context.eos:
            break
        for other in _best(law, siblings + 1) if confidence < _SURE and siblings else ():
            if len(tree) < budget.nodes and other != token and len(tree.children(above)) <= siblings:
                tree.add(above, other, source, min(float(law[other]), 1 - confidence) + 1e-9)
        path.append(token)
        state = context.automaton.advance(state, token) if context.automaton is not None else None
        cost.took((0.0 if known else scored.seconds) + time.perf_counter() - began)
        at = at + 1 if at < len(guessed) and token == guessed[at] else len(scored.rows)
    return tree


def softmax(scores: np.ndarray) -> np.ndarray:
    """float64 [V] of scores up to a constant.

    Raises:
        SamplingError: every score is -inf, or one is NaN.
    """
    top = scores.max()
    if not np.isfinite(top):
        raise SamplingError("no token is left to draw: every score is -inf or one is NaN")
    law = np.exp(scores - top)
    total: np.ndarray = law / law.sum()
    return total


def _best(law: np.ndarray, count: int) -> list[int]:
    """The `count` likeliest tokens, best first; `count` is small."""
    left, best = law.copy(), list[int]()
    for _ in range(min(count, len(law))):
        best.append(int(left.argmax()))
        left[best[-1]] = -1.0
    return best
