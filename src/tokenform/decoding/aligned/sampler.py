"""The shape that all aligned samplers share.

A sampler is a frozen bundle of options; what it learns lives in objects of its own (`Trie`), keyed by the
problem. `sample(problem, n, seed)` is the whole interface; `bind` makes the problem from what a generator has
at hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint
from tokenform.decoding.aligned.canonical import Canonical, Encode
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.product import Product
from tokenform.decoding.aligned.protocols import Constraint, LanguageModel, Potential
from tokenform.decoding.aligned.results import Sample
from tokenform.decoding.samplers.local import Local
from tokenform.errors import OptionError

Made = TypeVar("Made")


class Common(TypedDict, total=False):
    """The options that every aligned sampler takes, by keyword; see `AlignedSampler`."""

    temperature: float
    top_k: int | None
    top_p: float
    min_p: float
    power: float
    potential: Potential | None
    batch_size: int | None
    fast_forward: bool
    canonical: bool


class AlignedSampler(ABC):
    """Base of Masked, ASAp, CARS, AWRS, SMC, MCMC, Beam and BestSpan: the options that all of them take.

    Args:
        temperature, top_k, top_p, min_p: applied to the model's distribution before the constraint.
        power: α of the target P(x)^α.
        potential: a soft factor Φ of the target.
        batch_size: most prefixes in one forward pass; None for no bound.
        fast_forward: score runs of forced tokens in one forward pass (never changes a draw).
        canonical: another target, over texts instead of token sequences: each text counts in the one
            tokenisation that the tokenizer itself would write.
    """

    takes_potential = True

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        power: float = 1.0,
        potential: Potential | None = None,
        batch_size: int | None = None,
        fast_forward: bool = True,
        canonical: bool = False,
    ) -> None:
        if not temperature > 0:
            raise OptionError(
                f"temperature is {temperature}; it must be above 0 (use Local for greedy decoding)"
            )
        self.transforms = Local(temperature, top_k, top_p, min_p)
        if not power > 0:
            raise OptionError(f"power is {power}; it must be above 0")
        if batch_size is not None and batch_size < 1:
            raise OptionError(f"batch_size is {batch_size}; it must be at least 1, or None for no bound")
        if potential is not None and not self.takes_potential:
            raise OptionError(
                f"{type(self).__name__} can't take a potential; use SMC, MCMC or CARS with a bounded one"
            )
        self.power, self.potential = power, potential
        self.batch_size, self.fast_forward, self.canonical = batch_size, fast_forward, canonical

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def bind(
        self,
        model: LanguageModel,
        constraint: Constraint | Any,
        prompt: Sequence[int] = (),
        max_tokens: int | None = None,
        *,
        encode: Encode | None = None,
    ) -> Problem:
        """The problem of this sampler's options with a model and a constraint (or a token automaton).

        Args:
            encode: bytes of a text -> its token ids without special tokens; for `canonical`.
        Raises:
            OptionError: `canonical` without `encode`.
        """
        bound: Any = constraint if hasattr(constraint, "candidates") else AutomatonConstraint(constraint)
        if self.canonical:
            if encode is None:
                raise OptionError("canonical tokenisations need a tokenizer; give encode=, or leave them out")
            bound = Product(bound, Canonical(bound.token_bytes, model.eos, encode))
        return Problem(
            model, bound, tuple(prompt), max_tokens, self.transforms, self.power, self.potential,
            self.batch_size, self.fast_forward,
        )  # fmt: skip

    @abstractmethod
    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """Draws n texts; the same seed gives the same draws for any batch size."""


def first_of_each(
    count: int, attempts: int, make: Callable[[list[tuple[int, int]]], Sequence[Made | None]]
) -> dict[int, Made]:
    """What the first attempt at each of `count` draws that came to something has made; draws of which all
    failed are left out.

    Args:
        make: (draw, attempt) of all that are missing -> what each has made, None for nothing.
    """
    results: dict[int, Made] = {}
    for attempt in range(attempts):
        missing = [(draw, attempt) for draw in range(count) if draw not in results]
        if not missing:
            break
        made = zip(missing, make(missing), strict=True)
        results |= {draw: one for (draw, _), one in made if one is not None}
    return results
