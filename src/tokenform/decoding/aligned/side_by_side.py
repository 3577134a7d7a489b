"""Runs samplers of several prompts side by side, with one pass of the model a step.

Purpose: a sampler of whole texts is a plain loop that requests the distributions after some prefixes.  Each
prompt's loop has a thread of its own; a thread with a request waits until all others have one too, or have
ended, and then the requests are one call of the model.
Invariant: one thread runs at a time, so neither samplers nor their predicates and potentials need a lock; the
prefixes of a call have the order of the prompts.  A pass that fails is run again for each prompt alone, and
is the error of those for which it fails again.
Complexity: as many passes as the longest loop makes, where each prompt alone would have its own.
Rejected: samplers as coroutines (every call between the loop and the model would have to be one).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.errors import Interrupted

_Result = TypeVar("_Result")
Job = Callable[[LanguageModel], _Result]


def side_by_side(model: LanguageModel, jobs: Sequence[Job[_Result]]) -> list[_Result | BaseException]:
    """The result or error of each job; a single one runs in the caller's thread.

    Args:
        jobs: each is called with a model that shares the passes of `model` with the others.
    """
    if len(jobs) == 1:
        try:
            return [jobs[0](model)]
        except Exception as error:
            return [error]
    return _Table[_Result](model, len(jobs)).run(jobs)


class _Question(WrappedModel):
    """The model as one job asks it; its counts are of the job's own calls."""

    forwards = rows = 0

    def __init__(self, model: LanguageModel, ask: Callable[[_Question], Float], number: int) -> None:
        super().__init__(model)
        self._ask, self.number = ask, number
        self.prefixes: list[Tokens] = []
        self.answer: Float | BaseException | None = None

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        self.prefixes, self.answer = [tuple(prefix) for prefix in prefixes], None
        answer = self._ask(self)
        self.forwards += 1
        self.rows += len(set(self.prefixes))
        return answer


class _Table(Generic[_Result]):
    def __init__(self, model: LanguageModel, jobs: int) -> None:
        self._model, self._active, self._given_up = model, jobs, False
        self._turn = threading.Condition()
        self._questions: list[_Question] = []

    def run(self, jobs: Sequence[Job[_Result]]) -> list[_Result | BaseException]:
        results: list[_Result | BaseException] = [Interrupted("it was not run")] * len(jobs)

        def work(number: int) -> None:
            with self._turn:
                try:
                    results[number] = jobs[number](_Question(self._model, self._ask, number))
                except BaseException as error:
                    results[number] = error
                self._active -= 1
                self._answer()

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(jobs))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:  # the caller was interrupted: nobody waits for an answer any more
            self._given_up = True
            if any(thread.is_alive() for thread in threads):
                with self._turn:
                    self._turn.notify_all()
        return results

    def _ask(self, question: _Question) -> Float:
        self._questions.append(question)
        self._answer()
        self._turn.wait_for(lambda: question.answer is not None or self._given_up)
        if isinstance(question.answer, BaseException):
            raise question.answer
        if question.answer is None:
            raise Interrupted("the call was given up")
        return question.answer

    def _answer(self) -> None:
        """Asks the model, if nobody is left who may ask more."""
        if not self._questions or len(self._questions) < self._active:
            return
        questions, self._questions = sorted(self._questions, key=lambda one: one.number), []
        try:
            rows = self._model.logprobs([prefix for one in questions for prefix in one.prefixes])
        except Exception as error:
            for one in questions:
                one.answer = error if len(questions) == 1 else self._alone(one)
        else:
            ends = np.cumsum([len(one.prefixes) for one in questions])[:-1]
            for one, part in zip(questions, np.split(rows, ends), strict=True):
                one.answer = part.copy()
        self._turn.notify_all()

    def _alone(self, question: _Question) -> Float | Exception:
        try:
            return self._model.logprobs(question.prefixes)
        except Exception as error:
            return error
