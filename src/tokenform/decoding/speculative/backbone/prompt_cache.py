"""Keys and values of prompts that earlier calls have run.

Purpose: a prompt reuses the longest prefix that it shares with an earlier one.
Layout: a radix tree.  An edge holds some tokens of a prompt and, for each layer, their keys and values
[heads, n, size]; shared prefixes are stored once.
Invariant: all entries belong to the model as it is now: a change of the model (`model_mark`) empties the
cache.  It holds at most `limit` bytes; the least recently used ends of prompts go first.
Complexity: O(tokens) comparisons a prompt; O(edges) to evict, once a stored prompt.  Keys and values are
copied when they are stored and when they are used, outside of the lock.
Source: radix tree over prefixes (Zheng et al. 2024, SGLang).
Rejected: sharing one call's slots with the next (calls of several threads would write into one tensor);
blocks of fixed size (a long prompt would be hundreds of small copies a layer).
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tokenform.errors import OptionError

from .model_mark import model_mark

SHORTEST = 16  # tokens; a shorter beginning is not worth a look-up
Held = dict[int, tuple[torch.Tensor, torch.Tensor]]
"""Keys and values [heads, n, size] of each layer that has its own."""


@dataclass(eq=False)
class _Edge:
    """Some tokens of a prompt, behind those of the edges above."""

    tokens: list[int]
    held: Held
    above: _Edge | None
    used: int = 0
    below: dict[int, _Edge] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for pair in self.held.values() for t in pair)

    def part(self, start: int, end: int) -> Held:
        """The keys and values of tokens [start, end), as copies that keep nothing else alive."""
        return {
            layer: (keys[:, start:end].clone(), values[:, start:end].clone())
            for layer, (keys, values) in self.held.items()
        }


class PromptCache:
    """The prompts of one model; for any number of threads.

    Args:
        limit: most bytes of keys and values, on the model's device; 0 keeps nothing.
    Raises:
        OptionError: the limit is negative.
    """

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise OptionError(f"prompt_cache={limit} bytes is not possible; 0 keeps nothing.")
        self.limit, self.bytes = limit, 0
        self._root, self._clock = _Edge([], {}, None), 0
        self._mark: Any = None
        self._edition = 0
        self._lock = threading.Lock()

    def begin(self, model: Any) -> int:
        """The cache's edition for a model as it is now; a new one if the model has changed."""
        mark = model_mark(model) if self.limit else None
        with self._lock:
            if mark is None or mark != self._mark:
                self._forget()
            self._mark = mark
            return self._edition if mark is not None else -1

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._forget()

    def length(self, edition: int, tokens: Sequence[int]) -> int:
        """How many first tokens are cached; 0 for fewer than `SHORTEST`."""
        if edition != self._edition:
            return 0
        with self._lock:
            known = sum(count for _, count in self._walk(tokens))
        return known if known >= SHORTEST else 0

    def get(self, edition: int, tokens: Sequence[int], start: int) -> list[Held]:
        """The cached keys and values of the tokens from `start` on, part after part."""
        parts: list[Held] = []
        with self._lock:
            path, at = self._walk(tokens) if edition == self._edition else [], 0
            self._touch(path)
            for edge, count in path:
                low = max(start - at, 0)
                if low < count:
                    parts.append({n: (k[:, low:count], v[:, low:count]) for n, (k, v) in edge.held.items()})
                at += count
        return parts

    def keep(self, edition: int, tokens: Sequence[int], read: Callable[[int, int], Held]) -> None:
        """Stores a prompt.

        Args:
            read: (start, end) -> copies of the keys and values of these of its tokens.
        """
        if len(tokens) < SHORTEST:
            return
        with self._lock:
            known = sum(count for _, count in self._walk(tokens))
        # copied outside of the lock: other threads look up in the meantime
        new = _Edge(list(tokens[known:]), read(known, len(tokens)) if known < len(tokens) else {}, None)
        with self._lock:
            path = self._walk(tokens) if edition == self._edition else []
            if edition == self._edition and new.tokens:
                self._add(path, new, sum(count for _, count in path) - known)
            self._touch(path)
            self._evict()

    def _add(self, path: list[tuple[_Edge, int]], new: _Edge, since: int) -> None:
        """Adds an edge at the end of a path, without its first tokens that others have stored since.

        Args:
            since: how many; negative where tokens above it have been evicted: then nothing is stored.
        """
        if since < 0 or since >= len(new.tokens) or new.bytes > self.limit:
            return
        if since:
            new = _Edge(new.tokens[since:], new.part(since, len(new.tokens)), None)
        above = path[-1][0] if path else self._root
        if path and path[-1][1] < len(above.tokens):
            above = self._split(above, path[-1][1])
            path[-1] = (above, len(above.tokens))
        new.above = above
        above.below[new.tokens[0]] = new
        self.bytes += new.bytes
        path.append((new, len(new.tokens)))

    def _walk(self, tokens: Sequence[int]) -> list[tuple[_Edge, int]]:
        """The edges along the tokens, and how many tokens of each match: all, except of the last."""
        path, edge, at = [], self._root, 0
        while at < len(tokens) and (below := edge.below.get(tokens[at])) is not None:
            count = common(tokens[at : at + len(below.tokens)], below.tokens)
            path.append((below, count))
            edge, at = below, at + count
            if count < len(below.tokens):
                break
        return path

    def _touch(self, path: list[tuple[_Edge, int]]) -> None:
        self._clock += 1
        for edge, _ in path:
            edge.used = self._clock

    def _split(self, edge: _Edge, at: int) -> _Edge:
        """Parts an edge; the new one above it."""
        assert edge.above is not None
        upper = _Edge(edge.tokens[:at], edge.part(0, at), edge.above, edge.used)
        edge.above.below[upper.tokens[0]] = upper
        edge.held, edge.tokens, edge.above = edge.part(at, len(edge.tokens)), edge.tokens[at:], upper
        upper.below[edge.tokens[0]] = edge
        return upper

    def _evict(self) -> None:
        if self.bytes <= self.limit:
            return
        ends, waiting = list[tuple[int, int, _Edge]](), list(self._root.below.values())
        while waiting:
            edge = waiting.pop()
            waiting += edge.below.values()
            if not edge.below:
                ends.append((edge.used, id(edge), edge))
        heapq.heapify(ends)
        while self.bytes > self.limit:
            *_, oldest = heapq.heappop(ends)
            above = oldest.above
            assert above is not None
            del above.below[oldest.tokens[0]]
            self.bytes -= oldest.bytes
            if not above.below and above is not self._root:
                heapq.heappush(ends, (above.used, id(above), above))

    def _forget(self) -> None:
        self._root, self.bytes, self._edition = _Edge([], {}, None), 0, self._edition + 1


def common(a: Sequence[int], b: Sequence[int], most: int | None = None) -> int:
    """How many first tokens two texts share, up to `most`."""
    least = min(len(a), len(b)) if most is None else min(most, len(a), len(b))
    if a[:least] == b[:least]:  # the usual case, without a loop in Python
        return least
    return next((i for i in range(least) if a[i] != b[i]), least)
