"""A bare value that may stand in the prompt: the parts of the prompt that are texts of the constraint are
weighed, as wholes, against the text that greedy decoding writes.

Purpose: a mask makes a text begin with the likeliest token that the pattern allows, also where the model was
about to write something else: for an address, "https" in place of "The", and then `https@jane.doe`.  As a
whole, without a mask, the address that stands in the prompt is far likelier.
Distribution: of greedy sampling only.  The likeliest wins, by the model's own probability of its tokens and
of the end after them.
Invariant: no token leaves before it is decided.  The decision is a function of the prompt and the model: no
draft and no batch changes it.  Tokens that the model would write without a mask are never given up.
Complexity: one look at the prompt, `_STEPS` automaton steps a character at most.  The parts are scored
with the first pass, best first (`choosing.py`).  The greedy text is held back, and scored again with each
pass, until its tokens are less likely than the best part, or it ends.
Rejected: a wider search in place of the prompt's parts (of 18 addresses `Beam(4)` writes one); the parts
alone (the value need not stand in the prompt); one token at a time (the first is the wrong one).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenform.errors import TokenformError, TokenRejected

from .choices import Choices
from .choosing import Choosing
from .drafters.spelling import Spelling
from .tree import ROOT

if TYPE_CHECKING:
    from .live import Live

MOST = 64
"""Parts of a prompt; where more match, the pattern says little about the value, and none is weighed."""
LONGEST = 128
"""Most characters of a part."""
HELD = 64
"""Most tokens of the greedy text that are held back; a longer one wins."""
_STEPS = 16


class Standing(Choices):
    """The parts of a prompt as options; see the module's header."""

    def __init__(
        self, automaton: Any, options: Sequence[bytes], spelling: Spelling, eos: frozenset[int]
    ) -> None:
        super().__init__(automaton, automaton.start, options, spelling, eos)
        for option, text in enumerate(options):
            self._add_option(option, [self._path(option, self._tokens(text), shared=False)])

    def fits(self, option: int, node: int, budget: int) -> bool:
        """Whether a part's tokens are within the budget; the end of the text takes none."""
        return budget >= 0

    def begins(self, token: int) -> bool:
        return self.tree.child(ROOT, token) is not None

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        return [token for token in allowed if token in self._eos]


class Greedy(NamedTuple):
    """The greedy text as far as it is known.

    Attributes:
        tokens: the end-of-text token excluded.
        logprob: of these, and of the end if it is known.
        ended: whether it is.
        free: whether the model would write these tokens without a mask, too, and not lengthen an ended one.
    """

    tokens: list[int]
    logprob: float
    ended: bool
    free: bool


class Weighing:
    """The parts of a sequence's prompt, and its greedy text, until one of them wins.

    Args:
        choosing: the parts.
        budget: tokens that may be written.

    Attributes:
        held: the tokens of the greedy text that are not committed yet.
        scored: whether the last pass had them.
    """

    def __init__(self, choosing: Choosing, budget: int) -> None:
        self.choosing, self._budget = choosing, budget
        self.held: list[int] = []
        self.scored = True

    def wins(self, greedy: Greedy) -> bool | None:
        """Whether the greedy text is free or likelier than each part; None while too little is known."""
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
            return cut or self._exceeds(greedy, self.choosing.refused)
        return best.refused or not (before is None or self._exceeds(before, self.choosing.logprob(best)))

    def _exceeds(self, greedy: Greedy, logprob: float) -> bool:
        """Whether a part with this log-probability wins."""
        return not greedy.free and greedy.logprob < logprob


def weighing(live: Live) -> Weighing | None:
    """For a sequence that has not begun; None where nothing is weighed."""
    request, spelling = live.request, live.spelling
    local = request.sampler.local
    if not (request.passages and live.wholes and local.greedy and request.sampler.untouched):
        return None
    if spelling is None or not request.eos:
        return None
    key, limit = (request.seed, request.number, len(live.text)), live.seqs[0][0].max_length
    budget = live.remaining
    deepest = budget if limit is None else min(budget, limit - len(live.text) - 1)
    try:
        found = list(parts(request.automaton, request.passages, spelling))
        if not 0 < len(found) <= MOST:
            return None
        place = Standing(request.automaton, found, spelling, request.eos)
        choosing = Choosing(place, local, key, budget, deepest)
    except TokenformError:  # a limit, or a part that the tokenizer can't write: the text is written as ever
        return None
    return Weighing(choosing, budget)


def parts(automaton: Any, passages: Sequence[str], spelling: Spelling) -> Iterator[bytes]:
    """The texts of a constraint that stand in passages, from a word's beginning to a word's end, each once;
    at most one more than `MOST`."""
    seen = set[bytes]()
    firsts = {int(one) for one in spelling.firsts[automaton.allowed_tokens(automaton.start)]}
    for text in passages:
        steps = _STEPS * len(text)
        for begin, character in enumerate(text):
            if (begin and text[begin - 1].isalnum()) or character.encode()[0] not in firsts:
                continue
            for part in _begun(automaton, text[begin : begin + LONGEST + 1]):
                steps -= 1
                if part is not None and part not in seen:
                    seen.add(part)
                    yield part
            if steps <= 0 or len(seen) > MOST:
                return


def _begun(automaton: Any, text: str) -> Iterator[bytes | None]:
    """For each character that the constraint allows, the text up to there where it is whole and ends with a
    word, or None."""
    state = automaton.start
    for place, character in enumerate(text[:LONGEST]):
        try:
            state = automaton.step_bytes(state, character.encode())
        except TokenRejected:
            return
        ends = not text[place + 1 : place + 2].isalnum() and automaton.is_accepting(state)
        yield text[: place + 1].encode() if ends else None
