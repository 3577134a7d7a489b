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

_BETWEEN = 50_000
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


def serve_from_here() -> None:
    """Collections for a process that serves from now on; it is called once, when all is loaded.

    What is there stays, and is not looked through again: that took a quarter of a second each time.  The next
    collections come after 50,000 new objects, for 700: a request with 300 tools makes 9,000, which are gone
    by their counts when it has its answer; looking through them took 1 ms of the time to its first token.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_BETWEEN, 20, 20)
