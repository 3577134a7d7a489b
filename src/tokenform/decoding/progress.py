"""A progress bar for long batches, on standard error."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

LONG_BATCH = 8
"""Fewest texts for which a bar is shown by default."""


class Progress:
    """Counts finished texts and tokens.

    Args:
        total: texts.
        shown: True or False; None shows the bar from `LONG_BATCH` texts on, on a terminal.
    """

    def __init__(self, total: int, shown: bool | None = None) -> None:
        visible = shown if shown is not None else total >= LONG_BATCH and sys.stderr.isatty()
        self._tokens = 0
        self._bar: Bar | None = None
        if not visible:
            return
        self._bar = Bar(
            TextColumn("generating"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[tokens]} tokens{task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("", total=total, tokens=0, note="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, tokens: int = 0, texts: int = 0) -> None:
        """Adds tokens and finished texts."""
        self._tokens += tokens
        if self._bar is not None:
            self._bar.update(self._task, advance=texts, tokens=self._tokens)

    def trying(self, number: int, most: int) -> None:
        """A text that validators refused is written again."""
        if self._bar is not None:
            self._bar.update(self._task, note=f", refused: try {number} of {most}")
