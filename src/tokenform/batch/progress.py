"""How far a long run is: a bar with rate and time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType

_LINE_SECONDS = 15.0


class Meter:
    """Counts steps; a context manager.  The rate counts the steps of this start alone, not those resumed.

    Args:
        name: what is counted.
        total, done: all steps, and those that earlier starts did.
        quiet: show nothing.
    """

    def __init__(self, name: str, total: int, done: int, quiet: bool) -> None:
        self._name, self._total, self._done, self._before = name, total, done, done
        self._quiet = quiet or total == done
        self._kinds: Counter[str] = Counter()
        self._begun = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> Meter:
        if self._before and not self._quiet:
            print(f"{self._before} of {self._total} {self._name} were done before; going on", file=sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._quiet:
            self._show(end="\n")

    def step(self, kind: str) -> None:
        """One more step, which ended as `kind`."""
        self._done += 1
        self._kinds[kind] += 1
        now = time.monotonic()
        if not self._quiet and now - self._shown > (0.2 if self._terminal else _LINE_SECONDS):
            self._shown = now
            self._show(end="" if self._terminal else "\n")

    def line(self) -> str:
        """The present state in words."""
        seconds = max(time.monotonic() - self._begun, 1e-9)
        rate = (self._done - self._before) / seconds
        left = f"{_duration((self._total - self._done) / rate)} left" if rate else "-"
        kinds = "  ".join(f"{kind} {n}" for kind, n in self._kinds.most_common())
        share = 100 * self._done // max(self._total, 1)
        return f"{self._name} {self._done}/{self._total} ({share} %)  {rate:.2f}/s  {left}  {kinds}"

    def _show(self, end: str) -> None:
        filled = 24 * self._done // max(self._total, 1)
        bar = f"\r[{'#' * filled}{'.' * (24 - filled)}] " if self._terminal else ""
        clear = "\x1b[K" if self._terminal else ""
        print(f"{bar}{self.line()}{clear}", end=end, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
