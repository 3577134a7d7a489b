"""Opening models: the built-in one, or any Hugging Face model or GGUF file by path or name.

Invariant: an open model is shared by later calls of the process; models are opened one at a time, from any
thread.  A model by name runs on the GPU where there is one.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenform.engine.opening import opened_once
from tokenform.errors import ModelError, OptionError, extras, warn_outside
from tokenform.frontends import Condition, Grammar

with extras():
    from tokenform.decoding.prepacked import prepack
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
    gguf_file: str | None = None,
) -> OpenModel:
    """The built-in model for None, a Hugging Face model for a path or name, or the model itself.

    Args:
        device: of a model by name; None is the GPU where there is one.
        dtype: of its weights; None is that of the file, or float32 on a processor without arithmetic for it.
        device_map: how it is split over devices, in place of `device` (needs accelerate).
        trust_remote_code: run code that comes with the model.
        gguf_file: the GGUF file to read, of a folder or name; a path that ends in `.gguf` needs none.
    Raises:
        OptionError: an option of models by name beside another model.
        ModelError: there is no such model, its weights can't be moved to the device, or a model object comes
            without its tokenizer.
    """
    has_placement = trust_remote_code or any(
        one is not None for one in (device, dtype, device_map, gguf_file)
    )
    if has_placement and not isinstance(model, str | os.PathLike):
        advice = (
            "the built-in one runs on the CPU in float32" if model is None else "move a model object yourself"
        )
        raise OptionError(
            "device, dtype, device_map, trust_remote_code and gguf_file are for models by path or name; "
            f"{advice}."
        )
    if device is not None and device_map is not None:
        raise OptionError("give device or device_map, not both.")
    if model is None:
        if tokenizer is not None:
            raise ModelError("the built-in model has its own tokenizer; pass both model= and tokenizer=.")
        return _builtin()
    if isinstance(model, str | os.PathLike):
        _check_name(os.fspath(model))
        where = None if device is None else str(device)
        split = json.dumps(device_map) if isinstance(device_map, Mapping) else device_map
        opened = _pretrained(os.fspath(model), where, dtype, split, trust_remote_code, gguf_file)
        return opened if tokenizer is None else OpenModel(opened.model, tokenizer)
    if not hasattr(model, "forward") and hasattr(model, "encode") and hasattr(model, "decode"):
        raise ModelError(
            f"{type(model).__name__} is a tokenizer; the model is first: tf.Generator(model, tokenizer)."
        )
    if tokenizer is None:
        raise ModelError("a model object needs its tokenizer; pass tokenizer=, or a Vocabulary.")
    return OpenModel(model, tokenizer)


_HOSTED = re.compile(
    r"(openai/)?(gpt-[345]|chatgpt-|o[134]-(mini|preview|pro))|(anthropic/)?claude-|(google/)?gemini-"
)
"""Names of models that only their makers run; those with open weights have others."""


def _check_name(name: str) -> None:
    """Refuses what no model can be opened by, before anything looks for it.

    Raises:
        ModelError
    """
    if not name:
        raise ModelError("model= is empty; give a path or a hub name, or None for the built-in model.")
    if os.path.isdir(name):
        if not os.listdir(name):
            raise ModelError(f"the folder {name!r} is empty; a model's has config.json and its weights.")
    elif _HOSTED.match(name) and not os.path.exists(name):
        raise ModelError(
            f"{name!r} is a hosted model. Texts are written here with models that run here, whose tokens "
            "can be masked; give the path or the hub name of one with open weights."
        )


def with_template(opened: OpenModel, template: str) -> OpenModel:
    """The model with another chat template, on a copy of its tokenizer.

    Raises:
        OptionError: the tokenizer takes none, or the template does not write a message.
    """
    if not hasattr(opened.tokenizer, "apply_chat_template"):
        raise OptionError("this tokenizer writes no chat messages; chat_template is for those that do.")
    tokenizer = copy.copy(opened.tokenizer)
    tokenizer.chat_template = template
    try:
        messages = [{"role": "user", "content": "a"}]
        written = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template is a program and may raise anything
        raise OptionError(
            f"the chat template does not write a message of a user: {_reason(error)}."
        ) from error
    if not written:
        raise OptionError("the chat template writes nothing for a message of a user.")
    return OpenModel(opened.model, tokenizer)


def builtin_prompt(prompt: Any, grammar: Grammar | Condition) -> str:
    """The text that the built-in models read."""
    from tokenform.builtin import format_prompt

    return format_prompt(
        prompt, grammar.schema, tools=[_described(_without_choices(tool)) for tool in grammar.tools]
    )


def _described(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool with a description, which this small model needs; its name where it has none."""
    function = tool.get("function", tool)
    if function.get("description"):
        return tool
    described = {**function, "description": function["name"].replace("_", " ").capitalize()}
    return {**tool, "function": described} if "function" in tool else described


def _without_choices(definition: Any) -> Any:
    """A tool's definition without lists of values: this small model copies the first value.

    Of 60 calls (two tools with such lists, three without, greedy) 46 are right without them at 45 nats a
    text, 29 with them at 55, 32 without the tools at 116 (`tests/builtin/test_calls.py` has their kinds).
    """
    if isinstance(definition, list | tuple):
        return [_without_choices(one) for one in definition]
    if not isinstance(definition, Mapping):
        return definition
    lists = ("enum", "const") if isinstance(definition.get("type"), str) else ()
    return {key: _without_choices(value) for key, value in definition.items() if key not in lists}


@opened_once(1)
def _builtin() -> OpenModel:
    from tokenform.builtin import load

    model, tokenizer = load()
    return OpenModel(model, tokenizer, builtin_prompt)


@opened_once(4)
def _pretrained(
    name: str, device: str | None, dtype: Any, device_map: str | None, trust: bool, gguf: str | None
) -> OpenModel:
    path, gguf = _located(name, gguf)
    with extras():
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if gguf is not None:
            import accelerate  # noqa: F401  # transformers reads these files with both
            import gguf as _reader  # noqa: F401

    source, where = name if path is None else str(path), _device(device)
    try:
        split = json.loads(device_map) if device_map and device_map.startswith("{") else device_map
        options: dict[str, Any] = {
            "trust_remote_code": trust,
            "local_files_only": path is None and not _hub_reachable(name),
            **({} if gguf is None else {"gguf_file": gguf}),
        }
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype or "auto", device_map=split, **options
        )
    except Exception as error:  # a missing or broken file raises whatever its reader raises
        raise ModelError(f"the model {name!r} can't be opened: {_reason(error)}.") from error
    if split is not None:
        return OpenModel(model.eval(), tokenizer)
    if dtype is None and where.type == "cpu":
        model = _widened(model, name)
    try:
        return OpenModel(prepack(model.eval().to(where)), tokenizer)
    except Exception as error:  # no such device, none of its driver, no room on it
        raise ModelError(f"the model {name!r} can't be moved to {str(where)!r}: {_reason(error)}.") from error


def _device(name: str | None) -> Any:
    """The device of a model; None: the GPU where there is one.

    Raises:
        OptionError: no device is called so.
    """
    import torch

    try:
        return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        known = "cpu, cuda, cuda:1, mps and further ones of torch"
        raise OptionError(f"device={name!r} is none; there are {known}.") from error


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _located(name: str, gguf: str | None) -> tuple[Path | None, str | None]:
    """The folder of a model, None for one of the hub; and its GGUF file, if it is one.

    Raises:
        ModelError: no such file or folder, or a folder with several files and none chosen.
    """
    path = Path(name).expanduser()
    if path.is_file() or (path.suffix == ".gguf" and not path.exists()):
        if gguf is not None:
            raise OptionError(f"{name!r} is a file already; gguf_file= is for a folder or a name on the hub.")
        if path.suffix != ".gguf" or not path.exists():
            problem = "is no GGUF file" if path.exists() else "does not exist"
            raise ModelError(
                f"{name!r} {problem}; give a model's folder, a .gguf file, or its name on the hub (with "
                "gguf_file= for a file there)."
            )
        return path.parent, path.name
    if not path.exists():
        if name.startswith((".", "~", os.sep)) or name.count("/") > 1:
            raise ModelError(f"there is no model at {name!r}; give a model's folder or its name on the hub.")
        return None, gguf
    files = sorted(one.name for one in path.glob("*.gguf"))
    listed = f"; {name!r} has {', '.join(files)}" if files else ""
    if gguf is not None and not (path / gguf).is_file():
        raise ModelError(f"there is no file {gguf!r}{listed or f' in {name!r}'}.")
    if gguf is None and files and not (path / "config.json").exists():
        if len(files) > 1:
            raise ModelError(f"give gguf_file=, one of several{listed}.")
        gguf = files[0]
    return path, gguf


def _widened(model: Any, name: str) -> Any:
    """The model in float32 if this processor has no arithmetic for its narrower numbers: it is as fast, and
    texts don't depend on batches and drafts."""
    narrow = model.dtype
    if narrow.is_floating_point and narrow.itemsize < 4 and not computes(narrow):
        kind = str(narrow).removeprefix("torch.")
        message = f"this processor does not compute in {kind}; {name!r} runs in float32 (dtype= chooses)."
        warn_outside(message, UserWarning)
        return model.float()
    return model


def computes(dtype: Any) -> bool:
    """Whether this processor multiplies matrices of these numbers, by its flags in Linux."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:  # another system
        return False
    return bool(flags & _CPU_FLAGS.get(str(dtype), set()))


_CPU_FLAGS = {
    "torch.bfloat16": {"avx512_bf16", "amx_bf16", "bf16"},
    "torch.float16": {"avx512_fp16", "amx_fp16", "asimdhp"},
}
"""The processor flags, of x86 and ARM."""


def _hub_reachable(name: str) -> bool:
    """Whether the hub can be reached.  Without this check transformers requests each file six times, with
    pauses: 80 seconds until an unknown name is refused, or a cached model opened."""
    from huggingface_hub import model_info
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        model_info(name, timeout=10)
    except (HfHubHTTPError, HFValidationError):
        return True  # the hub answers; opening the model raises its refusal in full
    except Exception:  # no network, no such host, offline mode: each version has its own error
        return False
    return True
