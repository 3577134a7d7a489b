"""The adapter protocol: what a decoding loop asks of an engine, and nothing else.

Purpose: time and judge every engine through the same few calls.
Invariant: an adapter adds no work of its own between a clock reading and the engine: `fill` and `advance` are
the engine's bound methods where it has such, and at most one Python frame where state must be kept.
Rejected: a common superclass with a generic mask format; each engine writes the bit mask that its own users
read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class EngineMissing(RuntimeError):
    """The engine's package isn't installed."""


class EngineRefused(RuntimeError):
    """The engine refuses the constraint at compile time, and says so."""


def spoken(dialects: dict[str, str], language: str) -> str:
    """The grammar's text in a language.

    Raises:
        EngineRefused: it isn't there.
    """
    if language not in dialects:
        raise EngineRefused(f"reads {language}, the grammar is in {', '.join(dialects)}")
    return dialects[language]


@dataclass(frozen=True)
class EngineOptions:
    """The options that engines share, in tokenform's terms; an engine without one ignores it.

    Attributes:
        order: "declared" or "any".
        whitespace, numbers, strings: as `json_schema` names them.
        None, of any: the engine's own default.
    """

    order: str | None = "declared"
    whitespace: str | None = "any"
    numbers: str | None = "canonical"
    strings: str | None = "canonical"


OWN = EngineOptions(None, None, None, None)
"""Every engine as it comes."""


@dataclass
class Session:
    """One text being written.

    Attributes:
        row: uint32[ceil(V/32)]; `fill()` writes the mask of the present state into it, bit t%32 of word
        t//32.
        fill: compute and write the mask.
        advance: take a token; False, or an exception, where the engine refuses it.
        fits: (token, left) -> may the text still be completed within `left` tokens, this one included?  None
        where
            the engine keeps no budget.
        fill_within: (left) -> write the mask of the tokens after which it may; None likewise.
    """

    row: NDArray[np.uint32]
    fill: Callable[[], Any]
    advance: Callable[[int], Any]
    fits: Callable[[int, int], bool] | None = None
    fill_within: Callable[[int], Any] | None = None

    def allows(self, token: int) -> bool:
        """Whether the mask that was filled last has the token."""
        return bool(int(self.row[token >> 5]) >> (token & 31) & 1)


class Compiled(Protocol):
    """A constraint that was compiled; sessions of it share whatever the engine shares."""

    def session(self) -> Session: ...


class Engine(Protocol):
    """An engine with a vocabulary in place.  The constructor takes (vocabulary, options)."""

    name: str
    version: str

    def json_schema(self, schema: Any) -> Compiled:
        """Compile; EngineRefused where the engine says no."""
        ...

    def grammar(self, dialects: dict[str, str]) -> Compiled:
        """Compile a context-free grammar given in several dialects: "lark", "ebnf"."""
        ...
