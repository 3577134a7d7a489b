"""Words that the synthetic records are made of, split into a training and a held-out part.

Purpose: names, places, companies, products and made-up words, so that records look like prose.
Invariant: a value of the held-out part is never seen in training (`Pools(held_out=True)` draws
from it alone).  Listed words are split by a hash of the word, made-up words likewise, so that
the split does not depend on the order of draws.
Rejected: real name lists alone; a model then memorises values instead of copying them.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence

from .proper_names import CITIES, COUNTRIES, FIRST_NAMES, LAST_NAMES
from .words import (
    ABSTRACT,
    ADJECTIVES,
    CODAS,
    COLORS,
    FOODS,
    LANGUAGES,
    NOUNS,
    ONSETS,
    SUFFIXES,
    TOPICS,
    VOWELS,
)

__all__ = [
    "ABSTRACT",
    "ADJECTIVES",
    "CITIES",
    "CODAS",
    "COLORS",
    "COUNTRIES",
    "FIRST_NAMES",
    "FOODS",
    "LANGUAGES",
    "LAST_NAMES",
    "NOUNS",
    "ONSETS",
    "SUFFIXES",
    "TOPICS",
    "VOWELS",
    "Pools",
    "is_held_out",
]


def is_held_out(text: str, share: int = 6) -> bool:
    """Whether `text` belongs to the held-out part: one in `share`, by a hash of the text."""
    return zlib.crc32(text.encode()) % share == 0


class Pools:
    """Draws words from one part of the split.

    Args:
        rng: the source of randomness.
        held_out: draw from the part that training never sees.
    """

    def __init__(self, rng: random.Random, held_out: bool = False) -> None:
        self.rng = rng
        self.held_out = held_out

    def pick(self, words: Sequence[str]) -> str:
        """A word of the list that lies in this part of the split."""
        return self._until(lambda: self.rng.choice(words))

    def made_up(self, low: int = 1, high: int = 3) -> str:
        """A made-up lower-case word of `low` to `high` syllables."""

        def draw() -> str:
            count = self.rng.randint(low, high)
            return "".join(
                self.rng.choice(ONSETS) + self.rng.choice(VOWELS) + self.rng.choice(CODAS)
                for _ in range(count)
            )

        return self._until(draw)

    def name(self, words: Sequence[str], made_up: float = 0.5) -> str:
        """A capitalised word: of the list, or made up with probability `made_up`."""
        if self.rng.random() < made_up:
            return self.made_up(1, 3).capitalize()
        return self.pick(words)

    def _until(self, draw: Callable[[], str]) -> str:
        for _ in range(200):
            word = draw()
            if is_held_out(word) == self.held_out:
                return word
        return draw()
