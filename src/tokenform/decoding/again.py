"""What a call says about texts that a type's own validators refuse: whether and how long to try again."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tokenform.errors import OptionError

TRIES, TURNS = 50, 3
"""Most attempts beside the first: by drawing, and by answering with what is wrong."""


@dataclass
class Again:
    """How refused texts are written again.

    Attributes:
        on_invalid, feedback, max_tries, max_seconds, stop: as `Generator.sample` has them.
        until: `time.monotonic()` at which nothing more is tried.
    """

    on_invalid: str = "resample"
    feedback: bool = False
    max_tries: int | None = None
    max_seconds: float | None = None
    stop: str | Sequence[str] = ()
    until: float = math.inf

    def __post_init__(self) -> None:
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise OptionError(f"max_seconds={self.max_seconds!r} is not possible; give a number above 0.")
        if self.feedback and self.on_invalid != "resample":
            raise OptionError(f'feedback=True writes texts again; on_invalid="{self.on_invalid}" does not.')

    def begin(self) -> None:
        """The time counts from now."""
        self.until = math.inf if self.max_seconds is None else time.monotonic() + self.max_seconds

    @property
    def tries(self) -> int:
        """Most attempts at a text beside the first."""
        return self.max_tries or (TURNS if self.feedback else TRIES)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.until
