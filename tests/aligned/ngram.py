"""A small model trained for a task: interpolated n-grams over a vocabulary of bytes and frequent words.

Witten-Bell smoothing (1991) down to the uniform law, so that every token has some mass everywhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np


class NgramModel:
    """A `LanguageModel` of the given order, trained on texts; tokens: bytes, words, EOS."""

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
        self._longest = sorted((t for t in self.tokens[:-1]), key=len, reverse=True)
        self._ids = {t: i for i, t in enumerate(self.tokens)}
        for text in texts:
            ids = (*self.encode(text), self.eos[0])
            for i, token in enumerate(ids):
                for n in range(order):
                    if i >= n:
                        self._counts[ids[i - n : i]][token] += 1

    def encode(self, text: str) -> tuple[int, ...]:
        data, out = text.encode(), []
        while data:
            piece = next((t for t in self._longest if data.startswith(t)), None)
            if piece is not None:
                out.append(self._ids[piece])
            data = data[len(piece) if piece else 1 :]
        return tuple(out)

    def _row(self, prefix: tuple[int, ...]) -> np.ndarray:
        law = np.full(self.vocab_size, 1 / self.vocab_size)
        for n in range(self.order):
            if len(prefix) < n:
                break
            counts = self._counts.get(prefix[len(prefix) - n :])
            if counts:
                kinds, total = len(counts), counts.total()
                law *= kinds / (kinds + total)
                for token, count in counts.items():
                    law[token] += count / (kinds + total)
        return np.log(law)

    def logprobs(self, prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        self.forwards += 1
        self.rows += len(prefixes)
        return np.stack([self._row(tuple(prefix)) for prefix in prefixes])
