"""Opening models: the built-in one, or any Hugging Face model by path or name.

Purpose: the one place that turns a name into a model, its tokenizer and, for the built-in one, its prompts.
Invariant: a model that was opened once is shared by later calls of the process.  One that is opened by name
runs on the GPU where there is one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenform.errors import ModelError, OptionError, extras
from tokenform.frontends import Condition, Grammar

with extras():
    from tokenform.decoding.prompts import PromptFormat


@dataclass(frozen=True)
class OpenModel:
    """A model that is ready to run.

    Attributes:
        model: a causal language model in evaluation mode.
        tokenizer: its tokenizer, or a vocabulary.
        format_prompt: its prompt format, where it has one of its own.
    """

    model: Any
    tokenizer: Any
    format_prompt: PromptFormat | None = None


def open_model(
    model: Any = None,
    tokenizer: Any = None,
    *,
    device: Any = None,
    dtype: Any = None,
    device_map: Any = None,
    trust_remote_code: bool = False,
) -> OpenModel:
    """The built-in model for None, a Hugging Face model for a path or name, or the model itself.

    Args:
        device: where a model by name runs; None is the GPU where there is one.
        dtype: of its weights; None is that of the file.
        device_map: how it is split over devices, in place of `device` (needs accelerate).
        trust_remote_code: run code that comes with the model.
    Raises:
        OptionError: an option of models by name beside another model.
        ModelError: there is no such model, or a model object comes without its tokenizer.
    """
    placed = device is not None or dtype is not None or device_map is not None or trust_remote_code
    if placed and not isinstance(model, str | os.PathLike):
        raise OptionError(
            "device, dtype, device_map and trust_remote_code are for models by path or name; "
            "move a model object yourself."
        )
    if device is not None and device_map is not None:
        raise OptionError("give device or device_map, not both.")
    if model is None:
        if tokenizer is not None:
            raise ModelError("the built-in model has its own tokenizer; pass both model= and tokenizer=.")
        return _builtin()
    if isinstance(model, str | os.PathLike):
        where = None if device is None else str(device)
        split = json.dumps(device_map) if isinstance(device_map, Mapping) else device_map
        opened = _pretrained(os.fspath(model), where, dtype, split, trust_remote_code)
        return opened if tokenizer is None else OpenModel(opened.model, tokenizer)
    if tokenizer is None:
        raise ModelError("a model object needs its tokenizer; pass tokenizer=, or a Vocabulary.")
    return OpenModel(model, tokenizer)


def _builtin_prompt(prompt: Any, grammar: Grammar | Condition) -> str:
    from tokenform.builtin import format_prompt

    # Tools are left out: with them in the prompt this small model makes 8 of 20 calls rightly under the mask,
    # without them 20 of 20 (the two tools and the kinds of question of examples/agent.py, greedy).
    return format_prompt(prompt, grammar.schema)


@lru_cache(maxsize=1)
def _builtin() -> OpenModel:
    from tokenform.builtin import load

    model, tokenizer = load()
    return OpenModel(model, tokenizer, _builtin_prompt)


@lru_cache(maxsize=4)
def _pretrained(
    name: str,
    device: str | None = None,
    dtype: Any = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
) -> OpenModel:
    looks_local = name.startswith((".", "~", os.sep)) or name.count("/") > 1
    path = Path(name).expanduser()
    if looks_local and not path.exists():
        raise ModelError(f"there is no model at {name!r}; give a model's folder or its name on the hub.")
    with extras():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(path) if path.exists() else name
    try:
        split = json.loads(device_map) if device_map and device_map.startswith("{") else device_map
        kept: dict[str, Any] = {
            "trust_remote_code": trust_remote_code,
            "local_files_only": not path.exists() and not _answers(name),
        }
        tokenizer = AutoTokenizer.from_pretrained(source, **kept)
        model: Any = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype or "auto", device_map=split, **kept
        )
    except Exception as error:  # a missing or broken file raises whatever its reader raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ModelError(f"the model {name!r} can't be opened: {reason}.") from error
    if split is not None:
        return OpenModel(model.eval(), tokenizer)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return OpenModel(model.eval().to(where), tokenizer)


def _answers(name: str) -> bool:
    """Whether the hub can be reached. Without this question transformers asks for each file six times, with
    pauses: 80 seconds until an unknown name is refused, or a model in the cache opened."""
    from huggingface_hub import model_info
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        model_info(name, timeout=10)
    except (HfHubHTTPError, HFValidationError):
        return True  # an answer, if a refusal: it comes again, in full, when the model is opened
    except Exception:  # no network, a name that can't be resolved, offline mode: each version has its own
        return False
    return True
