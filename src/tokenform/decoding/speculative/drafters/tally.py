"""How often each source was right.

Purpose: turns a drafter's own confidence into a measured one, and says when a source
does not pay.
Invariant: a node is a trial only if its parent was on the committed path, so the measured
rate is the conditional acceptance that tree shaping needs.
Complexity: O(children of visited nodes) a step.
Source: calibration by bins.  A sequence's own counts come on top of those of all sequences of the drafter,
and these on top of the drafter's confidence, each with weight `_PRIOR`: texts are short.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tree import ROOT, DraftTree

_BINS = 6
_PRIOR = 4.0
_KEEP = 0.98  # what a trial still counts for after the next one: the last 50 matter
_REST = 64  # steps for which a source that does not pay is silent, doubled each time
_TRIALS = 24
_LEAST = 0.03  # accepted nodes per drafted node below which a source does not pay
_NONE = [0.0, 0.0]


Rates = dict[tuple[str, int], list[float]]
"""(source, bin of confidence) -> [hits, trials], each trial counting less with every later one."""


class Tally:
    """Acceptance by source and stated confidence.

    Args:
        shared: counts of earlier sequences; they are carried on.
    """

    def __init__(self, shared: Rates | None = None) -> None:
        self._rates: Rates = {}
        self._shared: Rates = {} if shared is None else shared
        self._sources: dict[str, list[float]] = {}
        self.silent: dict[str, list[int]] = {}

    def rated(self, tree: DraftTree) -> list[float]:
        """The measured acceptance of each node of a tree, given its parent's."""
        found = []
        for source, stated in zip(tree.sources, tree.confidences, strict=True):
            key, rate = (source, min(int(stated * _BINS), _BINS - 1)), stated
            hits, trials = self._shared.get(key, _NONE)
            rate = (hits + _PRIOR * rate) / (trials + _PRIOR)
            hits, trials = self._rates.get(key, _NONE)
            found.append((hits + _PRIOR * rate) / (trials + _PRIOR))
        return found

    def observe(self, tree: DraftTree, stated: Sequence[float], visited: Sequence[int]) -> None:
        """Counts the outcome of a scored tree.

        Args:
            stated: the drafters' own confidence of each node.
            visited: nodes on the committed path.
        """
        on = set(visited)
        for parent in (ROOT, *visited):
            for child in tree.kids.get(parent, {}).values():
                key = tree.sources[child], min(int(stated[child] * _BINS), _BINS - 1)
                for counts in (self._shared, self._rates):
                    cell = counts.setdefault(key, [0.0, 0.0])
                    cell[0] = cell[0] * _KEEP + (child in on)
                    cell[1] = cell[1] * _KEEP + 1.0
        shares: dict[str, list[int]] = {}
        for node, source in enumerate(tree.sources):
            count = shares.setdefault(source, [0, 0])
            count[0] += node in on
            count[1] += 1
        for source, (hits, nodes) in shares.items():
            entry = self._sources.setdefault(source, [0.0, 0.0])
            entry[0] = entry[0] * _KEEP + hits / nodes
            entry[1] = entry[1] * _KEEP + 1.0
            if entry[1] > _TRIALS * 0.8 and entry[0] < _LEAST * entry[1]:
                rest = self.silent.setdefault(source, [0, _REST // 2])
                rest[1] = min(rest[1] * 2, 4096)
                rest[0] = rest[1]
                entry[0] = entry[1] = 0.0

    def pays(self, source: str) -> bool:
        """Whether to ask the source now; a silent one is asked again after its rest."""
        rest = self.silent.get(source)
        if rest is None or rest[0] <= 0:
            return True
        rest[0] -= 1
        return False
