"""Rules of a context-free grammar as llama.cpp takes them: without left recursion.

Purpose: `expr ::= expr "+" term | term`, as grammars in Lark's language have it, is refused by llama.cpp.
Invariant: the start derives the same texts; the rules' names and shapes don't stay.
How: where a rule can reach itself before any character, expansions that are empty are taken out of the rules
that do so, then what such rules begin with is put in the place of the rule (Paull), and `A ::= A x | y`
becomes `A ::= y A'`, `A' ::= x A' | ""`.  Other rules stay as they are.
Complexity: exponential in bad cases, so at most `SYMBOLS` symbols.
Source: M. C. Paull's algorithm as in Hopcroft & Ullman, Introduction to Automata Theory (1979), section 4.6.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tokenform.errors import LimitExceeded

Expansion = tuple[str, ...]
Rules = dict[str, list[Expansion]]

SYMBOLS = 100_000
"""Most symbols of all rules."""


def without_left_recursion(rules: Rules, start: str) -> tuple[Rules, str]:
    """The same grammar and its start; names that are no rules are of terminals, none of which is empty.

    Raises:
        LimitExceeded: it would be longer than `SYMBOLS` symbols.

    >>> without_left_recursion({"e": [("e", "+", "t"), ("t",)]}, "e")
    ({'e': [('t', "e'")], "e'": [('+', 't', "e'"), ()]}, 'e')
    """
    recursive = _recursive(rules)
    if not recursive:
        return rules, start
    rules, start = _without_empty(rules, start)
    recursive = _recursive(rules)
    order = [name for name in rules if name in recursive]
    made: Rules = {}
    for at, name in enumerate(order):
        ways = _unfolded(rules[name], order[:at], made)
        own = [way[1:] for way in ways if way[:1] == (name,) and len(way) > 1]
        others = [way for way in ways if way[:1] != (name,)]
        if not own:
            made[name] = others
        else:
            more = name + "'"
            made[name] = [(*way, more) for way in others]
            made[more] = [*((*way, more) for way in own), ()]
        _measure(made)
    return {**rules, **made}, start


def _unfolded(ways: list[Expansion], before: list[str], made: Rules) -> list[Expansion]:
    """Expansions none of which begins with one of the rules that are done."""
    for other in before:
        found: list[Expansion] = []
        for way in ways:
            if way[:1] == (other,):
                found += [(*head, *way[1:]) for head in made[other]]
            else:
                found.append(way)
        ways = list(dict.fromkeys(found))
        _measure({"": ways})
    return ways


def _measure(rules: Rules) -> None:
    if sum(len(way) + 1 for ways in rules.values() for way in ways) > SYMBOLS:
        raise LimitExceeded(
            f"the grammar's left recursion (`a: a x`), which llama.cpp refuses, takes more than {SYMBOLS} "
            "symbols to undo: write `a: y x*` in its place."
        )


def deriving(rules: Rules, is_given: Callable[[str], bool]) -> set[str]:
    """The rules that derive a text of given symbols alone; of none, the empty text."""
    users: dict[str, list[tuple[str, int]]] = {}  # where a rule stands: in which expansion, by its number
    missing: list[int] = []  # symbols of each expansion that are not known to derive it
    known, found = set[str](), list[str]()  # a rule is found once, however many of its ways need nothing
    for name, ways in rules.items():
        for way in ways:
            needed = [symbol for symbol in way if not is_given(symbol)]
            for symbol in needed:
                users.setdefault(symbol, []).append((name, len(missing)))
            missing.append(len(needed))
            if not needed and name not in known:
                known.add(name)
                found.append(name)
    while found:
        for name, way_number in users.get(found.pop(), ()):
            missing[way_number] -= 1
            if not missing[way_number] and name not in known:
                known.add(name)
                found.append(name)
    return known


def _nullable(rules: Rules) -> set[str]:
    return deriving(rules, lambda _: False)


def _recursive(rules: Rules) -> set[str]:
    """The rules that can reach themselves before any character, and those between two such."""
    nullable = _nullable(rules)
    first: dict[str, set[str]] = {name: set() for name in rules}
    for name, ways in rules.items():
        for way in ways:
            for symbol in way:
                if symbol in rules:
                    first[name].add(symbol)
                if symbol not in nullable:
                    break
    behind: dict[str, set[str]] = {name: set() for name in rules}
    for name, symbols in first.items():
        for symbol in symbols:
            behind[symbol].add(name)
    return _trimmed(_trimmed(set(rules), first, behind), behind, first)


def _trimmed(names: set[str], edges: dict[str, set[str]], back: dict[str, set[str]]) -> set[str]:
    """Without those from which no path is endless."""
    counts = {name: len(edges[name] & names) for name in names}
    ended = [name for name, count in counts.items() if not count]
    gone = set(ended)
    while ended:
        for name in back[ended.pop()] & names:
            counts[name] -= 1
            if not counts[name] and name not in gone:
                gone.add(name)
                ended.append(name)
    return names - gone


def _without_empty(rules: Rules, start: str) -> tuple[Rules, str]:
    """The same texts by rules none of which is empty, but for a start of its own where that is needed."""
    nullable = _nullable(rules)
    made: Rules = {}
    for name, ways in rules.items():
        found: dict[Expansion, None] = {}
        for way in ways:
            if sum(symbol in nullable for symbol in way) > 12:
                _measure({"": [()] * (SYMBOLS + 1)})
            kept = [((symbol,), ()) if symbol in nullable else ((symbol,),) for symbol in way]
            for chosen in product(*kept):
                short = tuple(symbol for part in chosen for symbol in part)
                if short and short != (name,):
                    found[short] = None
        made[name] = list(found)
        _measure(made)
    empty = {name for name, ways in made.items() if not ways}  # derive the empty text alone
    made = {
        name: [way for way in ways if not empty.intersection(way)]
        for name, ways in made.items()
        if name not in empty
    }
    if start not in nullable:
        return made, start
    made[start + "''"] = [(), *([(start,)] if start in made else [])]
    return made, start + "''"
