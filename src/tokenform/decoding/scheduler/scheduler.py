"""Continuous batching: calls of many threads share the forward passes of one model.

Purpose: `submit` from any thread; the texts of all calls run as one ragged batch, which each joins as soon as
there is room and leaves as soon as it has ended.
Invariant: a text with a seed is the one that `Generator.sample` writes alone (up to the model's rounding).  A
call that fails, is cancelled or whose listener raises costs itself alone.
Memory: `waiting` texts at most wait beside the `batch_size` that run; more are refused (`Busy`).
Threads: one for the batch, and `jobs` for faithful samplers, all of which live while there is work.
Source: Yu et al. 2022 (Orca), "iteration-level scheduling".

    scheduler = Scheduler(tf.Generator())
    job = scheduler.submit("The parcel 4821 is paid.", schema, seed=0, listener=print)
    (result,) = job.result()
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.decoding.calls import (
    DEFAULT_MAX_TOKENS,
    AnySampler,
    Constraint,
    check_counts,
    ending_at,
    pair,
    seeds_of,
    texts_of,
)
from tokenform.decoding.draws import Transform
from tokenform.decoding.generator import Generator
from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.results import Result
from tokenform.decoding.scheduler.batch import JobText, RunningBatch
from tokenform.decoding.scheduler.jobs import Job, Listener, Load, Piece
from tokenform.decoding.scheduler.queue import JobQueue
from tokenform.decoding.speculative.targets import Penalties
from tokenform.decoding.thinking import Thinking
from tokenform.decoding.tracing import traced_job
from tokenform.decoding.weighted import weighted
from tokenform.engine import Limits
from tokenform.errors import Interrupted, OptionError, TokenformError


class Scheduler(JobQueue):
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
        check_counts(batch_size=size)
        super().__init__(waiting=waiting, jobs=jobs)
        self.generator, self.batch_size = generator, size
        self._batch = RunningBatch(generator, size, self._changed)

    @traced_job
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
        logprobs: bool = True,
        drafter: Any = None,
        companion_prompt: Any = None,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        owner: Hashable = None,
        listener: Listener | None = None,
    ) -> Job:
        """Starts the texts of one prompt; compiles its grammar, first mask included, in the caller's thread.

        Args:
            prompt, grammar, n, seed, max_tokens, sampler, stop: as for `Generator.sample`, for one prompt.
            penalties, transforms: as for `Generator`, for these texts.
            alternatives: how many of the model's likeliest tokens to tell at each token.
            logprobs: whether the tokens' log-probabilities are told.  Without, where the constraint allows
                few tokens only their logits are computed, which over a large vocabulary is most of a step.
            drafter: guesses tokens of these texts, in place of the generator's; it changes no text.
            companion_prompt: what the mixture's companion reads in place of the prompt.
            thinking, chat_options: as for `Generator.sample`.
            limits: of the grammar's automaton; None: as it is for the process.
            owner: owners take turns.
            listener: is told each piece, in the batch's thread: it must not wait.  Faithful samplers tell
                whole texts.
        Raises:
            Busy: too many texts wait, or the scheduler is closed.
            DrafterError: the drafter can't be used with this generator.
            BudgetTooSmall, PromptTooLong, OptionError, ModelError, SamplingError, VocabularyError.
        """
        check_counts(n=n, max_tokens=max_tokens)
        with self._changed:
            self._refuse(n)
        (prompt, *_), (constraint, *_), batched = pair(prompt, ending_at(stop, grammar))
        if batched:
            raise OptionError("a job has one prompt and one grammar, not a list of either.")
        chosen = self.generator.chosen(sampler)
        (seed,) = seeds_of(seed, 1)
        job = Job(constraint, stop, owner, listener, n)
        if isinstance(chosen, AlignedSampler):
            if penalties is not None or transforms or alternatives or drafter is not None:
                told = "penalties, transforms, alternatives and drafters are not for"
                raise OptionError(f"{told} {type(chosen).__name__}.")
            asked: Any = {"thinking": thinking, "chat_options": chat_options}
            return self._whole(job, chosen, prompt, constraint, max_tokens, seed, asked)
        if drafter is not None:
            self._batch.decoder.check_own(drafter)
        rows = self.generator.rows(
            prompt, constraint, n, seed, max_tokens, companion_prompt,
            limits=limits, thinking=thinking, chat_options=chat_options,
        )  # fmt: skip
        job.prompt_tokens = len(rows[0].prompt)
        texts = [JobText(job, row, TextPieces(texts_of(job.stop))) for row in rows]
        distribution = self._batch.decoder.distribution(chosen, transforms, penalties)
        for row in rows:
            row.sampler, row.drafter = distribution, drafter
            row.alternatives, row.logprobs = alternatives, logprobs or alternatives > 0
        with contextlib.suppress(TokenformError):  # the batch meets it again, and fails this job
            first = rows[0]  # here, not between the tokens of the texts that run
            for automaton in [first.automaton, *([] if first.lead is None else [first.lead.automaton])]:
                automaton.mask(automaton.start)
        with self._changed:
            self._refuse(n)
            self._batch.enter(owner, texts)
        job.future.add_done_callback(self._left)
        if rows[0].hints is not None:  # while the model reads the prompt: no first token needs them
            with contextlib.suppress(TokenformError):
                rows[0].hints.prepare()
        return job

    def _whole(
        self,
        job: Job,
        chosen: AlignedSampler,
        prompt: Any,
        constraint: Constraint,
        max_tokens: int,
        seed: int | None,
        asked: dict[str, Any],
    ) -> Job:
        """Starts the texts of a faithful sampler; `asked`: how the prompt is written."""
        generator = self.generator
        job.prompt_tokens = len(generator.prompt_ids(prompt, constraint, **asked))
        # refused here and not later: what the prompt or the grammar can't have
        generator.problem(prompt, constraint, max_tokens=max_tokens, sampler=chosen)

        def work() -> None:
            results = weighted(
                generator, chosen, prompt, constraint, job.expected, seed,
                model=_Asked(generator.language_model(), job.future), max_tokens=max_tokens, **asked,
            )  # fmt: skip
            job.expected = len(results)
            for number, one in enumerate(results):
                if one.thought is not None:
                    job.tell(Piece(number, one.thought.text, one.thought.tokens, [], [], thought=True))
                job.tell(Piece(number, one.text, list(one.tokens), [], [], one, cut=one.cut_at))

        with self._changed:
            self._refuse(1)
            self._enter(job, work)
        return job

    # -- under the lock

    def _texts_load(self) -> Load:
        return self._batch.load

    def _room(self) -> int:
        return self.batch_size - self._batch.load.running

    def _begun(self) -> set[Job]:
        return {*(text.job for text in self._batch.texts), *super()._begun()}

    def _idle(self) -> bool:
        return self._batch.idle and super()._idle()

    def _left(self, future: Future[list[Result]]) -> None:
        """A job has ended, perhaps before its texts: the thread looks which are to be dropped."""
        with self._changed:
            self._changed.notify_all()


class _Asked(WrappedModel):
    """A language model that is not asked any more once nobody wants the answer."""

    def __init__(self, model: LanguageModel, future: Future[list[Result]]) -> None:
        super().__init__(model)
        self._future = future

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        if self._future.done():
            raise Interrupted("the job was cancelled.")
        return super().logprobs(prefixes)
