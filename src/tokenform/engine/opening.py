"""One model is opened at a time, and each once: transformers' loaders are not made for several threads.

Purpose: `OPENING` is held while a model is read, or a generator made; `opened_once` keeps what was made.
Invariant: calls at once get the same value, and a call for what is there waits for nobody.
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
    """Keeps the last values of a function of hashable arguments; what raises is not kept.

    Args:
        most: values that are kept, the least recently used leave first.
    """

    def of(make: _Make) -> _Make:
        kept: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()
        looking = threading.Lock()

        def held(key: tuple[Hashable, ...]) -> Any:
            with looking:
                if key not in kept:
                    return _MISSING
                kept.move_to_end(key)
                return kept[key]

        def new(key: tuple[Hashable, ...]) -> Any:
            made = make(*key)
            with looking:
                kept[key] = made
                while len(kept) > most:
                    kept.popitem(last=False)
            return made

        @functools.wraps(make)
        def value(*key: Hashable) -> Any:
            known = held(key)
            if known is not _MISSING:
                return known
            with OPENING:
                known = held(key)
                return new(key) if known is _MISSING else known

        return value  # type: ignore[return-value]

    return of


_MISSING = object()
