"""Writing texts with a model under engines' masks, in lockstep, and timing them.

Purpose: one decoding loop for all engines, so that what differs between them is the engine alone.
Invariant: a token is drawn from the model's logits under the engine's mask; the text ends at an EOS token, or
is cut at `max_tokens` where the engine keeps no budget. An engine whose mask is empty, or that refuses a
token of its own mask, has failed.
The processor's seconds are those of the passes, as `passes` charges them, and of the engine's own calls.
Complexity: one forward pass a token for all texts, through the key-value cache.
Rejected: each engine's own generation loop (their overheads beside the masks would be compared instead).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tokenform.masking import apply_mask_
from tokenform_bench.engines import Session
from tokenform_bench.evaluate.passes import Pass, Passes

_EVERYTHING = 0xFFFFFFFF  # a word of the mask of no constraint: at the limit such a text is cut


class EngineFailed(RuntimeError):
    """The engine broke off a text: an empty mask, or a token refused that its mask had."""


@dataclass
class Written:
    """A text and its times.

    Attributes:
        first_token_s: seconds from the beginning of `write` to the first token.
        model_s: seconds in forward passes.
        step_ns: nanoseconds of mask + advance for each token.
        finished: ended by an EOS token.
        nats: minus the log-probability of the text under the model without a constraint, its EOS included.
        mass: log of the probability that the masks allowed, summed over the steps.
        draws: how many steps these are.
        cpu_s: the processor's seconds.
    """

    tokens: list[int] = field(default_factory=list)
    first_token_s: float = 0.0
    model_s: float = 0.0
    step_ns: list[int] = field(default_factory=list)
    forwards: int = 0
    finished: bool = False
    nats: float = 0.0
    mass: float = 0.0
    draws: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Task:
    """A text to be written.

    Attributes:
        prompt: ids.
        session: of the engine, at the beginning of a text.
        max_tokens: most tokens of the text.
        seed: of the draws.
    """

    prompt: tuple[int, ...]
    session: Session
    max_tokens: int
    seed: int


@torch.inference_mode()
def write(
    passes: Passes, tasks: Sequence[Task], eos: int, size: int, temperature: float
) -> list[Written | Exception]:
    """Write the texts in lockstep.

    Returns:
        the texts; in the place of one whose engine got stuck, what it raised.
    """
    made: list[Written | Exception] = [EngineFailed("not begun")] * len(tasks)
    writers = [
        _Writer(task.session, eos, size, temperature, torch.Generator().manual_seed(task.seed))
        for task in tasks
    ]
    steps = {number: writer.steps(tasks[number].max_tokens) for number, writer in enumerate(writers)}
    answers: dict[int, Pass | None] = dict.fromkeys(steps)
    while steps:
        for number, answer in answers.items():
            try:
                steps[number].send(answer)  # type: ignore[arg-type]
                continue
            except StopIteration as ended:
                made[number] = ended.value
            except Exception as error:  # an engine's own, in the middle of a text
                made[number] = error
            del steps[number]
        begun = {number: (tasks[number].prompt, tuple(writers[number].written.tokens)) for number in steps}
        known = passes.after(begun.values())
        answers = {number: known[text] for number, text in begun.items()}
    return made


@dataclass
class _Writer:
    """One text on its way."""

    session: Session
    eos: int
    size: int
    temperature: float
    draw: torch.Generator
    written: Written = field(default_factory=Written)
    spent: int = 0

    def steps(self, max_tokens: int) -> Generator[None, Pass, Written]:
        """Asks for the pass after `written.tokens`, again and again, until the text has ended."""
        written, session = self.written, self.session
        mask = torch.from_numpy(session.row.view("int32"))
        budgeted = _fits_at_all(session, max_tokens)
        for left in range(max_tokens, -1, -1):
            self.spent = 0
            if left == 0:
                self._timed(session.fill)
                written.step_ns.append(self.spent)
                written.finished = session.allows(self.eos) and bool((session.row != _EVERYTHING).any())
                return written
            made = yield
            logits = self._counted(made)
            self._timed(session.fill)
            token = self._chosen(logits, mask, left if budgeted else None)
            if not written.tokens:
                written.first_token_s = written.model_s + self.spent / 1e9
            if token == self.eos:
                written.step_ns.append(self.spent)
                written.finished = True
                return written
            if self._timed(session.advance, token) is False:
                raise EngineFailed(
                    f"advance refuses token {token}, which the mask has, after {len(written.tokens)} tokens"
                )
            written.step_ns.append(self.spent)
            written.tokens.append(token)
        return written

    def _counted(self, made: Pass) -> torch.Tensor:
        self.written.model_s += made.seconds
        self.written.cpu_s += made.cpu_seconds
        self.written.forwards += 1
        return made.logits[:, : self.size].double().cpu()

    def _timed(self, call: Callable[..., Any], *given: Any) -> Any:
        """One call of the engine, on its account."""
        started, cpu = time.perf_counter_ns(), time.process_time()
        answer = call(*given)
        self.spent += time.perf_counter_ns() - started
        self.written.cpu_s += time.process_time() - cpu
        return answer

    def _chosen(self, logits: torch.Tensor, mask: torch.Tensor, left: int | None) -> int:
        """The next token: that of the mask, or of the mask within the budget where it would burst it."""
        session = self.session
        masked = apply_mask_(logits.clone(), mask.unsqueeze(0))
        token = self._drawn(masked)
        if token != self.eos and left is not None and not self._timed(session.fits, token, left):  # type: ignore[arg-type]
            self._timed(session.fill_within, left)  # type: ignore[arg-type]
            masked = apply_mask_(logits.clone(), mask.unsqueeze(0))
            token = self._drawn(masked)
        free = torch.logsumexp(logits, -1)
        self.written.nats += float(free - logits[0, token])
        self.written.mass += float(torch.logsumexp(masked, -1) - free)
        self.written.draws += 1
        return token

    def _drawn(self, masked: torch.Tensor) -> int:
        """A token of the masked distribution at the temperature; greedy at 0."""
        if masked.max() == -torch.inf:
            raise EngineFailed("the mask is empty")
        if self.temperature == 0:
            return int(masked.argmax())
        return int(torch.multinomial(torch.softmax(masked[0] / self.temperature, -1), 1, generator=self.draw))


def _fits_at_all(session: Session, max_tokens: int) -> bool:
    """Whether the engine keeps a budget and some complete text is within it; else a text may be cut."""
    if session.fits is None or session.fill_within is None:
        return False
    session.fill_within(max_tokens)
    return bool(session.row.any())
