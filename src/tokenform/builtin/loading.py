"""Reads the finished weights: `load()`, `load_draft()` and `load_diffusion()`.

Invariant: no network; each is read once for each process and shared.  The weights are stored in
bfloat16 and computed with in float32, which is faster on CPUs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenform.engine.opening import opened_once
from tokenform.errors import ModelError, extras

WEIGHTS = Path(__file__).with_name("weights")


def read_tokenizer(folder: Path) -> Any:
    """The `PreTrainedTokenizerFast` that lies in a folder."""
    with extras():
        from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)


def read(folder: Path) -> tuple[Any, Any]:
    """The causal model and the tokenizer that lie in a folder."""
    with extras():
        from transformers import LlamaForCausalLM

    return read_model(folder, LlamaForCausalLM), read_tokenizer(folder)


def read_model(folder: Path, kind: Any) -> Any:
    """The model of a class of transformers that lies in a folder, in float32."""
    if not (folder / "model.safetensors").exists():
        raise ModelError(
            f"the built-in model has no weights in {folder}: reinstall the package, "
            "or train it in a checkout: `python -m benchmarks.training.train`"
        )
    with extras():
        import torch
        from transformers.utils import logging

    quiet = not logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = kind.from_pretrained(folder, local_files_only=True)
    finally:
        if not quiet:
            logging.enable_progress_bar()
    torch.nn.Module.to(model, torch.float32)
    return model.eval()


@opened_once(1)
def load() -> tuple[Any, Any]:
    """The built-in model and its tokenizer.

    Returns:
        A `LlamaForCausalLM` on the CPU in float32, in evaluation mode, and its tokenizer.

    Raises:
        ModelError: the package holds no weights.
    """
    return read(WEIGHTS / "model")


@opened_once(1)
def load_draft() -> tuple[Any, Any]:
    """The draft model, with the same tokenizer as `load()`.

    Raises:
        ModelError: the package holds no weights.
    """
    return read(WEIGHTS / "draft")


@opened_once(1)
def load_diffusion() -> tuple[Any, Any]:
    """The masked-diffusion model, with the same tokenizer as `load()`.

    Returns:
        A `ModernBertForMaskedLM` on the CPU in float32, in evaluation mode, whose `config.mask_token_id`
        stands at open positions, and the tokenizer.

    Raises:
        ModelError: the package holds no weights.
    """
    with extras():
        from transformers import ModernBertForMaskedLM

    return read_model(WEIGHTS / "diffusion", ModernBertForMaskedLM), read_tokenizer(WEIGHTS / "model")
