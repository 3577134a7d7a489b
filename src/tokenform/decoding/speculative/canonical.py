"""Text that the constraint forces is cut into tokens as the model's tokenizer would cut it.

Purpose: where the constraint leaves one way to go on for several bytes, any cut of them into tokens spells
the same text.  A model that is asked token by token may take one that it was never trained on (`s`, `enti`,
`ment` for `sentiment`), and what it writes next is the worse for it.  So the tokens of such a text are the
tokenizer's own.
Distribution: the tokens of a forced text are those that the tokenizer writes, up to the first place where
some allowed token holds all that is left of it and more (`", "` where `",` is left).  The token there is
drawn: the tokenizer would write the longer one if such a text followed.  A token of whitespace is not drawn
where the tokenizer joins that whitespace with whatever may follow (a space before a string: ` "` is one
token).  No text becomes unreachable.
Invariant: what is forced at a place is a function of the tokens before it, so drafts and batches change
nothing.
Complexity: a forced text is spelled once; what is left of it is carried along.  The masks of its last places
are looked at, `REACH` bytes at most.
Source: fast-forward tokens of llguidance.  What it is worth with a real model: `docs/decisions.md`.
Rejected: spelling what is left anew after each token (the rest of a word is cut in another way than the
word).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenform.decoding.recent import Recent
from tokenform.engine import State
from tokenform.errors import TokenformError

from .drafters.spelling import Spelling
from .tree import ROOT, DraftTree

FEW = 4096
"""Allowed tokens up to which their beginnings are looked at."""
_KEPT = 256
"""Places of a text of which it is known whether whitespace is joined there."""

REACH = 16
"""Bytes of a forced text that a token which goes on beyond it is thought to hold at most."""
Plan = tuple[int, ...]
"""The tokens of a forced text that are left; where it is one or none, the next token is drawn."""


def forced_tokens(automaton: Any, state: Any, spelling: Spelling) -> Plan:
    """The tokens of the text that is forced from a state on, as the tokenizer writes it."""
    if state is None or automaton.is_finished(state):
        return ()
    try:
        text = automaton.forced_bytes(state)
        tokens = tuple(spelling.encode(text)) if len(text) > 1 else ()
        pieces = list(map(spelling.tokens.__getitem__, tokens))
        if len(tokens) < 2 or b"".join(pieces) != text:
            return ()
        if not all(map(spelling.ids.__contains__, pieces)):
            return ()  # text that names a special token is spelled, never taken for it
        return _before_longer(automaton, state, spelling, tokens, len(text))
    except TokenformError:  # a limit: the draw at this place says so
        return ()


def _before_longer(automaton: Any, state: Any, spelling: Spelling, tokens: Plan, left: int) -> Plan:
    """The tokens up to the place where one that holds all that is left, and more, may come instead."""
    for place, token in enumerate(tokens[:-1]):
        drawn = not automaton.allows(state, token)
        if left <= REACH and not drawn:
            allowed = map(spelling.tokens.__getitem__, automaton.allowed_tokens(state).tolist())
            drawn = max(map(len, allowed), default=0) > left
        if drawn:
            return tokens[: place + 1]
        state = automaton.advance(state, token)
        left -= len(spelling.tokens[token])
    return tokens


def is_joined(automaton: Any, state: Any, token: int, spelling: Spelling) -> bool:
    """Whether the tokenizer would not write this token of whitespace at a state, whatever follows: it joins
    the whitespace with what does, and writes a token that is allowed, too."""
    begun = set[bytes]()
    try:
        allowed = automaton.allowed_tokens(automaton.advance(state, token))
        if len(allowed) > FEW:
            return False
        for text in map(spelling.tokens.__getitem__, allowed.tolist()):
            after = first_of(text)
            if not after or not after.isascii():
                return False
            if after not in begun:
                if not is_cut_off(automaton, state, token, after, spelling):
                    return False
                begun.add(after)
    except TokenformError:  # a limit: the draw behind the token says so
        return False
    return bool(begun)


def is_cut_off(automaton: Any, state: State, token: int, after: bytes, spelling: Spelling) -> bool:
    """Whether the tokenizer writes another token, which is allowed, too, where a text follows this one."""
    first = spelling.encode(spelling.tokens[token] + after)[0]
    return bool(first != token and automaton.allows(state, first))


def first_of(text: bytes) -> bytes:
    """What of a text decides whether it is joined with the token before it."""
    return text if text[:1].isspace() else text[:1]


class ForcedText:
    """What is forced where a text stands, and in its draft.

    Args:
        automaton: the constraint.
        spelling: how the tokenizer writes text.
    """

    def __init__(self, automaton: Any, spelling: Spelling) -> None:
        self._automaton, self._spelling = automaton, spelling
        self._plan = forced_tokens(automaton, automaton.start, spelling)
        self._tree: DraftTree | None = None
        self._nodes: dict[int, Plan] = {}  # of that tree
        self._joined: Recent[tuple[Any, int], bool] = Recent(_KEPT)

    def take(
        self, tokens: Sequence[int], states: Sequence[Any], tree: DraftTree, nodes: Sequence[int]
    ) -> None:
        """Tokens of the text were committed.

        Args:
            states: after each.
            nodes: of the draft, which the first of them are.
        """
        known = self._nodes if tree is self._tree else {}
        for place, (token, state) in enumerate(zip(tokens, states, strict=True)):
            plan = known.get(nodes[place]) if place < len(nodes) else None
            if plan is None:
                plan = (self._plan[1:] if self._plan[:1] == (token,) else ()) or forced_tokens(
                    self._automaton, state, self._spelling
                )
            self._plan = plan
        self._tree, self._nodes = None, {}

    def joined(self, state: Any, *tokens: int | None) -> int | None:
        """The first of some tokens that is whitespace which the tokenizer joins with what may follow."""
        for token in tokens:
            if token is None or token < 0 or not self._spelling.tokens[token].isspace():
                continue
            key = state, token
            if key not in self._joined:
                self._joined[key] = is_joined(self._automaton, state, token, self._spelling)
            if self._joined[key]:
                return token
        return None

    def token(self, tree: DraftTree, states: Mapping[int, Any], node: int) -> int | None:
        """The one token that may come at a node of the draft; None where it is drawn."""
        plan = self._plan
        if node != ROOT:
            if tree is not self._tree:
                self._tree, self._nodes = tree, {}
            path, at = list[int](), node
            while at != ROOT and at not in self._nodes:
                path.append(at)
                at = tree.parents[at]
            plan = plan if at == ROOT else self._nodes[at]
            for at in reversed(path):
                rest = plan[1:] if plan[:1] == (tree.tokens[at],) else ()
                plan = rest or forced_tokens(self._automaton, states.get(at), self._spelling)
                self._nodes[at] = plan
        return plan[0] if len(plan) > 1 else None
