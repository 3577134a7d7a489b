"""The spans of a prompt that may be a value of its text: bare, or a string that a pattern restricts.

Purpose: a mask makes a value begin with the likeliest token that its pattern allows, also where the model was
about to write something else: for an address, "https" in place of "The", and then `https@jane.doe`.  The
address mostly stands in the prompt, and is far likelier as a whole: `weighing.py` compares the two.
Invariant: a span is a whole value at its place, and begins and ends where a word does.  It is no piece of a
longer span, but for pieces between spaces: `ines.duarte@site.pt` and not `duarte@site.pt`; `Ines Duarte` and
`Ms Ines Duarte`, but `+44 20 7946` alone.  It is no piece of a number (`250` of `1,250`); such a number may
also be read without its marks.  What is found is a function of the prompt and the place.
Complexity: one look at the words of the prompt for each place, `STEPS` automaton steps for a text; after
these nothing more is found.  An offset a word is kept.
Rejected: strings of any text (no mask derails them).
"""

from __future__ import annotations

import contextlib
import itertools
import re
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenform.engine import State
from tokenform.errors import TokenformError, TokenRejected

from .choices import Choices
from .choosing import Choosing
from .drafters.spelling import WORD, Spelling
from .tree import ROOT
from .weighing import Weighing

if TYPE_CHECKING:
    from .live import Live

MOST = 64
"""Spans at a place; where more match, the pattern says little about the value, and none is weighed."""
LONGEST = 128
"""Most characters of a span."""
STEPS = 1 << 18
"""Automaton steps in which all spans for one text are found."""
_GROUPED = re.compile(
    r"(?<![\d.,])((?<!\w)-)?"
    r"(?:(\d{1,3})([,.'’ \xa0\u202f])\d{3}(?:\3\d{3})*((?!\3)[.,]\d+)?|(\d+)(,\d+))(?!\d|[.,]\d)"
)
"""A number with its thousands apart, or a decimal comma."""
_NUMBER_MARKS = frozenset(".,\xa0\u202f")
"""Between two digits the number goes on."""
_MARKS = frozenset(b"!#$%&'()*+,-./:;<=>?@[]^`{|}~")
"""What strings of any text may begin with, beside letters and digits."""


class GroupedNumber(NamedTuple):
    """A number of the prompt with marks between its digits.

    Attributes:
        written: as it stands there, `1,250`.
        first: its sign, and the digits before the first mark, `1`.
        read: without marks but for the decimal point, `1250`.
    """

    written: bytes
    first: bytes
    read: bytes


class SpanChoices(Choices):
    """The spans of a prompt as options; see the module's header.

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
        """Whether a text with a span can end within the budget; the end of the text itself takes no token."""
        return super().fits(option, node, budget) if self._quoted else budget >= 0

    def begins(self, token: int) -> bool:
        return self.tree.child(ROOT, token) is not None

    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        if not self._quoted:
            return [token for token in allowed if token in self._eos]
        tokens, rest = self._spelling.tokens, self._rests[option, node]
        return [token for token in allowed if token not in self._eos and tokens[token].startswith(rest)]


class PromptSpans:
    """The spans for one sequence.

    Args:
        live: a sequence with passages, for greedy decoding.

    Attributes:
        opens: whether a string may begin after a token, bool [V].
    """

    def __init__(self, live: Live, spelling: Spelling) -> None:
        self._request, self._spelling = live.request, spelling
        self.opens = spelling.quotes
        self._spans: dict[State, list[bytes]] = {}
        self._left = STEPS
        self._position = -1
        self._weighing: Weighing | None = None

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
    def _readings(self) -> list[GroupedNumber]:
        found = []
        for number in itertools.chain.from_iterable(map(_GROUPED.finditer, self._request.passages)):
            sign, first, mark, decimals, whole, comma = number.groups("")
            digits, rest = whole or number[0].removesuffix(decimals).replace(mark, ""), decimals or comma
            read = (sign if whole else "") + digits + rest.replace(",", ".")
            found.append(GroupedNumber(*(one.encode() for one in (number[0], sign + (first or whole), read))))
        return found

    @cached_property
    def _begins(self) -> list[tuple[str, array[int]]]:
        """The passages, and where words and marks begin in each."""
        return [
            (text, array("L", [at for at in range(len(text)) if not (at and text[at - 1].isalnum())]))
            for text in self._request.passages
        ]

    def at(self, state: State, quoted: bool) -> list[bytes]:
        """The spans that may be the value at a place; none where there are too many.

        Args:
            quoted: whether a quote follows the value, or the end of the text.
        """
        if state not in self._spans:
            automaton, found = self._request.automaton, dict[bytes, None]()
            with contextlib.suppress(TokenformError):  # a limit: the value is written as ever
                firsts = set(self._spelling.firsts[automaton.allowed_tokens(state)].tolist())
                if not quoted or _in_restricted_string(firsts):
                    self._look(state, quoted, firsts, found)
                    self._read(state, quoted, found)
            self._spans[state] = list(found) if len(found) <= MOST and self._left > 0 else []
        return self._spans[state]

    def _look(self, state: State, quoted: bool, firsts: set[int], found: dict[bytes, None]) -> None:
        automaton = self._request.automaton
        for text, begins in self._begins:
            reach = 0  # where the longest value ends that begins before
            for at in begins:
                if self._left <= 0 or len(found) > MOST:
                    return
                if text[at].encode()[0] not in firsts:
                    continue
                self._left -= 1
                ends = []
                for end, whole in values(automaton, state, quoted, text, at):
                    self._left -= 1
                    if whole:
                        ends.append(end)
                inside = at > 0 and _goes_on(text, at - 1)
                last = max((end for end in ends if text[end - 1].isalnum()), default=0)
                for end in ends:
                    cut = end < last and _goes_on(text, end)
                    if not (cut or (inside and end <= reach) or _in_number(text, at, end)):
                        found[text[at:end].encode()] = None
                reach = max(reach, *ends, 0)

    def _read(self, state: State, quoted: bool, found: dict[bytes, None]) -> None:
        for one in self._readings:
            self._left -= len(one.read)
            with contextlib.suppress(TokenRejected):
                end = self._request.automaton.step_bytes(state, one.read)
                if one.written not in found and _ends(self._request.automaton, end, quoted):
                    found[one.read] = None

    def _begun(self, live: Live, quoted: bool) -> Weighing | None:
        request, state = live.request, live.output.state
        if state is None or not (found := self.at(state, quoted)):
            return None
        key, limit = (request.seed, request.number, len(live.text)), live.seqs[0][0].max_length
        budget = live.remaining
        deepest = budget if limit is None else min(budget, limit - len(live.text) - 1)
        try:
            place = SpanChoices(request.automaton, state, found, quoted, self._spelling, request.eos)
            choosing = Choosing(place, request.sampler.local, key, budget, deepest - quoted)
        except TokenformError:  # a limit, or a span that the tokenizer can't write
            return None
        pieces = {one.first for one in self._readings if one.read in found}
        return Weighing(choosing, budget, quoted, pieces.difference(found))


def prompt_spans(live: Live) -> PromptSpans | None:
    """For a sequence; None where nothing is ever weighed."""
    request, spelling = live.request, live.spelling
    weighs = live.wholes and request.sampler.local.greedy and request.sampler.untouched
    if not (request.passages and weighs and request.eos) or spelling is None:
        return None
    return PromptSpans(live, spelling)


def _goes_on(text: str, place: int) -> bool:
    """Whether a longer value goes on there: no space is there, or one between two digits."""
    return not text[place].isspace() or _between_digits(text, place)


def _in_number(text: str, at: int, end: int) -> bool:
    """Whether a span is a piece of a longer number, as `250` in `1,250`."""
    return any(_between_digits(text, place) and text[place] in _NUMBER_MARKS for place in (at - 1, end))


def _between_digits(text: str, place: int) -> bool:
    return place > 0 and text[place - 1].isdigit() and text[place + 1 : place + 2].isdigit()


def _in_restricted_string(firsts: set[int]) -> bool:
    """Whether a place with these first bytes is in a string: a word may begin there, some mark may not."""
    return any(WORD[one] for one in firsts) and not firsts >= _MARKS


def values(automaton: Any, state: State, quoted: bool, text: str, at: int) -> Iterator[tuple[int, bool]]:
    """For each character from a place on that the constraint allows, where it ends, and whether a whole value
    does so there, with a word."""
    for end in range(at + 1, min(at + LONGEST, len(text)) + 1):
        character = text[end - 1]
        if quoted and character == '"':
            return
        try:
            state = automaton.step_bytes(state, character.encode())
        except TokenRejected:
            return
        yield end, not text[end : end + 1].isalnum() and _ends(automaton, state, quoted)


def _ends(automaton: Any, state: State, quoted: bool) -> bool:
    if not quoted:
        return bool(automaton.is_accepting(state))
    try:
        automaton.step_bytes(state, b'"')
    except TokenRejected:
        return False
    return True
