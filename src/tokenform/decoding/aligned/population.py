"""The particles of one run of sequential Monte Carlo; see `smc.py`.

Where all next prefixes are known, as many of them as there are places go on, each with a proper weight
(`branches`).  Those whose mass is at least 1/c are kept as they are; of the others as many as there are
places left are drawn by evenly spaced numbers, and weigh 1/c each, where c is such that the expected number
is the number asked for.  Of all such choices it adds the least variance (Fearnhead, Clifford 2003).  Where
all of them fit, nothing is drawn: a language of at most N prefixes a step is summed exactly.

Invariant: the expected weight of a next prefix is its mass.
Complexity: O(V) a distinct prefix, and memory of its masses.
Rejected: a token drawn for each particle (prefixes come twice, and a likely one is missed by chance: on ten
cities under SmolLM2, two stated errors of log Z held in 57 of 100 runs of 16 particles).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokenform.decoding.aligned.problem import Prefix, Problem
from tokenform.decoding.aligned.proposals import End, Move, Table
from tokenform.decoding.aligned.protocols import Float, Ids, Tokens
from tokenform.decoding.aligned.results import effective_size, log_sum, normalised
from tokenform.decoding.keyed_random import Purpose, invert, stream


def systematic(weights: Float, generator: np.random.Generator, count: int) -> Ids:
    """Ancestors of `count` equally weighted particles: int64 `[count]`, sorted; each comes as often as is
    expected, rounded up or down (Carpenter, Clifford, Fearnhead 1999).

    Args:
        weights: normalised, float64 `[n]`.
    """
    places: Ids = invert(np.cumsum(weights), (np.arange(count) + generator.random()) / count)
    return places


class Branch(NamedTuple):
    """A next prefix: the places of its prefix and of its token there, and what it weighs."""

    parent: int
    token_place: int
    mass: float


def branches(masses: Sequence[Float], count: int, generator: np.random.Generator) -> list[Branch]:
    """At most `count` of the next prefixes.

    Args:
        masses: of each prefix those of its tokens, at least 0, on one scale.  They are overwritten.
    """
    chosen: list[Branch] = []
    best = [np.argpartition(m, -count)[-count:] if len(m) > count else np.arange(len(m)) for m in masses]
    parents = np.repeat(np.arange(len(masses)), [len(places) for places in best])
    indices = np.concatenate(best)
    values = np.concatenate([m[places] for m, places in zip(masses, best, strict=True)])
    rest = float(sum(m.sum() for m in masses))
    for at in np.argsort(-values, kind="stable")[:count].tolist():
        mass = float(values[at])
        if mass <= 0 or mass * (count - len(chosen)) < rest:
            break
        chosen.append(Branch(int(parents[at]), int(indices[at]), mass))
        masses[parents[at]][indices[at]] = 0.0
        rest -= mass
    free_places, sums = count - len(chosen), np.cumsum([float(m.sum()) for m in masses])
    if free_places == 0 or sums[-1] <= 0:
        return chosen
    points = (np.arange(free_places) + generator.random()) * (sums[-1] / free_places)
    owners = np.minimum(np.searchsorted(sums, points, side="right"), len(masses) - 1)
    for parent in np.unique(owners).tolist():
        steps = np.cumsum(masses[parent])
        within = np.maximum(points[owners == parent] - (sums[parent] - steps[-1]), 0.0)
        last = int(np.searchsorted(steps, steps[-1]))  # by rounding no place of mass 0 is drawn
        places = np.minimum(np.searchsorted(steps, within, side="right"), last)
        chosen += [Branch(parent, int(place), float(sums[-1]) / free_places) for place in places]
    return chosen


class Population:
    """The particles of one run, and the texts that have ended; a slot of weight zero is free.

    Attributes:
        finished: tokens -> the text's weight in the run and its log measure.
        steps: moves that were made.
    """

    def __init__(self, problem: Problem, count: int, run: int, seed: int) -> None:
        self.run, self.seed, self.resamplings, self.steps = run, seed, 0, 0
        self.prefixes: list[Prefix] = [problem.root()] * count
        self.log_weights: Float = np.zeros(count)
        self.logf: Float = np.zeros(count)
        self.factor: Float = np.zeros(count)  # provisional log-score that the weight holds
        self.done = np.zeros(count, dtype=np.bool_)
        self.finished: dict[Tokens, End] = {}

    @property
    def open(self) -> list[int]:
        """Slots that still need a token."""
        slots: list[int] = np.flatnonzero(~self.done & (self.log_weights > -np.inf)).tolist()
        return slots

    @property
    def occupied(self) -> list[int]:
        """Slots that hold a text, ended or not."""
        slots: list[int] = np.flatnonzero(self.log_weights > -np.inf).tolist()
        return slots

    def finish(self, slot: int, log_end: float, logf: float) -> None:
        """Counts the text that ends here.

        Args:
            log_end: what its end multiplies the particle's weight by, log.
            logf: the log measure of the end.
        """
        weight = float(self.log_weights[slot]) + log_end
        if weight == -math.inf:
            return
        tokens = self.prefixes[slot].tokens
        finished = self.finished.get(tokens)
        if finished is not None:
            weight = float(np.logaddexp(weight, finished.log_weight))
        self.finished[tokens] = End(weight, float(self.logf[slot]) + logf)

    def apply(self, problem: Problem, slot: int, move: Move, *, weigh: bool) -> None:
        """Takes a move, and its weight where the particle does not have that yet."""
        self.steps += 1
        if weigh:
            self.log_weights[slot] += move.log_weight
        if move.token is None:
            return
        self.logf[slot] += move.logf
        if move.token == problem.eos:
            self.done[slot] = True
        else:
            self.prefixes[slot] = problem.extend(self.prefixes[slot], move.token)

    def rescore(self, slot: int, score: float) -> None:
        """Replaces a provisional score."""
        self.log_weights[slot] += score if score == -math.inf else score - self.factor[slot]
        self.factor[slot] = score

    def leave(self) -> None:
        """Counts those that have drawn their end, and frees their slots."""
        for slot in np.flatnonzero(self.done).tolist():
            self.finish(slot, 0.0, 0.0)
            self.log_weights[slot], self.done[slot] = -np.inf, False

    def balance(self, step: int, threshold: float) -> None:
        """Resamples those that still have to go on if their effective size is below threshold times the
        number that their share of the weight is due; if that is not one, one goes on with that chance.
        """
        size, weights = len(self.log_weights), self.log_weights
        total = log_sum(weights)
        due = self._share_of_places(total)
        count = min(max(math.ceil(due), 1), size)
        if due >= 1 and effective_size(weights) >= threshold * count:
            return
        generator = stream(self.seed, Purpose.RESAMPLING, self.run, step)
        if due < 1 and generator.random() >= due:
            self.log_weights = np.full(size, -np.inf)
            return
        ancestors = systematic(normalised(weights), generator, count)
        self.log_weights = np.full(size, -np.inf)
        self.log_weights[:count] = total - math.log(min(due, 1.0) * count)
        free = [self.prefixes[0]] * (size - count)
        self.prefixes = [self.prefixes[i] for i in ancestors] + free
        for values in (self.logf, self.factor):
            values[:count] = values[ancestors]
        self.resamplings += 1

    def branch(self, problem: Problem, step: int, tables: Mapping[Tokens, Table]) -> None:
        """All next prefixes take the place of those that go on, or as many of them as their share of the
        weight is due (see `branches`); if that is not one, one goes on with that chance.
        """
        size = len(self.log_weights)
        at: dict[Tokens, list[int]] = {}
        for slot in self.open:
            at.setdefault(self.prefixes[slot].tokens, []).append(slot)
        slots = [first for first, *_ in at.values()]
        found = [tables[tokens] for tokens in at]
        log_masses = [
            table.weights + (log_sum(self.log_weights[same]) - table.log_theta)
            for table, same in zip(found, at.values(), strict=True)
        ]
        peak = max((float(logs.max()) for logs in log_masses if len(logs)), default=-math.inf)
        self.log_weights = np.full(size, -np.inf)
        if peak == -math.inf:
            return
        masses = [np.exp(logs - peak) for logs in log_masses]
        due = self._share_of_places(peak + math.log(sum(float(mass.sum()) for mass in masses)))
        generator = stream(self.seed, Purpose.RESAMPLING, self.run, step)
        if due < 1 and generator.random() >= due:
            return
        count = min(max(math.ceil(due), 1), size)
        self.resamplings += sum(map(len, masses)) > count
        prefixes, logf, factor = list(self.prefixes), self.logf.copy(), self.factor.copy()
        for slot, (parent, index, mass) in enumerate(branches(masses, count, generator)):
            before, table = slots[parent], found[parent]
            self.prefixes[slot] = prefixes[before]
            self.logf[slot], self.factor[slot] = logf[before], factor[before]
            self.log_weights[slot] = peak + math.log(mass) - math.log(min(due, 1.0))
            self.apply(problem, slot, Move(int(table.ids[index]), 0.0, float(table.logf[index])), weigh=False)

    def _share_of_places(self, total: float) -> float:
        """How many places the share of all weight is due that goes on, `total`; 0 if that is nothing."""
        if total == -math.inf:
            return 0.0
        ended = log_sum(np.array([text.log_weight for text in self.finished.values()]))
        return len(self.log_weights) * math.exp(total - float(np.logaddexp(total, ended)))

    @property
    def texts(self) -> tuple[list[Tokens], Float, Float]:
        """The texts that have ended, their log measures and their log weights."""
        columns = np.array(list(self.finished.values()), dtype=np.float64).reshape(-1, 2)
        return list(self.finished), columns[:, 1], columns[:, 0]

    @property
    def log_z(self) -> float:
        """log of the weight of all that has ended, a particle."""
        return log_sum(self.texts[2]) - math.log(len(self.log_weights))
