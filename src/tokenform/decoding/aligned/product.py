"""The intersection of constraints: a grammar's masks and a predicate's verdicts together; `compiled` makes
the samplers' constraint of a grammar or a condition.

Invariants: accepted = accepted by all.  Exact factors give the candidates, so that a predicate is asked only
about tokens that every mask lets through; `exact` holds if it holds for all factors - but even then a product
of live automata may have dead ends, and `distance` (the largest of the factors') is only a lower bound.
Special ids that are not ends are never allowed, by grammars (the engine sees to it) as by tests.
Rejected: asking factors in parallel; the cheap ones first save nearly all calls of the expensive ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.checked import Checked, has_validators
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.protocols import Bools, Constraint, Ids, State
from tokenform.engine import Grammar, Vocabulary
from tokenform.errors import OptionError
from tokenform.frontends import Condition


class Product:
    """`Constraint` that holds where all `factors` hold; they share one vocabulary."""

    def __init__(self, *factors: Constraint) -> None:
        if not factors:
            raise OptionError("a product needs at least one constraint")
        sizes = {len(factor.token_bytes) for factor in factors}
        if len(sizes) > 1:
            raise OptionError(
                f"the factors of a product have vocabularies of different sizes: {sorted(sizes)}"
            )
        self.factors = tuple(sorted(factors, key=lambda factor: not factor.exact))
        self.exact = all(factor.exact for factor in factors)
        self.canonical = any(getattr(factor, "canonical", False) for factor in factors)
        self.start: State = tuple(factor.start for factor in self.factors)
        self.token_bytes = factors[0].token_bytes
        self.fingerprint = " & ".join(factor.fingerprint for factor in self.factors)

    @property
    def evaluations(self) -> int:
        """Sum over the factors."""
        return sum(factor.evaluations for factor in self.factors)

    def advance(self, state: Any, token: int) -> State:
        return tuple(factor.advance(part, token) for factor, part in zip(self.factors, state, strict=True))

    def candidates(self, states: Sequence[Any]) -> list[Ids]:
        columns = list(zip(*states, strict=True))
        sets = [factor.candidates(column) for factor, column in zip(self.factors, columns, strict=True)]
        return [reduce(_common, row) for row in zip(*sets, strict=True)]

    def check(self, states: Sequence[Any], tokens: Sequence[int]) -> Bools:
        return self._narrow(len(states), lambda i, rows: self.factors[i].check(
            [states[row][i] for row in rows], [tokens[row] for row in rows]))  # fmt: skip

    def accepts(self, states: Sequence[Any]) -> Bools:
        return self._narrow(
            len(states), lambda i, rows: self.factors[i].accepts([states[row][i] for row in rows])
        )

    def distance(self, state: Any, within: int | None = None) -> int:
        return max(factor.distance(part, within) for factor, part in zip(self.factors, state, strict=True))

    def within(self, state: Any, ids: Ids, remaining: int) -> Ids:
        for factor, part in zip(self.factors, state, strict=True):
            ids = factor.within(part, ids, remaining)
        return ids

    def _narrow(self, count: int, ask) -> Bools:  # type: ignore[no-untyped-def]
        """Asks factor after factor, each only about the rows that all before it let through."""
        out = np.ones(count, dtype=np.bool_)
        for i in range(len(self.factors)):
            rows = np.flatnonzero(out)
            if len(rows) == 0:
                break
            out[rows] = ask(i, rows.tolist())
        return out


def _common(a: Ids, b: Ids) -> Ids:
    if a is b:
        return a
    return np.intersect1d(a, b, assume_unique=True)


def compiled(
    constraint: Grammar | Condition, vocabulary: Vocabulary, *, validators: bool = True
) -> Constraint:
    """The constraint over the vocabulary's tokens.

    Args:
        validators: those that a type has in Python take part.
    Raises:
        VocabularyError: the vocabulary lacks bytes that every accepted text needs.
    """
    if isinstance(constraint, Grammar):
        return _of_grammar(constraint, vocabulary, validators)
    tokens: list[bytes] = list(vocabulary.tokens)
    factors: list[Constraint] = [
        Predicate(tokens, vocabulary.eos, excluded=vocabulary.special, **vars(test))
        for test in constraint.tests
    ]
    grammars = [] if constraint.grammar is None else [constraint.grammar]
    factors += [_of_grammar(one, vocabulary, validators) for one in (*grammars, *constraint.languages)]
    return factors[0] if len(factors) == 1 else Product(*factors)


def _of_grammar(grammar: Grammar, vocabulary: Vocabulary, validators: bool) -> Constraint:
    grammar = grammar.for_writing
    if validators and has_validators(grammar):
        return Checked(grammar, vocabulary)
    return AutomatonConstraint(grammar.compile(vocabulary))
