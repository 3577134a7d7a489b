"""Members of an object in a row: in the order of the schema, or in any.

Purpose: formats that write each argument by itself say here in which order they may come.
Invariant: no member comes twice, and every required one is there.
Complexity: declared: linear (see `joined`); any: a rule for each set of members that may still come, at most
2**`MOST`.
Rejected: any order without a bound (a context-free grammar of n members in any order has 2**n rules).
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.errors import UnsupportedSchema
from tokenform.frontends.tools.shape import (
    Node,
    Repeat,
    Rule,
    Seq,
    choice,
    joined,
    sequence,
)

MOST = 8


def in_order(
    order: str,
    members: Sequence[tuple[Node, bool]],
    others: Node | None,
    separator: Node,
    rules: dict[str, Node],
    owner: str,
) -> Node:
    """The members as `order` ("declared" or "any") says.

    members: (node, required) pairs.  others: further members, any number of them: last, or anywhere.
    rules: where rules are added.
    Raises:
        UnsupportedSchema: more than `MOST` members in any order.
    """
    if order != "any" or len(members) + (others is not None) < 2:
        tail = [] if others is None else [(Repeat(others, 1, None, separator), False)]
        return joined([*members, *tail], separator)
    if len(members) > MOST:
        raise UnsupportedSchema(
            f"{owner}: {len(members)} arguments in any order are more than the {MOST} that this format can"
            ' keep apart; choose order "declared", or a format that writes JSON',
            keyword="properties",
        )
    prefix = f"{owner} in any order {len(rules)}"

    def name(left: frozenset[int]) -> str:
        return f"{prefix}: {sorted(left)}"

    def options(left: frozenset[int], before: Node) -> Node:
        ways = [sequence(before, members[i][0], Rule(name(left - {i}))) for i in sorted(left)]
        if others is not None:
            ways.append(sequence(before, others, Rule(name(left))))
        if not any(members[i][1] for i in left):
            ways.append(Seq(()))
        return choice(ways)

    everything = frozenset(range(len(members)))
    waiting = [everything]
    while waiting:
        left = waiting.pop()
        if name(left) not in rules:
            rules[name(left)] = options(left, separator)
            waiting += [left - {i} for i in left]
    return options(everything, Seq(()))
