"""The best span of a source text, exactly: the likeliest answer among all its substrings (`tf.substring`).

A best-first search over the constraint's automaton whose bound is the probability so far: a prefix is opened
only if no finished text is better, so the result is the arg max over all spans and tokenisations, after
scoring few of them. With `length_penalty` the bound is the one a text of `max_tokens` could still reach, and
the result is exact as well.

Invariant: exact.  Complexity: the prefixes whose probability is above the answer's, in batches.
Rejected: scoring all n²/2 spans; greedy extension from the best start, which misses late decisions.
"""

from __future__ import annotations

from typing_extensions import Unpack

from tokenform.decoding.aligned.beam import Beam
from tokenform.decoding.aligned.results import Draw
from tokenform.decoding.aligned.sampler import Common


class BestSpan(Beam):
    """The likeliest of all accepted texts, exactly: for questions whose answer is a span of a source.

    Works with any constraint; the usual one is `tf.substring(source)`.

    Args:
        source: the text that spans are looked up in by `locate`; None if positions are not wanted.
        length_penalty: as for Beam; needs `max_tokens`.
        empty: whether the empty span, which every `tf.substring` accepts, is an answer.
        **common: the options that all samplers take; see `AlignedSampler`.
    """

    def __init__(
        self,
        source: str | None = None,
        *,
        length_penalty: float = 0.0,
        empty: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(None, best_first=True, length_penalty=length_penalty, **common)
        self.source, self.empty = source, empty

    def locate(self, draw: Draw) -> list[tuple[int, int]]:
        """Where the draw's text stands in the source: (start, end) in characters, every occurrence, in
        order.
        """
        out: list[tuple[int, int]] = []
        at = -1
        while self.source is not None and (at := self.source.find(draw.text, at + 1)) >= 0:
            out.append((at, at + len(draw.text)))
        return out
