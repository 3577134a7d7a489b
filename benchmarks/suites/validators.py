"""Twenty types with validators in Python, whose share of valid texts goes from all to one in ten thousand.

Purpose: what `Generator.sample` does with validators, judged: every result valid, how often each comes, and
how many passes of the model a valid text costs beside generating and asking again.
Invariant: the texts of each type are few enough to be enumerated, with the model's own distributions.
Complexity: of a distance, a draw costs what a text costs (some 10 ms over a tiny model), and there are 300 to
6,000 draws, as many as the spread of the distribution asks for.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import torch
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, field_validator, model_validator
from typing_extensions import TypedDict

from tokenform.decoding.results import Estimates
from tokenform.decoding.samplers.local import Local
from tokenform.errors import LimitExceeded
from tokenform.frontends import Grammar, from_type


def only(test: Callable[[Any], bool]) -> AfterValidator:
    """Lets values pass that a test holds for."""

    def checked(value: Any) -> Any:
        if not test(value):
            raise ValueError(f"{value!r} does not pass")
        return value

    return AfterValidator(checked)


Digit = Annotated[int, Field(ge=0, le=9)]
Two = Annotated[int, Field(ge=0, le=99)]
Three = Annotated[int, Field(ge=0, le=999)]
Four = Annotated[int, Field(ge=1000, le=9999)]
Letters = Annotated[str, Field(pattern="^[a-c]{3}$")]
Bits = Annotated[str, Field(pattern="^[01]{10}$")]


class Anything(BaseModel):
    n: Annotated[Digit, only(lambda v: True)]


class Even(BaseModel):
    n: Digit

    @field_validator("n")
    @classmethod
    def even(cls, value: int) -> int:
        assert value % 2 == 0
        return value


class Rising(BaseModel):
    low: Digit
    high: Digit

    @field_validator("high")
    @classmethod
    def above(cls, value: int, info: pydantic.ValidationInfo) -> int:
        if value <= info.data["low"]:
            raise ValueError("not above low")
        return value


class Seven(BaseModel):
    a: Digit
    b: Digit

    @model_validator(mode="after")
    def sum_is_seven(self) -> Seven:
        if self.a + self.b != 7:
            raise ValueError("the sum is not 7")
        return self


class Palindrome(BaseModel):
    word: Annotated[Letters, only(lambda v: v == v[::-1])]


class Prime(BaseModel):
    n: Annotated[Two, only(lambda v: v > 1 and all(v % d for d in range(2, v)))]


class Square(BaseModel):
    n: Annotated[Three, only(lambda v: int(v**0.5) ** 2 == v)]


class Divided(BaseModel):
    n: Annotated[Three, only(lambda v: v % 97 == 0)]


class Sorted(BaseModel):
    items: Annotated[list[Digit], Field(min_length=3, max_length=3), only(lambda v: v == sorted(v))]


class EachEven(BaseModel):
    items: Annotated[list[Annotated[Digit, only(lambda v: v % 2 == 0)]], Field(min_length=2, max_length=2)]


class Checked(BaseModel):
    code: Annotated[
        str, Field(pattern="^[0-9]{3}$"), only(lambda v: (int(v[0]) + int(v[1])) % 10 == int(v[2]))
    ]


class Inner(BaseModel):
    x: Annotated[Digit, only(lambda v: v % 3 == 0)]


class Nested(BaseModel):
    kind: Literal["a", "b"]
    inner: Inner


class Reversed(BaseModel):
    word: Annotated[Letters, BeforeValidator(lambda v: v[::-1]), only(lambda v: v < "b")]


@pydantic.dataclasses.dataclass
class Point:
    x: Digit
    y: Digit

    def __post_init__(self) -> None:
        if self.x != self.y:
            raise ValueError("not on the diagonal")


class Pair(TypedDict):
    left: Digit
    right: Annotated[Digit, only(lambda v: v > 7)]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[Digit, only(lambda v: v == 9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    legs: Annotated[Digit, only(lambda v: v == 4)]


class Counted(BaseModel):
    bits: Annotated[Bits, only(lambda v: v.count("1") == 9)]


class Quarter(BaseModel):
    n: Annotated[Four, only(lambda v: v % 1250 == 0)]


class Exactly(BaseModel):
    n: Annotated[Four, only(lambda v: v == 4850)]


class Twins(BaseModel):
    a: Two
    b: Annotated[Two, only(lambda v: v % 50 == 7)]

    @model_validator(mode="after")
    def equal(self) -> Twins:
        if self.a != self.b:
            raise ValueError("not equal")
        return self


@dataclasses.dataclass
class Pet:
    animal: Cat | Dog


TYPES: tuple[Any, ...] = (
    Anything, Even, Rising, Seven, Palindrome, Prime, Square, Divided, Sorted, EachEven, Checked, Nested,
    Reversed, Point, Pair, Pet, Counted, Quarter, Exactly, Twins,
)  # fmt: skip


def grammar_of(tp: Any) -> Grammar:
    """The type's grammar in the spelling whose texts are enumerated."""
    return from_type(tp, whitespace="compact", strings="canonical")


def valid(tp: Any, text: str) -> bool:
    """What pydantic says about a whole text."""
    try:
        pydantic.TypeAdapter(tp).validate_json(text)
    except pydantic.ValidationError:
        return False
    return True


def masked_distribution(generator: Any, prompt: Any, tp: Any, *, limit: int = 200_000) -> dict[str, float]:
    """The probability of every text when each token is drawn from the model's distribution at temperature 1
    under the mask.

    Raises:
        LimitExceeded: there are more prefixes than `limit`.
    """
    grammar = grammar_of(tp)
    automaton, model = grammar.compile(generator.vocabulary), generator.model
    begin, tokens = tuple(generator.prompt_ids(prompt, grammar)), generator.vocabulary.tokens
    ends = set(generator.vocabulary.eos)
    found: dict[str, float] = {}
    level: list[tuple[tuple[int, ...], Any, float]] = [((), automaton.start, 1.0)]
    seen = 0
    while level:
        following = []
        for first in range(0, len(level), 512):
            part = level[first : first + 512]  # all of one length
            with torch.inference_mode():
                logits = model(torch.tensor([begin + written for written, _, _ in part])).logits[:, -1]
            distributions = torch.log_softmax(logits.double(), -1).numpy()
            for (written, state, chance), distribution in zip(part, distributions, strict=True):
                ids = np.asarray(automaton.allowed_tokens(state), dtype=np.int64)
                shares = np.exp(distribution[ids] - distribution[ids].max())
                shares /= shares.sum()
                for token, share in zip(ids.tolist(), shares.tolist(), strict=True):
                    if token in ends:
                        text = b"".join(tokens[one] for one in written).decode()
                        found[text] = found.get(text, 0.0) + chance * share
                    else:
                        following.append(((*written, token), automaton.advance(state, token), chance * share))
        seen += len(following)
        if seen > limit:
            raise LimitExceeded(f"more than {limit} prefixes.")
        level = following
    return found


def conditional(distribution: dict[str, float], tp: Any) -> tuple[dict[str, float], float]:
    """The distribution given that the text is valid, and the share of valid texts."""
    kept = {text: chance for text, chance in distribution.items() if valid(tp, text)}
    share = sum(kept.values())
    return {text: chance / share for text, chance in kept.items()}, share


@dataclasses.dataclass(frozen=True)
class Distance:
    """How far the texts that were drawn are from the enumerated distribution.

    Attributes:
        distance: total variation between how often each text came and how often it should.
        draws: how many were drawn.
        texts: how many valid texts there are.
        share: of valid texts among those that the masks allow, enumerated.
        estimates: what the generator says about it.
    """

    distance: float
    draws: int
    texts: int
    share: float
    estimates: Estimates


def distance(generator: Any, prompt: Any, tp: Any, n: int | None = None, *, seed: int = 11) -> Distance:
    """Draws n texts of a type by `Generator.sample`, and compares them with the exact conditional.

    Args:
        n: None for as many as bring what exact draws would be off by below 0.03, 300 to 6,000.
    Raises:
        LimitExceeded: there are too many texts.
    """
    want, share = conditional(masked_distribution(generator, prompt, tp), tp)
    if n is None:  # half the sum of sqrt(p (1 - p) / n) bounds the expected distance of n exact draws
        spread = 0.5 * sum(math.sqrt(max(p * (1 - p), 0.0)) for p in want.values())
        n = min(max(int((spread / 0.03) ** 2), 300), 6000)
    results = generator.sample(prompt, grammar_of(tp), n=n, seed=seed, sampler=Local(), max_tries=50_000)
    got = Counter(result.text for result in results)
    off = 0.5 * math.fsum(abs(got[text] / n - want.get(text, 0.0)) for text in {*got, *want})
    return Distance(off, n, len(want), share, results[0].estimates)
