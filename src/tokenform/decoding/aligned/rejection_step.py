"""One step by rejection: draw a ∝ f restricted to the valid tokens, testing few of them, and estimate their
mass.

Given weights w over candidate tokens and a test of validity, let Z = Σ_valid w.  Each estimator returns (x,
Ẑ) with E[Ẑ·1(x = a)] = w(a) for every valid a, so Ẑ is a proper importance weight (Lipkin et al., "Fast
controlled generation from language models with adaptive weighted rejection sampling", 2025):

  two loops   sample without replacement until a token x is valid (n0 rejects, their mass taken out), then
              once more over the rest, x included (n1 rejects):  Ẑ = remaining mass after the first loop /
              (n0 + n1 + 1)
  recursive   after x test just the next token of the same order:  Ẑ = remaining mass if it is valid or there
              is none, else w(x)
  geometric   sampling *with* replacement until m tokens are valid, the hits on known rejects only counted
              (a geometric number of them before each draw):  Ẑ = W·min(m - 1, accepts)/(accepts + rejects -
              1)

  auto        geometric with m = 2 where one token has two thirds of the mass or more (that token is mostly
              drawn twice, which is one test), else recursive: the fewest tests; two loops vary less and test
              more

The order is that of exponential races, keys E_a/w(a), in logs and float64 (the same as Gumbel keys).  The
remaining mass is summed over what remains, never computed as 1 - rejected: a valid mass of 1e-12 beside
rejects of mass 1 would drown in the rounding of the difference.

Expected tests of the first loop: 1 + Σ_{invalid r} w_r/(w_r + Z). Each estimator is a coroutine that yields
the index to test and is sent the verdict, so that many particles test in one batch.  Rejected: testing a
fixed number of tokens at a time for a single particle; most steps need two tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeVar

import numpy as np

from tokenform.decoding.aligned.protocols import Float
from tokenform.decoding.aligned.results import log_sum
from tokenform.decoding.keyed_random import cumulated, invert
from tokenform.errors import OptionError

Estimator = Literal["auto", "two_loops", "recursive", "geometric"]
PEAK = math.log(2 / 3)  # share of one token from which the geometric estimator needs fewer tests
FIRST_BLOCK = (
    32  # tokens whose order is worked out at first; more are sorted only if all of them are rejected
)
LEADS = 8  # choices of a draw that are spaced; later ones are independent


@dataclass(slots=True)
class Outcome:
    """The drawn index (None if no token is valid), log Ẑ, the indices found invalid, and the number of
    tests.
    """

    index: int | None
    log_mass: float
    rejected: list[int] = field(default_factory=list)
    tests: int = 0


Step = Generator[int, bool, Outcome]
T = TypeVar("T")
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class _Start:
    """The cumulative distribution that all draws of a group begin with."""

    def __init__(self, log_weights: Float) -> None:
        self.log_weights = log_weights
        self.cumulative = cumulated(log_weights)


class Spaced(np.random.Generator):
    """The generator of one of m draws: the k-th choice of the j-th draw is made by frac(u_k + j/m).

    Each draw by itself has independent uniform numbers, so it stays proper; together they spread over the
    distribution: on the worst of twenty random toys that takes the distance of 20 particles from 0.16 to
        0.09.
    Rejected: handing on what was found invalid from draw to draw (it was found by numbers that tell the next
    ones); the verdicts are in the constraint's cache, so nothing is asked twice.
    """

    def __init__(self, bits: np.random.BitGenerator, numbers: Float, start: _Start) -> None:
        super().__init__(bits)
        self._numbers, self.start = iter((numbers % 1.0).tolist()), start

    def lead(self) -> float | None:
        """The next of the spaced numbers; None when they are used up."""
        return next(self._numbers, None)


def race(log_weights: Float, generator: np.random.Generator) -> Iterator[int]:
    """Indices of positive weight in the order of sampling without replacement ∝ exp(log_weights)."""
    if isinstance(generator, Spaced):
        while (uniform := generator.lead()) is not None:
            same = log_weights is generator.start.log_weights
            steps = generator.start.cumulative if same else cumulated(log_weights)
            if steps[-1] == 0.0:
                return
            yield (index := int(invert(steps, uniform)))
            log_weights = _remaining(log_weights, [index])
    with np.errstate(invalid="ignore"):
        keys = np.log(generator.standard_exponential(len(log_weights))) - log_weights
    order = np.flatnonzero(log_weights > -np.inf)
    done, block = 0, FIRST_BLOCK
    while done < len(order):
        rest = order[done:]
        if len(rest) > block:
            rest = rest[np.argpartition(keys[rest], block)]
        size = min(block, len(rest))
        rest[:size] = rest[:size][np.argsort(keys[rest[:size]], kind="stable")]
        order[done:] = rest
        yield from rest[:size].tolist()
        done, block = done + size, block * 8


def two_loops(log_weights: Float, generator: np.random.Generator) -> Step:
    """See the module's header."""
    outcome = yield from _first_valid(race(log_weights, generator))
    if outcome.index is None:
        return outcome
    remaining = _remaining(log_weights, outcome.rejected)
    for index in race(remaining, generator):
        if index == outcome.index:
            break
        outcome.tests += 1
        if (yield index):
            break
        outcome.rejected.append(index)
    outcome.log_mass = log_sum(remaining) - math.log(len(outcome.rejected) + 1)
    return outcome


def recursive(log_weights: Float, generator: np.random.Generator) -> Step:
    """See the module's header."""
    order = race(log_weights, generator)
    outcome = yield from _first_valid(order)
    if outcome.index is None:
        return outcome
    remaining = _remaining(log_weights, outcome.rejected)
    following = next(order, None)
    valid = True
    if following is not None:
        outcome.tests += 1
        valid = yield following
        if not valid:
            outcome.rejected.append(following)
    outcome.log_mass = log_sum(remaining) if valid else float(log_weights[outcome.index])
    return outcome


def geometric(log_weights: Float, generator: np.random.Generator, accepts: int = 2) -> Step:
    """See the module's header; `accepts` is m ≥ 2.

    Up to the next valid token no token comes twice, so one race gives the order of all these draws.
    """
    outcome = Outcome(None, -math.inf)
    valid: set[int] = set()
    remaining, total = log_weights.copy(), log_sum(log_weights)
    weights = np.exp(log_weights - log_weights.max()) if total > -math.inf else np.zeros(0)
    whole, hits, rejects = float(weights.sum()), 0, 0.0
    while hits < accepts:
        hit = None
        for index in race(remaining, generator):
            if outcome.rejected:
                left = float(weights.sum())
                share = math.log(left / whole) if left > 0 else log_sum(remaining) - total
                rejects += _phantoms(share, generator)
            if index not in valid:
                outcome.tests += 1
                if not (yield index):
                    rejects += 1
                    outcome.rejected.append(index)
                    remaining[index], weights[index] = -np.inf, 0.0
                    continue
                valid.add(index)
            hit = index
            break
        if hit is None:
            break
        hits += 1
        outcome.index = hit if outcome.index is None else outcome.index
    if hits:
        outcome.log_mass = total + math.log(min(accepts - 1, hits)) - math.log(hits + rejects - 1)
    return outcome


def estimator(name: Estimator, accepts: int = 2) -> Callable[[Float, np.random.Generator], Step]:
    """The estimator of a name; `accepts` matters to "geometric" alone."""
    if name == "geometric":
        if accepts < 2:
            raise OptionError(f"accepts is {accepts}; the geometric estimator needs at least 2")
        return lambda weights, generator: geometric(weights, generator, accepts)
    known = {"auto": _fewest_tests, "two_loops": two_loops, "recursive": recursive}
    if name not in known:
        raise OptionError(f"estimator is {name!r}; it must be 'geometric' or one of {', '.join(known)}")
    return known[name]


def _fewest_tests(log_weights: Float, generator: np.random.Generator) -> Step:
    # the choice is made by the distribution alone, before anything is drawn: the weight stays proper
    top = float(log_weights.max()) if len(log_weights) else -math.inf
    peaked = top > -math.inf and top - log_sum(log_weights) >= PEAK
    return geometric(log_weights, generator) if peaked else recursive(log_weights, generator)


def spaced(
    make: Callable[[Float, np.random.Generator], Step],
    log_weights: Float,
    generators: list[np.random.Generator],
) -> list[Step]:
    """Several draws from one distribution, spread over it: see `Spaced`."""
    if len(generators) == 1:
        return [make(log_weights, generators[0])]
    shifts = generators[0].random(LEADS)
    start = _Start(log_weights)
    return [
        make(log_weights, Spaced(generator.bit_generator, shifts + j / len(generators), start))
        for j, generator in enumerate(generators)
    ]


def run_steps(
    steps: Sequence[Generator[Question, Answer, T]],
    answer: Callable[[list[int], list[Question]], Sequence[Answer]],
) -> list[T]:
    """Runs steps, or other coroutines that ask, side by side.  `answer(which steps, what each asks)` answers
    one round for all that still ask.
    """
    outcomes: dict[int, T] = {}
    asked: dict[int, Question] = {}

    def resume(i: int, send: Callable[[], Question]) -> None:
        try:
            asked[i] = send()
        except StopIteration as stop:
            outcomes[i] = stop.value
            asked.pop(i, None)

    for i, step in enumerate(steps):
        resume(i, partial(next, step))
    while asked:
        rows = list(asked)
        for i, told in zip(rows, answer(rows, [asked[i] for i in rows]), strict=True):
            resume(i, partial(steps[i].send, told))
    return [outcomes[i] for i in range(len(steps))]


def _first_valid(order: Iterator[int]) -> Step:
    outcome = Outcome(None, -math.inf)
    for index in order:
        outcome.tests += 1
        if (yield index):
            outcome.index = index
            break
        outcome.rejected.append(index)
    return outcome


def _remaining(log_weights: Float, rejected: list[int]) -> Float:
    if not rejected:
        return log_weights
    rest: Float = log_weights.copy()
    rest[rejected] = -np.inf
    return rest


def _phantoms(log_remaining: float, generator: np.random.Generator) -> float:
    """Hits on known rejects before the next draw: Geom(q) - 1 with q = exp(log_remaining); by inversion, as
    a float.
    """
    uniform = generator.random()
    if log_remaining >= 0.0:
        return 0.0
    log_rejected = math.log(-math.expm1(log_remaining)) if log_remaining > -36.0 else -math.exp(log_remaining)
    return float(math.floor(math.log1p(-uniform) / log_rejected)) if log_rejected < 0 else math.inf
