"""The running batch: texts join it as soon as there is room and leave it as soon as they have ended.

Purpose: the owners of waiting texts take turns, so that nobody's many hold up another's one.
Invariant: a text that fails, is cancelled or whose listener raises costs its own job alone.
Threads: one, which lives while there is something to write; what others read is changed under the lock.
Rejected: a thread for as long as the scheduler lives (one that nobody closes would hold its model for ever).
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
    """One row on its way: waiting without a number, running with one.

    Attributes:
        pieces: turns its bytes into whole characters.
    """

    job: Job
    row: Row
    pieces: TextPieces
    number: int | None = None


class Turns:
    """The texts that wait; the batch asks under its lock."""

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
        """The text whose owner's turn it is, of jobs that still want theirs; None: no text waits."""
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
    changed: the scheduler's lock, told whenever there is less to do.
    """

    def __init__(self, generator: Generator, size: int, changed: threading.Condition) -> None:
        self._generator, self.size, self._changed = generator, size, changed
        self._default = generator.sampler if isinstance(generator.sampler, Local) else Local(temperature=0.0)
        self._waiting, self._running = Turns(), dict[int, JobText]()
        self._joining: list[JobText] = []  # neither waiting nor running: their prompts are read
        self._done, self._spoilt = Load(), False
        self.thread: threading.Thread | None = None
        self.decoder = self._new_decoder()

    # -- under the lock

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not (self._running or self._joining or len(self._waiting))

    @property
    def load(self) -> Load:
        """What it has to do, and has done."""
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
            thread.start()  # before anything is kept: without memory it raises
            self.thread = thread
            _threads.add(thread)
        self._waiting.add(owner, texts)
        self._changed.notify_all()

    # -- in the batch's thread

    def ended(self) -> None:
        """This thread runs no more, whatever ended it: the next texts start another."""
        with self._changed:
            if self.thread is threading.current_thread():
                self.thread = None

    def turn(self) -> bool:
        """One step; False where there is nothing to do any more."""
        held: Sequence[JobText] | None = None
        try:
            with self._changed:
                if self.idle and not self._changed.wait_for(lambda: len(self._waiting) > 0, _LINGER):
                    self.thread = None
                    return False
                joining = self._joining
                while len(self._running) + len(joining) < self.size and (text := self._waiting.next()):
                    joining.append(text)
                gone = [text for text in self._running.values() if text.job.ended]
                held = [*self._running.values(), *joining]
            if self._spoilt:
                self._renew()
            for text in gone:
                assert text.number is not None
                self.decoder.cancel(text.number)
                self._forget(text)
            while joining:
                self._join(joining[0])
                with self._changed:
                    joining.pop(0)
            if self._running:
                self._step()
        except Exception as error:  # of nobody's text: none of them can be trusted to go on
            self._start_again(error, held)
        with self._changed:
            self._changed.notify_all()
        return True

    def _renew(self) -> None:
        """A new decoder and its cache; where there is no memory for them in a turn, its texts are told."""
        decoder = self._new_decoder()
        with self._changed:
            _count(self._done, self.decoder)
            self.decoder, self._spoilt = decoder, False

    def _join(self, text: JobText) -> None:
        try:
            text.number = self.decoder.join(text.row)
        except Exception as error:  # of this text: the others go on
            text.job.fail(own_error(error, FAILED))
            return
        with self._changed:
            self._running[text.number] = text

    def _step(self) -> None:
        moved = self.decoder.steps()
        self._done.steps += 1
        for one in moved:
            self._done.tokens += len(one.tokens)
            text = self._running[one.number]
            self._tell(text, one)
            if one.output.done:  # told first: who waits until nothing runs finds every result
                self._forget(text)

    def _tell(self, text: JobText, moved: Step) -> None:
        row, output, count = text.row, moved.output, len(moved.tokens)
        if moved.thought is not None:
            text.job.tell(Piece(row.number, moved.thought, moved.tokens, [], [], thought=True))
            return
        result, cut = None, None
        written, begun = "", len(output.tokens) - count
        kept = count if output.cut is None else min(max(output.cut.place - begun, 0), count)
        if kept:
            written = self._read(text, moved.tokens[:kept])
        if output.cut is not None:
            cut = len(written)
        if kept < count:
            written += self._read(text, moved.tokens[kept:])
        if output.done:
            if output.error is not None:
                text.job.fail(output.error)
                return
            written += text.pieces.finish()
            try:
                result = self._generator.result(row, text.job.grammar, text.job.stop)
            except Exception as error:  # a value that can't be made of it, or a validator's own mistake
                text.job.fail(error)
                return
        if count or result is not None:
            logprobs = output.token_logprobs[len(output.token_logprobs) - count :]
            likeliest = output.likeliest[max(len(output.likeliest) - count, 0) :]
            text.job.tell(Piece(row.number, written, moved.tokens, logprobs, likeliest, result, cut=cut))

    def _read(self, text: JobText, tokens: Sequence[int]) -> str:
        """The characters that some tokens complete."""
        return text.pieces.feed(b"".join(self._generator.vocabulary.token(token) for token in tokens))

    def _forget(self, text: JobText) -> None:
        with self._changed:
            assert text.number is not None
            del self._running[text.number]
            self._changed.notify_all()

    def _start_again(self, error: Exception, held: Sequence[JobText] | None) -> None:
        """Fails every text of this turn, or all where it had not begun; the next has a new cache."""
        with self._changed:
            told = self.texts if held is None else held
            self._running.clear()
            self._joining.clear()
            self._spoilt = True
        for text in told:
            text.job.fail(own_error(error, FAILED))
        with contextlib.suppress(Exception):  # then the next turn with texts tries again
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
        while not _leaving.is_set() and batch.turn():
            pass
    finally:
        batch.ended()
