"""Pruning a draft tree by the constraint, before the forward pass.

Purpose: a node that the automaton refuses can't be accepted: scoring it is waste.  So is one
that ends the text: whether the text ends is decided above it.
Invariant: every node that is left has a state; nothing follows the end of the text.  The one
exception are tokens that were *drawn* from a law: the rules for drawn drafts must see them to
reject them (leaving them out would bend the law), so they stay as leaves, with state None.
Complexity: one `allows` and one `advance` a node, both memoised by the automaton.
"""

from __future__ import annotations

from typing import Any

from .tree import ROOT, DraftTree


def prune(
    tree: DraftTree, automaton: Any, state: int | None, eos: frozenset[int], depth: int
) -> tuple[DraftTree, dict[int, int | None]]:
    """The part of a tree that can be accepted, and the automaton's state at each node.

    Args:
        automaton: the constraint, or None: then only `eos` and `depth` prune.
        state: where the automaton stands at the root.
        eos: tokens that end the text.
        depth: most levels that are kept.
    Returns:
        the pruned tree and a dict of its nodes' states (`ROOT` included).
    """
    states: dict[int, int | None] = {ROOT: state}
    keep = [False] * len(tree)
    kept_states: list[int | None] = []
    ends: set[int] = set()
    for i, token in enumerate(tree.tokens):
        parent = tree.parents[i]
        if tree.depths[i] > depth or parent not in states or parent in ends:
            continue
        below = None
        if token in eos:
            if parent not in tree.laws:
                continue
            ends.add(i)
        if automaton is not None:
            above = states[parent]
            if not automaton.is_finished(above) and automaton.allows(above, token):
                below = automaton.advance(above, token)
            elif parent in tree.laws:
                ends.add(i)
            else:
                continue
        keep[i], states[i] = True, below
        kept_states.append(below)
    if all(keep):
        return tree, states
    return tree.select(keep), {ROOT: state, **dict(enumerate(kept_states))}
