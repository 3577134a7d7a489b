"""Small models trained for a task: interpolated n-grams over bytes and frequent words.

Purpose: a model that puts real mass on a task's language, made in milliseconds from a few examples, so that
samplers can be held against each other where the built-in model knows nothing (programs, molecules,
patterns).
Invariant: every token has some mass everywhere.
Source: Witten, Bell 1991 (smoothing), down to the uniform distribution.
Rejected: training a transformer for each task (minutes each, and the comparison is the same).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class NgramModel:
    """A `LanguageModel` of some order; tokens: newline, printable ASCII, frequent words, EOS (the last id).

    Args:
        texts: what it is trained on; characters beyond its tokens are left out.
        order: n; a distribution looks at the last n - 1 tokens.
        words: how many words of the texts become tokens.
    """

    def __init__(self, texts: Sequence[str], order: int = 4, words: int = 60) -> None:
        self.order = order
        pieces = Counter(p for text in texts for p in re.findall(r"[A-Za-z.]{2,}|#x\d|\d\w", text))
        self.tokens = [bytes([b]) for b in (10, *range(32, 127))]
        self.tokens += [word.encode() for word, _ in pieces.most_common(words)] + [b"<eos>"]
        self.vocab_size = len(self.tokens)
        self.eos = (self.vocab_size - 1,)
        self.forwards = self.rows = 0
        self.fingerprint = f"ngram({order}, {len(texts)}, {sum(map(len, texts))})"
        self._counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        self._longest = sorted(self.tokens[:-1], key=len, reverse=True)
        self._ids = {t: i for i, t in enumerate(self.tokens)}
        for text in texts:
            ids = (*self.encode(text), self.eos[0])
            for i, token in enumerate(ids):
                for n in range(order):
                    if i >= n:
                        self._counts[ids[i - n : i]][token] += 1

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids by longest match."""
        data, out = text.encode(), []
        while data:
            piece = next((t for t in self._longest if data.startswith(t)), None)
            if piece is not None:
                out.append(self._ids[piece])
            data = data[len(piece) if piece else 1 :]
        return tuple(out)

    def logprobs(self, prefixes: Sequence[tuple[int, ...]]) -> NDArray[np.float64]:
        """See `LanguageModel`."""
        self.forwards += 1
        self.rows += len(prefixes)
        return np.stack([self._row(tuple(prefix)) for prefix in prefixes])

    def _row(self, prefix: tuple[int, ...]) -> NDArray[np.float64]:
        distribution = np.full(self.vocab_size, 1 / self.vocab_size)
        for n in range(min(self.order, len(prefix) + 1)):
            counts = self._counts.get(prefix[len(prefix) - n :])
            if counts:
                kinds, total = len(counts), sum(counts.values())
                distribution *= kinds / (kinds + total)
                distribution[list(counts)] += np.array(list(counts.values())) / (kinds + total)
        return np.asarray(np.log(distribution))
