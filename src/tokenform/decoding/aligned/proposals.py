"""How a particle takes its next token, and what that multiplies its weight by.

"mask": draw from f restricted to the mask; the weight is its mass Z_u, exact and free where there is a mask.
"rejection": draw by adaptive weighted rejection; the weight is an unbiased estimate of Z_u. For predicates.
"auto": masks where the constraint has them.  With a trie as twist both work on f(a|u)·θ(ua) and the weight is
its mass over θ(u): inside the trie, where θ(u) is that very mass, weights stay put, and the variance is left
to the steps outside.

A step is asked for in two parts: `offers` looks at the prefixes, `moves` draws.  Where the weight does not
depend on the draw (masks), `Offer.log_weights` tells it before: SMC then resamples first and draws after, so
that copies of a particle part at once and nothing is spent on particles that are about to go.

Particles of a run that stand at one prefix draw by evenly spaced numbers, each uniform by itself.

Invariant: for each token a, E[weight·1(token = a)]·θ(u)/θ(ua) = f(a|u)·1[a allowed].
Complexity: masks O(|mask|) a distinct prefix; rejection O(V) for the race and a few tests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from tokenform.decoding.aligned.lookahead import likely
from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.protocols import Float, Ids, Tokens
from tokenform.decoding.aligned.rejection_step import Step as Rejection
from tokenform.decoding.aligned.rejection_step import run_steps, spaced
from tokenform.decoding.aligned.trie import Trie
from tokenform.decoding.keyed_random import Purpose, cumulated, invert, stream

NO_END = (-math.inf, -math.inf)
Make = Callable[[Float, np.random.Generator], Rejection]


class Address(NamedTuple):
    """Where a particle's random numbers come from."""

    run: int
    step: int
    slot: int


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


class Offer(Protocol):
    """What a batch of prefixes offers to the particles that stand there."""

    def log_weights(self, prefixes: Sequence[Prefix]) -> list[float] | None:
        """The weight of each prefix's move; None where it depends on the token."""
        ...

    def is_open(self, prefix: Prefix) -> bool:
        """Whether several tokens are possible."""
        ...

    def end(self, prefix: Prefix) -> tuple[float, float]:
        """What an end that is told multiplies a weight by, and its log measure; else `NO_END`."""
        ...

    def moves(self, prefixes: Sequence[Prefix], places: Sequence[Address], seed: int) -> list[Move]:
        """A move for each prefix, each one of those that the step was made for."""
        ...

    @property
    def tables(self) -> Mapping[Tokens, Table] | None:
        """All tokens of each prefix; None where their weights are only told of those that are drawn."""
        ...


def offers(
    problem: Problem,
    prefixes: Sequence[Prefix],
    twist: Trie | None,
    weights: str,
    make: Make,
    *,
    split: bool,
    ahead: bool,
) -> Offer:
    """The step of particles at these prefixes.

    Args:
        weights: "mask", "rejection" (even where the constraint has exact masks) or "auto".
        make: a rejection step; see `rejection_step.estimator`.
        split: ends are told (`Offer.end`) and not drawn; by rejection only those of less than half of the
            mass (where nearly all is the end's, the tests for the rest would be many).
        ahead: where the model is asked, it is asked about where several particles will come, too.
    """
    masked = weights == "mask" or (weights == "auto" and problem.constraint.exact)
    tables = _tables(problem, prefixes, twist, masked, ahead, everything=weights == "rejection")
    ends: dict[Tokens, tuple[float, float]] = {}
    for prefix in dict.fromkeys(prefixes) if split else ():
        table = tables[prefix.tokens]
        place = np.flatnonzero(table.ids == problem.eos)
        if len(place) and (
            masked or (table.logf[place[0]] < math.log(0.5) and problem.check([prefix], [problem.eos])[0])
        ):
            ends[prefix.tokens] = (
                float(table.weights[place[0]]) - table.log_theta,
                float(table.logf[place[0]]),
            )
            rest = table.ids != problem.eos
            tables[prefix.tokens] = Table(
                table.ids[rest], table.logf[rest], table.weights[rest], table.log_theta
            )
    return _MaskStep(tables, ends) if masked else _RejectionStep(problem, tables, ends, make)


class _MaskStep:
    def __init__(self, tables: dict[Tokens, Table], ends: dict[Tokens, tuple[float, float]]) -> None:
        self.tables, self._ends = tables, ends

    @cached_property
    def _sums(self) -> dict[Tokens, tuple[Float, float]]:
        return {tokens: _cumulated(table.weights) for tokens, table in self.tables.items()}

    def log_weights(self, prefixes: Sequence[Prefix]) -> list[float]:
        return [self._sums[p.tokens][1] - self.tables[p.tokens].log_theta for p in prefixes]

    def is_open(self, prefix: Prefix) -> bool:
        return len(self.tables[prefix.tokens].ids) > 1

    def end(self, prefix: Prefix) -> tuple[float, float]:
        return self._ends.get(prefix.tokens, NO_END)

    def moves(self, prefixes: Sequence[Prefix], places: Sequence[Address], seed: int) -> list[Move]:
        out = []
        for prefix, uniform in zip(prefixes, _uniforms(seed, prefixes, places), strict=True):
            table = self.tables[prefix.tokens]
            steps, log_mass = self._sums[prefix.tokens]
            if log_mass == -math.inf:
                out.append(Move(None, -math.inf, -math.inf))
                continue
            index = int(invert(steps, uniform))
            out.append(Move(int(table.ids[index]), log_mass - table.log_theta, float(table.logf[index])))
        return out


class _RejectionStep:
    tables = None

    def __init__(
        self,
        problem: Problem,
        tables: dict[Tokens, Table],
        ends: dict[Tokens, tuple[float, float]],
        make: Make,
    ) -> None:
        self._problem, self._tables, self._ends, self._make = problem, tables, ends, make

    def log_weights(self, prefixes: Sequence[Prefix]) -> None:
        return None

    def is_open(self, prefix: Prefix) -> bool:
        return True

    def end(self, prefix: Prefix) -> tuple[float, float]:
        return self._ends.get(prefix.tokens, NO_END)

    def moves(self, prefixes: Sequence[Prefix], places: Sequence[Address], seed: int) -> list[Move]:
        groups: dict[tuple[int, Tokens], list[int]] = {}
        for i, (prefix, place) in enumerate(zip(prefixes, places, strict=True)):
            groups.setdefault((place.run, prefix.tokens), []).append(i)
        places_of = list(groups.values())
        order = [i for part in places_of for i in part]
        rows = [self._tables[prefixes[i].tokens] for i in order]
        steps = [
            step
            for part in places_of
            for step in spaced(
                self._make,
                self._tables[prefixes[part[0]].tokens].weights,
                [self._stream(seed, places[i]) for i in part],
            )
        ]

        def test(which: list[int], asked: list[list[int]]) -> list[list[bool]]:
            at = [prefixes[order[n]] for n, block in zip(which, asked, strict=True) for _ in block]
            tokens = [rows[n].ids[block] for n, block in zip(which, asked, strict=True)]
            told = self._problem.check(at, np.concatenate(tokens))
            ends = np.cumsum([len(block) for block in asked])[:-1]
            return [part.tolist() for part in np.split(told, ends)]

        moves: dict[int, Move] = {}
        for i, row, outcome in zip(order, rows, run_steps(steps, test), strict=True):
            index = outcome.index
            moves[i] = (
                Move(None, -math.inf, -math.inf)
                if index is None
                else Move(int(row.ids[index]), outcome.log_mass - row.log_theta, float(row.logf[index]))
            )
        return [moves[i] for i in range(len(prefixes))]

    @staticmethod
    def _stream(seed: int, place: Address) -> np.random.Generator:
        return stream(seed, Purpose.PROPOSAL, place.run, (place.step << 20) + place.slot)


def _uniforms(seed: int, prefixes: Sequence[Prefix], places: Sequence[Address]) -> list[float]:
    """One number a place.  Particles of a run that stand at the same prefix get evenly spaced ones, frac(u +
    j/m).

    Each of the m numbers is uniform by itself, so weights stay proper; together they spread over the
    distribution as systematic resampling does, and N particles at the root are no longer N independent
    guesses.
    """
    widest: dict[tuple[int, int], int] = {}
    groups: dict[tuple[int, int, Tokens], list[int]] = {}
    for i, (prefix, place) in enumerate(zip(prefixes, places, strict=True)):
        key = (place.run, place.step)
        widest[key] = max(widest.get(key, 0), place.slot + 1)
        groups.setdefault((place.run, place.step, prefix.tokens), []).append(i)
    rows = {key: stream(seed, Purpose.PROPOSAL, *key).random(width) for key, width in widest.items()}
    out = [0.0] * len(places)
    for (run, step, _), members in groups.items():
        shift = float(rows[run, step][places[members[0]].slot])
        for j, i in enumerate(members):
            out[i] = (shift + j / len(members)) % 1.0
    return out


def _tables(
    problem: Problem,
    prefixes: Sequence[Prefix],
    twist: Trie | None,
    masked: bool,
    ahead: bool,
    *,
    everything: bool,
) -> dict[Tokens, Table]:
    crowd = Counter(prefixes)
    unique = list(crowd)
    if everything:
        distributions = problem.full_distributions(unique)
    else:
        beside = likely(problem, crowd) if masked and ahead else ()
        distributions = problem.distributions(unique, masked=masked, beside=beside)
    return {
        prefix.tokens: _twisted(prefix, distribution.ids, distribution.logf, twist)
        for prefix, distribution in zip(unique, distributions, strict=True)
    }


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


def _cumulated(log_weights: Float) -> tuple[Float, float]:
    steps = cumulated(log_weights)
    return steps, float(log_weights.max()) + math.log(steps[-1]) if steps[-1] else -math.inf
