"""The running batch: texts join it as soon as there is room and leave it as soon as they have ended.

Purpose: the owners of waiting texts take turns, so that the many of one don't hold up another's.
Invariant: a text that fails, is cancelled or whose listener raises affects no other job.
Threads: one, which lives while there is something to write; what others read is changed under the lock.
Rejected: a thread for as long as the scheduler lives (it would hold its model until the scheduler is closed).

"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakSet

from tokenform.decoding.decoder import Decoder
from tokenform.decoding.generator import Generator
from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.scheduler.jobs import FAILED, Job, Load, Piece
from tokenform.decoding.speculative.speculator import Step
from tokenform.errors import own_error

_PATIENCE = 5.0  # seconds that the process waits for a step when it exits
_LINGER = 0.5  # seconds that an idle thread waits for more to do
_COUNTED = ("drafted", "accepted", "forwards", "seconds_model", "seconds_mask")


@dataclass(eq=False)
class JobText:
    """One row of a job: waiting without a number, running with one.

    Attributes:
        pieces: turns its bytes into whole characters.
    """

    job: Job
    row: Row
    pieces: TextPieces
    number: int | None = None


class FairQueue:
    """The texts that wait; read under the batch's lock."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Hashable, deque[JobText]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[JobText]:
        return (text for queue in self._queues.values() for text in queue)

    def add(self, owner: Hashable, texts: Sequence[JobText]) -> None:
        """Puts texts behind their owner's others."""
        self._queues.setdefault(owner, deque()).extend(texts)

    def next(self) -> JobText | None:
        """The next text of the owner whose turn it is, without those of ended jobs; None: no text waits."""
        while self._queues:
            owner, queue = next(iter(self._queues.items()))
            text = queue.popleft()
            if queue:
                self._queues.move_to_end(owner)
            else:
                del self._queues[owner]
            if not text.job.ended:
                return text
        return None


class RunningBatch:
    """Args:
    size: most texts that run together.
    changed: the scheduler's lock, notified whenever there is less to do.
    """

    def __init__(self, generator: Generator, size: int, changed: threading.Condition) -> None:
        self._generator, self.size, self._changed = generator, size, changed
        self._default = generator.sampler if isinstance(generator.sampler, Local) else Local(temperature=0.0)
        self._waiting, self._running = FairQueue(), dict[int, JobText]()
        self._joining: list[JobText] = []  # neither waiting nor running: their prompts are being read
        self._done, self._cache_broken = Load(), False
        self.thread: threading.Thread | None = None
        self.decoder = self._new_decoder()

    # -- under the lock

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not (self._running or self._joining or len(self._waiting))

    @property
    def load(self) -> Load:
        """The work that waits, runs and is done."""
        load = Load(**vars(self._done))
        load.running, load.waiting = len(self._running), len(self._waiting)
        _count(load, self.decoder)
        return load

    @property
    def texts(self) -> list[JobText]:
        """All that run or wait."""
        return [*self._running.values(), *self._joining, *self._waiting]

    def enter(self, owner: Hashable, texts: Sequence[JobText]) -> None:
        """Puts texts into the queue, and wakes the thread."""
        if self.thread is None:
            thread = threading.Thread(target=_run, args=(self,), name="tokenform-batch", daemon=True)
            thread.start()  # before any state changes: it raises when memory is short
            self.thread = thread
            _threads.add(thread)
        self._waiting.add(owner, texts)
        self._changed.notify_all()

    # -- in the batch's thread

    def ended(self) -> None:
        """This thread has ended; the next texts start another."""
        with self._changed:
            if self.thread is threading.current_thread():
                self.thread = None

    def run_step(self) -> bool:
        """One step; False where nothing is left to do."""
        texts: Sequence[JobText] | None = None
        try:
            with self._changed:
                if self.idle and not self._changed.wait_for(lambda: len(self._waiting) > 0, _LINGER):
                    self.thread = None
                    return False
                joining = self._joining
                while len(self._running) + len(joining) < self.size and (text := self._waiting.next()):
                    joining.append(text)
                cancelled = [text for text in self._running.values() if text.job.ended]
                texts = [*self._running.values(), *joining]
            if self._cache_broken:
                self._renew()
            for text in cancelled:
                assert text.number is not None
                self.decoder.cancel(text.number)
                self._forget(text)
            while joining:
                self._join(joining[0])
                with self._changed:
                    joining.pop(0)
            if self._running:
                self._step()
        except Exception as error:  # of no text in particular: none can be trusted to go on
            self._fail_all(error, texts)
        with self._changed:
            self._changed.notify_all()
        return True

    def _renew(self) -> None:
        """A new decoder and its cache; if memory is short, the texts of the step fail."""
        decoder = self._new_decoder()
        with self._changed:
            _count(self._done, self.decoder)
            self.decoder, self._cache_broken = decoder, False

    def _join(self, text: JobText) -> None:
        try:
            text.number = self.decoder.join(text.row)
        except Exception as error:  # of this text: the others go on
            text.job.fail(own_error(error, FAILED))
            return
        with self._changed:
            self._running[text.number] = text

    def _step(self) -> None:
        steps = self.decoder.steps()
        self._done.steps += 1
        for one in steps:
            self._done.tokens += len(one.tokens)
            text = self._running[one.number]
            self._tell(text, one)
            if one.output.done:  # told first: whoever waits until nothing runs finds every result
                self._forget(text)

    def _tell(self, text: JobText, step: Step) -> None:
        row, output, count = text.row, step.output, len(step.tokens)
        if step.thought is not None:
            text.job.tell(Piece(row.number, step.thought, step.tokens, [], [], thought=True))
            return
        result, cut = None, None
        written, first = "", len(output.tokens) - count
        before_cut = count if output.cut is None else min(max(output.cut.place - first, 0), count)
        if before_cut:
            written = self._read(text, step.tokens[:before_cut])
        if output.cut is not None:
            cut = len(written)
        if before_cut < count:
            written += self._read(text, step.tokens[before_cut:])
        if output.done:
            if output.error is not None:
                text.job.fail(output.error)
                return
            written += text.pieces.finish()
            try:
                result = self._generator.result(row, text.job.grammar)
            except Exception as error:  # a value that can't be made of it, or a validator's own mistake
                text.job.fail(error)
                return
        if count or result is not None:
            logprobs = output.token_logprobs[len(output.token_logprobs) - count :]
            likeliest = output.likeliest[max(len(output.likeliest) - count, 0) :]
            text.job.tell(Piece(row.number, written, step.tokens, logprobs, likeliest, result, cut=cut))

    def _read(self, text: JobText, tokens: Sequence[int]) -> str:
        """The characters that some tokens complete."""
        return text.pieces.feed(b"".join(self._generator.vocabulary.token(token) for token in tokens))

    def _forget(self, text: JobText) -> None:
        with self._changed:
            assert text.number is not None
            del self._running[text.number]
            self._changed.notify_all()

    def _fail_all(self, error: Exception, texts: Sequence[JobText] | None) -> None:
        """Fails every text of this step, or all where it had not begun; the next step has a new cache."""
        with self._changed:
            failing = self.texts if texts is None else texts
            self._running.clear()
            self._joining.clear()
            self._cache_broken = True
        for text in failing:
            text.job.fail(own_error(error, FAILED))
        with contextlib.suppress(Exception):  # then the next step with texts tries again
            self._renew()

    def _new_decoder(self) -> Decoder:
        return self._generator.decoder(self._default, self.size, joining=True)


def _count(load: Load, decoder: Decoder) -> None:
    """Adds what a decoder has done."""
    for name in _COUNTED:
        setattr(load, name, getattr(load, name) + getattr(decoder.report, name))


_threads: WeakSet[threading.Thread] = WeakSet()
_leaving = threading.Event()


@atexit.register
def _leave() -> None:
    """A thread that is killed inside torch takes the process down with it, so each ends its step first."""
    _leaving.set()
    for thread in list(_threads):
        thread.join(_PATIENCE)


def _run(batch: RunningBatch) -> None:
    try:
        while not _leaving.is_set() and batch.run_step():
            pass
    finally:
        batch.ended()
