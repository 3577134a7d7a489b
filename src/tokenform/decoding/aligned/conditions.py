"""Compiles a grammar or a condition for a vocabulary: the constraint that samplers are given.

Invariant: special ids that are not ends are never allowed, by grammars (the engine sees to it) as by tests.
"""

from __future__ import annotations

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.product import Product
from tokenform.decoding.aligned.protocols import Constraint
from tokenform.engine import Grammar, Vocabulary
from tokenform.frontends import Condition


def compiled(constraint: Grammar | Condition, vocabulary: Vocabulary) -> Constraint:
    """The constraint over the vocabulary's tokens.

    Raises:
        VocabularyError: the vocabulary lacks bytes that every accepted text needs.
    """
    if isinstance(constraint, Grammar):
        return AutomatonConstraint(constraint.compile(vocabulary))
    tokens: list[bytes] = list(vocabulary.tokens)
    factors: list[Constraint] = [
        Predicate(
            tokens,
            vocabulary.eos,
            test.prefix,
            test.complete,
            on=test.on,
            batch=test.batch,
            cache=test.cache,
            excluded=vocabulary.special,
            name=test.name,
        )
        for test in constraint.tests
    ]
    if constraint.grammar is not None:
        factors.append(AutomatonConstraint(constraint.grammar.compile(vocabulary)))
    return factors[0] if len(factors) == 1 else Product(*factors)
