"""How particles take their next tokens, and what that multiplies their weights by.

Where there are masks, a prefix's `Table` has all of its next tokens, and the population branches
(`branches`): nothing is drawn here.  Where tokens are tested one by one (predicates), each particle draws by
adaptive weighted rejection, and its weight is an unbiased estimate of Z_u.  With a trie as twist both work on
f(a|u)·θ(ua) and the weight is its mass over θ(u): inside the trie, where θ(u) is that very mass, weights stay
put, and the variance is left to the steps outside.

Particles of a run that stand at one prefix draw by evenly spaced numbers, each uniform by itself.

Invariant: for each token a, E[weight·1(token = a)]·θ(u)/θ(ua) = f(a|u)·1[a allowed].
Complexity: masks O(|mask|) a distinct prefix; rejection O(V) for the race and a few tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.protocols import Float, Ids, Tokens
from tokenform.decoding.aligned.rejection_step import Step as Rejection
from tokenform.decoding.aligned.rejection_step import run_steps, spaced
from tokenform.decoding.aligned.trie import Trie

Make = Callable[[Float, np.random.Generator], Rejection]


class Move(NamedTuple):
    """The next token (None: none is possible), the log weight increment, and log f(token|u)."""

    token: int | None
    log_weight: float
    logf: float


class Table(NamedTuple):
    """What a prefix offers: ids, log f, the log weights to draw by, and log θ of the prefix."""

    ids: Ids
    logf: Float
    weights: Float
    log_theta: float


class End(NamedTuple):
    """An end that is counted: what it multiplies a weight by (then: its weight), and its log measure."""

    log_weight: float
    logf: float


def tables_of(
    problem: Problem, prefixes: Sequence[Prefix], twist: Trie | None, *, masked: bool, everything: bool
) -> dict[Tokens, Table]:
    """A table for each prefix.

    Args:
        masked: of the tokens that the masks allow, else of those that are still to be tested.
        everything: of all tokens, even where the constraint has exact masks.
    """
    unique = list(dict.fromkeys(prefixes))
    if everything:
        distributions = problem.full_distributions(unique)
    else:
        distributions = problem.distributions(unique, masked=masked)
    return {
        prefix.tokens: _twisted(prefix, distribution.ids, distribution.logf, twist)
        for prefix, distribution in zip(unique, distributions, strict=True)
    }


def counted_ends(
    problem: Problem, prefixes: Sequence[Prefix], tables: dict[Tokens, Table], *, masked: bool
) -> dict[Tokens, End]:
    """The ends that are counted and not drawn; they leave the tables.

    Where tokens are tested, only those of less than half of the mass (where nearly all is the end's, the
    tests for the rest would be many).
    """
    ends: dict[Tokens, End] = {}
    for prefix in dict.fromkeys(prefixes):
        table = tables[prefix.tokens]
        place = np.flatnonzero(table.ids == problem.eos)
        if len(place) and (
            masked or (table.logf[place[0]] < math.log(0.5) and problem.check([prefix], [problem.eos])[0])
        ):
            weight = float(table.weights[place[0]]) - table.log_theta
            ends[prefix.tokens] = End(weight, float(table.logf[place[0]]))
            rest = table.ids != problem.eos
            tables[prefix.tokens] = Table(
                table.ids[rest], table.logf[rest], table.weights[rest], table.log_theta
            )
    return ends


def tested_moves(
    problem: Problem,
    tables: dict[Tokens, Table],
    prefixes: Sequence[Prefix],
    runs: Sequence[int],
    generators: Sequence[np.random.Generator],
    make: Make,
) -> list[Move]:
    """A move for each prefix by testing tokens.

    Args:
        runs, generators: whose particle each is, and what its random numbers come from.
        make: a rejection step (`rejection_step.estimator`).
    """
    groups: dict[tuple[int, Tokens], list[int]] = {}
    for i, (prefix, run) in enumerate(zip(prefixes, runs, strict=True)):
        groups.setdefault((run, prefix.tokens), []).append(i)
    order = [i for part in groups.values() for i in part]
    rows = [tables[prefixes[i].tokens] for i in order]
    steps = [
        step
        for part in groups.values()
        for step in spaced(make, tables[prefixes[part[0]].tokens].weights, [generators[i] for i in part])
    ]

    def test(which: list[int], indices: list[list[int]]) -> list[list[bool]]:
        at = [prefixes[order[n]] for n, block in zip(which, indices, strict=True) for _ in block]
        tokens = [rows[n].ids[block] for n, block in zip(which, indices, strict=True)]
        verdicts = problem.check(at, np.concatenate(tokens))
        ends = np.cumsum([len(block) for block in indices])[:-1]
        return [part.tolist() for part in np.split(verdicts, ends)]

    moves: dict[int, Move] = {}
    for i, row, outcome in zip(order, rows, run_steps(steps, test), strict=True):
        index = outcome.index
        moves[i] = (
            Move(None, -math.inf, -math.inf)
            if index is None
            else Move(int(row.ids[index]), outcome.log_mass - row.log_theta, float(row.logf[index]))
        )
    return [moves[i] for i in range(len(prefixes))]


def _twisted(prefix: Prefix, ids: Ids, logf: Float, twist: Trie | None) -> Table:
    if twist is None:
        return Table(ids, logf, logf, 0.0)
    log_theta = 0.0
    if prefix.tokens and (above := twist.find(prefix.tokens[:-1])) is not None:
        place = above.find(prefix.tokens[-1])
        log_theta = 0.0 if place is None else above.theta.get(place, 0.0)
    node = twist.find(prefix.tokens)
    if node is None or not node.theta:
        return Table(ids, logf, logf, log_theta)
    weights = logf.copy()
    for index, theta in node.theta.items():
        place = int(np.searchsorted(ids, node.ids[index]))
        if place < len(ids) and ids[place] == node.ids[index]:
            weights[place] += theta
    return Table(ids, logf, weights, log_theta)
