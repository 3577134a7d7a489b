"""The decoding loop of a generator: rows in, tokens out.

Purpose: `Decoder(...).run(rows, batch_size)` runs all rows to their ends and yields each token.  Plain
decoding is the same loop without drafts.
A text and its preamble (`Row.preamble`: the reasoning) are one sequence for callers, and two for the model.
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
from tokenform.decoding.pieces import TextPieces
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
from tokenform.decoding.thinking import Preamble
from tokenform.engine import Vocabulary, tokenizers
from tokenform.errors import DrafterError, TokenformError, own_error

_CACHED_TEXTS = 1 << 14  # texts whose tokens are kept


def drafting_pays(backbone: Backbone, rows: int) -> bool:
    """Whether `drafter="auto"` drafts for so many rows.

    Where drafts are chains, the rows of a batch are padded to the longest.
    """
    return backbone.mode == "tree" or (backbone.mode == "chain" and rows == 1)


@dataclass
class _PrecededRow:
    """A row with a preamble.

    Attributes:
        sequence: number of the sequence that is written for it now.
        report_before: the work on the preamble.
        text_begun: the preamble has ended.
    """

    row: Row
    preamble: Preamble
    sequence: int
    report_before: Report = field(default_factory=Report)
    text_begun: bool = False


class Decoder(Speculator):
    """A running batch: `run` for a fixed list of rows; `join`, `steps`, `cancel` for rows that come and go.

    Args:
        backbone: runs the model; it may be used by one `run` at a time.
        sampler: draws.
        vocabulary: of the model's logits; wider logits are cut to it before drawing.
        transforms: applied to each row's logits before the mask, in order.
        drafter: proposes tokens; None is plain decoding.
        policy: size and shape of drafts; None decides by measured costs.
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
        self._preambles: dict[int, _PrecededRow] = {}  # by a row's number
        self._stops: dict[int, TextPieces] = {}  # of rows that a stop may end
        self._token_bytes = vocabulary.token

    def run(self, rows: Sequence[Row], batch_size: int) -> Generator[tuple[int, int | None], None, None]:
        """Run the rows to their ends, at most `batch_size` at a time.

        Yields:
            (row, token) for each token of a text, (row, None) when the row is complete.
        """
        moves = self.moves(rows, batch_size)
        try:
            for index, step in moves:
                if step is not None and step.thought is None:
                    for token in step.tokens:
                        yield index, token
                if step is None or step.output.done:
                    yield index, None
        finally:
            moves.close()

    def moves(self, rows: Sequence[Row], batch_size: int) -> Generator[tuple[int, Step | None], None, None]:
        """As `run`, step by step.

        Yields:
            (row, what a step did for it), the last time when it is complete; (row, None) for a row that can't
            be started.
        """
        waiting = iter(enumerate(rows))
        indices: dict[int, int] = {}
        try:
            while True:
                joining = not (self._waves and self._live)
                while joining and len(self._live) < batch_size:
                    next_row = next(waiting, None)
                    if next_row is None:
                        break
                    index, row = next_row
                    try:
                        indices[self.join(row)] = index
                    except TokenformError as error:
                        row.output.error = error
                        yield index, None
                if not self._live:
                    return
                for step in self.steps():
                    yield indices[step.number], step
        finally:
            self.close()

    def check_own(self, drafter: Any) -> None:
        """Refuses a row's own drafter where this model runs without drafts.

        Raises:
            DrafterError
        """
        if self._waves:
            raise DrafterError("this model is run token by token, without drafts; leave the drafter out.")

    def join(self, row: Row) -> int:
        """Adds a row to the running batch; returns its number in `steps`.

        Raises:
            PromptTooLong, OptionError, DrafterError: it can't be started.
        """
        row.drafted = self._drafts or row.drafter is not None
        if row.preamble is not None:
            number = self.add(self._request(row, row.preamble))
            self._preambles[number] = _PrecededRow(row, row.preamble, number)
        else:
            number = self.add(self._request(row))
            row.output = self.output(number)
        if row.stop:
            self._stops[number] = row.pieces()
        return number

    def steps(self) -> list[Step]:
        """One forward pass; what it did for each row that moved or ended."""
        steps = self.step()
        if self._preambles:
            rows = {entry.sequence: number for number, entry in self._preambles.items()}
            steps = [self._renumbered(rows.get(one.number), one) for one in steps] + self._end_ready()
        for step in steps if self._stops else ():
            if step.number in self._stops and step.thought is None:
                self._end_at_stop(step)
        return steps

    def _end_at_stop(self, step: Step) -> None:
        """Ends a row at a stop text."""
        number, output, pieces = step.number, step.output, self._stops[step.number]
        error, read = None, 0
        try:
            while read < len(step.tokens) and not pieces.ended:
                pieces.feed(self._token_bytes(step.tokens[read]))
                read += 1
        except Exception as raised:  # as a limit of the work that asking takes; the other rows go on
            error = own_error(raised, FAILED)
        if pieces.ended or error is not None:
            if not output.done:
                self.cancel(number)
            output.shorten(len(output.tokens) - len(step.tokens) + read)  # a step may write more than that
            del step.tokens[read:]
            output.reason = "error" if error is not None else "end" if output.cut is None else "length"
            output.error = output.error or error
        if output.done:
            self._stops.pop(number, None)

    def _renumbered(self, number: int | None, step: Step) -> Step:
        if number is None:
            return step
        entry = self._preambles[number]
        if not entry.text_begun:
            return self._guarded(number, step, self._write_preamble)
        if step.output.done:
            step.output.report.add(entry.report_before)
            del self._preambles[number]
            self.drop(step.number)
        return step._replace(number=number)

    def _guarded(self, number: int, step: Step, handle: Callable[[int, Step], Step]) -> Step:
        """Handles a step of a preamble; an error ends this row, and the others go on."""
        try:
            return handle(number, step)
        except Exception as error:
            if step.number in self._live:
                super().cancel(step.number)
            step.output.done, step.output.reason = True, "error"
            step.output.error = own_error(error, FAILED)
            return self._drop_row(number, step)

    def _write_preamble(self, number: int, step: Step) -> Step:
        """What a step did for a row's preamble."""
        entry, output = self._preambles[number], step.output
        row, preamble = entry.row, entry.preamble
        if output.error is not None or output.reason == "cancelled":
            return self._drop_row(number, step)
        if output.done:
            entry.report_before.add(output.report)
        if not preamble.in_thought:
            verdict = preamble.decide(step.tokens, output.done)
            if verdict == "text":  # it goes on as it began
                row.output, entry.text_begun = output, True
                return Step(number, preamble.tokens, output)
            if verdict == "thought":
                if not output.done:
                    entry.report_before.add(super().cancel(step.number).report)
                entry.sequence = self.add(self._request(row, preamble, self.pop_sequences(step.number)))
            elif verdict == "answer":
                self._begin_text(number, preamble.tokens)
            return Step(number, step.tokens, row.output, "")
        preamble.tokens += step.tokens
        text = preamble.feed(step.tokens)
        if output.done:
            rest, row.thought = preamble.finish(output.cut is not None)
            text += rest
            self._begin_text(number, [*preamble.tokens, *preamble.after])
        return Step(number, step.tokens, row.output, text)

    def _begin_text(self, number: int, preamble: list[int]) -> None:
        """Goes on from the preamble to the text itself, on the same keys and values."""
        entry = self._preambles[number]
        row, entry.text_begun = entry.row, True
        row.read, row.prompt = len(row.prompt), [*row.prompt, *preamble]
        row.companion_ids = [*row.companion_ids, *preamble] if row.companion_ids else row.companion_ids
        row.max_tokens -= len(preamble)
        entry.sequence = self.add(self._request(row, sequences=self.pop_sequences(entry.sequence)))
        row.output = self.output(number)

    def _end_ready(self) -> list[Step]:
        """Ends the thoughts whose text can begin now; one pass for all that are due, which also scores their
        next token."""
        due = {
            number: entry.preamble
            for number, entry in self._preambles.items()
            if not entry.text_begun and entry.preamble.check_due
        }
        if not due:
            return []
        lives = {number: self._live[self._preambles[number].sequence] for number in due}
        trees = {
            lives[n].seqs[0][1]: DraftTree.chain(preamble.readiness.chain) for n, preamble in due.items()
        }
        try:
            scored = self.backbone.score(trees)
        except Exception:  # no thought ends here; the next step finds the row whose pass fails
            return []
        ready = [n for n, preamble in due.items() if preamble.ready(scored[lives[n].seqs[0][1]])]
        return [
            self._guarded(n, Step(lives[n].number, [], lives[n].output), self._end_thought) for n in ready
        ]

    def _end_thought(self, number: int, step: Step) -> Step:
        entry = self._preambles[number]
        entry.report_before.add(super().cancel(step.number).report)
        rest, entry.row.thought = entry.preamble.finish(cut=False)
        self._begin_text(number, [*entry.preamble.tokens, *entry.preamble.after])
        return Step(number, [], entry.row.output, rest)

    def _drop_row(self, number: int, step: Step) -> Step:
        self._preambles.pop(number).row.output = step.output
        self.drop(step.number)
        return Step(number, [], step.output)

    def output(self, number: int) -> Output:
        """A row's text so far."""
        entry = self._preambles.get(number)
        return super().output(number if entry is None else entry.sequence)

    def cancel(self, number: int) -> Output:
        """Ends a row and frees its cache."""
        entry = self._preambles.pop(number, None)
        self._stops.pop(number, None)
        inner = number if entry is None else entry.sequence
        output = super().cancel(inner)
        if entry is not None and entry.text_begun:
            output.report.add(entry.report_before)
        self.drop(inner)
        return output

    def distribution(
        self, sampler: Local, transforms: Sequence[Transform] = (), penalties: Penalties | None = None
    ) -> MaskedSampler:
        """The distribution of a row with its own sampler (`Row.sampler`), under this decoder's mixture and
        transforms."""
        transforms_of_row = (*self._transforms, *transforms)
        penalties = penalties or self._mixing.penalties
        return MaskedSampler(
            sampler, self._size, sorted(self._eos), transforms_of_row, self._mixing.mixture, penalties
        )

    def _request(
        self, row: Row, preamble: Preamble | None = None, sequences: Sequence[tuple[Backbone, int]] = ()
    ) -> Request:
        """The request of a row's text, or of its preamble; `sequences`: the ones it goes on from."""
        written = preamble.tokens if preamble is not None else []
        request = copy(row)
        request.prompt, companion_prompt = (
            [*row.prompt, *written],
            [*(row.companion_ids or row.prompt), *written],
        )
        request.companions = [] if self._companion is None else [(self._companion, companion_prompt)]
        request.sampler, request.eos, request.encode = row.sampler or self._masked, self._eos, self._encode
        request.seed, request.sequences = stream_seed(row.seed, request.prompt), sequences
        request.keep_sequences = preamble is not None
        if preamble is not None:
            request.automaton, request.passages = preamble.automaton, ()
            request.drafter = Nothing() if preamble.ends_early else row.drafter
            if preamble.budget is not None:
                request.max_tokens, request.logprobs = preamble.budget, False
                request.hints, request.alternatives = None, 0
        return request


def bytes_encoder(tokenizer: Any, vocabulary: Vocabulary) -> Callable[[bytes], list[int]] | None:
    """Bytes -> the ids in which the model's tokenizer writes them; None without a tokenizer.

    Where the tokenizer changes the bytes (it adds a space, or they are half a character), the longest match
    spells them instead.
    """
    if tokenizer is None:
        return None
    tokens: list[bytes] = list(vocabulary.tokens)
    spelled: dict[bytes, list[int]] = {}

    def spell(text: bytes) -> list[int]:
        ids = spelled.get(text)
        if ids is None:
            try:
                ids = tokenizers.encode(tokenizer, text.decode("utf-8"), specials=False)
            except (UnicodeDecodeError, TokenformError):
                ids = []
            if b"".join(tokens[token] if token < len(tokens) else b"" for token in ids) != text:
                ids = vocabulary.greedy(text) or []
            if len(spelled) >= _CACHED_TEXTS:
                spelled.clear()
            spelled[text] = ids
        return list(ids)

    return spell
