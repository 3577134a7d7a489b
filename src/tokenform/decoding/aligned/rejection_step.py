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

Expected tests of the first loop: 1 + Σ_{invalid r} w_r/(w_r + Z), and a quarter more where rejects in a row
are many, for then several are tested at once (what comes behind the first valid one is not looked at).  Each
estimator is a coroutine that yields the indices to test and is sent the verdicts, so that many particles test
in one batch.  Rejected: several at once from the start; most steps need two tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Generator, Iterator, Sequence
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
BLOCK = 4  # rejects in a row for each further token that is tested at once
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


Step = Generator[list[int], Sequence[bool], Outcome]
T = TypeVar("T")
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Spaced(np.random.Generator):
    """The generator of one of m draws: the k-th choice of the j-th draw is made by frac(u_k + j/m).

    Each draw by itself has independent uniform numbers, so it stays proper; together they spread over the
    distribution: on the worst of twenty random toys that takes the distance of 20 particles from 0.16 to
        0.09.
    Rejected: handing on what was found invalid from draw to draw (it was found by numbers that tell the next
    ones); the verdicts are in the constraint's cache, so nothing is asked twice.

    Attributes:
        numbers: the spaced ones that are left.
        log_weights, cumulative: the distribution that all draws of a group begin with.
    """

    def __init__(
        self, bits: np.random.BitGenerator, numbers: Float, log_weights: Float, cumulative: Float
    ) -> None:
        super().__init__(bits)
        self.numbers = iter((numbers % 1.0).tolist())
        self.log_weights, self.cumulative = log_weights, cumulative


def race(log_weights: Float, generator: np.random.Generator) -> Iterator[int]:
    """Indices of positive weight in the order of sampling without replacement ∝ exp(log_weights)."""
    if isinstance(generator, Spaced):
        for uniform in generator.numbers:
            same = log_weights is generator.log_weights
            steps = generator.cumulative if same else cumulated(log_weights)
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
    outcome = Outcome(None, -math.inf)
    yield from _first_valid(race(log_weights, generator), outcome)
    if outcome.index is None:
        return outcome
    remaining = _remaining(log_weights, outcome.rejected)
    before = itertools.takewhile(lambda index: index != outcome.index, race(remaining, generator))
    yield from _first_valid(before, outcome)
    outcome.log_mass = log_sum(remaining) - math.log(len(outcome.rejected) + 1)
    return outcome


def recursive(log_weights: Float, generator: np.random.Generator) -> Step:
    """See the module's header."""
    outcome = Outcome(None, -math.inf)
    order = yield from _first_valid(race(log_weights, generator), outcome)
    if outcome.index is None:
        return outcome
    remaining = _remaining(log_weights, outcome.rejected)
    following = next(order, None)
    valid = True
    if following is not None:
        outcome.tests += 1
        [valid] = yield [following]
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
    total, hits, phantoms = log_sum(log_weights), 0, 0.0
    while hits < accepts:
        before = len(outcome.rejected)
        order = race(_remaining(log_weights, outcome.rejected), generator)
        found = Outcome(None, -math.inf, outcome.rejected)
        yield from _first_valid(order, found, valid)
        outcome.tests += found.tests
        phantoms += _phantoms(log_weights, outcome.rejected, before, found.index, generator)
        if found.index is None:
            break
        valid.add(found.index)
        hits += 1
        outcome.index = found.index if outcome.index is None else outcome.index
    if hits:
        rejects = len(outcome.rejected) + phantoms
        outcome.log_mass = total + math.log(min(accepts - 1, hits)) - math.log(hits + rejects - 1)
    return outcome


def estimator(name: Estimator, accepts: int = 2) -> Callable[[Float, np.random.Generator], Step]:
    """The estimator of a name; `accepts` matters to "geometric" alone."""
    if name == "geometric":
        if accepts < 2:
            raise OptionError(f"accepts is {accepts}; the geometric estimator needs at least 2")
        return lambda weights, generator: geometric(weights, generator, accepts)
    estimators = {"auto": _fewest_tests, "two_loops": two_loops, "recursive": recursive}
    if name not in estimators:
        raise OptionError(f"estimator is {name!r}; it must be 'geometric' or one of {', '.join(estimators)}")
    return estimators[name]


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
    shifts, steps = generators[0].random(LEADS), cumulated(log_weights)
    return [
        make(log_weights, Spaced(one.bit_generator, shifts + j / len(generators), log_weights, steps))
        for j, one in enumerate(generators)
    ]


def run_steps(
    steps: Sequence[Generator[Question, Answer, T]],
    answer: Callable[[list[int], list[Question]], Sequence[Answer]],
) -> list[T]:
    """Runs steps, or other coroutines that ask, side by side.  `answer(which steps, what each asks)` answers
    one round for all that still ask.
    """
    outcomes: dict[int, T] = {}
    questions: dict[int, Question] = {}

    def resume(i: int, send: Callable[[], Question]) -> None:
        try:
            questions[i] = send()
        except StopIteration as stop:
            outcomes[i] = stop.value
            questions.pop(i, None)

    for i, step in enumerate(steps):
        resume(i, partial(next, step))
    while questions:
        rows = list(questions)
        for i, verdict in zip(rows, answer(rows, [questions[i] for i in rows]), strict=True):
            resume(i, partial(steps[i].send, verdict))
    return [outcomes[i] for i in range(len(steps))]


def _first_valid(
    order: Iterator[int], outcome: Outcome, valid: Container[int] = ()
) -> Generator[list[int], Sequence[bool], Iterator[int]]:
    """Tests in this order until a token is valid, and puts it and those before it into the outcome; what
    comes after it is returned.

    Args:
        valid: tokens that are known to be.

    One by one at first; after many rejects so many at once that a quarter more are tested at most.
    """
    tests = 0
    while block := list(itertools.islice(order, max(tests // BLOCK, 1))):
        untested = [index for index in block if index not in valid]
        verdicts = dict(zip(untested, (yield untested), strict=True)) if untested else {}
        tests, outcome.tests = tests + len(untested), outcome.tests + len(untested)
        for place, index in enumerate(block):
            if verdicts.get(index, True):
                if outcome.index is None:
                    outcome.index = index
                return itertools.chain(block[place + 1 :], order)
            outcome.rejected.append(index)
    return order


def _remaining(log_weights: Float, rejected: list[int]) -> Float:
    if not rejected:
        return log_weights
    rest: Float = log_weights.copy()
    rest[rejected] = -np.inf
    return rest


def _phantoms(
    log_weights: Float, rejected: list[int], before: int, hit: int | None, generator: np.random.Generator
) -> float:
    """Hits on known rejects before each draw of a race: Geom(q) - 1, q the share that is left then; by
    inversion, as a float.

    Args:
        rejected: all rejects, of which those from `before` on are the race's; then comes `hit`.
    """
    race = rejected[before:]
    rest = log_sum(_remaining(log_weights, rejected))
    left = np.logaddexp.accumulate([rest, *log_weights[race[::-1]]])[::-1] - log_sum(log_weights)
    # before the first draw nothing is known, and a race without a hit ends with its last reject
    left = left[0 if before else 1 : None if hit is not None else -1]
    uniforms = generator.random(len(left))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rejected = np.where(left > -36.0, np.log(-np.expm1(np.minimum(left, 0.0))), -np.exp(left))
        hits = np.where(log_rejected < 0, np.floor(np.log1p(-uniforms) / log_rejected), math.inf)
    return float(hits.sum())
