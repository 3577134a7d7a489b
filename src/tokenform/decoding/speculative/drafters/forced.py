"""What the grammar forces: the bytes that every accepted continuation shares, and small choices after them.

Purpose: forced bytes are certain, their tokenisation is not: the last token of a span may be one
that reaches beyond it.  So the grammar is followed byte by byte: over forced bytes, and through
places where few bytes are possible ("}" or ",").  Each text found that way is written as the
model's tokenizer writes it; texts that part give siblings at the span's end by themselves.  Where the
grammar leaves too much open, the last token's siblings are longer tokens that were taken there
before, and the next shorter one.  Where white space may stand or not, a writer is expected to do as it did
after the same byte before; at first, to put a space after a colon and a comma.
Invariant: every drafted token is allowed; all its bytes are forced or belong to a small choice,
but for the learnt longer tokens.
Complexity: a plan a state, made once an automaton: O(choices^rounds) automaton calls, memoised there.
Source: jump-forward decoding (Zheng et al. 2024, SGLang) made lossless as a draft; healing of the
span's end as in token healing (Lundberg 2023).
Rejected: appending forced tokens without a forward pass (it changes the distribution: the model may prefer
another tokenisation); choices by token (a choice of two bytes is often one of fifty tokens).
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenform.engine.packed import mask_bits
from tokenform.errors import LimitExceeded

from ..tree import ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent
from .following import LAYOUTS, following
from .spelling import Spelling, spelling_of

_SURE = 0.97  # confidence of a token inside of forced bytes
_LAST = 0.85  # and of the last one of a span
_OUT = 0.2  # and of a delimiter that may end an open place
_DELIMITERS = tuple(bytes([byte]) for byte in b"\"',;:)]}>|\n")
_PLANS = 4096  # states whose continuations are kept: a state that is held holds its mask
_AUTOMATA = 64  # automata that these are of
_FEW = 96  # allowed tokens above which a place is no small choice
_FEW_GAP = 1024  # the same where white space may stand, of which there are many tokens
_USUAL = 0.95  # share of what a writer usually does at a gap
_SPACE = b" \n\r\t"
_GAP = re.compile(rb'(?:"(:)|(,)|([\[{]))([ \n\r\t]{0,32})(?=[^ \n\r\t])')
_LONGEST = 4096  # bytes of a continuation beyond which no draft reaches
_TAIL = 64  # bytes of a text that may hold the beginning of a gap


class Forced:
    """Drafts what the constraint forces, and the likely delimiters of open places.

    Args:
        choices: most bytes that may be possible at a place that is followed.
        rounds: how many such places are followed on one path.
        siblings: most learnt or shorter tokens beside the last token of a span.
    """

    name, drawn = "forced", False

    def __init__(self, choices: int = 3, rounds: int = 3, siblings: int = 2) -> None:
        self.choices, self.rounds, self.siblings = choices, rounds, siblings
        self._plans: OrderedDict[Any, tuple[Any, _Plans]] = OrderedDict()
        self.seen: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
        self.layout = LAYOUTS[0]  # of the text that was last followed
        self.gaps = {b":": b" ", b",": b" "}  # byte -> the white space that was last written after it

    def plans_of(self, automaton: Any, spelling: Spelling) -> _Plans:
        """What follows the states of an automaton.

        Sequences share it, and so do later calls whose grammar was made anew of the same text: the engine
        gives these an automaton of the same states.  Those asked last are kept, `_PLANS` states in all.
        """
        key = automaton.start
        known = self._plans.get(key)
        if known is None or known[0] is not spelling.encode or len(known[1]) > _PLANS:
            known = self._plans[key] = spelling.encode, _Plans()
        with contextlib.suppress(KeyError):  # another thread's call may have just dropped it
            self._plans.move_to_end(key)
            while len(self._plans) > _AUTOMATA or (len(self._plans) > 1 and self._states() > _PLANS):
                self._plans.popitem(last=False)
        return known[1]

    def _states(self) -> int:
        return sum(len(plans) for _, plans in list(self._plans.values()))

    def session(self, context: Context) -> Session:
        spelling = spelling_of(context)
        return Silent() if spelling is None else _ForcedSession(self, spelling, context)


_Ways = list[tuple[bytes, list[tuple[int, float]]]]
"""Texts, each with the offset and the share of every choice in it."""


@dataclass
class _Plans:
    """What is known of an automaton's states.

    Attributes:
        texts: what follows a state.
        ways: what follows the states behind a delimiter: those inside of a string differ by their counts of
            characters, and closing it leads from all of them to one.
    """

    texts: dict[Any, list[_Text]] = field(default_factory=dict)
    ways: dict[Any, _Ways] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts) + len(self.ways)


@dataclass
class _Text:
    """A continuation of a state: its tokens, their confidences, and the bytes that end it."""

    tokens: list[int]
    confidences: list[float]
    last: bytes
    chance: float


class _ForcedSession(Silent):
    def __init__(self, drafter: Forced, spelling: Spelling, context: Context) -> None:
        self.drafter, self.spelling = drafter, spelling
        self.followed = following(context, drafter.layout)
        self.ends: dict[tuple[int, ...], bytes] = {}
        self.gaps, self.tail = dict(drafter.gaps), b""

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree = DraftTree()
        if context.automaton.is_finished(context.state):
            return tree
        for text in self._follow(context) or self._known(context, context.automaton, context.state):
            if len(tree) >= budget.nodes:  # the likeliest come first
                break
            self._add(tree, context, text, budget)
        return tree

    def _follow(self, context: Context) -> list[_Text]:
        """What may follow in the manner of the text; nothing where it has none."""
        if self.followed is None:
            return []
        place = self.followed.after(context.tokens, context.path)
        self.drafter.layout = self.followed.layout
        try:
            return [] if place is None else self._known(context, *place)
        except LimitExceeded:
            self.followed.give_up()
            return []

    def _known(self, context: Context, auto: Any, state: Any) -> list[_Text]:
        """The plan of a state, made if it is new."""
        plans = self.drafter.plans_of(auto, self.spelling)
        written = context.path[-1] if context.path else context.tokens[-1]
        before = self.spelling.tokens[written][-1:] if written < len(self.spelling.tokens) else b""
        key = state, before, *sorted(self.gaps.items())
        if key not in plans.texts:
            plans.texts[key] = self._plan(auto, state, before, plans.ways)
        return plans.texts[key]

    def _add(self, tree: DraftTree, context: Context, text: _Text, budget: Budget) -> None:
        d, node = self.drafter, ROOT
        for i, token in enumerate(text.tokens):
            if len(tree) >= budget.nodes or i >= budget.depth:
                return
            if i == len(text.tokens) - 1:
                key = (*context.path, *text.tokens[:-1])
                self.ends[key] = text.last
                others = self._siblings(token, text.last)
                above, node = node, tree.add(node, token, d.name, text.confidences[i])
                for other in others[: max(0, budget.nodes - len(tree))]:
                    tree.add(above, other, d.name, 0.1)
            else:
                node = tree.add(node, token, d.name, text.confidences[i])

    def _siblings(self, token: int, last: bytes) -> list[int]:
        """Other tokens for the end of a text: longer ones seen there, then the next shorter one."""
        d, ids = self.drafter, self.spelling.ids
        others = [t for t, _ in d.seen[last].most_common(d.siblings) if t != token] if last in d.seen else []
        shorter = (ids[last[:n]] for n in range(len(last) - 1, 0, -1) if last[:n] in ids)
        return (others + [t for t in (next(shorter, None),) if t is not None])[: d.siblings]

    def _plan(self, auto: Any, state: Any, before: bytes, ways: dict[Any, _Ways]) -> list[_Text]:
        """The texts that may follow a state, likeliest first."""
        found: _Ways = []
        self._expand(auto, state, b"", [], 1.0, self.drafter.rounds, found, before)
        if not found:
            found = self._ways_out(auto, state, ways)
        texts = []
        for text, shares in found:
            tokens = self.spelling.encode(text)
            if tokens:
                texts.append(self._weigh(tokens, shares))
        texts.sort(key=lambda t: -t.chance)
        return texts

    def _weigh(self, tokens: list[int], shares: list[tuple[int, float]]) -> _Text:
        """Confidences: a token that makes a choice of n has a share of 1 / n."""
        at, confidences, chance = 0, [], 1.0
        for i, token in enumerate(tokens):
            end = at + len(self.spelling.tokens[token])
            confidence = _SURE if i < len(tokens) - 1 else _LAST
            for place, share in shares:
                if at <= place < end:
                    confidence *= share
            confidences.append(confidence)
            chance *= confidence
            at = end
        return _Text(tokens, confidences, self.spelling.tokens[tokens[-1]], chance)

    def _expand(
        self,
        auto: Any,
        state: Any,
        text: bytes,
        shares: list[tuple[int, float]],
        chance: float,
        rounds: int,
        found: _Ways,
        before: bytes = b"",
    ) -> None:
        """Follows forced bytes and small choices; appends (text, [(offset, share) of each choice]).

        Args:
            before: the byte before the text.
        """
        forced = bytes(auto.forced_bytes(state))
        for token in self.spelling.longest(forced):
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
        ids = self.spelling.ids
        for byte in (piece[i : i + 1] for i in range(len(piece))):
            if byte not in ids or auto.is_finished(state) or not auto.allows(state, ids[byte]):
                return None
            state = auto.advance(state, ids[byte])
        return state

    def _ways_out(self, auto: Any, state: Any, ways: dict[Any, _Ways]) -> _Ways:
        """Delimiters that may end what stands open here, where the grammar knows what follows them."""
        found: _Ways = []
        if auto.is_finished(state):
            return found
        gaps = sorted(self.gaps.items())
        for byte in _DELIMITERS:
            below = self._behind(auto, state, byte)
            if below is None:
                continue
            key = below, self.gaps.get(byte), *gaps  # of the byte before, only its gap counts
            if key not in ways:
                after: _Ways = []
                ways[key] = after
                self._expand(auto, below, b"", [], _OUT, self.drafter.rounds - 1, after, byte)
            for text, shares in ways[key]:
                found.append((byte + text, [(0, _OUT), *((at + 1, share) for at, share in shares)]))
        return found

    def _choices(self, auto: Any, state: Any, before: bytes) -> list[tuple[bytes, float]]:
        """What may follow and its share, if it is little and can be spelled.

        The end of the text is not followed, but has a share like any other way.
        """
        most, tokens, ids = self.drafter.choices, self.spelling.tokens, self.spelling.ids
        if auto.is_finished(state) or most < 2:
            return []
        gap = all(self._behind(auto, state, space) is not None for space in (b" ", b"\n"))
        usual = self.gaps.get(before, b"") if gap else b""
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

    def observe(self, context: Context, seen: Seen) -> None:
        """Counts which longer token was taken where a text was about to end."""
        d, committed = self.drafter, seen.committed
        for i, token in enumerate(committed if self.ends else ()):
            last = self.ends.get(tuple(committed[:i]))
            taken = self.spelling.tokens[token]
            if last and taken.startswith(last) and len(taken) > len(last):
                d.seen[last][token] += 1
        self.ends = {}
        tokens = self.spelling.tokens
        text = self.tail + b"".join(tokens[token] for token in committed if token < len(tokens))
        for found in _GAP.finditer(text):
            byte = found[1] or found[2] or found[3]
            self.gaps[byte] = d.gaps[byte] = found[4]
        self.tail = text[-_TAIL:]
