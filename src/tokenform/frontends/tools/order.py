"""Members of an object in a row: in the order of the schema, or in any.

Purpose: formats that write each argument by itself say here in which order they may come.
Invariant: no member comes twice, and every required one is there.
Complexity: declared: see `joined`; any: linear, as the engine makes a rule for a set of members that may
still come when a text meets it.
Rejected: rules for any order in the tree (n members have 2**n).
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.frontends.tools.shape import AnyOrder, Node, Repeat, Seq, joined, sequence


def in_order(
    order: str,
    members: Sequence[tuple[Node, bool]],
    others: Node | None,
    separator: Node,
    lead: Node | None = None,
) -> Node:
    """The members as `order` ("declared" or "any") says.

    members: (node, required) pairs.  others: further members, any number of them: last, or anywhere.
    lead: what each of them begins with.
    """
    apart = None if isinstance(separator, Seq) and not separator.parts else separator
    if order == "any" and len(members) + (others is not None) > 1:
        return AnyOrder(tuple(members), others, apart, lead)
    if lead is not None:
        members = [(sequence(lead, node), required) for node, required in members]
        others = others and sequence(lead, others)
    tail = [] if others is None else [(Repeat(others, 1, None, apart), False)]
    return joined([*members, *tail], apart)
