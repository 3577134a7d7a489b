"""Forced text is cut into tokens as the model's tokenizer would cut it.

Purpose: where the constraint forces several bytes, any cut of them into tokens spells the same text.  Token
by token a model may take a cut that it was never trained on (`s`, `enti`, `ment` for `sentiment`), and writes
worse after it.  So forced text gets the tokenizer's own tokens.
Distribution: the tokens of a forced text are the tokenizer's, up to the first place where an allowed token
has all of the rest and more (`", "` where `",` is left).  The token there is drawn: the tokenizer would write
the longer one if such a text followed.  A whitespace token is excluded where the tokenizer joins it with
whatever may follow (a space before a string: ` "` is one token).  No text becomes unreachable.
Invariant: the forced token at a place is a function of the tokens before it, so drafts and batches change
nothing.
Complexity: a forced text is spelled once, and its rest is carried along.  Masks are read in its last `REACH`
bytes only.
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
"""Most allowed tokens whose beginnings are checked."""
_CACHED_PLACES = 256
"""Places whose answer on joined whitespace is cached."""

REACH = 16
"""Most bytes of forced text in a token that goes on beyond it."""
Plan = tuple[int, ...]
"""The remaining tokens of a forced text; with one or none, the next token is drawn."""


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
            return ()  # text that looks like a special token is spelled, never that token
        return _before_longer(automaton, state, spelling, tokens, len(text))
    except TokenformError:  # a limit: the draw at this place raises it
        return ()


def _before_longer(automaton: Any, state: Any, spelling: Spelling, tokens: Plan, left: int) -> Plan:
    """The tokens up to the place where one token may have all of the rest and more."""
    for place, token in enumerate(tokens[:-1]):
        is_drawn = not automaton.allows(state, token)
        if left <= REACH and not is_drawn:
            allowed = map(spelling.tokens.__getitem__, automaton.allowed_tokens(state).tolist())
            is_drawn = max(map(len, allowed), default=0) > left
        if is_drawn:
            return tokens[: place + 1]
        state = automaton.advance(state, token)
        left -= len(spelling.tokens[token])
    return tokens


def is_joined(automaton: Any, state: Any, token: int, spelling: Spelling) -> bool:
    """Whether the tokenizer would never write this whitespace token at a state: it joins the whitespace with
    whatever follows, and writes another allowed token."""
    checked = set[bytes]()
    try:
        allowed = automaton.allowed_tokens(automaton.advance(state, token))
        if len(allowed) > FEW:
            return False
        for text in map(spelling.tokens.__getitem__, allowed.tolist()):
            after = first_of(text)
            if not after or not after.isascii():
                return False
            if after not in checked:
                if not is_cut_off(automaton, state, token, after, spelling):
                    return False
                checked.add(after)
    except TokenformError:  # a limit: the draw after the token raises it
        return False
    return bool(checked)


def is_cut_off(automaton: Any, state: State, token: int, after: bytes, spelling: Spelling) -> bool:
    """Whether the tokenizer writes another allowed token where `after` follows this one."""
    first = spelling.encode(spelling.tokens[token] + after)[0]
    return bool(first != token and automaton.allows(state, first))


def first_of(text: bytes) -> bytes:
    """The part of a text that decides whether it is joined with the token before it."""
    return text if text[:1].isspace() else text[:1]


class ForcedText:
    """The forced tokens at the end of a text, and in its draft.

    Args:
        automaton: the constraint.
        spelling: of the tokenizer.
    """

    def __init__(self, automaton: Any, spelling: Spelling) -> None:
        self._automaton, self._spelling = automaton, spelling
        self._plan = forced_tokens(automaton, automaton.start, spelling)
        self._tree: DraftTree | None = None
        self._nodes: dict[int, Plan] = {}  # of that tree
        self._joined: Recent[tuple[Any, int], bool] = Recent(_CACHED_PLACES)

    def take(
        self, tokens: Sequence[int], states: Sequence[Any], tree: DraftTree, nodes: Sequence[int]
    ) -> None:
        """Takes committed tokens.

        Args:
            states: after each.
            nodes: of the draft, for the first of them.
        """
        plans = self._nodes if tree is self._tree else {}
        for place, (token, state) in enumerate(zip(tokens, states, strict=True)):
            plan = plans.get(nodes[place]) if place < len(nodes) else None
            if plan is None:
                plan = (self._plan[1:] if self._plan[:1] == (token,) else ()) or forced_tokens(
                    self._automaton, state, self._spelling
                )
            self._plan = plan
        self._tree, self._nodes = None, {}

    def joined(self, state: Any, *tokens: int | None) -> int | None:
        """The first of some tokens that is whitespace joined by the tokenizer with whatever may follow."""
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
        """The forced token at a node of the draft; None where it is drawn."""

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
