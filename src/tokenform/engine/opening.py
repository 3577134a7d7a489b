"""Opens one model at a time, and each once: transformers' loaders are not thread-safe.

Purpose: `OPENING` is locked while a model is read, or a generator made; `opened_once` caches the results.
Invariant: concurrent calls get the same value, and a call with a cached value never waits.
Source: two `from_pretrained` at once leave weights out (huggingface/transformers#44940), or without memory.
Rejected: `functools.lru_cache` (it runs calls that miss at once side by side).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from tokenform.frontends.tools.cache import LruCache

OPENING = threading.RLock()
_Make = TypeVar("_Make", bound=Callable[..., Any])


def opened_once(most: int) -> Callable[[_Make], _Make]:
    """Caches the last values of a function of hashable arguments, but no errors and not None.

    Args:
        most: cached values; the least recently used leave first.
    """

    def of(make: _Make) -> _Make:
        values: LruCache[Any] = LruCache(most)

        @functools.wraps(make)
        def value(*key: Hashable) -> Any:
            found = values.get(key)
            if found is None:
                with OPENING:
                    found = values.get(key)
                    if found is None:
                        found = make(*key)
                        values.put(key, found)
            return found

        return value  # type: ignore[return-value]

    return of
