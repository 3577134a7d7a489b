"""What predicts the tokens of a canvas: a model of the masked kind, or whatever has the same two methods.

Invariant: a denoiser knows nothing of constraints; rows of logits stand where the positions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from tokenform.decoding.speculative.backbone.base import Counters
from tokenform.decoding.speculative.backbone.threads import threads_of
from tokenform.errors import ModelError

Known = Sequence[int | None]
"""The tokens of a canvas; None where a position is open."""


class CanvasSession(Protocol):
    """The canvases of one prompt."""

    def logits(self, texts: Sequence[int], canvases: Sequence[Known]) -> torch.Tensor:
        """float [B, L, V] for canvases of one length, one of each text by its number: one pass."""


class Denoiser(Protocol):
    """What it says of a canvas is to depend on prompt and canvas alone; one that is told what it said before
    has the attribute `remembers`, True."""

    def begin(self, prompt: Sequence[int], seed: int | None) -> CanvasSession:
        """Canvases behind a prompt."""


class MaskedDenoiser:
    """A model in which a mask token stands at open positions (LLaDA, Dream, MDLM).

    Args:
        model: tokens int64 [B, T] -> logits [B, T, V], or an object that has them as `.logits`; it attends in
            both directions.
        mask: the id of the mask token.
        device: where its tokens go; None: where its parameters are.
        window: how many positions behind the first open one the model reads, of what comes after them it says
            nothing; None: all (Window-Diffusion; shorter passes, and more of them).
    """

    def __init__(self, model: Any, mask: int, device: Any = None, window: int | None = None) -> None:
        self.model, self.mask, self.window = model, mask, window
        parameters = getattr(model, "parameters", None)
        first = next(iter(parameters()), None) if callable(parameters) else None
        self.device = device if device is not None else getattr(first, "device", "cpu")
        self.threads = threads_of(model)

    def begin(self, prompt: Sequence[int], seed: int | None) -> _MaskedSession:
        return _MaskedSession(self, list(prompt))


class _MaskedSession:
    def __init__(self, own: MaskedDenoiser, prompt: list[int]) -> None:
        self._own, self._prompt = own, prompt

    @torch.no_grad()
    def logits(self, texts: Sequence[int], canvases: Sequence[Known]) -> torch.Tensor:
        length = seen = len(canvases[0])
        if self._own.window is not None:
            seen = min(length, max(list(canvas).index(None) for canvas in canvases) + self._own.window)
        rows = [
            self._prompt + [self._own.mask if token is None else token for token in canvas[:seen]]
            for canvas in canvases
        ]
        tokens = torch.tensor(rows, dtype=torch.long, device=self._own.device)
        counters = Counters()
        with self._own.threads.run(counters):
            found = self._own.model(tokens)
            counters.positions = tokens.numel()
        logits: torch.Tensor = getattr(found, "logits", found)
        if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
            raise ModelError(
                f"the model gives logits of the shape {tuple(logits.shape)} for tokens of the shape "
                f"{tuple(tokens.shape)}; a masked diffusion model gives [B, T, V]."
            )
        logits = logits[:, len(self._prompt) :]
        beyond = logits.new_zeros(len(rows), length - seen, logits.shape[2])
        return logits if seen == length else torch.cat([logits, beyond], 1)
