"""What may follow a state of a grammar, found byte by byte.

Purpose: forced bytes are certain, their tokenisation is not: the last token of a span may be one
that reaches beyond it.  So the grammar is followed byte by byte: over forced bytes, and through
places where few bytes are possible ("}" or ",").  Where white space may stand or not, a writer is expected
to do as it did after the same byte before; at first, to put a space after a colon and a comma.
Invariant: all bytes are forced or belong to a small choice.
Complexity: a plan a state, made once an automaton: O(choices^rounds) automaton calls, memoised there.
Rejected: choices by token (a choice of two bytes is often one of fifty tokens).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenform.engine.packed import mask_bits

from .base import after
from .spelling import Spelling

_SURE = 0.97  # confidence of a token inside of forced bytes
_LAST = 0.85  # and of the last one of a span
_OUT = 0.2  # and of a delimiter that may end an open place
_DELIMITERS = tuple(bytes([byte]) for byte in b"\"',;:)]}>|\n")
_FEW = 96  # allowed tokens above which a place is no small choice
_FEW_GAP = 1024  # the same where white space may stand, of which there are many tokens
_USUAL = 0.95  # share of what a writer usually does at a gap
_SPACE = b" \n\r\t"
_LONGEST = 4096  # bytes of a continuation beyond which no draft reaches


Ways = list[tuple[bytes, list[tuple[int, float]]]]
"""Texts, each with the offset and the share of every choice in it."""


@dataclass
class Plans:
    """What is known of an automaton's states.

    Attributes:
        texts: what follows a state.
        ways: what follows the states behind a delimiter: those inside of a string differ by their counts of
            characters, and closing it leads from all of them to one.
    """

    texts: dict[Any, list[PlannedText]] = field(default_factory=dict)
    ways: dict[Any, Ways] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts) + len(self.ways)


@dataclass
class PlannedText:
    """A continuation of a state.

    Attributes:
        tokens, confidences: of its path.
        last, shorter: the bytes of its last token, and the longest token that these begin with.
        chance: that all of it is accepted.
    """

    tokens: list[int]
    confidences: list[float]
    last: bytes
    shorter: int | None
    chance: float


class Continuations:
    """Args:
    most: bytes that may be possible at a place that is followed.
    rounds: how many such places are followed on one path.
    gaps: byte -> the white space that is expected after it; it may change from plan to plan.
    """

    def __init__(self, spelling: Spelling, most: int, rounds: int, gaps: Mapping[bytes, bytes]) -> None:
        self._spelling, self._most, self._rounds, self._gaps = spelling, most, rounds, gaps

    def plan(self, auto: Any, state: Any, before: bytes, ways: dict[Any, Ways]) -> list[PlannedText]:
        """The texts that may follow a state, likeliest first.

        Args:
            before: the byte before the state.
            ways: what follows delimiters, as far as it is known; it is added to.
        """
        found: Ways = []
        self._expand(auto, state, b"", [], 1.0, self._rounds, found, before)
        if not found:
            found = self._ways_out(auto, state, ways)
        texts = []
        for text, shares in found:
            tokens = self._spelling.encode(text)
            if tokens:
                texts.append(self._weigh(tokens, shares))
        texts.sort(key=lambda t: -t.chance)
        return texts

    def _weigh(self, tokens: list[int], shares: list[tuple[int, float]]) -> PlannedText:
        """Confidences: a token that makes a choice of n has a share of 1 / n."""
        at, confidences, chance = 0, [], 1.0
        for i, token in enumerate(tokens):
            end = at + len(self._spelling.tokens[token])
            confidence = _SURE if i < len(tokens) - 1 else _LAST
            for place, share in shares:
                if at <= place < end:
                    confidence *= share
            confidences.append(confidence)
            chance *= confidence
            at = end
        last, ids = self._spelling.tokens[tokens[-1]], self._spelling.ids
        shorter = next((ids[last[:n]] for n in range(len(last) - 1, 0, -1) if last[:n] in ids), None)
        return PlannedText(tokens, confidences, last, shorter, chance)

    def _expand(
        self,
        auto: Any,
        state: Any,
        text: bytes,
        shares: list[tuple[int, float]],
        chance: float,
        rounds: int,
        found: Ways,
        before: bytes = b"",
    ) -> None:
        """Follows forced bytes and small choices; appends (text, [(offset, share) of each choice]).

        Args:
            before: the byte before the text.
        """
        forced = bytes(auto.forced_bytes(state))
        for token in self._spelling.longest(forced):
            state = auto.advance(state, token)
        text += forced
        before = text[-1:] or before
        far = not rounds or chance <= 0.05 or len(text) >= _LONGEST
        following = [] if far else self._choices(auto, state, before)
        if not following:
            if text:
                found.append((text, shares))
            return
        left = rounds - (following[0][1] <= 0.5)  # several ways, the end of the text among them
        for piece, share in following:
            below = self._behind(auto, state, piece)
            more = [*shares, (len(text), share)]
            self._expand(auto, below, text + piece, more, chance * share, left, found)

    def _behind(self, auto: Any, state: Any, piece: bytes) -> Any:
        """The state after some bytes; None where they may not stand."""
        ids = self._spelling.ids
        known = [ids.get(piece[i : i + 1]) for i in range(len(piece))]
        tokens = [token for token in known if token is not None]
        return after(auto, state, tokens) if len(tokens) == len(piece) else None

    def _ways_out(self, auto: Any, state: Any, ways: dict[Any, Ways]) -> Ways:
        """Delimiters that may end what stands open here, where the grammar knows what follows them."""
        found: Ways = []
        if auto.is_finished(state):
            return found
        gaps = sorted(self._gaps.items())
        for byte in _DELIMITERS:
            below = self._behind(auto, state, byte)
            if below is None:
                continue
            key = below, self._gaps.get(byte), *gaps  # of the byte before, only its gap counts
            if key not in ways:
                after: Ways = []
                ways[key] = after
                self._expand(auto, below, b"", [], _OUT, self._rounds - 1, after, byte)
            for text, shares in ways[key]:
                found.append((byte + text, [(0, _OUT), *((at + 1, share) for at, share in shares)]))
        return found

    def _choices(self, auto: Any, state: Any, before: bytes) -> list[tuple[bytes, float]]:
        """What may follow and its share, if it is little and can be spelled.

        The end of the text is not followed, but has a share like any other way.
        """
        most, tokens, ids = self._most, self._spelling.tokens, self._spelling.ids
        if auto.is_finished(state) or most < 2:
            return []
        gap = all(self._behind(auto, state, space) is not None for space in (b" ", b"\n"))
        usual = self._gaps.get(before, b"") if gap else b""
        if usual and self._behind(auto, state, usual) is not None:
            return [(usual, _USUAL)]
        bits = mask_bits(auto.mask(state), len(tokens))  # counted before any list of ids is made of it
        if not 0 < np.count_nonzero(bits) <= (_FEW_GAP if gap else _FEW):
            return []
        allowed = np.flatnonzero(bits)
        ends = set(auto.vocabulary.eos)
        heads = {tokens[t][:1] for t in allowed.tolist() if t not in ends and tokens[t]}
        if gap:
            heads = {head for head in heads if head not in _SPACE}
        few = sorted(b for b in heads if b in ids and auto.allows(state, ids[b]))
        share = (_USUAL if gap else 1.0) / max(len(few) + bool(auto.is_accepting(state)), 1)
        return [(byte, share) for byte in few] if len(few) == len(heads) <= most else []
