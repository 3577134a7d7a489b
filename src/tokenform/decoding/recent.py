"""A dictionary with the entries that were added last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(OrderedDict[_Key, _Value]):
    """Drops the entry that was added first, or moved to the end least recently.

    Args:
        most: entries.

    Example:
        >>> from tokenform.decoding.recent import Recent
        >>> kept = Recent(2)
        >>> for number in range(3):
        ...     kept[number] = str(number)
        >>> list(kept)
        [1, 2]
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.popitem(last=False)
