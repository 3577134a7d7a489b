"""The decoding loop of a generator: rows in, tokens out.

Purpose: `Decoder(...).run(rows, batch_size)` runs all rows to their ends and tells each token as it is taken.
Plain decoding is the same loop without drafts.
What is written before a text (`Row.lead`) and the text are one sequence for callers, and two for the model.
Invariant: drafts change no text, up to the model's own rounding.  A row joins as soon as another has
ended (in plain decoding, when all of its batch have).  A row that fails has its error; the others go on.
Rejected: one backbone for all calls of a generator (calls in several threads would share its cache).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.draws import MaskedSampler, Transform
from tokenform.decoding.draws.base import FAILED
from tokenform.decoding.keyed_random import stream_seed
from tokenform.decoding.mixing import Mixing
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters.base import Nothing
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.policies import Controller, Policy
from tokenform.decoding.speculative.request import Output, Report, Request
from tokenform.decoding.speculative.speculator import Speculator, Step
from tokenform.decoding.speculative.targets import Penalties
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.decoding.thinking import Lead
from tokenform.engine import Vocabulary, tokenizers
from tokenform.errors import DrafterError, TokenformError, own_error

_SPELLED = 1 << 14  # texts whose tokens are kept


def pays(backbone: Backbone, rows: int) -> bool:
    """Whether `drafter="auto"` drafts for so many rows.

    Where drafts are chains, the rows of a batch are padded to the longest.
    """
    return backbone.mode == "tree" or (backbone.mode == "chain" and rows == 1)


@dataclass
class _Led:
    """A row with something before its text.

    Attributes:
        inner: number of the sequence that is written for it now.
        spent: the work on what was written before its text.
        begun: its text has begun.
    """

    row: Row
    lead: Lead
    inner: int
    spent: Report = field(default_factory=Report)
    begun: bool = False


class Decoder(Speculator):
    """A batch on its way: `run` for rows that are all known, `join`, `step` and `cancel` for rows that come
    and go.

    Args:
        backbone: runs the model; it may be used by one `run` at a time.
        sampler: draws.
        vocabulary: of the model's logits; wider logits are cut to it before drawing.
        transforms: applied to each row's logits before the mask, in order.
        drafter: guesses; None decodes plainly.
        policy: size and shape of drafts; None scores what pays by the measured costs.
        encode: bytes -> token ids as the model's tokenizer writes them, for drafters; None is longest match.
        mixing: a second model or prompt, and penalties; None for the model alone.
        matcher: draws where the logits are; None makes one.
    """

    def __init__(
        self,
        backbone: Backbone,
        sampler: Local,
        vocabulary: Vocabulary,
        transforms: Sequence[Transform] = (),
        *,
        drafter: Any = None,
        policy: Policy | None = None,
        encode: Callable[[bytes], list[int]] | None = None,
        mixing: Mixing | None = None,
        matcher: DeviceDraws | None = None,
    ) -> None:
        self._encode, self._eos = encode, frozenset(vocabulary.eos)
        self._mixing, self._size, self._transforms = mixing or Mixing(), vocabulary.size, tuple(transforms)
        self._masked = self.distribution(sampler)
        self._companion = self._mixing.backbone(backbone)
        self._waves, self._drafts = backbone.mode == "plain", drafter is not None
        super().__init__(backbone, drafter, policy or Controller(), matcher)
        self._led: dict[int, _Led] = {}  # by a row's number

    def run(self, rows: Sequence[Row], batch_size: int) -> Generator[tuple[int, int | None], None, None]:
        """Run the rows to their ends, at most `batch_size` at a time.

        Yields:
            (row, token) for each token of a text that is taken, (row, None) when the row is complete.
        """
        moves = self.moves(rows, batch_size)
        try:
            for place, moved in moves:
                if moved is not None and moved.thought is None:
                    for token in moved.tokens:
                        yield place, token
                if moved is None or moved.output.done:
                    yield place, None
        finally:
            moves.close()

    def moves(self, rows: Sequence[Row], batch_size: int) -> Generator[tuple[int, Step | None], None, None]:
        """The same, by steps.

        Yields:
            (row, what a step did for it), the last time when it is complete; (row, None) for a row that can't
            be started.
        """
        waiting = iter(enumerate(rows))
        places: dict[int, int] = {}
        try:
            while True:
                joining = not (self._waves and self._live)
                while joining and len(self._live) < batch_size:
                    following = next(waiting, None)
                    if following is None:
                        break
                    place, row = following
                    try:
                        places[self.join(row)] = place
                    except TokenformError as error:
                        row.output.error = error
                        yield place, None
                if not self._live:
                    return
                for moved in self.steps():
                    yield places[moved.number], moved
        finally:
            self.close()

    def check_own(self, drafter: Any) -> None:
        """Refuses a drafter of a row's own that can't guess here.

        Raises:
            DrafterError
        """
        if self._waves:
            raise DrafterError("this model is run token by token, without drafts; leave the drafter out.")

    def join(self, row: Row) -> int:
        """Starts a row beside those that are being written; returns the number that `step` calls it by.

        Raises:
            PromptTooLong, OptionError, DrafterError: it can't be started.
        """
        row.drafted = self._drafts or row.drafter is not None
        if row.lead is not None:
            number = self.add(self._request(row, row.lead))
            self._led[number] = _Led(row, row.lead, number)
            return number
        number = self.add(self._request(row))
        row.output = self.output(number)
        return number

    def steps(self) -> list[Step]:
        """One forward pass; what it did for each row that moved or ended."""
        moved = self.step()
        if not self._led:
            return moved
        rows = {led.inner: number for number, led in self._led.items()}
        return [self._told(rows.get(one.number), one) for one in moved] + self._bound()

    def _told(self, number: int | None, moved: Step) -> Step:
        if number is None:
            return moved
        led = self._led[number]
        if not led.begun:
            return self._guarded(number, moved, self._before)
        if moved.output.done:
            moved.output.report.add(led.spent)
            del self._led[number]
            self.drop(moved.number)
        return moved._replace(number=number)

    def _guarded(self, number: int, moved: Step, write: Callable[[int, Step], Step]) -> Step:
        """A step before a row's text, whose error is the row's: the others go on."""
        try:
            return write(number, moved)
        except Exception as error:
            if moved.number in self._live:
                super().cancel(moved.number)
            moved.output.done, moved.output.reason = True, "error"
            moved.output.error = own_error(error, FAILED)
            return self._given_up(number, moved)

    def _before(self, number: int, moved: Step) -> Step:
        """What a step did for what is written before a row's text."""
        led, output = self._led[number], moved.output
        row, lead = led.row, led.lead
        if output.error is not None or output.reason == "cancelled":
            return self._given_up(number, moved)
        if output.done:
            led.spent.add(output.report)
        if not lead.begun:
            verdict = lead.decide(moved.tokens, output.done)
            if verdict == "text":  # it goes on as it began
                row.output, led.begun = output, True
                return Step(number, lead.tokens, output)
            if verdict == "thought":
                if not output.done:
                    led.spent.add(super().cancel(moved.number).report)
                led.inner = self.add(self._request(row, lead, self.left(moved.number)))
            elif verdict == "answer":
                self._begin_text(number, lead.tokens)
            return Step(number, moved.tokens, row.output, "")
        lead.tokens += moved.tokens
        written = lead.feed(moved.tokens)
        if output.done:
            rest, row.thought = lead.finish(output.cut is not None)
            written += rest
            self._begin_text(number, [*lead.tokens, *lead.after])
        return Step(number, moved.tokens, row.output, written)

    def _begin_text(self, number: int, before: list[int]) -> None:
        """Goes on from what came before to the text itself, on the same keys and values."""
        led = self._led[number]
        row, led.begun = led.row, True
        row.read, row.prompt = len(row.prompt), [*row.prompt, *before]
        row.companion = [*row.companion, *before] if row.companion else row.companion
        row.max_tokens -= len(before)
        led.inner = self.add(self._request(row, sequences=self.left(led.inner)))
        row.output = self.output(number)

    def _bound(self) -> list[Step]:
        """Ends the thoughts whose text can begin by now; one pass for all that may be asked, which is that of
        their next token."""
        asked = {number: led.lead for number, led in self._led.items() if not led.begun and led.lead.due}
        if not asked:
            return []
        lives = {number: self._live[self._led[number].inner] for number in asked}
        trees = {lives[n].seqs[0][1]: DraftTree.chain(lead.readiness.chain) for n, lead in asked.items()}
        try:
            scored = self.backbone.score(trees)
        except Exception:  # then nobody is asked here; whose pass fails, the next step says
            return []
        ready = [n for n, lead in asked.items() if lead.ready(scored[lives[n].seqs[0][1]])]
        return [self._guarded(n, Step(lives[n].number, [], lives[n].output), self._bind) for n in ready]

    def _bind(self, number: int, moved: Step) -> Step:
        led = self._led[number]
        led.spent.add(super().cancel(moved.number).report)
        rest, led.row.thought = led.lead.finish(cut=False)
        self._begin_text(number, [*led.lead.tokens, *led.lead.after])
        return Step(number, [], led.row.output, rest)

    def _given_up(self, number: int, moved: Step) -> Step:
        self._led.pop(number).row.output = moved.output
        self.drop(moved.number)
        return Step(number, [], moved.output)

    def output(self, number: int) -> Output:
        """The text so far of a row."""
        led = self._led.get(number)
        return super().output(number if led is None else led.inner)

    def cancel(self, number: int) -> Output:
        """Ends a row and frees its cache."""
        led = self._led.pop(number, None)
        inner = number if led is None else led.inner
        output = super().cancel(inner)
        self.drop(inner)
        return output

    def distribution(
        self, sampler: Local, transforms: Sequence[Transform] = (), penalties: Penalties | None = None
    ) -> MaskedSampler:
        """How a row of its own sampler is drawn (`Row.sampler`), with this decoder's mixture and
        transforms."""
        every = (*self._transforms, *transforms)
        penalties = penalties or self._mixing.penalties
        return MaskedSampler(sampler, self._size, sorted(self._eos), every, self._mixing.mixture, penalties)

    def _request(
        self, row: Row, lead: Lead | None = None, sequences: Sequence[tuple[Backbone, int]] = ()
    ) -> Request:
        """A row's text, or what is written before it; `sequences`: of what stands before that."""
        begun = lead.tokens if lead is not None else []
        request = copy(row)
        request.prompt, other = [*row.prompt, *begun], [*(row.companion or row.prompt), *begun]
        request.companions = [] if self._companion is None else [(self._companion, other)]
        request.sampler, request.eos, request.encode = row.sampler or self._masked, self._eos, self._encode
        request.seed, request.sequences = stream_seed(row.seed, request.prompt), sequences
        request.kept = lead is not None
        if lead is not None:
            request.automaton = lead.automaton
            request.drafter = Nothing() if lead.measured else row.drafter
            if lead.budget is not None:
                request.max_tokens, request.logprobs = lead.budget, False
                request.hints, request.alternatives = None, 0
        return request


def speller(tokenizer: Any, vocabulary: Vocabulary) -> Callable[[bytes], list[int]] | None:
    """Bytes -> the ids in which the model's tokenizer writes them; None without a tokenizer.

    What the tokenizer writes with other bytes (a space that it puts first, half a character) is spelled
    by longest match instead.
    """
    if tokenizer is None:
        return None
    tokens: list[bytes] = list(vocabulary.tokens)
    known: dict[bytes, list[int]] = {}

    def spell(text: bytes) -> list[int]:
        ids = known.get(text)
        if ids is None:
            try:
                ids = tokenizers.encode(tokenizer, text.decode("utf-8"), specials=False)
            except (UnicodeDecodeError, TokenformError):
                ids = []
            if b"".join(tokens[token] if token < len(tokens) else b"" for token in ids) != text:
                ids = vocabulary.greedy(text) or []
            if len(known) >= _SPELLED:
                known.clear()
            known[text] = ids
        return list(ids)

    return spell
