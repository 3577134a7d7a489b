"""`tf.DiffusionGenerator` for the built-in model and for DiffusionGemma of transformers.

DiffusionGemma's decoder has no mask token: at open positions stand tokens drawn at random, and each pass is
told the logits of the one before.
Rejected: keeping the prompt's keys and values between passes (the prompt is short beside the canvas; its own
`generate` shows how).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenform.builtin import load_diffusion
from tokenform.errors import ModelError, extras

with extras():
    import torch

    from tokenform.decoding.diffusion import generator
    from tokenform.decoding.diffusion.denoisers import Known
    from tokenform.integrations.models import builtin_prompt


class DiffusionGenerator(generator.DiffusionGenerator):
    __doc__ = generator.DiffusionGenerator.__doc__

    def __init__(self, model: Any = None, tokenizer: Any = None, **options: Any) -> None:
        if model is None and tokenizer is None:
            model, tokenizer = load_diffusion()
            options = {"format_prompt": builtin_prompt, "length": 96, **options}
        elif tokenizer is None:
            raise ModelError("a model object needs its tokenizer; pass tokenizer=, or a Vocabulary.")
        config: Any = getattr(model, "config", None)
        if getattr(config, "model_type", None) == "diffusion_gemma":
            options.setdefault("length", config.canvas_length)
            model = DiffusionGemma(model)
        super().__init__(model, tokenizer, **options)


class DiffusionGemma:
    """A `DiffusionGemmaForBlockDiffusion` as a denoiser."""

    def __init__(self, model: Any) -> None:
        self.model, self.config = model, model.config.text_config

    def begin(self, prompt: Sequence[int], seed: int | None) -> _Session:
        return _Session(self.model, prompt, seed)


class _Session:
    def __init__(self, model: Any, prompt: Sequence[int], seed: int | None) -> None:
        self._model, self._prompt = model, list(prompt)
        self._random = torch.Generator()
        self._random.manual_seed(torch.seed() if seed is None else seed)
        self._before: dict[int, torch.Tensor] = {}

    @torch.no_grad()
    def logits(self, texts: Sequence[int], canvases: Sequence[Known]) -> torch.Tensor:
        size, device = self._model.config.text_config.vocab_size, self._model.device
        shape = len(canvases), len(canvases[0])
        noise = torch.randint(size, shape, generator=self._random).tolist()
        rows = [
            [drawn if token is None else token for token, drawn in zip(canvas, own, strict=True)]
            for canvas, own in zip(canvases, noise, strict=True)
        ]
        prompt = torch.tensor([self._prompt] * len(canvases), device=device)
        before = torch.stack([self._before[text] for text in texts]) if self._before else None
        found = self._model(
            input_ids=prompt,
            decoder_input_ids=torch.tensor(rows, device=device),
            self_conditioning_logits=before,
        )
        logits: torch.Tensor = found.logits
        self._before = dict(zip(texts, logits, strict=True))
        return logits
