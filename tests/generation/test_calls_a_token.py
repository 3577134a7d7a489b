"""How much Python a token takes: calls of the package's own functions, counted and not timed."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import tokenform as tf

PACKAGE = str(Path(tf.__file__).parent)
MOST = 60
"""Calls for one more token of plain decoding, comprehensions counted as Python 3.11 does."""


def calls(writer: tf.Generator, letters: int) -> tuple[int, Counter[str]]:
    """Tokens of a text of so many letters, and the own functions called for it, by name."""
    found: Counter[str] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found[f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"] += 1

    sys.setprofile(note)
    try:
        (result,) = writer.generate(["The letters"], tf.regex(f"[a-z]{{{letters}}}"))
    finally:
        sys.setprofile(None)
    return len(result.tokens), found


def test_one_more_token_takes_few_calls() -> None:
    writer = tf.Generator(drafter=None)
    for letters in (20, 80):
        calls(writer, letters)
    (short, few), (long, many) = calls(writer, 20), calls(writer, 80)
    assert long - short >= 20
    more = many - few
    assert more.total() / (long - short) <= MOST, more.most_common(80)
