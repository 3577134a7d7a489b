"""Pruning a draft tree by the constraint, before the forward pass.

Purpose: a node that the automaton refuses can't be accepted: scoring it is waste.  So is one
that ends the text: whether the text ends is decided above it.
Invariant: every node that is left has a state; nothing follows the end of the text.
Complexity: one `allows` and one `advance` a node, both memoised by the automaton.
Rejected: returning a tree of the kept nodes (it would be copied once more into the tree that is scored).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tokenform.engine import State

from .tree import ROOT, DraftTree


def allowed_states(
    tree: DraftTree, automaton: Any, state: State | None, eos: frozenset[int], depth: int
) -> dict[int, State | None]:
    """The nodes of a tree that can be accepted, with the automaton's state at each (`ROOT` included).

    Args:
        automaton: the constraint, or None: then only `eos` and `depth` prune.
        state: where the automaton stands at the root.
        eos: tokens that end the text.
        depth: most levels that are kept.
    """
    states: dict[int, State | None] = {ROOT: state}
    parents, depths = tree.parents, tree.depths
    for i, token in enumerate(tree.tokens):
        parent = parents[i]
        if depths[i] > depth or parent not in states or token in eos:
            continue
        below = None
        if automaton is not None:
            above = states[parent]
            if automaton.is_finished(above) or not automaton.allows(above, token):
                continue
            below = automaton.advance(above, token)
        states[i] = below
    return states


def goes_on(
    tree: DraftTree, node: int, states: Mapping[int, State | None], automaton: Any, eos: frozenset[int]
) -> bool:
    """Whether a token may follow a node.

    Args:
        states: what `allowed_states` gives.
    """
    if node not in states or (node != ROOT and tree.tokens[node] in eos):
        return False
    return automaton is None or (states[node] is not None and not automaton.is_finished(states[node]))


def after(automaton: Any, state: State | None, tokens: Iterable[int]) -> State | None:
    """The state after some tokens; None where the automaton refuses one of them."""
    for token in tokens:
        if state is None or automaton.is_finished(state) or not automaton.allows(state, token):
            return None
        state = automaton.advance(state, token)
    return state
