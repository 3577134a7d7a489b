"""Weighs the spans of a prompt, as wholes, against the text that greedy decoding writes.

Purpose: decide a value that may stand in the prompt (`prompt_spans.py`).
Distribution: of greedy sampling only.  The likeliest wins, by the model's own probability of its tokens and
of the end after them, without a mask.
Invariant: no token leaves before it is decided.  The decision is a function of the text and the model: no
draft and no batch changes it.  What the model would write without a mask is not given up, but for strings of
few words (prose must not become a copy; what ends a bare value says little of it).
Complexity: the spans are scored with the place's first pass, best first (`choosing.py`).  The greedy text is
held back, and scored again with each pass, until its tokens are less likely than the best span, it loops
or ends.
Rejected: a wider search in place of the spans (of 18 addresses `Beam(4)` writes one); the spans alone (the
value need not stand in the prompt); one token at a time (the first is the wrong one).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import torch

from .choices import Choices
from .choosing import WIDTH, Choosing, SpelledValue
from .drafters.spelling import Spelling
from .places import Short
from .request import UNKNOWN
from .scores import Listed, picked
from .tree import HELD, ROOT

if TYPE_CHECKING:
    from .deciding import Deciding
    from .live import Live
    from .matching import Logits
    from .prompt_spans import PromptSpans

MOST_HELD = 64
"""Most tokens of the greedy text that are held back; a longer one wins."""
PROSE = 5
"""Fewest words with letters of a string that stays whatever the spans are if the model would write it without
a mask; fewer are a name, a number or a code."""
_HALF = math.log(0.5)
_REPEATED, _PERIOD = 24, 8  # tokens
_WORDS = re.compile(r"\S*[^\W\d_]\S*")  # with letters


class Greedy(NamedTuple):
    """The greedy text as far as it is known.

    Attributes:
        tokens: the one that ends it excluded.
        logprob: of these, and of the end if it is known.
        ended: whether it is.
        free: whether the model would write these tokens without a mask, too, and not lengthen an ended one;
            False of a piece of a number.
        words: how many words with letters it has.
    """

    tokens: list[int]
    logprob: float
    ended: bool
    free: bool
    words: int

    def stands(self, quoted: bool) -> bool:
        """Whether it wins whatever the spans are: it has half of the probability, or the model wrote it
        freely and it is bare or prose, and no loop."""
        free = self.free and (not quoted or self.words >= PROSE) and not self.loops
        return self.ended and (free or self.logprob >= _HALF)

    @property
    def loops(self) -> bool:
        """Whether its last `_REPEATED` tokens repeat those before: such a text mostly has no end."""
        last, tokens = self.tokens[-_REPEATED:], self.tokens
        ways = range(1, min(_PERIOD, len(tokens) - _REPEATED) + 1)
        return any(tokens[-_REPEATED - way : -way] == last for way in ways)


class Weighing:
    """The spans of a sequence's prompt at a place, and its greedy text, until one of them wins.

    Args:
        choosing: the spans.
        budget: tokens that may be written.
        quoted: whether a quote ends them, or the end of the text.
        pieces: digits before a mark in a number of the prompt, as `12` in `12,500`: what the model goes on
            with is the mark.

    Attributes:
        held: the tokens of the greedy text that are not committed yet.
        scored: whether the last pass had them.
    """

    def __init__(self, choosing: Choosing, budget: int, quoted: bool, pieces: Collection[bytes] = ()) -> None:
        self.choosing, self._budget, self.quoted, self.pieces = choosing, budget, quoted, pieces
        self.held: list[int] = []
        self.scored = True

    def wins(self, greedy: Greedy) -> bool | None:
        """Whether the greedy text wins against each span; None while too little is known."""
        if greedy.stands(self.quoted):
            return True
        best = self.choosing.decide()
        if best is None and self.choosing.possible:
            return None
        if best is not None and self._exceeds(greedy, self.choosing.logprob(best)):
            return False
        grows = len(greedy.tokens) > len(self.held) or not self.scored
        goes_on = grows and len(greedy.tokens) < MOST_HELD
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
        """Whether a span with this log-probability wins."""
        if greedy.loops and not greedy.ended:
            return logprob > -math.inf
        given_up = greedy.ended and not greedy.stands(self.quoted) if greedy.free else True
        return given_up and greedy.logprob < logprob


def add_weighed(deciding: Deciding, live: Live, weighing: Weighing) -> None:
    """Adds the greedy text that is held back, and spans of the prompt that are not scored yet."""
    live.decides_values = True
    choosing, held = weighing.choosing, weighing.held
    if live.chains:
        live.draft_nothing()
        weighing.scored = choosing.decide() is not None or not choosing.possible
        held = held if weighing.scored else []
    automaton, node = live.request.automaton, ROOT
    for token in held:
        state = automaton.advance(live.session.states[node], token)
        node = live.session.add(live.tree, node, token, state, HELD)
    if not (live.chains and held):
        deciding.add(live, ROOT, choosing, choosing.nodes_to_score(WIDTH, live.chains))


def weigh(
    deciding: Deciding,
    live: Live,
    logits: Logits,
    spans: PromptSpans,
    written: SpelledValue,
    opened: Sequence[tuple[int, int]],
) -> SpelledValue:
    """What is decided of a text: a span of the prompt, if that is likelier; empty where it is not decided
    yet.

    Args:
        written: by greedy decoding.
        opened: where strings may begin in it, as (tokens before, node).
    """
    weighing = spans.here(live)
    if weighing is not None and not isinstance(deciding.place(live, live.output.state), Choices | Short):
        found = _weighed(deciding, live, logits, weighing, written)
        if found is not written:
            return found
        spans.decided()
    for start, node in opened:
        state = live.session.states[node]
        if state is not None and spans.at(state, True):
            greedy = _greedy(live, logits, written.tokens[start:], node, True)
            if not greedy.stands(quoted=True):  # the next pass begins there
                tokens, logprobs, refused, _ = written
                return SpelledValue(tokens[:start], logprobs[:start], refused[:start], None)
    return written


def _weighed(
    deciding: Deciding, live: Live, logits: Logits, weighing: Weighing, written: SpelledValue
) -> SpelledValue:
    """The greedy text (`written` itself), or a span of the prompt; empty where it is not decided yet."""
    choosing, tokens = weighing.choosing, written.tokens
    mapped = deciding.draft_nodes(live, ROOT, choosing)
    fresh = deciding.learn(live, logits, mapped, choosing)
    greedy = _greedy(live, logits, tokens, ROOT, weighing.quoted, weighing.pieces)
    wins, best = weighing.wins(greedy), choosing.decide()
    if wins is None and (fresh or best is not None or not choosing.possible):
        if len(greedy.tokens) > len(weighing.held):
            weighing.held = greedy.tokens
        return SpelledValue([], [], [], None)
    found = written
    if wins is False and best is not None:
        found = deciding.spelled(live, ROOT, choosing, best, mapped) or written
    value = written.refused[: len(greedy.tokens) + 1]
    cut = next((place for place, one in enumerate(value) if one is not None), None)
    before = None
    if cut is not None:
        before = _greedy(live, logits, tokens[:cut], ROOT, weighing.quoted, weighing.pieces)
    if found.refused and weighing.budget_decides(greedy, before):
        found.refused[0] = UNKNOWN
    return found


def _greedy(
    live: Live,
    logits: Logits,
    tokens: Sequence[int],
    node: int,
    quoted: bool,
    pieces: Collection[bytes] = (),
) -> Greedy:
    """The greedy text that begins with these tokens, and its probability without a mask.

    Args:
        node: of the tree, before them.
        pieces: texts that are not free.
    """
    request, states, data = live.request, live.session.states, cast("Spelling", live.spelling).tokens
    automaton, size = request.automaton, request.sampler.size

    def ends(token: int) -> bool:
        return b'"' in data[token] if quoted else token in request.eos

    text = list(itertools.takewhile(lambda token: not ends(token), tokens))
    nodes = [node, *live.tree.walk(text, node)][: len(text) + 1]
    last = nodes[-1]
    ended = len(text) < len(tokens)
    ended = ended or (not quoted and len(nodes) > len(text) and automaton.is_finished(states[last]))
    ids = [np.array([token]) for token in text]
    if ended and quoted and data[tokens[len(text)]][:1] == b'"':
        allowed = automaton.allowed_tokens(states[last]).astype(np.int64)
        ids.append(allowed[cast("Spelling", live.spelling).firsts[allowed] == ord('"')])
    elif ended:
        ids.append(np.array([tokens[len(text)]] if quoted else sorted(request.eos), np.int64))
    rows = [logits[0][one + 1] for one in nodes[: len(ids)]]
    if not rows or any(isinstance(row, Listed) for row in rows):  # not decided, or not scored yet
        return Greedy(text, 0.0, ended=False, free=True, words=0)
    own = torch.stack(cast("list[torch.Tensor]", rows))
    at = np.repeat(np.arange(len(ids)), list(map(len, ids)))
    scores = picked(own, at, np.concatenate(ids))
    end = np.logaddexp.reduce(scores[len(text) :]) if ended else 0.0
    likeliest = own[:, :size].argmax(-1).tolist()
    free = likeliest[: len(text)] == text
    if ended and free:  # and then something that the value does not go on with
        free = ends(likeliest[-1]) or not automaton.allows(states[last], likeliest[-1])
    whole = b"".join(map(data.__getitem__, text))
    words = _WORDS.findall(whole.decode(errors="replace"))
    free = free and not (ended and whole in pieces)
    return Greedy(text, float(scores[: len(text)].sum() + end), ended, free, len(words))
