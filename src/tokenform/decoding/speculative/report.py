"""What speculation did in a run.

Purpose: the hardware-independent measures (tokens per target forward, acceptance by depth and by
source, drafted nodes per token) and where the time went.
Invariant: counts add up over sequences, so reports can be merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from .tree import VALUES, DraftTree

_Key = TypeVar("_Key")
_SECONDS = ("seconds_draft", "seconds_model", "seconds_mask")
_SUMMED = ("forwards", "tokens", "drafted", "accepted", "evaluations", *_SECONDS)


@dataclass
class Report:
    """Counts of one sequence, or of a run.

    Attributes:
        forwards: target passes; of a sequence, those that it took part in.
        tokens: committed tokens, the one that ends the text included.
        drafted, accepted: guessed nodes that were scored, and those that were committed; paths of values
            that are decided as wholes are no guesses.
        evaluations: masks that were asked for.
        depths: depth -> [times that the walk could go so deep, times that it did].
        sources: source -> [nodes scored, nodes committed].
        seconds_draft, seconds_model, seconds_mask: in drafters, in the target's passes, and in the
            sampler (masks, transforms, draws).
        notes: what was switched off or could not be done.
    """

    forwards: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    evaluations: int = 0
    depths: dict[int, list[int]] = field(default_factory=dict)
    sources: dict[str, list[int]] = field(default_factory=dict)
    seconds_draft: float = 0.0
    seconds_model: float = 0.0
    seconds_mask: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def tokens_per_forward(self) -> float:
        """Committed tokens per target pass; 1 for plain decoding."""
        return self.tokens / self.forwards if self.forwards else 0.0

    def count(self, tree: DraftTree, visited: list[int], committed: int) -> None:
        """One step: `committed` tokens, of which the tree had the `visited` nodes."""
        self.tokens += committed
        for nodes, place in ((range(len(tree.tokens)), 0), (visited, 1)):
            guessed = 0
            for node in nodes:
                source = tree.sources[node]
                if source != VALUES:
                    self.sources.setdefault(source, [0, 0])[place] += 1
                    guessed += 1
            if place:
                self.accepted += guessed
            else:
                self.drafted += guessed
        reached = len(visited) + (1 if tree.kids.get(visited[-1] if visited else -1) else 0)
        for depth in range(1, reached + 1):
            cell = self.depths.setdefault(depth, [0, 0])
            cell[0] += 1
            cell[1] += depth <= len(visited)

    def add(self, other: Report) -> None:
        """Merges another report into this one."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        _add_cells(self.depths, other.depths)
        _add_cells(self.sources, other.sources)
        self.notes.extend(n for n in other.notes if n not in self.notes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON files and plots; keys as the attributes, and `tokens_per_forward`."""
        return {**self.__dict__, "tokens_per_forward": self.tokens_per_forward}


def _add_cells(own: dict[_Key, list[int]], more: dict[_Key, list[int]]) -> None:
    for key, (trials, hits) in more.items():
        cell = own.setdefault(key, [0, 0])
        cell[0] += trials
        cell[1] += hits
