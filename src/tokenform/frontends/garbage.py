"""Python's collections of cyclic garbage, put off while a reader makes many objects.

Purpose: a collection looks at every object and lets no thread run meanwhile: 0.2 s in the middle of a large
grammar, of which lark makes a million of them, 60 ms in four thousand tools.  They are gone by their counts
when it is read.
Invariant: as soon as no reader is at work collections are on again if they were before, whatever came of it.
Rejected: `gc.freeze`, after which what other threads have made would never be collected.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_readers = 0
_were_on = False


@contextmanager
def collected_later() -> Iterator[None]:
    """No collection of cyclic garbage until the block, or the last of several at once, is left."""
    global _readers, _were_on
    with _lock:
        if not _readers:
            _were_on = gc.isenabled()
            gc.disable()
        _readers += 1
    try:
        yield
    finally:
        with _lock:
            _readers -= 1
            if not _readers and _were_on:
                gc.enable()
