"""Old names of drafters, which warn."""

from __future__ import annotations

from tokenform.errors import warn_outside

from .suffix import Suffix


class Input(Suffix):
    """`Suffix`: it copies the prompt as it copies what was written (4.14 tokens a pass on edited schemas; a
    pointer through the prompt had 3.99)."""

    def __init__(self, tokens: int = 64, anchor: int = 2, span: tuple[int, int] | None = None) -> None:
        warn_outside(
            "Input() is Suffix(remember=False) now; anchor= and span= have no effect.", DeprecationWarning
        )
        super().__init__(tokens=tokens, remember=False)
