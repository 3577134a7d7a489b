"""Draft trees: what a drafter guesses and one forward pass scores.

Purpose: a prefix tree of guessed tokens below the last committed token.  A chain is
the degenerate tree.  Node -1 is the root (the committed text itself).
Invariant: `parents[i] < i`, and no two children of one node carry the same token, so
a path of tokens names at most one node.
Complexity: `add`, `child` O(1); `graft` O(size of the other tree).
Source: Miao et al. 2024 (SpecInfer), section 3, token trees.
Rejected: arrays with padding per level (a fixed template wastes what the grammar
prunes); duplicates as separate nodes (they would be scored twice).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

ROOT = -1
VALUES = "values"
"""Source of nodes that nobody guessed: paths of values that are decided as wholes."""
FORCED = "forced"
"""Source of nodes that follow from the constraint."""


class DraftTree:
    """A tree of guessed tokens.

    Attributes:
        tokens: token id of each node.
        parents: index of each node's parent, `ROOT` for the first level.
        depths: 1 for the first level.
        sources: name of the drafter that guessed the node first.
        confidences: the drafter's estimate, in (0, 1], that the node is accepted given
            that its parent is.
    """

    __slots__ = ("_index", "_kids", "confidences", "depths", "parents", "sources", "tokens")

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.sources: list[str] = []
        self.confidences: list[float] = []
        self._index: dict[tuple[int, int], int] = {}
        self._kids: dict[int, list[int]] = {}

    @classmethod
    def chain(cls, tokens: Iterable[int], source: str = "", confidence: float = 1.0) -> DraftTree:
        """The degenerate tree: one path."""
        tree = cls()
        tree.add_path(ROOT, tokens, source, confidence)
        return tree

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"DraftTree(tokens={self.tokens}, parents={self.parents})"

    def add(self, parent: int, token: int, source: str = "", confidence: float = 1.0) -> int:
        """The child of `parent` with this token, made if it is not there; returns its index."""
        node = self._index.get((parent, token))
        if node is not None:
            return node
        if not -1 <= parent < len(self.tokens):
            raise IndexError(f"parent {parent} is not a node of a tree of {len(self.tokens)}")
        node = len(self.tokens)
        self.tokens.append(token)
        self.parents.append(parent)
        self.depths.append(1 if parent < 0 else self.depths[parent] + 1)
        self.sources.append(source)
        self.confidences.append(confidence)
        self._index[parent, token] = node
        self._kids.setdefault(parent, []).append(node)
        return node

    def add_path(self, parent: int, tokens: Iterable[int], source: str = "", confidence: float = 1.0) -> int:
        """Adds a path below `parent`; returns its last node (`parent` for no tokens)."""
        for token in tokens:
            parent = self.add(parent, token, source, confidence)
        return parent

    def child(self, parent: int, token: int) -> int | None:
        """The child of `parent` with this token, or None."""
        return self._index.get((parent, token))

    def children(self, parent: int) -> Sequence[int]:
        """Children in the order in which they were added."""
        return self._kids.get(parent, ())

    def walk(self, tokens: Iterable[int], start: int = ROOT) -> list[int]:
        """The nodes that `tokens` name from `start` on, as far as the tree goes."""
        nodes: list[int] = []
        for token in tokens:
            node = self._index.get((start, token))
            if node is None:
                break
            nodes.append(node)
            start = node
        return nodes

    def path(self, node: int) -> list[int]:
        """Tokens from the first level down to `node`."""
        tokens: list[int] = []
        while node >= 0:
            tokens.append(self.tokens[node])
            node = self.parents[node]
        return tokens[::-1]

    def graft(
        self, other: DraftTree, room: int, at: int = ROOT, kept: Container[int] | None = None
    ) -> dict[int, int]:
        """Adds the other tree's nodes below `at`.

        Args:
            room: most new nodes.
            kept: the other tree's nodes that are taken; None takes all.
        Returns:
            the other tree's node -> this tree's node, for all that are in this tree now.
        """
        before = len(self.tokens)
        if not before and at == ROOT and len(other) <= room and (kept is None or _every(len(other), kept)):
            return self._copied(other)
        most = before + room
        new: dict[int, int] = {ROOT: at}
        known = self._index
        for i, token in enumerate(other.tokens):
            if kept is not None and i not in kept:
                continue
            parent = new.get(other.parents[i])
            node = None if parent is None else known.get((parent, token))
            if node is None:
                if parent is None or len(self.tokens) >= most:
                    continue
                node = self.add(parent, token, other.sources[i], other.confidences[i])
            new[i] = node
        return new

    def _copied(self, other: DraftTree) -> dict[int, int]:
        """Becomes a copy of another tree; its nodes, each as itself."""
        for name in ("tokens", "parents", "depths", "sources", "confidences"):
            setattr(self, name, list(getattr(other, name)))
        self._index = dict(other._index)
        self._kids = {parent: list(kids) for parent, kids in other._kids.items()}
        return {node: node for node in range(ROOT, len(other))}


def _every(size: int, kept: Container[int]) -> bool:
    return all(node in kept for node in range(size))
