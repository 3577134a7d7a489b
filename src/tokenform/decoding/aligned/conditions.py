"""Compiles a grammar or a condition for a vocabulary: the constraint that samplers are given.

Invariant: special ids that are not ends are never allowed, by grammars (the engine sees to it) as by tests.
"""

from __future__ import annotations

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.checked import Checked, has_validators
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.product import Product
from tokenform.decoding.aligned.protocols import Constraint
from tokenform.engine import Grammar, Vocabulary
from tokenform.frontends import Condition


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
    grammars = [] if constraint.grammar is None else [constraint.grammar]
    factors += [_of_grammar(one, vocabulary, validators) for one in (*grammars, *constraint.languages)]
    return factors[0] if len(factors) == 1 else Product(*factors)


def _of_grammar(grammar: Grammar, vocabulary: Vocabulary, validators: bool) -> Constraint:
    grammar = grammar.for_writing
    if validators and has_validators(grammar):
        return Checked(grammar, vocabulary)
    return AutomatonConstraint(grammar.compile(vocabulary))
