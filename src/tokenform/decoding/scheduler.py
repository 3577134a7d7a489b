"""Continuous batching: calls of many threads share the forward passes of one model.

Purpose: `submit` from any thread; the texts of all calls run as one ragged batch, which each joins as soon as
there is room and leaves as soon as it has ended.
Invariant: a text with a seed is the one that `Generator.sample` writes alone (up to the model's rounding).  A
call that fails, is cancelled or whose listener raises costs itself alone.  The owners of waiting texts take
turns, so that nobody's many texts hold up another's one.
Memory: `waiting` texts at most wait beside the `batch_size` that run; more are refused (`Busy`).
Threads: one for the batch, which lives while there is something to write, and `jobs` for faithful samplers,
which ask the model for laws of many prefixes at once and so run as wholes, with caches of their own.
Source: Yu et al. 2022 (Orca), "iteration-level scheduling".
Rejected: a thread for as long as the scheduler lives (one that nobody closes would hold its model for ever).

    scheduler = Scheduler(tf.Generator())
    job = scheduler.submit("The parcel 4821 is paid.", schema, seed=0, listener=print)
    (result,) = job.result()
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any

from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.calls import DEFAULT_MAX_TOKENS, AnySampler, Constraint, ending_at, pair, texts_of
from tokenform.decoding.draws import MaskedSampler, Transform
from tokenform.decoding.generator import Generator
from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.results import Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculation import Decoder, Moved
from tokenform.decoding.speculative.targets import Penalties
from tokenform.decoding.weighted import draw_weighted
from tokenform.engine import Limits
from tokenform.errors import Busy, Interrupted, ModelError, OptionError, TokenformError

_LINGER = 0.5  # seconds that an idle thread waits for more to do
_LAWS = 256  # ways of drawing that are kept, so that texts of one way are drawn together


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
    """

    number: int
    text: str
    tokens: list[int]
    logprobs: list[float]
    likeliest: list[list[tuple[int, float]]]
    result: Result | None = None


Listener = Callable[[Piece], None]


@dataclass
class Load:
    """What a scheduler has to do, and has done.

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
        owner: whose turn its texts take.
        future: of its results, in their order; `asyncio.wrap_future` takes it.  Cancelling it cancels the
            job.
        prompt_tokens: how many the prompt has.
    """

    def __init__(
        self, grammar: Constraint, stop: str | Sequence[str], owner: Hashable, listener: Listener | None
    ) -> None:
        self.owner, self.future, self.prompt_tokens = owner, Future[list[Result]](), 0
        self._grammar, self._stop, self._listener = grammar, stop, listener
        self._results: dict[int, Result] = {}
        self._count = 0

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

    def _fail(self, error: BaseException) -> None:
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)

    def _told(self, piece: Piece) -> None:
        """Hands a piece on; a listener that raises ends its own job."""
        if piece.result is not None:
            self._results[piece.number] = piece.result
        if self._listener is not None and not self.future.done():
            try:
                self._listener(piece)
            except BaseException as error:
                self._fail(error)
                return
        if len(self._results) == self._count:
            with contextlib.suppress(InvalidStateError):
                self.future.set_result([self._results[number] for number in range(self._count)])


@dataclass(eq=False)
class _Text:
    """One row on its way: waiting without a number, running with one."""

    job: Job
    row: Row
    pieces: TextPieces
    number: int | None = None


class Scheduler:
    """See the module's header.

    Args:
        generator: the model, and the default sampler.
        batch_size: most texts that run together; None is the generator's.
        waiting: most texts that wait.
        jobs: calls of faithful samplers that run at once.
    Raises:
        OptionError: a number is below 1.
    """

    def __init__(
        self, generator: Generator, *, batch_size: int | None = None, waiting: int = 256, jobs: int = 1
    ) -> None:
        size = generator.batch_size if batch_size is None else batch_size
        if min(size, waiting, jobs) < 1:
            raise OptionError(f"batch_size={size}, waiting={waiting} and jobs={jobs} must be at least 1.")
        self.generator, self.batch_size, self.waiting, self._jobs = generator, size, waiting, jobs
        self._default = generator.sampler if isinstance(generator.sampler, Local) else Local(temperature=0.0)
        self._changed = threading.Condition()
        self._queues: OrderedDict[Hashable, deque[_Text]] = OrderedDict()
        self._running: dict[int, _Text] = {}
        self._whole: deque[tuple[Job, Callable[[LanguageModel], list[Result]]]] = deque()
        self._whole_running = 0
        self._laws: OrderedDict[Hashable, MaskedSampler] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._done = Load()
        self._decoder = self._new_decoder()

    def submit(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        n: int = 1,
        seed: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        sampler: AnySampler | None = None,
        penalties: Penalties | None = None,
        transforms: Sequence[Transform] = (),
        stop: str | Sequence[str] = (),
        alternatives: int = 0,
        limits: Limits | None = None,
        owner: Hashable = None,
        listener: Listener | None = None,
    ) -> Job:
        """Starts the texts of one prompt; compiling its grammar is done here, in the caller's thread.

        Args:
            prompt, grammar, n, seed, max_tokens, sampler, stop: as for `Generator.sample`, for one prompt.
            penalties, transforms: as for `Generator`, for these texts.
            alternatives: how many of the model's likeliest tokens to tell at each token.
            limits: of the grammar's automaton; None: as it is for the process.
            owner: owners take turns.
            listener: is told each piece, in the batch's thread: it must not wait.  Faithful samplers tell
                whole texts.
        Raises:
            Busy: too many texts wait, or the scheduler is closed.
            BudgetTooSmall, PromptTooLong, OptionError, ModelError, SamplingError, VocabularyError.
        """
        if n < 1 or max_tokens < 1:
            raise OptionError(f"n={n} and max_tokens={max_tokens} must be at least 1.")
        self._check_room(n)
        prompts, grammars, batched = pair(prompt, ending_at(stop, grammar))
        if batched:
            raise OptionError("a job has one prompt and one grammar; submit each of a batch.")
        chosen = self.generator.chosen(sampler)
        job = Job(grammars[0], stop, owner, listener)
        if isinstance(chosen, AlignedSampler):
            if penalties is not None or transforms or alternatives:
                raise OptionError(f"penalties, transforms and alternatives are not for {_name(chosen)}.")
            job.prompt_tokens = len(self.generator.prompt_ids(prompts[0], grammars[0]))
            work = self._whole_job(chosen, prompts[0], job, n, seed, max_tokens)
            job._count = n
            self._enter_whole(job, work)
            return job
        rows = self.generator.rows(prompts[0], grammars[0], n, seed, max_tokens, limits=limits)
        job.prompt_tokens = len(rows[0].prompt)
        law = self._law(chosen, tuple(transforms), penalties)
        for row in rows:
            row.law, row.alternatives = law, alternatives
        job._count = n
        self._enter(job, [_Text(job, row, TextPieces(texts_of(stop))) for row in rows])
        return job

    @property
    def load(self) -> Load:
        """What there is to do, and what was done."""
        with self._changed:
            load = Load(**vars(self._done))
            load.running, load.waiting = len(self._running), self._waiting()
            load.jobs = len(self._whole) + self._whole_running
            report = self._decoder.report
        for name in ("drafted", "accepted", "forwards", "seconds_model", "seconds_mask"):
            setattr(load, name, getattr(load, name) + getattr(report, name))
        return load

    def close(self, *, drain: bool = True, timeout: float | None = None) -> bool:
        """Takes nothing more.

        Args:
            drain: write what was begun; False cancels it.
            timeout: seconds to wait; what is not written then is cancelled.
        Returns:
            Whether everything was written.
        """
        with self._changed:
            self._closed = True
            left = [*self._running.values(), *(text for queue in self._queues.values() for text in queue)]
            jobs = {*(text.job for text in left), *(job for job, _ in self._whole)}
            idle = self._changed.wait_for(self._idle, timeout) if drain else self._idle()
        if not idle:
            for job in jobs:
                job.cancel()
            with self._changed:
                self._changed.wait_for(self._idle, 60.0)
        return idle

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(drain=False)

    # -- the queues, under the lock

    def _idle(self) -> bool:
        return not (self._running or self._queues or self._whole or self._whole_running)

    def _waiting(self) -> int:
        return sum(map(len, self._queues.values())) + len(self._whole)

    def _check_room(self, count: int) -> None:
        with self._changed:
            self._refuse(count)

    def _refuse(self, count: int) -> None:
        waiting = self._waiting()
        if not self._closed and waiting + count <= self.waiting + self.batch_size - len(self._running):
            return
        error = Busy(
            "the scheduler is closed; nothing more is taken."
            if self._closed
            else f"{waiting} texts wait already, and at most {self.waiting} may; try again later."
        )
        error.waiting = waiting
        raise error

    def _enter(self, job: Job, texts: list[_Text]) -> None:
        with self._changed:
            self._refuse(len(texts))
            self._queues.setdefault(job.owner, deque()).extend(texts)
            self._wake()
        job.future.add_done_callback(self._left)

    def _left(self, future: Future[list[Result]]) -> None:
        """A job has ended, perhaps before its texts: the thread looks which are to be dropped."""
        with self._changed:
            self._changed.notify_all()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=_run, args=(self,), name="tokenform-batch", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _next(self) -> _Text | None:
        """The text whose owner's turn it is, of jobs that still want theirs."""
        while self._queues:
            owner, queue = next(iter(self._queues.items()))
            text = queue.popleft()
            if queue:
                self._queues.move_to_end(owner)
            else:
                del self._queues[owner]
            if not text.job.future.done():
                return text
        return None

    # -- the batch, in its thread

    def _turn(self) -> bool:
        """One step; False where there is nothing to do any more."""
        with self._changed:
            if not (self._running or self._queues) and not self._changed.wait_for(
                lambda: bool(self._queues), _LINGER
            ):
                self._thread = None
                return False
            joining: list[_Text] = []
            while len(self._running) + len(joining) < self.batch_size and (text := self._next()) is not None:
                joining.append(text)
            gone = [text for text in self._running.values() if text.job.future.done()]
        for text in gone:
            assert text.number is not None
            self._decoder.leave(text.number)
            self._forget(text)
        for text in joining:
            try:
                text.number = self._decoder.join(text.row)
            except Exception as error:  # of this text: the others go on
                text.job._fail(_own(error))
                continue
            with self._changed:
                self._running[text.number] = text
        if self._running:
            self._step()
        with self._changed:
            self._changed.notify_all()
        return True

    def _step(self) -> None:
        try:
            moved = self._decoder.step()
        except Exception as error:  # of nobody's text: none of them can be trusted to go on
            self._start_again(error)
            return
        self._done.steps += 1
        for one in moved:
            self._done.tokens += len(one.tokens)
            self._tell(self._running[one.number], one)

    def _tell(self, text: _Text, moved: Moved) -> None:
        row, output, count = text.row, moved.output, len(moved.tokens)
        tokens = self.generator.vocabulary
        written = text.pieces.feed(b"".join(tokens.token(token) for token in moved.tokens)) if count else ""
        result = None
        if output.done:
            self._forget(text)
            if row.error is not None:
                text.job._fail(row.error)
                return
            try:
                result = self.generator.result(row, text.job._grammar, text.job._stop)
            except Exception as error:  # a value that can't be made of a text, or a validator's own mistake
                text.job._fail(error)
                return
            written += text.pieces.finish()
        if count or result is not None:
            logprobs = output.token_logprobs[len(output.token_logprobs) - count :]
            likeliest = output.alternatives[max(len(output.alternatives) - count, 0) :]
            text.job._told(Piece(row.number, written, moved.tokens, logprobs, likeliest, result))

    def _forget(self, text: _Text) -> None:
        with self._changed:
            assert text.number is not None
            del self._running[text.number]

    def _start_again(self, error: Exception) -> None:
        """Fails every running text, and goes on with a new cache."""
        with self._changed:
            failed = list(self._running.values())
            self._running.clear()
            report = self._decoder.report
            for name in ("drafted", "accepted", "forwards", "seconds_model", "seconds_mask"):
                setattr(self._done, name, getattr(self._done, name) + getattr(report, name))
            self._decoder = self._new_decoder()
        for text in failed:
            text.job._fail(_own(error))

    def _new_decoder(self) -> Decoder:
        return self.generator.decoder(self._default, self.batch_size, joining=True)

    def _law(
        self, sampler: Local, transforms: tuple[Transform, ...], penalties: Penalties | None
    ) -> MaskedSampler:
        """How texts of this sampler are drawn; the same object for equal plain ones."""
        if transforms or penalties is not None:
            return self._decoder.law(sampler, transforms, penalties)
        with self._changed:
            known = self._laws.get(sampler)
            if known is None:
                known = self._laws[sampler] = self._decoder.law(sampler)
            self._laws.move_to_end(sampler)
            while len(self._laws) > _LAWS:
                self._laws.popitem(last=False)
            return known

    # -- faithful samplers

    def _whole_job(
        self, sampler: AlignedSampler, prompt: Any, job: Job, n: int, seed: int | None, max_tokens: int
    ) -> Callable[[LanguageModel], list[Result]]:
        # refused here and not later: what the prompt or the grammar can't have
        self.generator.problem(prompt, job._grammar, max_tokens=max_tokens, sampler=sampler)

        def work(model: LanguageModel) -> list[Result]:
            problem = self.generator.problem(
                prompt, job._grammar, max_tokens=max_tokens, sampler=sampler, model=model
            )
            return draw_weighted(sampler, problem, job._grammar, n, seed)

        return work

    def _enter_whole(self, job: Job, work: Callable[[LanguageModel], list[Result]]) -> None:
        with self._changed:
            self._refuse(1)
            self._whole.append((job, work))
            if self._whole_running < self._jobs:
                self._whole_running += 1
                threading.Thread(target=self._run_whole, name="tokenform-sampler", daemon=True).start()

    def _run_whole(self) -> None:
        """Runs faithful samplers, one after the other, until none waits."""
        while True:
            with self._changed:
                if not self._whole:
                    self._whole_running -= 1
                    self._changed.notify_all()
                    return
                job, work = self._whole.popleft()
            if job.future.done():
                continue
            try:
                results = work(_Asked(self.generator.language_model(), job.future))
                job._count = len(results)
                for number, one in enumerate(results):
                    job._told(Piece(number, one.text, list(one.tokens), [], [], one))
            except Interrupted:
                continue
            except Exception as error:
                job._fail(_own(error))


class _Asked:
    """A language model that is not asked any more once nobody wants the answer."""

    def __init__(self, model: LanguageModel, future: Future[list[Result]]) -> None:
        self._model, self._future = model, future

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def logprobs(self, prefixes: Sequence[tuple[int, ...]]) -> Any:
        if self._future.done():
            raise Interrupted("the job was cancelled.")
        return self._model.logprobs(prefixes)


def _run(scheduler: Scheduler) -> None:
    while scheduler._turn():
        pass


def _own(error: Exception) -> TokenformError:
    if isinstance(error, TokenformError):
        return error
    own = ModelError(f"the text could not be written: {type(error).__name__}: {error}")
    own.__cause__ = error
    return own


def _name(sampler: Any) -> str:
    return type(sampler).__name__


__all__ = ["Job", "Load", "Piece", "Scheduler"]
