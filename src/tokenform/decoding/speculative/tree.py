"""Draft trees: the tokens that a drafter guesses and one forward pass scores.

Purpose: a prefix tree of guessed tokens below the last committed token.  A chain is
the degenerate tree.  Node -1 is the root (the committed text itself).
Invariant: `parents[i] < i`, and no two children of one node carry the same token, so
a path of tokens names at most one node.
Source: Miao et al. 2024 (SpecInfer), section 3, token trees.
Rejected: arrays with padding per level (a fixed template wastes what the grammar
prunes); duplicates as separate nodes (they would be scored twice).
Complexity: `add`, `child` O(1); `graft` O(size of the other tree).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

ROOT = -1
VALUES = "values"
"""Source of nodes that no drafter guessed: paths of values that are decided as wholes."""
HELD = "held"
"""Source of nodes that a text had before, and that are not committed yet."""
UNGUESSED = frozenset({VALUES, HELD})
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
        kids: of each node that has any, token -> child, in the order in which they were added.
    """

    __slots__ = ("confidences", "depths", "kids", "parents", "sources", "tokens")

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.sources: list[str] = []
        self.confidences: list[float] = []
        self.kids: dict[int, dict[int, int]] = {}

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
        return self.add_path(parent, (token,), source, confidence)

    def add_path(
        self,
        parent: int,
        tokens: Iterable[int],
        source: str = "",
        confidence: float | Sequence[float] = 1.0,
        most: int | None = None,
    ) -> int:
        """Adds a path below `parent`; returns its last node (`parent` for no tokens).

        Args:
            confidence: of every node, or of each.
            most: size of the tree at which the path ends; None: there is none.
        """
        if not -1 <= parent < len(self.tokens):
            raise IndexError(f"parent {parent} is not a node of a tree of {len(self.tokens)}")
        each, all_ = (None, confidence) if isinstance(confidence, float | int) else (confidence, 1.0)
        for place, token in enumerate(tokens):
            kids = self.kids.setdefault(parent, {})
            node = kids.get(token)
            if node is None:
                node = len(self.tokens)
                if most is not None and node >= most:
                    break
                kids[token] = node
                self.tokens.append(token)
                self.parents.append(parent)
                self.depths.append(1 if parent < 0 else self.depths[parent] + 1)
                self.sources.append(source)
                self.confidences.append(all_ if each is None else each[place])
            parent = node
        return parent

    def child(self, parent: int, token: int) -> int | None:
        """The child of `parent` with this token, or None."""
        kids = self.kids.get(parent)
        return None if kids is None else kids.get(token)

    def children(self, parent: int) -> Sequence[int]:
        """Children in the order in which they were added."""
        kids = self.kids.get(parent)
        return () if kids is None else list(kids.values())

    def walk(self, tokens: Iterable[int], start: int = ROOT) -> list[int]:
        """The nodes that `tokens` name from `start` on, as far as the tree goes."""
        nodes: list[int] = []
        for token in tokens:
            kids = self.kids.get(start)
            node = None if kids is None else kids.get(token)
            if node is None:
                break
            nodes.append(node)
            start = node
        return nodes

    def likeliest(self) -> tuple[int, float]:
        """Where the likeliest path ends, and the product of confidences on it."""
        node, chance, confidences = ROOT, 1.0, self.confidences
        while kids := self.kids.get(node):
            node = max(kids.values(), key=confidences.__getitem__)
            chance *= confidences[node]
        return node, chance

    def path(self, node: int) -> list[int]:
        """Tokens from the first level down to `node`."""
        tokens: list[int] = []
        while node >= 0:
            tokens.append(self.tokens[node])
            node = self.parents[node]
        return tokens[::-1]

    def line(self, node: int) -> list[int]:
        """The nodes from the first level down to this one."""
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]

    def graft(
        self, other: DraftTree, room: int, at: int = ROOT, kept: Container[int] | None = None
    ) -> dict[int, int]:
        """Adds the other tree's nodes below `at`.

        Args:
            room: most new nodes.
            kept: the other tree's nodes to add; None adds all.
        Returns:
            the other tree's node -> this tree's node, for all that are in this tree now.
        """
        most, new = len(self.tokens) + room, {ROOT: at}
        own = zip(other.parents, other.tokens, other.sources, other.confidences, strict=True)
        for i, (above, token, source, confidence) in enumerate(own):
            parent = new.get(above)
            if parent is None or (kept is not None and i not in kept):
                continue
            kids = self.kids.setdefault(parent, {})
            node = kids.get(token)
            if node is None:
                node = len(self.tokens)
                if node >= most:
                    continue
                kids[token] = node
                self.tokens.append(token)
                self.parents.append(parent)
                self.depths.append(1 if parent < 0 else self.depths[parent] + 1)
                self.sources.append(source)
                self.confidences.append(confidence)
            new[i] = node
        return new
