"""Soft constraints: log-scores of texts (reward models, critics, n-gram scores) as a factor of the target.

Invariant: only `complete` enters the target; `prefix` is a twist that steers particles and is divided out
when the text ends.  With `complete=None` the potential is a pure twist: the target stays what it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tokenform.decoding.aligned.predicate import call_all
from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.utf8 import split_characters
from tokenform.errors import OptionError, PredicateError


class Score:
    """`Potential` from Python functions that return log-scores (floats, -inf allowed, nan and +inf not).

    Args:
        complete: log-score of a finished text, or None for 0.
        prefix: provisional log-score of an unfinished text, or None for 0.
        log_bound: an upper bound of `complete`; exact rejection needs one.
        on: "text" (whole characters; an unfinished one is left out) or "bytes".
        batch: the functions get a list and return a list.
        name: goes into the fingerprint.
    """

    def __init__(
        self,
        complete: Callable[[Any], Any] | None = None,
        prefix: Callable[[Any], Any] | None = None,
        *,
        log_bound: float | None = None,
        on: str = "text",
        batch: bool = False,
        name: str | None = None,
    ) -> None:
        if complete is None and prefix is None:
            raise OptionError("a score needs a complete function, a prefix function, or both")
        if on not in ("text", "bytes"):
            raise OptionError(f"on is {on!r}; it must be 'text' or 'bytes'")
        self._complete, self._prefix = complete, prefix
        self.log_bound = 0.0 if complete is None else log_bound
        self.on, self.batch = on, batch
        names = [getattr(f, "__qualname__", repr(type(f))) for f in (complete, prefix)]
        self.fingerprint = name if name is not None else f"score({', '.join(names)})"

    def prefix(self, texts: Sequence[bytes]) -> Float:
        return self._scores(self._prefix, texts, "prefix score")

    def complete(self, texts: Sequence[bytes]) -> Float:
        out = self._scores(self._complete, texts, "complete score")
        if self.log_bound is not None and len(out) and out.max() > self.log_bound + 1e-12:
            raise PredicateError(
                f"the complete score returned {out.max():g}, above its log_bound {self.log_bound:g}"
            )
        return out

    def _scores(self, function: Callable[[Any], Any] | None, texts: Sequence[bytes], role: str) -> Float:
        if function is None or not texts:
            return np.zeros(len(texts))
        items = [split_characters(text)[0] or "" for text in texts] if self.on == "text" else list(texts)
        answers = np.array(
            [_number(a, role) for a in call_all(function, items, self.batch, role)], dtype=np.float64
        )
        return answers


def _number(answer: Any, role: str) -> float:
    try:
        value = float(answer)
    except (TypeError, ValueError):
        raise PredicateError(f"the {role} function returned {answer!r}; it must return a log-score") from None
    if math.isnan(value) or value == math.inf:
        raise PredicateError(f"the {role} function returned {value}; a log-score must be finite or -inf")
    return value
