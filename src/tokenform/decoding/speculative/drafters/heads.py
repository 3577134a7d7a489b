"""Heads on the model's last hidden state draft the next tokens, in a tree under the constraint.

Purpose: what stands neither in the text nor in the constraint, strings and free text, is guessed from the
hidden state that the last token was drawn at; nothing but some products is run for it.
Invariant: a guess alone, so no text is moved.  A token that the constraint refuses is no candidate: masks are
applied before candidates are ranked, and chances are those among allowed tokens.  What the constraint forces
is taken from it, and no head is asked there.
Complexity: a level is a product of at most `_FRONT` states with the output layer, a softmax over the n tokens
that heads know, and a transfer of the best; a new state of the automaton costs a mask of them.
Source: Stern et al. 2018 (blockwise parallel decoding); Cai et al. 2024 (Medusa), sections 2.1 and 2.3;
Ankner et al. 2024 (Hydra), section 3, as a chain: what a head makes of its state and of the embedding of the
token drafted last is the next head's state.  Fewer tokens than the model has: Goel et al. 2025 (VocabTrim).
Rejected: a fixed tree of ranks (what the constraint refuses of it is lost); ranking first and masking then;
one product for a batch (beside a pass heads cost little).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tokenform.engine import State
from tokenform.engine.packed import mask_bits
from tokenform.errors import DrafterError

from ..tree import FORCED, ROOT, DraftTree
from .base import Budget, Context, Session, Silent
from .head_stack import Placed, Stack

_FRONT = 4  # places of a level that are followed
_MASKS = 256  # of states that a sequence keeps
_LEAST = 0.01  # chance of a path that is not worth a node


class _Drafted(NamedTuple):
    """A drafted token.

    Attributes:
        above: the guess before it, by its number: guesses are numbered as they are made.
        place: the place that it was guessed at, among those of its level.
        chance: given what is before it; `path`: of all that.
    """

    above: int
    place: int
    token: int
    chance: float
    path: float
    source: str


class _Place(NamedTuple):
    """Where a level goes on: behind which guess, which token and chance, in which state."""

    guess: int
    token: int
    path: float
    state: State | None


class HeadsSession(Silent):
    def __init__(self, drafter: Heads, placed: Placed) -> None:
        self.drafter, self.placed = drafter, placed
        self._masks: dict[State | None, torch.Tensor] = {}

    @torch.inference_mode()
    def propose(self, context: Context, budget: Budget) -> DraftTree:
        hidden, placed, guesses = context.backbone.hidden(context.seq), self.placed, list[_Drafted]()
        first, text = len(context.path), [context.tokens[-1], *context.path]
        most = min(self.drafter.nodes, budget.nodes)
        if hidden is None or first >= placed.heads or most <= 0:
            return DraftTree()
        states = hidden[None]
        for head, token in enumerate(text[:-1] if placed.sequential else ()):
            states = placed.states(head, states, [token])
        front = [_Place(ROOT, text[-1], 1.0, context.state)]
        for head in range(first, min(placed.heads, first + budget.depth)):
            own, begun = placed.states(head, states, [place.token for place in front]), len(guesses)
            guesses += self._level(context, front, head, own)
            front, places = _followed(context, front, guesses, begun)
            if not front:
                break
            if placed.sequential:
                states = own[places]
        tree, nodes = DraftTree(), {ROOT: ROOT}
        best = sorted(range(len(guesses)), key=lambda number: -guesses[number].path)
        for number in best[:most]:  # behind what is above it: its path is at most as likely, and it is later
            one = guesses[number]
            nodes[number] = tree.add(nodes[one.above], one.token, one.source, one.chance)
        return tree

    def _level(
        self, context: Context, front: Sequence[_Place], head: int, states: torch.Tensor
    ) -> list[_Drafted]:
        """What a head, or the constraint, guesses at some places; `states` [n, d], or [1, d] for all."""
        automaton, guesses = context.automaton, list[_Drafted]()
        known = [automaton.forced(place.state)[:1] if automaton is not None else [] for place in front]
        asked = [at for at, forced in enumerate(known) if not forced]
        found = [[(token, 1.0) for token in forced] for forced in known]
        if asked:
            own = states if len(states) < len(front) or len(asked) == len(front) else states[asked]
            ranked = self.ranked(context, [front[at].state for at in asked], head, own)
            for at, best in zip(asked, ranked, strict=True):
                found[at] = best
        for at, (place, forced) in enumerate(zip(front, known, strict=True)):
            source = FORCED if forced else self.drafter.name
            for token, chance in found[at]:
                if token not in context.eos and place.path * chance >= _LEAST:
                    guesses.append(_Drafted(place.guess, at, token, chance, place.path * chance, source))
        return guesses

    def ranked(
        self, context: Context, places: Sequence[State | None], head: int, states: torch.Tensor
    ) -> list[list[tuple[int, float]]]:
        """At each place the likeliest allowed tokens, and their chances among those allowed and known."""
        refused = None
        if context.automaton is not None:
            refused = torch.stack([self._refused(context, place) for place in places])
        return self.placed.best(head, states, len(places), refused, self.drafter.width)

    def _refused(self, context: Context, state: State | None) -> torch.Tensor:
        """bool [n], what of the tokens that heads know a state does not allow; strings are one state long."""
        known = self._masks.get(state)
        if known is None:
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            words = context.automaton.mask(state)
            known = self._masks[state] = self.placed.outside(mask_bits(words, context.vocabulary_size))
        return known


class Heads:
    """Drafts with heads that were trained on the model's hidden states, Medusa's or Hydra's.

    Args:
        path: a folder that `benchmarks/training/train_heads.py` has written, or a checkpoint in Medusa's
            layout (`medusa_lm_head.safetensors` or `.pt`).
        nodes: most nodes of a draft.
        width: most candidates of a place.
    Raises:
        DrafterError: the folder has no heads.  Heads of another hidden size than the model's (the same
            error) and a model whose hidden state can't be reached (ModelError) switch the drafter off, with a
            warning, where a text begins.

    Example, beside the default drafts::

        drafter = tf.drafters.Merge(*tf.drafters.auto().drafters, tf.drafters.Heads(folder))
        writer = tf.Generator(model, tokenizer, drafter=drafter)
    """

    name, makes = "heads", HeadsSession

    def __init__(self, path: str | Path, nodes: int = 24, width: int = 6) -> None:
        self.stack, self.nodes, self.width = Stack.read(path), nodes, width
        self._placed: weakref.WeakKeyDictionary[Any, Placed] = weakref.WeakKeyDictionary()

    def session(self, context: Context) -> Session:
        backbone = context.backbone
        if backbone is None:
            raise DrafterError("heads read the model's hidden states: they need a backbone that runs it")
        if backbone.mode == "plain":
            return Silent()
        backbone.follow(context.seq)
        placed = self._placed.get(backbone.model)
        if placed is None or not placed.fits(backbone.model):
            placed = self._placed[backbone.model] = Placed(self.stack, backbone.model)
        return self.makes(self, placed)


def _followed(
    context: Context, front: Sequence[_Place], guesses: Sequence[_Drafted], begun: int
) -> tuple[list[_Place], list[int]]:
    """The next level: places behind the likeliest guesses of this one, and which places these were made at.

    Args:
        begun: the number of the level's first guess.
    """
    places, rows = list[_Place](), list[int]()
    for number in sorted(range(begun, len(guesses)), key=lambda number: -guesses[number].path):
        one, state = guesses[number], None
        if context.automaton is not None:
            state = context.automaton.advance(front[one.place].state, one.token)
            if context.automaton.is_finished(state):
                continue
        places.append(_Place(number, one.token, one.path, state))
        rows.append(one.place)
        if len(places) == _FRONT:
            break
    return places, rows
