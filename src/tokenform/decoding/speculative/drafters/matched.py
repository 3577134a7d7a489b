"""A chain of a sampler's draws from a model, several of them a pass where they can be foretold.

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

import math
from collections.abc import Callable

from tokenform.decoding.clock import Clock
from tokenform.decoding.speculative.node import Node
from tokenform.engine import State
from tokenform.errors import SamplingError

from ..drafting import Drafting, Scored
from ..tree import ROOT, DraftTree
from .base import Budget, Context, PassCost
from .ngram import NGram

_GUESSED = 6  # most tokens that are guessed for a pass
_SURE = 0.95  # probability of a drafted token from which on it gets no siblings

Passing = Callable[[list[int], list[int], list[Node]], Drafting[Scored]]
"""(tokens drawn since the last pass, guesses after them, the places of the first rows) -> draws at those
places: after the former, and after each guess.
"""


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
        passing: runs the second model and draws from what it says, in the target's ids.
        cost: what a drafted token costs; it is told what this one's did.
        foresight: guesses for the second model; None for none.
        siblings: most runners-up of a token.
    """
    tree, node, state = DraftTree(), ROOT, context.state
    path: list[int] = []
    host = Clock()
    guessed: list[int] = []
    scored: Scored | None = None
    at = rows = ran = 0  # the next draw's place and how many there are; tokens of the path that were run
    confidence = cumulative = 1.0
    while len(path) < most and len(tree) < budget.nodes:
        known = at < rows
        if budget.stop(confidence, cumulative, 0.0 if known else cost.seconds):
            if not path:
                cost.spared()
            break
        if not known:
            if foresight is not None:
                below = context.below((*context.path, *path), state)
                guessed = foresight.guess(below, most - len(path) - 1)
            places = _places(context, path, state, guessed)
            scored = yield from passing(path[ran:], guessed, places)
            ran, at, rows = len(path), 0, len(places)
        own = host.begin()
        assert scored is not None
        drawn = scored.drawn(at)
        if isinstance(drawn.error, SamplingError):  # no allowed token is in the second model's vocabulary
            break
        if drawn.error is not None:
            raise drawn.error
        token, confidence = drawn.token, math.exp(drawn.logprob)
        cumulative *= confidence
        above, node = node, tree.add(node, token, source, confidence)
        if token in context.eos:
            break
        for other, chance in zip(drawn.best, drawn.chances, strict=False) if confidence < _SURE else ():
            if len(tree) < budget.nodes and other != token and len(tree.children(above)) <= siblings:
                tree.add(above, other, source, min(chance, 1 - confidence) + 1e-9)
        path.append(token)
        state = context.automaton.advance(state, token) if context.automaton is not None else None
        own.end()
        cost.observe(own.elapsed(), *([] if known else [scored.elapsed]))
        at = at + 1 if at < len(guessed) and token == guessed[at] else rows
    return tree


def _places(context: Context, path: list[int], state: State | None, guessed: list[int]) -> list[Node]:
    """The places after a path and after each guess, as far as the constraint takes the guesses."""
    automaton, places = context.automaton, [context.node(path, state)]
    for count, token in enumerate(guessed, 1):
        if token in context.eos or (automaton is not None and not automaton.allows(state, token)):
            break
        state = automaton.advance(state, token) if automaton is not None else None
        if automaton is not None and automaton.is_finished(state):
            break
        places.append(context.node([*path, *guessed[:count]], state))
    return places
