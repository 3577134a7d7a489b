"""All positions at once, as soon as the model is confident.

Law: all open positions where the mean margin between the two likeliest tokens is at least a bound that
falls from `first` to `last` as positions are committed; else another policy decides.
Source: Prophet (Li et al., 2025, "Diffusion language models know the answer before decoding").
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.diffusion.policies.base import FillPolicy, FillStep
from tokenform.decoding.diffusion.policies.confidence import Confidence


class EarlyAnswer:
    """Args:
    before: the policy until then.
    first, last: margins that are enough at the beginning and near the end.
    """

    def __init__(self, before: FillPolicy | None = None, first: float = 0.95, last: float = 0.5) -> None:
        self.before, self.first, self.last = Confidence() if before is None else before, first, last

    @property
    def blind(self) -> bool:
        return getattr(self.before, "blind", False)

    def choose(self, step: FillStep) -> Sequence[int]:
        done = 1 - len(step.open) / step.length
        enough = self.first + (self.last - self.first) * done
        return list(step.open) if float(step.margin.mean()) >= enough else self.before.choose(step)
