"""What texts are written with: a model that travels as its name, opened once in each process.

Invariant: tasks of one model share what a process has opened, though each brings a `Generate` of its own; at
most `KEPT` are open.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from tokenform.engine.opening import OPENING
from tokenform.errors import ModelError, OptionError, TokenformError, extras

KEPT = 2
OPEN: dict[Any, Any] = {}
"""What this process has opened."""


def open_writer(model: Any, options: Mapping[str, Any], batch_size: int) -> Any:
    """What this process writes with: it has `sample`, as `Generator` has.

    Args:
        model: as `portable` gives it.
        options: of `Generator`, for a model by name.
    Raises:
        ModelError: it can't be opened.
    """
    key = model, repr(sorted(options.items())), batch_size
    with OPENING:
        if key not in OPEN:
            while len(OPEN) >= KEPT:
                OPEN.pop(next(iter(OPEN)))
            OPEN[key] = _opened(model, options, batch_size)
        return OPEN[key]


def portable(model: Any) -> Any:
    """The model as it is kept and travels: a name, a function, or an endpoint.

    Raises:
        OptionError: an object that can't travel.
    """
    if model is None or isinstance(model, str) or hasattr(model, "open_writer"):
        return model
    if isinstance(model, os.PathLike):
        return os.fspath(model)
    if inspect.isroutine(model) or isinstance(model, type) or hasattr(model, "func"):  # or a partial
        return model
    raise OptionError(
        f"a {type(model).__name__} can't travel to other processes; give a model's path or name, or a "
        "function that makes a Generator."
    )


def _opened(model: Any, options: Mapping[str, Any], batch_size: int) -> Any:
    if hasattr(model, "open_writer"):
        return model.open_writer()
    if callable(model):
        made = _made(model)
        if not hasattr(made, "sample"):
            raise ModelError(f"{name_of(model)} made a {type(made).__name__}; it has to make a Generator.")
        return made
    with extras():
        from tokenform.integrations.generation import Generator
    return Generator(model, **{"drafter": None, "batch_size": batch_size, **options})


def _made(model: Callable[[], Any]) -> Any:
    try:
        return model()
    except TokenformError:
        raise
    except Exception as error:
        raise ModelError(f"{name_of(model)} failed: {type(error).__name__}: {error}") from error


def name_of(model: Any) -> str:
    """The model's name; of a function its module and name."""
    if callable(model):
        inner = getattr(model, "func", model)  # of a partial
        return f"{inner.__module__}:{inner.__qualname__}"
    return "builtin" if model is None else str(model)
