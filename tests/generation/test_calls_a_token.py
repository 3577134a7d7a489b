"""How much Python a token takes: calls of the package's own functions, counted and not timed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tokenform as tf
from tokenform.decoding.speculative.policies import Controller, Prices

PACKAGE = str(Path(tf.__file__).parent)
MOST = 60
"""Calls a token, comprehensions counted as Python 3.11 does."""
FILES = 20
"""Files that one more token of plain decoding runs through."""
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "born": {"type": "integer"},
        "state": {"enum": ["paid", "new", "packed"]},
    },
    "required": ["name", "born", "state"],
}


class Told(Prices):
    """Prices that no clock decides: a wide pass costs little more than a narrow one."""

    def __bool__(self) -> bool:
        return True

    def known(self, tokens: float) -> bool:
        return True

    def each(self, sizes: Iterable[float], lines: int = 1, beside: int = 0) -> list[float]:
        return [1000.0 + tokens for tokens in sizes]


def policy() -> Controller:
    controller = Controller()
    controller.prices = Told()
    return controller


def calls(writer: tf.Generator, prompt: str, grammar: Any) -> tuple[tf.Result, Counter[str]]:
    """A text, and the own functions called for it, by name."""
    found: Counter[str] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found[f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_code.co_name}"] += 1

    sys.setprofile(note)
    try:
        (result,) = writer.generate([prompt], grammar)
    finally:
        sys.setprofile(None)
    return result, found


def letters(writer: tf.Generator, count: int) -> tuple[int, Counter[str]]:
    result, found = calls(writer, "The letters", tf.regex(f"[a-z]{{{count}}}"))
    return len(result.tokens), found


def test_a_token_takes_few_calls() -> None:
    """In a process of its own, whose caches nobody has filled before."""
    code = f"from {__name__} import count_drafted, count_plain; count_plain(); count_drafted()"
    root = str(Path(__file__).parents[2])
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert not told.returncode, told.stderr


def count_plain() -> None:
    writer = tf.Generator(drafter=None)
    for count in (20, 80):
        letters(writer, count)
    (short, few), (long, many) = letters(writer, 20), letters(writer, 80)
    assert long - short >= 20
    more = many - few
    assert more.total() / (long - short) <= MOST, more.most_common(80)
    assert len({name.split(":")[0] for name in more}) <= FILES, more


def count_drafted() -> None:
    """What a call does once is counted too, over 20 tokens."""
    writer, grammar = tf.Generator(policy=policy), tf.json_schema(SCHEMA)
    prompt = "The order 4821 of Ada Lovelace, born 1815 in London, has been paid."
    for _ in range(4):
        calls(writer, prompt, grammar)
    result, found = calls(writer, prompt, grammar)
    assert len(result.tokens) >= 15 and result.stats.forwards <= 4
    assert found.total() / len(result.tokens) <= MOST, found.most_common(80)
