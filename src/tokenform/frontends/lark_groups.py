"""Groups that Lark would multiply out, as rules of their own.

Purpose: Lark writes a rule's alternatives without groups: `a? b?` becomes four expansions, and twenty
optional clauses a million.  Where an alternative would have more than `MOST`, each group of its rule
(`(..|..)`, `?`, `[..]`, `~`) becomes a rule first, so that the whole stays as large as its text.  Where all
would have more than `ALL` together, an alternative may have `FEW`.
Invariant: the texts of every rule stay the same; rules below the bound are left as they are.
Rejected: this form for all rules (a few expansions are quicker to walk than a rule for each group); an own
expansion of the operators (Lark's is what the grammar means).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lark import Token, Tree
from lark.grammar import NonTerminal, RuleOptions
from lark.load_grammar import Grammar

MOST = 64  # expansions of one alternative
ALL = 10_000
FEW = 4
_CEILING = 10**6  # counts stop here

Node = Any  # a tree of Lark's, a symbol or a token


class Size(NamedTuple):
    """What Lark writes a node out to: so many expansions, of so many symbols together."""

    ways: int
    symbols: int

    def __add__(self, other: Any) -> Size:
        """One or the other."""
        return Size(min(self.ways + other.ways, _CEILING), min(self.symbols + other.symbols, _CEILING))

    def then(self, other: Size) -> Size:
        """One after the other."""
        symbols = self.symbols * other.ways + self.ways * other.symbols
        return Size(min(self.ways * other.ways, _CEILING), min(symbols, _CEILING))


_NOTHING = Size(1, 0)
_SYMBOL = Size(1, 1)


def name_groups(grammar: Grammar) -> Size:
    """Gives a rule to each group of the rules that are too large, in place; what Lark writes out then."""
    counted = [_written(rule[2]) for rule in grammar.rule_defs]
    together = sum(size.ways for largest, size, _ in counted if largest <= MOST)
    most = MOST if together <= ALL else FEW
    helpers: dict[tuple[tuple[str, ...], Node], Node] = {}
    for place, (name, parameters, tree, options) in enumerate(list(grammar.rule_defs)):
        if counted[place][0] > most:
            namer = _Namer(grammar, str(name), parameters, helpers)
            grammar.rule_defs[place] = (name, parameters, namer.named(tree), options)
            counted[place] = _written(grammar.rule_defs[place][2])
    made = [_written(rule[2]) for rule in grammar.rule_defs[len(counted) :]]
    sizes = [size for _, *both in counted + made for size in both]
    # a rule costs Lark a few times what one more of its expansions does
    return Size(sum(size.ways for size in sizes) + 3 * len(made), sum(size.symbols for size in sizes))


def written_size(tree: Node) -> Size:
    """What Lark writes a rule's tree out to, where groups become rules as above."""
    largest, size, loops = _written(tree)
    if largest <= MOST:
        return size + loops
    groups = sum(node.data in ("expansions", "maybe", "expr") for node in tree.iter_subtrees())
    symbols = sum(node.data == "value" for node in tree.iter_subtrees())
    return Size(4 * groups, symbols + 4 * groups)


def _written(tree: Node) -> tuple[int, Size, Size]:
    """The most expansions that Lark makes of one alternative of the tree, all that it makes, and those of the
    rules for its loops."""
    largest, loops = 0, Size(0, 0)

    def size(node: Node) -> Size:
        nonlocal largest, loops
        if not isinstance(node, Tree):
            return _SYMBOL
        if node.data == "expansions":
            return sum(map(size, node.children), Size(0, 0))
        if node.data == "expansion":
            whole = _NOTHING
            for child in node.children:
                whole = whole.then(size(child))
            largest = max(largest, whole.ways)
            return whole
        if node.data == "maybe":
            return _NOTHING + size(node.children[0])
        if node.data == "alias":
            return size(node.children[0])
        if node.data != "expr":
            return _SYMBOL
        inner, operator, *bounds = node.children
        one = size(inner)
        if operator == "?":
            return _NOTHING + one
        if operator in ("*", "+"):  # a rule that begins with itself, whose name stands here
            loops += one + one.then(_SYMBOL)
            return _SYMBOL + _NOTHING if operator == "*" else _SYMBOL
        return _repeated(one, int(str(bounds[0])), int(str(bounds[-1])))

    total = size(tree)
    return largest, total, loops


def _repeated(one: Size, least: int, most: int) -> Size:
    """A repetition written out; from 50 on Lark breaks it into rules of a few parts."""
    if one.ways == 1:
        least, most = min(least, 50), min(most, 50)
        ways = max(1, most - least + 1)
        return Size(ways, one.symbols * ways * (least + most) // 2)
    total = power = _NOTHING
    for count in range(1, most + 1):
        power = power.then(one)
        total = power if count <= least else total + power
        if power.ways == _CEILING:
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
                arguments = [Tree("value", [NonTerminal(parameter)]) for parameter in self._parameters]
                symbol = Tree("template_usage", [symbol, *arguments])
            self._helpers[key] = Tree("value", [symbol])
        return self._helpers[key]


def _plain(node: Node) -> Node:
    """Without names of alternatives, which a helper can't have."""
    if node.data != "expansions":
        return node
    children = [child.children[0] if child.data == "alias" else child for child in node.children]
    return Tree("expansions", children)
