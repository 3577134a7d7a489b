"""As many of the first positions as a causal model agrees with.

Law: open positions from the left, as long as their token is the likeliest that the position allows under the
mixture p ** ratio * q ** (1 - ratio) of the diffusion model's distribution p and that of a causal model, q,
which reads prompt and filling once; the first is always committed.
Source: APD (Israel, Van den Broeck, Grover, 2025, "Accelerating diffusion LLMs via adaptive parallel
decoding"), which draws both with the same Gumbel noise; here it is the likeliest token, whatever the draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tokenform.decoding.diffusion.policies.base import FillStep
from tokenform.engine.packed import mask_bits
from tokenform.errors import OptionError


class AdaptiveParallel:
    """Args:
    model: causal, with the same tokens: int64 [1, T] -> logits [1, T, V], or an object that has them as
        `.logits`.
    ratio: the diffusion model's part in the mixture.
    """

    def __init__(self, model: Any, ratio: float = 0.7) -> None:
        if not 0 <= ratio <= 1:
            raise OptionError(f"ratio={ratio} is not possible; give a number from 0 to 1.")
        self.model, self.ratio = model, ratio

    def __deepcopy__(self, _: Any) -> AdaptiveParallel:  # the model is everybody's
        return self

    def choose(self, step: FillStep) -> Sequence[int]:
        assert step.masks is not None and step.logits is not None and step.filling is not None
        after = self._read([*step.prompt, *step.filling.tolist()])[len(step.prompt) - 1 :]
        size = min(after.shape[1], step.logits.shape[1])
        chosen = [step.open[0]]
        for place, at in enumerate(step.open[1:], start=1):
            bits = mask_bits(step.masks[place], step.masks.shape[1] * 32)[:size]
            mixed = self.ratio * _logs(step.logits[at, :size]) + (1 - self.ratio) * _logs(after[at, :size])
            mixed = np.where(bits[: len(mixed)], mixed, -np.inf)
            token = int(step.tokens[place])
            if token < size and mixed[token] < mixed.max():
                break
            chosen.append(at)
        return chosen

    @torch.no_grad()
    def _read(self, tokens: list[int]) -> np.ndarray:
        """float [T, V], at each token what the causal model says of the next."""
        found = self.model(torch.tensor([tokens], device=getattr(self.model, "device", None)))
        rows: np.ndarray = getattr(found, "logits", found)[0].float().cpu().numpy()
        return rows


def _logs(row: np.ndarray) -> np.ndarray:
    most = row.max()
    logs: np.ndarray = row - most - np.log(np.exp(row - most).sum())
    return logs
