"""Python predicates on prefixes and whole texts as a constraint: type checkers, simulators, backreferences.

Invariants: a predicate sees whole UTF-8 characters only, unless it asked for bytes or tokens; a token that
leaves half a character is judged by the text before it and by whether the half can become a character.  The
same text is asked about once (per cache).  A state is the text itself, so tokenisations of one text share
verdicts.

The prefix predicate must not refuse a prefix of an accepted text: it may accept too much, never too little.

Complexity: one predicate call for each new (state, token) that a sampler checks; `batch=True` hands all of
them over in one list.  Rejected: asking the complete predicate about each prefix, which is wrong for most
languages.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, cast

import numpy as np

from tokenform.decoding.aligned.protocols import Bools, Ids, State
from tokenform.decoding.aligned.utf8 import split_characters
from tokenform.decoding.recent import Recent
from tokenform.errors import OptionError, PredicateError

Verdicts = Callable[[Any], Any]


class Predicate:
    """`Constraint` from Python functions.

    Args:
        token_bytes: the bytes of every token id.
        eos: ids that end a text; they and `excluded` never count as content.
        prefix: may this be the beginning of an accepted text?  None accepts every beginning.
        complete: is this an accepted text?  None accepts whatever `prefix` accepts.
        on: what the functions get: "text" (str, whole characters), "bytes", or "tokens" (tuple of ids).
        batch: the functions get a list and return a list of bools of the same length.
        cache: number of verdicts kept, for each function.
        excluded: ids that may never appear (special tokens).
        name: goes into the fingerprint; defaults to the functions' qualified names.

    The functions may be `async`; calls of one batch then run concurrently.
    Raises PredicateError if a function raises, or returns no bool.
    """

    exact = False

    def __init__(
        self,
        token_bytes: Sequence[bytes],
        eos: Sequence[int],
        prefix: Verdicts | None = None,
        complete: Verdicts | None = None,
        *,
        on: Literal["text", "bytes", "tokens"] = "text",
        batch: bool = False,
        cache: int = 1 << 16,
        excluded: Sequence[int] = (),
        name: str | None = None,
    ) -> None:
        if prefix is None and complete is None:
            raise OptionError("a predicate needs a prefix function, a complete function, or both")
        if on not in ("text", "bytes", "tokens"):
            raise OptionError(f"on is {on!r}; it must be 'text', 'bytes' or 'tokens'")
        self.token_bytes = token_bytes
        self.on = on
        self.start: State = () if on == "tokens" else b""
        self._prefix = _Judge(prefix, batch, cache, "prefix")
        self._complete = _Judge(complete if complete is not None else prefix, batch, cache, "complete")
        barred = {*eos, *excluded}
        usable = [
            t
            for t, spelled in enumerate(token_bytes)
            if t not in barred and (on == "tokens" or len(spelled) > 0)
        ]
        self._content: Ids = np.array(usable, dtype=np.int64)
        names = [getattr(f, "__qualname__", repr(type(f))) for f in (prefix, complete)]
        self.fingerprint = name if name is not None else f"predicate({', '.join(names)}, on={on})"

    @property
    def evaluations(self) -> int:
        """Verdicts that were asked of the functions; answers from the cache don't count."""
        return self._prefix.calls + self._complete.calls

    def advance(self, state: State, token: int) -> State:
        if isinstance(state, tuple):
            return (*state, token)
        return cast(bytes, state) + self.token_bytes[token]

    def candidates(self, states: Sequence[State]) -> list[Ids]:
        return [self._content] * len(states)

    def check(self, states: Sequence[State], tokens: Sequence[int]) -> Bools:
        return self._judge(
            self._prefix, [self.advance(s, t) for s, t in zip(states, tokens, strict=True)], whole=False
        )

    def accepts(self, states: Sequence[State]) -> Bools:
        return self._judge(self._complete, list(states), whole=True)

    def distance(self, state: State, within: int | None = None) -> int:
        return 0

    def within(self, state: State, ids: Ids, remaining: int) -> Ids:
        return ids

    def _judge(self, judge: _Judge, states: list[State], *, whole: bool) -> Bools:
        if self.on != "text":
            return judge(states)
        out = np.zeros(len(states), dtype=np.bool_)
        texts: dict[int, str] = {}
        for i, state in enumerate(states):
            text, rest = split_characters(cast(bytes, state))
            if text is not None and not (whole and rest):
                texts[i] = text
        if texts:
            out[list(texts)] = judge(list(texts.values()))
        return out


class _Judge:
    """One function with its cache, batching and error reports."""

    def __init__(self, function: Verdicts | None, batch: bool, cache: int, role: str) -> None:
        self.function, self.batch, self.role = function, batch, role
        self.calls = 0
        self._known: Recent[Any, bool] = Recent(cache)

    def __call__(self, items: list[Any]) -> Bools:
        if self.function is None:
            return np.ones(len(items), dtype=np.bool_)
        fresh = [item for item in dict.fromkeys(items) if item not in self._known]
        verdicts = dict(zip(fresh, self._ask(fresh), strict=True)) if fresh else {}
        out = np.array(
            [verdicts[item] if item in verdicts else self._known[item] for item in items], dtype=np.bool_
        )
        self._known.update(verdicts)
        return out

    def _ask(self, items: list[Any]) -> list[bool]:
        self.calls += len(items)
        answers = call_all(self.function, items, self.batch, self.role)
        for item, answer in zip(items, answers, strict=True):
            if not isinstance(answer, (bool, np.bool_)):
                message = f"the {self.role} predicate returned {answer!r} for {item!r}"
                raise PredicateError(f"{message}; it must return True or False")
        return list(map(bool, answers))


def call_all(function: Any, items: list[Any], batch: bool, role: str) -> list[Any]:
    """The function's answers, called once for each item or once for all, awaited where it is async."""
    try:
        answers = [function(items)] if batch else [function(item) for item in items]
        if any(inspect.isawaitable(answer) for answer in answers):
            answers = _await_all(answers)
    except Exception as error:
        raise PredicateError(f"the {role} function raised {type(error).__name__}: {error}") from error
    result = list(answers[0]) if batch else answers
    if len(result) != len(items):
        raise PredicateError(f"the {role} function got {len(items)} items and returned {len(result)} answers")
    return result


def _await_all(awaitables: list[Any]) -> list[Any]:
    async def gather() -> list[Any]:
        return list(await asyncio.gather(*awaitables))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(gather())
    # a loop is running in this thread: it can't be waited for from inside, so another thread runs its own
    with ThreadPoolExecutor(1) as another:
        return another.submit(asyncio.run, gather()).result()
