"""Whether the bracket of a list is a token of its own, or one with what follows.

Purpose: a tokenizer has a token for `[` and one for `["`.  The former's probability is that of all lists, of
names, numbers or words without quotes; where a string must follow, the tokenizer would have written `["`.
Token by token a model takes `[`, is left with whitespace, and derails (`[\\n"2022-01-01: Rome, Italy: 2022`),
or ends the list (`[]`).
Distribution: a bracket alone has the model's probability of it, of the whitespace after it and of the tokens
that the tokenizer would write there; one that is joined with the next text has that of its tokens.
Invariant: only where nothing but a list may begin; no text becomes unreachable.  Whitespace that is not in
`_GAPS` counts without the text after it.
Complexity: the allowed tokens of a few nodes, once a state.
Source: future validity (2605.07698), a step or two of it, where they decide what a text becomes.
Rejected: the same for objects (as many fields of 40 documents right, with 8 % more passes); no line break
without an indentation behind a bracket (9 lists of 21 right for 7, but some end at once: `[\\n]`); telling
the form of a list (`["...", "..."]` is copied by some).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenform.engine import State

from .canonical import FEW, first_of, is_cut_off
from .choices import Choices
from .drafters.spelling import Spelling
from .tree import ROOT

_GAPS = (b"", b" ", b"\n", b"\n  ", b"\n    ")
"""Whitespace after which the next text is weighed, too."""
JOINED, APART = 0, 1


class Opening(Choices):
    """See the module's header.

    Args:
        head: the bracket, with what is forced before it: one token.
        follow: bytes that may follow the bracket or whitespace behind it.
    """

    def __init__(
        self,
        automaton: Any,
        state: State,
        head: bytes,
        follow: Sequence[bytes],
        spelling: Spelling,
        eos: frozenset[int],
    ) -> None:
        super().__init__(automaton, state, (b"joined", b"apart"), spelling, eos)
        self._head, self._cut = head, dict[tuple[int, bytes], bool]()
        self._add_option(JOINED, [ROOT])
        alone = [self._path(APART, self._tokens(head), False)]
        nodes = [*alone, *(self._leaf_after(head + gap, one) for gap in _GAPS for one in follow)]
        self._add_option(APART, [node for node in nodes if node is not None and self._goes_on(node)])
        joined = self.ends(ROOT)[JOINED].tokens.tolist()
        self.is_choice = bool(joined)
        """Whether there is a token for more than the bracket."""
        self._first = {*self._tokens(head), *joined}

    def begins(self, token: int) -> bool:
        return token in self._first

    def _leaf_after(self, text: bytes, after: bytes) -> int | None:
        """The node before the token that has the end of a text and the beginning of the next; None: the
        tokenizer cuts nowhere before that, or the automaton refuses it."""
        path, left = list[int](), len(text)
        for token in self._tokens(text + after):
            left -= len(self._spelling.tokens[token])
            if left < 0:
                break
            path.append(token)
        return self._path(APART, path, False) if path else None

    def _goes_on(self, node: int) -> bool:
        """Whether any token that the tokenizer would write is allowed at a node."""
        return bool(self._completing(APART, node, self._automaton.allowed_tokens(self.state(node)).tolist()))

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        data, kids = self._spelling.tokens, self.tree.kids.get(node, {})
        if option == JOINED:
            return [token for token in allowed if len(data[token]) > len(self._head)]
        return [
            token
            for token in allowed
            if not (token in kids or (data[token].isspace() and self._is_whitespace(node)))
            and not self._is_cut_off(node, first_of(data[token]))
        ]

    def _is_whitespace(self, node: int) -> bool:
        return self._spelling.tokens[self.tree.tokens[node]].isspace()

    def _is_cut_off(self, node: int, after: bytes) -> bool:
        """Whether a node's token would be another one where a text follows it."""
        key = node, after
        if key not in self._cut:
            token, before = self.tree.tokens[node], self.state(self.tree.parents[node])
            assert before is not None  # the node is a leaf
            self._cut[key] = after.isascii() and is_cut_off(
                self._automaton, before, token, after, self._spelling
            )
        return self._cut[key]


def opening(automaton: Any, state: State, spelling: Spelling, eos: frozenset[int]) -> Opening | None:
    """The decision before a bracket; None where none is forced, or no token joins it with more."""
    head = automaton.forced_bytes(state)
    if not head.endswith(b"[") or len(spelling.encode(head)) != 1:
        return None
    following = automaton.allowed_tokens(automaton.step_bytes(state, head))
    if len(automaton.allowed_tokens(state)) > FEW or len(following) > FEW:
        return None
    texts = (spelling.tokens[token].lstrip() for token in following.tolist())
    follow = sorted({text[:1] for text in texts if text and text.isascii()})
    found = Opening(automaton, state, head, follow, spelling, eos)
    return found if found.is_choice else None
