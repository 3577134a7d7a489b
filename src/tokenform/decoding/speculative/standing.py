"""A value that may stand in the prompt: the parts of the prompt that match are weighed, as wholes, against
the text that greedy decoding writes.

Purpose: a mask makes a value begin with the likeliest token that its pattern allows, also where the model was
about to write something else: for an address, "https" in place of "The", and then `https@jane.doe`.  As a
whole, without a mask, the address that stands in the prompt is far likelier.
Distribution: of greedy sampling only; of bare values (the whole text is a number, or of a pattern) and of
strings in double quotes that a pattern restricts.  The likeliest wins, by the model's own probability of its
tokens and of the end after them.
Invariant: no token leaves before it is decided.  The decision is a function of the text and the model: no
draft and no batch changes it.  What the model would write without a mask is not given up, but for short
strings (prose must not become a copy; what ends a bare value says little of it).
Complexity: one look at the words of the prompt for each such place, `STEPS` automaton steps in all; after
these nothing more is weighed.  The parts are scored with the place's first pass, best first (`choosing.py`).
The greedy text is held back, and scored again with each pass, until its tokens are less likely than the best
part, or it ends.
Rejected: a wider search in place of the prompt's parts (of 18 addresses `Beam(4)` writes one); the parts
alone (the value need not stand in the prompt); one token at a time (the first is the wrong one); strings of
any text (no mask derails them).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tokenform.engine import State
from tokenform.errors import TokenformError, TokenRejected

from .choices import Choices
from .choosing import Choosing
from .drafters.spelling import WORD, Spelling
from .tree import ROOT

if TYPE_CHECKING:
    from .live import Live

MOST = 64
"""Parts of a prompt; where more match, the pattern says little about the value, and none is weighed."""
LONGEST = 128
"""Most characters of a part."""
HELD = 64
"""Most tokens of the greedy text that are held back; a longer one wins."""
SHORT = 8
"""Most tokens of a string that a likelier part replaces though the model would write it without a mask: a
name or a code, no prose."""
STEPS = 1 << 18
"""Automaton steps in which all parts for one text are found; some 0.3 s."""
_HALF = math.log(0.5)


class PromptParts(Choices):
    """The parts of a prompt as options; see the module's header.

    Args:
        quoted: whether a quote follows each, or the end of the text.
    """

    def __init__(
        self,
        automaton: Any,
        state: State,
        options: Sequence[bytes],
        quoted: bool,
        spelling: Spelling,
        eos: frozenset[int],
    ) -> None:
        super().__init__(automaton, state, options, spelling, eos)
        self._quoted = quoted
        for option, text in enumerate(options):
            tokens = self._tokens(text + b'"' if quoted else text)
            self._add_option(option, [self._path(option, tokens, shared=quoted)])

    def fits(self, option: int, node: int, budget: int) -> bool:
        """Whether a text with a part can end within the budget; the end of the text itself takes no token."""
        return super().fits(option, node, budget) if self._quoted else budget >= 0

    def begins(self, token: int) -> bool:
        return self.tree.child(ROOT, token) is not None

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        if not self._quoted:
            return [token for token in allowed if token in self._eos]
        tokens, rest = self._spelling.tokens, self._rests[option, node]
        return [token for token in allowed if token not in self._eos and tokens[token].startswith(rest)]


class Greedy(NamedTuple):
    """The greedy text as far as it is known.

    Attributes:
        tokens: the one that ends it excluded.
        logprob: of these, and of the end if it is known.
        ended: whether it is.
        free: whether the model would write these tokens without a mask, too, and not lengthen an ended one.
    """

    tokens: list[int]
    logprob: float
    ended: bool
    free: bool

    def stands(self, quoted: bool) -> bool:
        """Whether it wins whatever the parts are: it has half of the probability, or the model wrote it
        freely and it is no short string."""
        free = self.free and not (quoted and len(self.tokens) <= SHORT)
        return self.ended and (free or self.logprob >= _HALF)


class Weighing:
    """The parts of a sequence's prompt at a place, and its greedy text, until one of them wins.

    Args:
        choosing: the parts.
        budget: tokens that may be written.
        quoted: whether a quote ends them, or the end of the text.

    Attributes:
        held: the tokens of the greedy text that are not committed yet.
        scored: whether the last pass had them.
    """

    def __init__(self, choosing: Choosing, budget: int, quoted: bool) -> None:
        self.choosing, self._budget, self.quoted = choosing, budget, quoted
        self.held: list[int] = []
        self.scored = True

    def wins(self, greedy: Greedy) -> bool | None:
        """Whether the greedy text wins against each part; None while too little is known."""
        if greedy.stands(self.quoted):
            return True
        best = self.choosing.decide()
        if best is None and self.choosing.possible:
            return None
        if best is not None and self._exceeds(greedy, self.choosing.logprob(best)):
            return False
        grows = len(greedy.tokens) > len(self.held) or not self.scored
        goes_on = grows and len(greedy.tokens) < HELD
        return None if goes_on and not greedy.ended else True

    def budget_decides(self, greedy: Greedy, before: Greedy | None) -> bool:
        """Whether a larger budget might have made another of these win, which did.

        Args:
            before: the greedy text up to where the budget first refused a token; None: nowhere.
        """
        best = self.choosing.decide()
        if best is None or not self._exceeds(greedy, self.choosing.logprob(best)):
            cut = before is not None or (not greedy.ended and len(greedy.tokens) >= self._budget)
            may_lose = not greedy.stands(self.quoted) and self._exceeds(greedy, self.choosing.refused)
            return cut or may_lose
        return best.refused or not (before is None or self._exceeds(before, self.choosing.logprob(best)))

    def _exceeds(self, greedy: Greedy, logprob: float) -> bool:
        """Whether a part with this log-probability wins."""
        given_up = greedy.ended and not greedy.stands(self.quoted) if greedy.free else True
        return given_up and greedy.logprob < logprob


class Standing:
    """What of a sequence's prompt may be a value of its text.

    Args:
        live: a sequence with passages, for greedy decoding.

    Attributes:
        opens: whether a string may begin after a token, bool [V].
    """

    def __init__(self, live: Live, spelling: Spelling) -> None:
        self._request, self._spelling = live.request, spelling
        self.opens = spelling.quotes
        self._parts: dict[State, list[bytes]] = {}
        self._left = STEPS
        self._position, self._weighing = -1, cast("Weighing | None", None)

    def here(self, live: Live) -> Weighing | None:
        """What is weighed at the end of the text; None: nothing, or it is decided."""
        if self._position != len(live.text):
            self._position, quoted = len(live.text), bool(live.output.tokens)
            begins = self.opens[live.text[-1]] if quoted else self._request.bare
            self._weighing = self._begun(live, quoted) if begins else None
        return self._weighing

    def decided(self) -> None:
        """Nothing is weighed any more at the end of the text."""
        self._weighing = None

    @cached_property
    def _words(self) -> list[tuple[int, str]]:
        """The passages from each beginning of a word on, `LONGEST` characters and one, after their first
        byte."""
        return [
            (text[at].encode(errors="replace")[0], text[at : at + LONGEST + 1])
            for text in self._request.passages
            for at in range(len(text))
            if not (at and text[at - 1].isalnum())
        ]

    def parts(self, state: State, quoted: bool) -> list[bytes]:
        """The parts of the prompt that may be the value at a place, from a word's beginning to a word's end;
        none where there are too many."""
        if state not in self._parts:
            automaton, found = self._request.automaton, dict[bytes, None]()
            with contextlib.suppress(TokenformError):  # a limit: the value is written as ever
                firsts = set(self._spelling.firsts[automaton.allowed_tokens(state)].tolist())
                if not quoted or _in_patterned_string(firsts):
                    self._look(state, quoted, firsts, found)
            self._parts[state] = list(found) if len(found) <= MOST and self._left > 0 else []
        return self._parts[state]

    def _look(self, state: State, quoted: bool, firsts: set[int], found: dict[bytes, None]) -> None:
        for first, text in self._words:
            if self._left <= 0 or len(found) > MOST:
                return
            if first in firsts:
                for part in values(self._request.automaton, state, quoted, text):
                    self._left -= 1
                    if part is not None:
                        found[part] = None
                self._left -= 1

    def _begun(self, live: Live, quoted: bool) -> Weighing | None:
        request, state = live.request, live.output.state
        if state is None or not (found := self.parts(state, quoted)):
            return None
        key, limit = (request.seed, request.number, len(live.text)), live.seqs[0][0].max_length
        budget = live.remaining
        deepest = budget if limit is None else min(budget, limit - len(live.text) - 1)
        try:
            place = PromptParts(request.automaton, state, found, quoted, self._spelling, request.eos)
            choosing = Choosing(place, request.sampler.local, key, budget, deepest - quoted)
        except TokenformError:  # a limit, or a part that the tokenizer can't write
            return None
        return Weighing(choosing, budget, quoted)


def standing(live: Live) -> Standing | None:
    """For a sequence; None where nothing is ever weighed."""
    request, spelling = live.request, live.spelling
    weighs = live.wholes and request.sampler.local.greedy and request.sampler.untouched
    if not (request.passages and weighs and request.eos) or spelling is None:
        return None
    return Standing(live, spelling)


def _in_patterned_string(firsts: set[int]) -> bool:
    """Whether a place with these first bytes is in a string of a pattern: a word may follow, no escape."""
    return ord("\\") not in firsts and any(WORD[one] for one in firsts)


def values(automaton: Any, state: State, quoted: bool, text: str) -> Iterator[bytes | None]:
    """For each character that the constraint allows, the text up to there where it is a whole value and ends
    with a word, or None."""
    for place, character in enumerate(text[:LONGEST]):
        if quoted and character == '"':
            return
        try:
            state = automaton.step_bytes(state, character.encode())
        except TokenRejected:
            return
        ends = not text[place + 1 : place + 2].isalnum() and _ends(automaton, state, quoted)
        yield text[: place + 1].encode() if ends else None


def _ends(automaton: Any, state: State, quoted: bool) -> bool:
    if not quoted:
        return bool(automaton.is_accepting(state))
    try:
        automaton.step_bytes(state, b'"')
    except TokenRejected:
        return False
    return True
