"""`tf.DiffusionGenerator` for the built-in model and for DiffusionGemma of transformers.

DiffusionGemma's decoder has no mask token: open positions have random tokens, and each pass gets the logits
of the pass before.  The prompt is run once: its keys and values, which the decoder only reads, serve all
passes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenform.builtin import load_diffusion
from tokenform.errors import ModelError, extras

with extras():
    import torch

    from tokenform.decoding.diffusion import generator
    from tokenform.decoding.diffusion.denoisers import Known
    from tokenform.integrations.models import builtin_prompt


BUILTIN = "builtin:diffusion"
"""The name of the built-in model."""


class DiffusionGenerator(generator.DiffusionGenerator):
    __doc__ = generator.DiffusionGenerator.__doc__

    def __init__(self, model: Any = None, tokenizer: Any = None, **options: Any) -> None:
        if isinstance(model, str | os.PathLike) and model != BUILTIN:
            model, model_tokenizer = _opened(Path(model))
            tokenizer = model_tokenizer if tokenizer is None else tokenizer
        if model in (None, BUILTIN) and tokenizer is None:
            model, tokenizer = load_diffusion()
            options = {"format_prompt": builtin_prompt, "length": 96, **options}
        elif tokenizer is None:
            raise ModelError("a model object needs its tokenizer; pass tokenizer=, or a Vocabulary.")
        config: Any = getattr(model, "config", None)
        if getattr(config, "model_type", None) == "diffusion_gemma":
            options.setdefault("length", config.canvas_length)
            model = DiffusionGemma(model)
        super().__init__(model, tokenizer, **options)


def is_diffusion(model: Any) -> bool:
    """Whether this is a diffusion model: a generator, the built-in one by name, or a folder of one."""
    if isinstance(model, generator.DiffusionGenerator) or model == BUILTIN:
        return True
    if not isinstance(model, str | os.PathLike):
        return False
    try:
        config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no folder of a model: opening it raises the error
        return False
    return isinstance(config, dict) and config.get("model_type") == "diffusion_gemma"


def _opened(folder: Path) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder.

    Raises:
        ModelError: the folder has no known kind of diffusion model.
    """
    if not is_diffusion(folder):
        raise ModelError(
            f"{str(folder)!r} is no folder of a DiffusionGemma; open other models of the masked kind "
            "yourself, and pass model= and tokenizer=."
        )
    with extras():
        from transformers import AutoTokenizer, DiffusionGemmaForBlockDiffusion
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = DiffusionGemmaForBlockDiffusion.from_pretrained(folder, dtype="auto", local_files_only=True)
    except Exception as error:  # a missing or broken file raises whatever its reader raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ModelError(f"the model {str(folder)!r} can't be opened: {reason}.") from error
    where = "cuda" if torch.cuda.is_available() else "cpu"
    return model.eval().to(where), tokenizer


class DiffusionGemma:
    """A `DiffusionGemmaForBlockDiffusion` as a denoiser."""

    remembers = True

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
        self._read: Any = None  # keys and values of the prompt, a row for each text

    @torch.no_grad()
    def logits(self, texts: Sequence[int], canvases: Sequence[Known]) -> torch.Tensor:
        size, device = self._model.config.text_config.vocab_size, self._model.device
        shape = len(canvases), len(canvases[0])
        noise = torch.randint(size, shape, generator=self._random).tolist()
        rows = [
            [drawn if token is None else token for token, drawn in zip(canvas, own, strict=True)]
            for canvas, own in zip(canvases, noise, strict=True)
        ]
        before = torch.stack([self._before[text] for text in texts]) if self._before else None
        inputs: dict[str, Any] = {"input_ids": torch.tensor([self._prompt] * len(canvases), device=device)}
        if self._read is not None:
            self._read.batch_select_indices(
                torch.arange(len(canvases), device=device)
            )  # texts only get fewer
            inputs = {"cache": self._read}
        output = self._model(
            **inputs,
            decoder_input_ids=torch.tensor(rows, device=device),
            self_conditioning_logits=before,
        )
        self._read = output.cache
        logits: torch.Tensor = output.logits
        self._before = dict(zip(texts, logits, strict=True))
        return logits
