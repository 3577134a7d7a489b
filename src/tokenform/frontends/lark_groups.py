"""Groups that Lark would multiply out, as rules of their own.

Purpose: Lark writes a rule's alternatives without groups: `a? b?` becomes four expansions, and twenty
optional clauses a million.  Where an alternative would have more than `MOST`, each group of its rule
(`(..|..)`, `?`, `[..]`, `~`) becomes a rule first, so that the whole stays as large as its text.  Where all
would have more than `ALL` together, an alternative may have `FEW`.
Invariant: the texts of every rule stay the same; rules below the bound are left as they are.
Complexity: linear in the grammar.
Rejected: this form for all rules (a few expansions are quicker to walk than a rule for each group); an own
expansion of the operators (Lark's is what the grammar means).
"""

from __future__ import annotations

from typing import Any

from lark import Token, Tree
from lark.grammar import NonTerminal, RuleOptions
from lark.load_grammar import Grammar

MOST = 64  # expansions of one alternative
ALL = 10_000
FEW = 4
_CEILING = 10**6  # counts stop here

Node = Any  # a tree of Lark's, a symbol or a token


def name_groups(grammar: Grammar) -> int:
    """Gives a rule to each group of the rules that are too large, in place; how much Lark writes out then,
    counted in expansions."""
    counted = [_expansions(rule[2]) for rule in grammar.rule_defs]
    together = sum(total for largest, total in counted if largest <= MOST)
    most = MOST if together <= ALL else FEW
    helpers: dict[tuple[tuple[str, ...], Node], Node] = {}
    for place, (name, parameters, tree, options) in enumerate(list(grammar.rule_defs)):
        if counted[place][0] > most:
            namer = _Namer(grammar, str(name), parameters, helpers)
            grammar.rule_defs[place] = (name, parameters, namer.named(tree), options)
            counted[place] = _expansions(grammar.rule_defs[place][2])
    made = grammar.rule_defs[len(counted) :]
    # a rule costs Lark a few times what one more of its expansions does
    return sum(total for _, total in counted) + sum(_expansions(rule[2])[1] + 3 for rule in made)


def _expansions(tree: Node) -> tuple[int, int]:
    """The most expansions that Lark makes of one alternative of the tree, and those of all."""
    largest = 0

    def count(node: Node) -> int:
        nonlocal largest
        if not isinstance(node, Tree):
            return 1
        if node.data == "expansions":
            return min(sum(map(count, node.children)), _CEILING)
        if node.data == "expansion":
            product = 1
            for child in node.children:
                product = min(product * count(child), _CEILING)
            largest = max(largest, product)
            return product
        if node.data == "maybe":
            return 1 + count(node.children[0])
        if node.data == "alias":
            return count(node.children[0])
        if node.data != "expr":
            return 1
        inner, operator, *bounds = node.children
        ways = count(inner)
        if operator == "?":
            return 1 + ways
        if operator in ("*", "+"):  # a rule of its own
            return 2 if operator == "*" else 1
        return _repeated(ways, int(str(bounds[0])), int(str(bounds[-1])))

    total = count(tree)
    return largest, total


def _repeated(ways: int, least: int, most: int) -> int:
    """Expansions of a repetition; above 50 Lark breaks it into rules of a few parts."""
    if ways == 1:
        return max(1, min(most, 50) - min(least, 50) + 1)
    total = power = 1
    for count in range(1, most + 1):
        power = min(power * ways, _CEILING)
        total = power if count <= least else min(total + power, _CEILING)
        if power == _CEILING:
            break
    return total


class _Namer:
    """Rewrites one rule; equal groups of all rules share their helper."""

    def __init__(
        self,
        grammar: Grammar,
        rule: str,
        parameters: tuple[str, ...],
        helpers: dict[tuple[tuple[str, ...], Node], Node],
    ) -> None:
        self._grammar = grammar
        self._rule = rule
        self._parameters = parameters
        self._helpers = helpers

    def named(self, node: Node) -> Node:
        """The alternatives of a rule, with helpers for what is grouped inside them."""
        if not isinstance(node, Tree):
            return node
        if node.data in ("expansions", "alias"):
            return Tree(node.data, [self.named(child) for child in node.children])
        if node.data in ("expansion", "expr"):
            return Tree(node.data, [self._symbol(child) for child in node.children])
        if node.data == "maybe":  # with no values kept, the same as `?`
            return Tree("expr", [self._symbol(node.children[0]), Token("OP", "?")])
        return node

    def _symbol(self, node: Node) -> Node:
        """The node, or a symbol for it where it has alternatives."""
        if not isinstance(node, Tree) or node.data not in ("expansions", "maybe", "expr"):
            return node
        node = _plain(self.named(node))
        if node.data == "expansions" and len(node.children) == 1:
            only = node.children[0]
            if len(only.children) == 1:
                return only.children[0]
        key = (tuple(self._parameters), node)
        if key not in self._helpers:
            name = f"__{self._rule}_group_{len(self._helpers)}"
            body = node if node.data == "expansions" else Tree("expansions", [Tree("expansion", [node])])
            template = name if self._parameters else None
            options = RuleOptions(False, False, None, template)
            self._grammar.rule_defs.append((name, self._parameters, body, options))
            symbol: Node = NonTerminal(name)
            if self._parameters:
                given = [Tree("value", [NonTerminal(parameter)]) for parameter in self._parameters]
                symbol = Tree("template_usage", [symbol, *given])
            self._helpers[key] = Tree("value", [symbol])
        return self._helpers[key]


def _plain(node: Node) -> Node:
    """Without names of alternatives, which a helper can't have."""
    if node.data != "expansions":
        return node
    children = [child.children[0] if child.data == "alias" else child for child in node.children]
    return Tree("expansions", children)
