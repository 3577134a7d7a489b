"""What generation gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Stats:
    """The work behind one result.

    Attributes:
        forwards: forward passes of the model that this sequence took part in, the prompt's included.
        tokens: tokens of the text, the end-of-text token excluded.
        drafted: tokens that were guessed and scored.
        accepted: guessed tokens that were kept.
        evaluations: masks that were asked for.
        seconds_model: wall time in the model; the time of a batch is shared equally by its sequences.
        seconds_mask: wall time in masks and their application, shared likewise.
    """

    forwards: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    evaluations: int = 0
    seconds_model: float = 0.0
    seconds_mask: float = 0.0


@dataclass
class Result:
    """One complete text that the constraint accepts.

    Attributes:
        text: the text.
        tokens: its ids, without the end-of-text token.
        value: the parsed text: JSON, an instance of the type that was asked for, or the text itself.
        logprob: natural logarithm of the probability of `tokens` under the model's own law at temperature 1,
            before masks, transforms and truncation; without the end-of-text token.
        log_weight: logarithm of the importance weight towards the sampler's target; 0 for samplers whose
            draws are not weighted.
        stats: the work behind it.
    """

    text: str
    tokens: list[int]
    value: Any
    logprob: float
    log_weight: float = 0.0
    stats: Stats = field(default_factory=Stats)
