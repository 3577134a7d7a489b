"""Whether a text ends, or goes on in the one way that is left.

Purpose: after a tool call the text may end, or another call may come after whitespace.  Token by token a
model takes the line break with which it would begin free text, and then has to write a call that it did not
mean (mostly the same one again).  So the end is weighed against whitespace and the whole forced beginning of
the next call.
Distribution: the end has the model's probability of a token that ends the text, after each of `_GAPS`; going
on has that of the forced text, also after each of these.
Invariant: other whitespace is drawn as before, and the next place decides; free text is drawn.
Complexity: the allowed tokens of a place where a text may end.
Rejected: forbidding a call that was written already (a model may mean it twice); the first token of the
call's mark alone (`<` has ten times the probability of `<tool_call>`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenform.engine import State

from .choices import SPACE, Choices
from .drafters.spelling import Spelling
from .tree import ROOT

_GAPS = (b"", b"\n", b"\n\n", b" ")
"""Whitespace after which a text may end, or go on."""
_LONGEST = 64
"""Most bytes of the text after the end that are weighed."""
_FEW = 4096
"""Most allowed tokens that are checked."""
END, ON = 0, 1


class Ending(Choices):
    """See the module's header.

    Args:
        head: the text that is forced before the end: at most one token, which may be joined with the next.
        tail: the text that is forced after it, without the whitespace; b"": a special token follows.
    """

    def __init__(
        self, automaton: Any, state: State, head: bytes, tail: bytes, spelling: Spelling, eos: frozenset[int]
    ) -> None:
        super().__init__(automaton, state, (b"end", b"more"), spelling, eos)
        heads = [self._path(END, self._tokens(head + gap), False) for gap in _GAPS]
        self._add_option(
            END, [one for one in heads if one is not None and automaton.is_accepting(self.state(one))]
        )
        self._add_option(ON, [self._path(ON, self._tokens(head + gap + tail), bool(tail)) for gap in _GAPS])
        self._first = {
            *self.tree.kids.get(ROOT, ()),
            *(t for end in self.ends(ROOT) for t in end.tokens.tolist()),
        }

    @property
    def is_choice(self) -> bool:
        """Whether more than the next token is weighed."""
        return any(node != self.leaves[END][0] for node in self.leaves[ON])

    def begins(self, token: int) -> bool:
        return token in self._first

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        if option == END:
            return [token for token in allowed if token in self._eos]
        rest = self._rests[option, node]
        if not rest:
            return [
                token for token in allowed if token not in self._eos and not _is_text(self._spelling, token)
            ]
        data = self._spelling.tokens
        return [token for token in allowed if token not in self._eos and data[token].startswith(rest)]


def ending(automaton: Any, state: State, spelling: Spelling, eos: frozenset[int]) -> Ending | None:
    """The decision where a text is about to end; None elsewhere, and where nothing or several texts may
    follow."""
    head = automaton.forced_bytes(state)
    if len(head) > 1 and len(spelling.encode(head)) > 1:
        return None
    end = automaton.step_bytes(state, head) if head else state
    if not automaton.is_accepting(end) or automaton.is_finished(end):
        return None
    tail = _tail(automaton, end, spelling, eos)
    if tail is None:
        return None
    found = Ending(automaton, state, head, tail, spelling, eos)
    return found if found.is_choice else None


def _tail(automaton: Any, end: State, spelling: Spelling, eos: frozenset[int]) -> bytes | None:
    """The one text that may follow an end after whitespace, b"" for special tokens; None: there is none."""
    allowed = automaton.allowed_tokens(end)
    if len(allowed) > _FEW:
        return None
    heads, special = set[bytes](), False
    for token in allowed.tolist():
        if token in eos:
            continue
        if not _is_text(spelling, token):
            special = True
        elif text := spelling.tokens[token].lstrip(SPACE):
            heads.add(text[:1])
    if special or len(heads) != 1:
        return b"" if special and not heads else None
    (first,) = heads
    after = automaton.step_bytes(end, first)
    return None if after is None else first + automaton.forced_bytes(after)[:_LONGEST]


def _is_text(spelling: Spelling, token: int) -> bool:
    """Whether a token is no special one."""
    return spelling.ids.get(spelling.tokens[token]) == token
