"""Traversal verification of a drawn tree, from the leaves up.

Each node carries the chance a with which it may still be accepted, and its target p.  For its
children x in order: a' = min(1, a p(x) / q(x)) and the child's subtree is tried first; if it is
rejected, with S = sum [a p - q]+: a becomes S / (S + 1 - a), p becomes norm[a p - q]+ (of the old
a), and q goes on without x.  A node whose children are all rejected is accepted with its a, and
the next token is drawn from its p.
On a chain it is block verification; siblings are draws without replacement.
Source: Weng et al. 2025 (Traversal verification for speculative tree decoding), algorithm 1.
"""

from __future__ import annotations

from .siblings import SiblingRule


class Traversal(SiblingRule):
    """A good default for drawn trees."""

    paths = True
