"""A cache of what definitions were read as, by their texts, bounded in bytes.

Purpose: an agent has the same tools at every turn.  A definition that comes again is not read again; the same
list with the same options gives the same grammar object, with the masks that it has.
Invariant: a key is a number that stands for the definition's whole JSON text, so a result is never given for
another definition.  What is no plain JSON (types, functions, generators) has no key.  What raised is not
cached.
Complexity: a lookup walks the definitions, and writes the JSON text of those that did not come in this order
before: less than a microsecond a tool.
Memory: a result weighs up to `WEIGHT` times its text (17 kB a tool in Gemma 4's format, 3 in Hermes');
automata have their own limits.
Rejected: the identity of the list (its owner may change it); a sum of hashes (two lists may have the same).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from tokenform import _core
from tokenform.errors import TokenformError

WEIGHT = 80
# Tools, by their definitions; bytes of these.
TOOLS = _core.KeptTools((96 << 20) // WEIGHT)
_Made = TypeVar("_Made")


def text_of(value: Any) -> str | None:
    """The JSON text of plain lists, mappings, texts, numbers; None: it is none, or too long."""
    if not isinstance(value, dict | list | tuple):
        return None
    try:
        return _core.json_text(value)
    except TokenformError:
        return None


class LruCache(Generic[_Made]):
    """The values that were used last.

    Args:
        most: weight of all of them: their number, or what `put` is told.
    """

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._values: OrderedDict[Hashable, tuple[_Made, int]] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable) -> _Made | None:
        """The value of the key, if it is there."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: _Made, weight: int = 1) -> None:
        """Adds a value, unless it alone exceeds the limit."""
        if weight > self._most:
            return
        with self._lock:
            before = self._values.pop(key, None)
            self._weight += weight - (before[1] if before else 0)
            self._values[key] = value, weight
            while self._weight > self._most:
                _, (_, lighter) = self._values.popitem(last=False)
                self._weight -= lighter

    def setdefault(self, key: Hashable, value: _Made) -> _Made:
        """The value of the key; where there is none, it is this one."""
        with self._lock:
            found = self.get(key)
            if found is None:
                self.put(key, value)
            return value if found is None else found

    def clear(self) -> None:
        """Removes everything."""
        with self._lock:
            self._values.clear()
            self._weight = 0
