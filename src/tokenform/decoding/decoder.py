"""The decoding loop of a generator: rows in, tokens out.

Purpose: `Decoder(...).run(rows, batch_size)` runs all rows to their ends and tells each token as it is taken.
Plain decoding is the same loop without drafts.
Invariant: drafts change no text, up to the model's own rounding; a verifier for drawn drafts keeps the
distribution alone. A row joins as soon as another has ended (in plain decoding, when all of its batch have).
A row that fails has its error, and the others go on.
Complexity: see `speculative/speculator.py`; the cache lives as long as one `run`.
Rejected: one backbone for all calls of a generator (calls in several threads would share its cache).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tokenform.decoding.draws import MaskedSampler, Transform
from tokenform.decoding.keyed_random import stream_seed
from tokenform.decoding.mixing import Mixing
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.policies import Controller, Policy
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.speculator import Speculator
from tokenform.decoding.speculative.targets import Penalties
from tokenform.decoding.speculative.verifiers import Verifier
from tokenform.engine import Vocabulary, tokenizers
from tokenform.errors import DrafterError, TokenformError

_SPELLED = 1 << 14  # texts whose tokens are kept


def pays(backbone: Backbone, rows: int) -> bool:
    """Whether `drafter="auto"` drafts for so many rows.

    Where drafts are chains, the rows of a batch are padded to the longest.
    """
    return backbone.mode == "tree" or (backbone.mode == "chain" and rows == 1)


class Decoder(Speculator):
    """A batch on its way: `run` for rows that are all known, `join`, `step` and `cancel` for rows that come
    and go.

    Args:
        backbone: runs the model; it may be used by one `run` at a time.
        sampler: draws.
        vocabulary: of the model's logits; wider logits are cut to it before drawing.
        transforms: applied to each row's logits before the mask, in order.
        drafter: guesses; None decodes plainly.
        verifier: the rule of acceptance; None is sample-and-match, with which seeds keep their texts.
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
        verifier: Verifier | None = None,
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
        super().__init__(backbone, drafter, verifier, policy or Controller(), matcher)

    def run(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, int | None]]:
        """Run the rows to their ends, at most `batch_size` at a time.

        Yields:
            (row, token) for each token of a text that is taken, (row, None) when the row is complete.
        """
        waiting = iter(enumerate(rows))
        places: dict[int, int] = {}
        try:
            while True:
                joining = not (self._waves and self.active)
                while joining and self.active < batch_size:
                    following = next(waiting, None)
                    if following is None:
                        break
                    place, row = following
                    try:
                        places[self.join(row)] = place
                    except TokenformError as error:
                        row.output.error = error
                        yield place, None
                if not self.active:
                    return
                for moved in self.step():
                    place = places[moved.number]
                    yield from ((place, token) for token in moved.tokens)
                    if moved.output.done:
                        yield place, None
        finally:
            self.close()

    def check_own(self, drafter: Any) -> None:
        """Refuses a drafter of a row's own that can't guess here.

        Raises:
            DrafterError
        """
        if self._waves:
            raise DrafterError("this model is run token by token, without drafts; leave the drafter out.")
        self.check(drafter)

    def join(self, row: Row) -> int:
        """Starts a row beside those that are being written; returns the number that `step` calls it by.

        Raises:
            PromptTooLong, OptionError, DrafterError: it can't be started.
        """
        number = self.add(self._request(row))
        row.output, row.drafted = self.output(number), self._drafts or row.drafter is not None
        return number

    def distribution(
        self, sampler: Local, transforms: Sequence[Transform] = (), penalties: Penalties | None = None
    ) -> MaskedSampler:
        """How a row of its own sampler is drawn (`Row.distribution`), with this decoder's mixture and
        transforms."""
        every = (*self._transforms, *transforms)
        penalties = penalties or self._mixing.penalties
        return MaskedSampler(sampler, self._size, sorted(self._eos), every, self._mixing.mixture, penalties)

    def _request(self, row: Row) -> Request:
        return Request(
            row.prompt,
            row.distribution or self._masked,
            row.automaton,
            max_tokens=row.budget,
            eos=self._eos,
            seed=stream_seed(row.seed, row.prompt),
            number=row.number,
            drafter=row.drafter,
            hints=row.hints,
            encode=self._encode,
            companions=[] if self._companion is None else [(self._companion, row.companion or row.prompt)],
            alternatives=row.alternatives,
            logprobs=row.logprobs,
        )


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
