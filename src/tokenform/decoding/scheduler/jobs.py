"""A call in the scheduler: its texts, in pieces and as results.

Invariant: a job ends once; a listener that raises ends its own job and no other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass

from tokenform.decoding.calls import Constraint
from tokenform.decoding.results import Result


@dataclass(frozen=True)
class Piece:
    """What a step wrote of one text.

    Attributes:
        number: which of the call's n texts.
        text: whole characters, perhaps none; the pieces' texts joined are the result's.
        tokens: the ids, without the end-of-text token.
        logprobs: of each token, as `Result.token_logprobs`.
        likeliest: at each token, as `Result.likeliest`.
        result: the text's, with its last piece.
        thought: this is of the thought before the text (`Result.thought`), and no part of the text.
        cut: how many characters of `text` were written before the budget cut in; None: all.
    """

    number: int
    text: str
    tokens: list[int]
    logprobs: list[float]
    likeliest: list[list[tuple[int, float]]]
    result: Result | None = None
    thought: bool = False
    cut: int | None = None


Listener = Callable[[Piece], None]
FAILED = "the text could not be written"


@dataclass
class Load:
    """The work of a scheduler: waiting, running and done.

    Attributes:
        running, waiting: texts.
        jobs: calls of faithful samplers that run or wait.
        steps: steps of the batch.
        tokens, drafted, accepted, forwards: over all texts that have ended or move.
        seconds_model, seconds_mask: over all texts that have ended.
    """

    running: int = 0
    waiting: int = 0
    jobs: int = 0
    steps: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    forwards: int = 0
    seconds_model: float = 0.0
    seconds_mask: float = 0.0


class Job:
    """One call: n texts for one prompt.

    Attributes:
        owner: its texts take turns with those of other owners.
        grammar: the constraint of its texts.
        future: of its results, in order; for `asyncio.wrap_future`.  Cancelling it cancels the job.
        prompt_tokens: how many the prompt has.
        expected: how many results there will be.
    """

    def __init__(
        self,
        grammar: Constraint,
        owner: Hashable = None,
        listener: Listener | None = None,
        expected: int = 1,
    ) -> None:
        self.grammar, self.owner, self.expected = grammar, owner, expected
        self.future, self.prompt_tokens = Future[list[Result]](), 0
        self._listener = listener
        self._results: dict[int, Result] = {}

    def result(self, timeout: float | None = None) -> list[Result]:
        """The results, when all of its texts are written.

        Raises:
            TimeoutError: not within so many seconds.
            concurrent.futures.CancelledError: it was cancelled.
            TokenformError: why one of them could not be written.
        """
        return self.future.result(timeout)

    def cancel(self) -> bool:
        """Ends it at the next step; False where it has ended already."""
        return self.future.cancel()

    @property
    def ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.future.done()

    def fail(self, error: BaseException) -> None:
        """Ends it with an error."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)

    def tell(self, piece: Piece) -> None:
        """Hands a piece to the listener; the last result completes the future."""
        if piece.result is not None:
            self._results[piece.number] = piece.result
        if self._listener is not None and not self.ended:
            try:
                self._listener(piece)
            except BaseException as error:
                self.fail(error)
                return
        if len(self._results) == self.expected:
            with contextlib.suppress(InvalidStateError):
                self.future.set_result([self._results[number] for number in range(self.expected)])
