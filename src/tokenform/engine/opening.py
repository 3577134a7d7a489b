"""Opens one model at a time, and each once: transformers' loaders are not thread-safe.

Purpose: `OPENING` is locked while a model is read, or a generator made; `opened_once` caches the results.
Invariant: concurrent calls get the same value, and a call with a cached value never waits.
Source: two `from_pretrained` at once leave weights out (huggingface/transformers#44940), or without memory.
Rejected: `functools.lru_cache` (it runs calls that miss at once side by side).
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

OPENING = threading.RLock()
_Make = TypeVar("_Make", bound=Callable[..., Any])


def opened_once(most: int) -> Callable[[_Make], _Make]:
    """Caches the last values of a function of hashable arguments, but no errors.

    Args:
        most: cached values; the least recently used leave first.
    """

    def of(make: _Make) -> _Make:
        values: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()
        lock = threading.Lock()

        def cached(key: tuple[Hashable, ...]) -> Any:
            with lock:
                if key not in values:
                    return _MISSING
                values.move_to_end(key)
                return values[key]

        def new(key: tuple[Hashable, ...]) -> Any:
            made = make(*key)
            with lock:
                values[key] = made
                while len(values) > most:
                    values.popitem(last=False)
            return made

        @functools.wraps(make)
        def value(*key: Hashable) -> Any:
            found = cached(key)
            if found is not _MISSING:
                return found
            with OPENING:
                found = cached(key)
                return new(key) if found is _MISSING else found

        return value  # type: ignore[return-value]

    return of


_MISSING = object()
