"""Phrases that a text must include, counted while it is written.

State: for each phrase the number of its first bytes that the text now ends with (the longest such), or its
whole length once it has been seen.  One byte moves every phrase by its failure function (Knuth, Morris, Pratt
1977), so a token of b bytes costs O(b) for each phrase, whatever the tokenisation.

Invariant: `count_complete` counts exactly the phrases in the text.  Overlapping phrases are matched side by
side.
Rejected: token-level phrases (a phrase would be missed when it is spelled with other tokens).
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.errors import OptionError

Progress = tuple[int, ...]


class Phrases:
    """The phrases, as bytes, with their failure functions."""

    def __init__(self, phrases: Sequence[str | bytes]) -> None:
        self.phrases = tuple(p.encode() if isinstance(p, str) else p for p in phrases)
        if any(len(phrase) == 0 for phrase in self.phrases):
            raise OptionError("an empty phrase is in every text; leave it out")
        self._failures = [_failure(phrase) for phrase in self.phrases]
        self.start: Progress = (0,) * len(self.phrases)

    def feed(self, progress: Progress, data: bytes) -> Progress:
        """The progress after these bytes."""
        out = []
        for phrase, failure, at in zip(self.phrases, self._failures, progress, strict=True):
            for byte in data:
                if at == len(phrase):
                    break
                while at and phrase[at] != byte:
                    at = failure[at - 1]
                at += phrase[at] == byte
            out.append(at)
        return tuple(out)

    def count_complete(self, progress: Progress) -> int:
        """How many phrases the text contains."""
        return sum(at == len(phrase) for phrase, at in zip(self.phrases, progress, strict=True))

    def bank(self, progress: Progress) -> int:
        """Bytes of phrases that are in place: whole ones, and the longest one that is begun."""
        whole = sum(
            len(phrase) for phrase, at in zip(self.phrases, progress, strict=True) if at == len(phrase)
        )
        begun = [at for phrase, at in zip(self.phrases, progress, strict=True) if at < len(phrase)]
        return whole + max(begun, default=0)

    def complete(self, progress: Progress) -> bool:
        """Whether every phrase is in the text."""
        return self.count_complete(progress) == len(self.phrases)

    def missing_bytes(self, progress: Progress) -> list[bytes]:
        """The bytes that would complete each open phrase: from its progress, and from its beginning."""
        rest = {phrase[at:] for phrase, at in zip(self.phrases, progress, strict=True) if at < len(phrase)}
        rest |= {phrase for phrase, at in zip(self.phrases, progress, strict=True) if at < len(phrase)}
        return sorted(rest)


def _failure(phrase: bytes) -> list[int]:
    table = [0] * len(phrase)
    at = 0
    for i in range(1, len(phrase)):
        while at and phrase[i] != phrase[at]:
            at = table[at - 1]
        at += phrase[i] == phrase[at]
        table[i] = at
    return table
