"""Importance weights of texts, against the probabilities of all texts of a small canvas."""

from __future__ import annotations

import collections
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tokenform as tf
from tokenform.decoding.diffusion import (
    Blocks,
    EarlyAnswer,
    EntropyBound,
    LeftToRight,
    SelfDraft,
    Threshold,
)

TOKENS = [b"a", b"b", b"ab", b"</s>"]
END, MASK, LENGTH, HEAT = 3, 4, 3, 0.8
VOCABULARY = tf.Vocabulary([*TOKENS, b""], eos=[END], special=[END, MASK])
PATTERN = "(ab|ba)+|b"
DRAWS = 1500


def model(tokens: torch.Tensor) -> torch.Tensor:
    """Each position hears all others, known and open."""
    weights = torch.randn(MASK + 1, MASK + 1, 5, generator=torch.Generator().manual_seed(4))
    rows = [
        [sum(weights[token, at, (at + other) % 5] * (1.5 if at != other else 0.2) for at in (0, 1, 2, 3))
         for token in range(MASK + 1)]
        for other in range(5)
    ]  # fmt: skip
    table = torch.tensor(rows)  # [5, V]
    mixed = torch.stack([table[(tokens + 2 * place).sum(1) % 5] for place in range(tokens.shape[1])], 1)
    return 0.4 * mixed - 100.0 * (torch.arange(MASK + 1) == MASK)


def accepted(length: int) -> list[tuple[int, ...]]:
    """All fillings that the pattern accepts."""
    found = []
    for filling in itertools.product(range(END + 1), repeat=length):
        stop = filling.index(END) if END in filling else length
        text = b"".join(TOKENS[token] for token in filling[:stop]).decode()
        if set(filling[stop:]) <= {END} and re.fullmatch(PATTERN, text):
            found.append(filling)
    return found


ACCEPTED = accepted(LENGTH)
Order = Callable[[list[int]], list[int]]


def logs(canvas: list[int]) -> torch.Tensor:
    """[L, V], of the model at this temperature."""
    return torch.log_softmax(model(torch.tensor([[0, *canvas]]))[0, 1:].double() / HEAT, -1)


def alone(filling: tuple[int, ...], order: Order) -> float:
    """The logarithm of the probability that the model itself writes a text, positions in this order."""
    canvas, total = [MASK] * LENGTH, 0.0
    while MASK in canvas:
        rows = logs(canvas)
        for at in order(canvas):
            total += float(rows[at, filling[at]])
            canvas[at] = filling[at]
    return total


def first(count: int, end: int = LENGTH) -> Order:
    """So many of the first open positions, the others before an end first."""

    def order(canvas: list[int]) -> list[int]:
        open_ = [at for at, token in enumerate(canvas) if token == MASK]
        return [at for at in open_ if at < end][:count] or open_[:count]

    return order


def by_entropy(bound: float) -> Order:
    """Those of the least entropy, among the tokens that some accepted text has there."""

    def order(canvas: list[int]) -> list[int]:
        rows = torch.log_softmax(model(torch.tensor([[0, *canvas]]))[0, 1:].double(), -1)
        left = [f for f in ACCEPTED if all(k in (MASK, t) for k, t in zip(canvas, f, strict=True))]
        found = {}
        for at in (at for at, token in enumerate(canvas) if token == MASK):
            shares = torch.softmax(rows[at, sorted({f[at] for f in left})], -1)
            found[at] = float(-(shares * shares.log()).sum())
        chosen, spent = [], 0.0
        for at in sorted(found, key=lambda one: found[one]):
            if spent <= bound:
                chosen.append(at)
            spent += found[at]
        return chosen

    return order


def written(policy: Any, n: int = DRAWS, seed: int = 1) -> list[Any]:
    own = tf.DiffusionGenerator(model, VOCABULARY, mask=MASK, length=LENGTH)
    kept: dict[int, Any] = {}
    results = own.generate(
        [0], tf.regex(PATTERN), n=n, temperature=HEAT, policy=policy, seed=seed, weigh=True,
        watch=lambda number, tokens: kept.update({number: tuple(tokens)}),
    )  # fmt: skip
    return [(kept[number], result) for number, result in enumerate(results)]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        (LeftToRight(), first(1)),
        (LeftToRight(2), first(2)),
        (Blocks(2, LeftToRight()), first(1)),
        (Blocks(2, EntropyBound(1e9)), first(3, 2)),
        (SelfDraft(LeftToRight(), 2), first(1)),
        (EarlyAnswer(LeftToRight(), first=2, last=2), first(1)),
        (EntropyBound(0.5), by_entropy(0.5)),
        (SelfDraft(EntropyBound(0.0), 2), by_entropy(0.0)),
    ],
    ids=["left to right", "two", "blocks", "whole blocks", "drafted", "early", "entropy", "least entropy"],
)
def test_weights_lead_to_what_the_model_writes_alone(policy: Any, order: Order) -> None:
    drawn = written(policy)
    mass = {filling: math.exp(alone(filling, order)) for filling in ACCEPTED}
    weights = {filling: math.exp(result.log_weight) for filling, result in drawn}
    assert set(weights) == set(mass)  # all were met
    # a text is drawn with its probability over its weight: these sum to one, and are how often it was
    share = {filling: mass[filling] / weights[filling] for filling in mass}
    assert math.isclose(sum(share.values()), 1, abs_tol=1e-5)
    counts = collections.Counter(filling for filling, _ in drawn)
    chi_square = sum((counts[f] - DRAWS * p) ** 2 / (DRAWS * p) for f, p in share.items())
    assert chi_square < len(share) - 1 + 5 * math.sqrt(2 * (len(share) - 1))
    told = drawn[0][1].estimates
    assert abs(told.log_z - math.log(sum(mass.values()))) < 5 * told.log_z_error < 0.5
    assert not told.exact and 0 < told.ess <= DRAWS * (1 + 1e-9)


def test_one_pass_draws_exactly() -> None:
    drawn = written(EntropyBound(1e9))
    mass = {filling: math.exp(alone(filling, first(3))) for filling in ACCEPTED}
    whole = sum(mass.values())
    assert all(math.isclose(r.log_weight, math.log(whole), abs_tol=1e-5) for _, r in drawn)
    counts = collections.Counter(filling for filling, _ in drawn)
    chi_square = sum((counts[f] - DRAWS * p / whole) ** 2 / (DRAWS * p / whole) for f, p in mass.items())
    assert chi_square < len(mass) - 1 + 5 * math.sqrt(2 * (len(mass) - 1))
    told = drawn[0][1].estimates
    assert told.exact and told.distance == 0 and told.log_z_error == 0
    assert math.isclose(told.ess, DRAWS, rel_tol=1e-6)


def test_what_can_not_be_weighed_is_said() -> None:
    own = tf.DiffusionGenerator(model, VOCABULARY, mask=MASK, length=LENGTH)
    for options in ({"policy": Threshold(), "temperature": 1.0}, {"policy": LeftToRight()}):
        with pytest.raises(tf.errors.OptionError, match="weigh"):
            own.generate([0], tf.regex(PATTERN), weigh=True, **options)
