"""JSON Pointers (RFC 6901): places in schemas and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def escaped(part: str | int) -> str:
    """A key or a number as a step of a pointer."""
    return str(part).replace("~", "~0").replace("/", "~1")


def pointer_of(path: Iterable[str | int]) -> str:
    return "".join(f"/{escaped(part)}" for part in path)


def pointed(whole: Any, pointer: str) -> Any:
    """What stands at a pointer; a LookupError has the step that leads nowhere."""
    at = whole
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdecimal() and int(key) < len(at):
            at = at[int(key)]
        else:
            raise LookupError(key)
    return at
