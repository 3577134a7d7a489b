"""Continuous batching: calls of many threads share the forward passes of one model.

Purpose: `submit` from any thread; the texts of all calls run as one ragged batch.  A text joins as soon as a
place is free and leaves as soon as it has ended.
Invariant: a text with a seed is the one that `Generator.sample` writes alone (up to the model's rounding).  A
call that fails, is cancelled or whose listener raises affects no other.
Memory: at most `waiting` texts wait beside the `batch_size` that run; more are refused (`Busy`).
Threads: one for the batch, and `jobs` for faithful samplers; they live while there is work.
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
)
from tokenform.decoding.draws import Transform
from tokenform.decoding.generator import Generator
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
        stop: str | Sequence[str] | None = (),
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
            alternatives: how many of the model's likeliest tokens to report at each token.
            logprobs: whether to report the tokens' log-probabilities.  Without them, where the constraint
                allows few tokens only their logits are computed; over a large vocabulary that saves most of
                a step.
            drafter: proposes tokens of these texts, in place of the generator's; it changes no text.
            companion_prompt: what the mixture's companion reads in place of the prompt.
            thinking, chat_options: as for `Generator.sample`.
            limits: of the grammar's automaton; None: the process's limits.
            owner: the texts of different owners take turns.
            listener: called with each piece in the batch's thread; it must not wait.  Faithful samplers give
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
        job = Job(constraint, owner, listener, n)
        if isinstance(chosen, AlignedSampler):
            if penalties is not None or transforms or alternatives or drafter is not None:
                options = "penalties, transforms, alternatives and drafters are not for"
                raise OptionError(f"{options} {type(chosen).__name__}.")
            prompt_options: Any = {"thinking": thinking, "chat_options": chat_options}
            return self._submit_sampler(
                job, chosen, prompt, constraint, max_tokens, seed, stop, prompt_options
            )
        if drafter is not None:
            self._batch.decoder.check_own(drafter)
        rows = self.generator.rows(
            prompt, constraint, n, seed, max_tokens, companion_prompt,
            limits=limits, stop=stop, thinking=thinking, chat_options=chat_options,
        )  # fmt: skip
        job.prompt_tokens = len(rows[0].prompt)
        texts = [JobText(job, row, row.pieces()) for row in rows]
        distribution = self._batch.decoder.distribution(chosen, transforms, penalties)
        for row in rows:
            row.sampler, row.drafter = distribution, drafter
            row.alternatives, row.logprobs = alternatives, logprobs or alternatives > 0
        with contextlib.suppress(TokenformError):  # the batch raises it again, and fails this job
            first = rows[0]  # here, not between the tokens of the texts that run
            for automaton in [
                first.automaton,
                *([] if first.preamble is None else [first.preamble.automaton]),
            ]:
                automaton.mask(automaton.start)
        with self._changed:
            self._refuse(n)
            self._batch.enter(owner, texts)
        job.future.add_done_callback(self._job_ended)
        if rows[0].hints is not None:  # while the model reads the prompt: no first token needs them
            with contextlib.suppress(TokenformError):
                rows[0].hints.prepare()
        return job

    def _submit_sampler(
        self,
        job: Job,
        chosen: AlignedSampler,
        prompt: Any,
        constraint: Constraint,
        max_tokens: int,
        seed: int | None,
        stop: str | Sequence[str] | None,
        prompt_options: dict[str, Any],
    ) -> Job:
        """Starts the texts of a faithful sampler; `prompt_options`: for `Generator.prompt_ids`."""
        generator = self.generator
        job.prompt_tokens = len(generator.prompt_ids(prompt, constraint, **prompt_options))
        # refused here and not later: what the prompt or the grammar can't have
        generator.problem(prompt, constraint, max_tokens=max_tokens, sampler=chosen)

        def work() -> None:
            results = weighted(
                generator, chosen, prompt, constraint, job.expected, seed,
                model=_CancellableModel(generator.language_model(), job.future), max_tokens=max_tokens,
                stop=stop, **prompt_options,
            )  # fmt: skip
            job.expected = len(results)
            for number, one in enumerate(results):
                if one.thought is not None:
                    job.tell(Piece(number, one.thought.text, one.thought.tokens, [], [], thought=True))
                job.tell(Piece(number, one.text, list(one.tokens), [], [], one, cut=one.cut_at))

        with self._changed:
            self._refuse(1)
            self._start(job, work)
        return job

    # -- under the lock

    def _texts_load(self) -> Load:
        return self._batch.load

    def _free_places(self) -> int:
        return self.batch_size - self._batch.load.running

    def _active_jobs(self) -> set[Job]:
        return {*(text.job for text in self._batch.texts), *super()._active_jobs()}

    def _idle(self) -> bool:
        return self._batch.idle and super()._idle()

    def _job_ended(self, future: Future[list[Result]]) -> None:
        """A job has ended, perhaps before its texts: the thread drops those."""
        with self._changed:
            self._changed.notify_all()


class _CancellableModel(WrappedModel):
    """A language model that stops when its job has ended."""

    def __init__(self, model: LanguageModel, future: Future[list[Result]]) -> None:
        super().__init__(model)
        self._future = future

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        if self._future.done():
            raise Interrupted("the job was cancelled.")
        return super().logprobs(prefixes)
