"""Grammars that Lark would read for too long: told before it does.

Purpose: Lark writes a template out for each list of arguments that it meets (`t{x}: x | t{t{x}}` has no last
one), and a terminal into each terminal that names it (sixteen levels of `A: B B` are 65,536 copies).  What it
needs for a text is about its tokens and the alternatives that it writes its rules out to: both are charged to
`Limits.work`, as work of the engine is.
Invariant: a grammar that passes grows by a bounded amount and is read in a bounded time; the counts are the
same on every machine.
Rejected: giving such a terminal to the engine as a graph (a terminal is one pattern for Lark, and a rule says
the same in linear size).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lark.exceptions import VisitError
from lark.grammar import NonTerminal, Terminal
from lark.load_grammar import (
    ApplyTemplates,
    Grammar,
    PrepareAnonTerminals,
    PrepareLiterals,
    ValidateSymbols,
    nr_deepcopy_tree,
)

from tokenform import _core
from tokenform.errors import LimitExceeded
from tokenform.frontends.lark_errors import SKIPPED, holds_declared, semantic_error
from tokenform.frontends.lark_groups import Size, written_size

TEMPLATES = 2_000  # rules that templates are written out to
NAME = 1_000  # characters of such a rule's name, which holds its arguments
PARTS = 10_000  # parts of a terminal with the terminals that it names written into it
ALL_PARTS = 50_000  # those of all terminals together: Lark goes over each of them a dozen times

# Steps of work that Lark's reading is about, a step being some 20 nanoseconds of the engine's.
TOKEN = 1_500
CHARACTER = 40  # of a string, which is unescaped one by one
PATTERN = 80  # a character of a pattern, which Python's `re` reads in Python
ALTERNATIVE = 1_200  # of a rule, as Lark writes them out
SYMBOL = 100  # of such an alternative
INSTANCE = 8_000  # of a template, which Lark looks for among all rules
COPIED = 800  # a symbol of a template's own tree, which is rewritten for each
SKIP = 100  # a comment, a blank, or a string that is passed over
_PASSED = 5  # a character of whatever is there
# `(\r?\n)+\s*\|`, by which Lark looks for an alternative on a line below, begins at each break of a row anew
_BREAKS = 12  # characters that it passes in a step

_PIECE = re.compile(rf"(?P<skip>\s*(?://|#)[^\n]*|\\[ ]*\n)|(?P<blank>\s+)|(?P<literal>{SKIPPED})|\w+|.")


class Reading:
    """The work of reading one text, so far."""

    def __init__(self) -> None:
        self._limit = _core.Limits().work
        self._spent = 0

    def spend(self, steps: int, line: int | None = None) -> None:
        """Counts steps.

        Raises:
            LimitExceeded: they are more than the process's `Limits.work`.
        """
        self._spent += steps
        if self._spent > self._limit:
            raise LimitExceeded(
                f"Reading the grammar needs more than {self._limit} steps of work (Limits.work): about "
                f"{TOKEN} a token and {ALTERNATIVE} an alternative; shorten it, or raise the limit by "
                "set_limits",
                line=line,
            )

    def written(self, size: Size) -> None:
        """Counts what Lark writes rules out to."""
        self.spend(ALTERNATIVE * size.ways + SYMBOL * size.symbols)

    def begin(self, text: str) -> None:
        """Counts a look at each character: before the first of the searches that other threads wait for."""
        self.spend(_PASSED * len(text))

    def text(self, text: str) -> None:
        """Counts what Lark needs to parse a text."""
        line = 1
        for found in _PIECE.finditer(text):
            length, kind = found.end() - found.start(), found.lastgroup
            breaks = found.group().count("\n")
            line += breaks
            steps = SKIP if kind == "skip" or (kind == "blank" and not breaks) else TOKEN
            character = PATTERN if found.group().startswith("/") else CHARACTER
            literal = character * length if kind == "literal" else 0
            self.spend(steps + literal + breaks * length // _BREAKS, line)


class CheckedDefinitions(dict[str, Any]):
    """A builder's definitions, checked when Lark lists them to write terminals into one another."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._checked = False

    def items(self) -> Any:
        if not self._checked:
            self._checked = True
            check_terminals(self, self._text)
        return super().items()


def check_terminals(definitions: Mapping[str, Any], text: str) -> None:
    """Refuses terminals that name a declared one, and those that are too large written out.

    Raises:
        InvalidGrammar, LimitExceeded: with the place of the terminal.
    """
    trees = {name: definitions[name].tree for name in definitions if definitions[name].is_term}
    named = {name: list(_named(tree)) for name, tree in trees.items() if tree is not None}
    for name, others in named.items():
        for other in others:
            if other in trees and trees[other] is None:
                raise holds_declared(name, text)
    sizes: dict[str, int] = {}
    total = 0
    for name in named:
        _measure(name, named, trees, sizes)
        if sizes.get(name, 0) > PARTS:
            raise semantic_error(
                f"The terminal {name} has more than {PARTS} parts when the terminals that it names are "
                "written into it; make it a rule (a name in lower case)",
                text,
                name,
                LimitExceeded,
            )
        total += sizes.get(name, 0)
        if total > ALL_PARTS:
            raise semantic_error(
                f"The terminals have more than {ALL_PARTS} parts when those that they name are written into "
                f"them; make some of them rules (names in lower case), {name} for one",
                text,
                name,
                LimitExceeded,
            )


def _measure(name: str, named: dict[str, list[str]], trees: dict[str, Any], sizes: dict[str, int]) -> None:
    """The size of a terminal and of those that it names, by an explicit stack; circles are Lark's to tell."""
    stack, open_now = [name], set()
    while stack:
        at = stack[-1]
        if at in sizes or at not in named:
            stack.pop()
            continue
        missing = [other for other in named[at] if other in named and other not in sizes]
        if missing and at not in open_now:
            open_now.add(at)
            stack.extend(other for other in missing if other not in open_now)
            continue
        own = sum(1 for _ in trees[at].iter_subtrees())
        sizes[at] = min(own + sum(sizes.get(other, 1) for other in named[at]), 10 * PARTS)
        stack.pop()


def _named(tree: Any) -> Iterator[str]:
    """The terminals that a terminal's tree names, as often as it does."""
    for value in tree.find_data("value"):
        (item,) = value.children
        if isinstance(item, Terminal):
            yield str(item.name)


def check_templates(grammar: Grammar, text: str, reading: Reading) -> None:
    """Refuses templates that Lark would write out too often, and counts what it does for the others.

    Raises:
        LimitExceeded: with the place of the template.
    """
    if not any(parameters for _, parameters, _, _ in grammar.rule_defs):
        return
    rules = [(n, p, nr_deepcopy_tree(t), o) for n, p, t, o in grammar.rule_defs]
    terminals = [(n, (nr_deepcopy_tree(t), p)) for n, (t, p) in grammar.term_defs]
    anonymous = PrepareAnonTerminals([_Named(str(name)) for name, _ in terminals])
    transformer = PrepareLiterals() * ValidateSymbols() * anonymous * _Counted(rules, text, reading)
    at = 0
    while at < len(rules):  # templates add to them
        _, parameters, tree, _ = rules[at]
        at += 1
        if parameters:
            continue
        anonymous.rule_options = None
        try:
            transformer.transform(tree)
        except VisitError as error:
            if isinstance(error.orig_exc, LimitExceeded):
                raise error.orig_exc from None
            return  # Lark meets the same mistake and tells it
        except Exception:
            return


class _Counted(ApplyTemplates):
    """Lark's writing out of templates, which stops at the limits."""

    def __init__(self, rules: list[Any], text: str, reading: Reading) -> None:
        super().__init__(rules)  # type: ignore[no-untyped-call]
        self._text = text
        self._reading = reading
        self._trees = {str(name): tree for name, parameters, tree, _ in rules if parameters}
        self._steps: dict[str, int] = {}

    def _cost(self, name: str) -> int:
        """Steps that writing out one of a template takes."""
        if name not in self._steps:
            tree = self._trees[name]
            size = written_size(tree)
            copied = sum(node.data == "value" for node in tree.iter_subtrees())
            self._steps[name] = INSTANCE + COPIED * copied + ALTERNATIVE * size.ways + SYMBOL * size.symbols
        return self._steps[name]

    def template_usage(self, children: list[Any]) -> NonTerminal:
        name = str(children[0].name)
        length = sum(len(str(getattr(argument, "name", ""))) for argument in children[1:])
        if length > NAME or len(self.created_templates) >= TEMPLATES:
            raise semantic_error(
                f"The template {name} is written out more than {TEMPLATES} times, or its arguments grow "
                "without end; a template must not call itself with larger arguments",
                self._text,
                name,
                LimitExceeded,
            )
        known = len(self.created_templates)
        made: NonTerminal = super().template_usage(children)  # type: ignore[no-untyped-call]
        if len(self.created_templates) > known:
            self._reading.spend(self._cost(name))
        return made


class _Named:
    """As much of a terminal as the naming of anonymous ones looks at."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pattern = object()
