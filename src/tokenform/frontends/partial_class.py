"""Instances of which not all fields are known: without their computed fields.

Purpose: a property that computes from fields fails, or lies, on those that are not there yet; pydantic asks
it whenever an instance is shown or dumped.
Invariant: a partial instance is one of the class; its computed fields are `UNKNOWN`, are not shown, and where
pydantic has a mark for what is missing (2.12), not dumped.
Rejected: asking the property and hiding its errors (`f"{first} {last}"` has none).
Complexity: a class for each class with computed fields, made once.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pydantic

if hasattr(pydantic, "MISSING"):  # from 2.14
    UNKNOWN: Any = pydantic.MISSING
else:
    try:
        from pydantic.experimental.missing_sentinel import MISSING as UNKNOWN
    except ImportError:  # before pydantic 2.12
        UNKNOWN = None

_MADE: WeakKeyDictionary[type, type] = WeakKeyDictionary()


def partial_class(cls: Any) -> Any:
    """The class of a partial instance: the class itself where it has no computed fields."""
    computed = getattr(getattr(cls, "__pydantic_decorators__", None), "computed_fields", None)
    if not computed:
        return cls
    if cls not in _MADE:
        _MADE[cls] = _made(cls, list(computed))
    return _MADE[cls]


def _made(cls: Any, computed: list[str]) -> Any:
    inside: dict[str, Any] = dict.fromkeys(computed, property(lambda self: UNKNOWN))

    def shown(self: Any) -> Iterator[tuple[Any, Any]]:
        return ((name, value) for name, value in cls.__repr_args__(self) if name not in computed)

    if hasattr(cls, "__repr_args__"):
        inside["__repr_args__"] = shown
    inside |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    kind: Any = type(cls)
    # not by pydantic's own metaclass, which would build a schema of it
    make = abc.ABCMeta.__new__ if issubclass(kind, abc.ABCMeta) else type.__new__
    return make(kind, cls.__name__, (cls,), {**inside, "__slots__": ()})
