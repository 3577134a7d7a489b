"""Members of an object in a row: in the order of the schema, or in any.

Purpose: formats that write each argument by itself say here in which order they may come.
Invariant: no member comes twice, and every required one is there.
Complexity: declared: see `joined`, counted: the members times the count; any: linear, as the engine makes a
rule for a set of members that may still come when a text meets it.
Rejected: rules for any order in the tree (n members have 2**n).
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.frontends.tools.shape import AnyOrder, Choice, Node, Repeat, Seq, choice, joined, sequence


def in_order(
    order: str,
    members: Sequence[tuple[Node, bool]],
    others: Node | None,
    separator: Node,
    prefix: Node | None = None,
    bounds: tuple[int, int | None] = (0, None),
) -> Node:
    """The members as `order` ("declared" or "any") says.

    members: (node, required) pairs.  others: further members, any number of them: last, or anywhere.
    prefix: what each of them begins with.  bounds: how many there are in all, where the order is declared.
    """
    apart = None if isinstance(separator, Seq) and not separator.parts else separator
    if order == "any" and len(members) + (others is not None) > 1:
        return AnyOrder(tuple(members), others, apart, prefix)
    if prefix is not None:
        members = [(sequence(prefix, node), required) for node, required in members]
        others = others and sequence(prefix, others)
    if bounds != (0, None):
        return _counted(members, others, apart, *bounds)
    tail = [] if others is None else [(Repeat(others, 1, None, apart), False)]
    return joined([*members, *tail], apart)


def _counted(
    members: Sequence[tuple[Node, bool]],
    others: Node | None,
    separator: Node | None,
    least: int,
    most: int | None,
) -> Node:
    """So many of the members, in this order, and of the others behind them."""
    enough = max(least, 1) if most is None else most
    # what may follow after `count` members; None: nothing does
    rows = [_more(others, separator, count, max(least - count, 0), most) for count in range(enough + 1)]
    for node, required in reversed(members):
        later = rows
        rows = []
        for count, left_out in enumerate(later):
            follows = None if count == most else later[min(count + 1, enough)]
            options: list[Node] = []
            if follows is not None:
                options.append(sequence(*([separator] if separator and count else []), node, follows))
            if not required and left_out is not None:
                options.append(left_out)
            rows.append(choice(options) if options else None)
    return rows[0] or Choice(())


def _more(
    others: Node | None, separator: Node | None, count: int, least: int, most: int | None
) -> Node | None:
    """Further members after so many."""
    most_more = None if most is None else most - count
    if others is None or most_more == 0:
        return None if least else Seq(())
    if separator and count:
        return Repeat(sequence(separator, others), least, most_more)
    return Repeat(others, least, most_more, separator)
