"""The table of formats: a new format is one file beside this one and its name here.

The order is that of detection: of the formats whose marks a chat template bears, the first is meant.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import Format

_FILES = (
    "gpt_oss",
    "deepseek_v41",
    "deepseek_v4",
    "deepseek_v32",
    "deepseek_v3",
    "deepseek_v31",
    "kimi_k3",
    "kimi_k2",
    "minimax_m3",
    "minimax",
    "minimax_m1",
    "apriel",
    "hunyuan",
    "hunyuan_v3",
    "seed_oss",
    "mimo",
    "qwen3_coder",
    "glm45",
    "glm47",
    "spark",
    "ling",
    "step3",
    "mistral_v11",
    "mistral_v3",
    "command_a",
    "command_r",
    "firefunction",
    "phi4",
    "gigachat",
    "minicpm5",
    "granite",
    "granite_20b_fc",
    "nemotron",
    "gemma4",
    "functiongemma",
    "internlm",
    "apertus",
    "lfm2",
    "olmo3",
    "llama4_pythonic",
    "llama3_pythonic",
    "functionary",
    "llama3_json",
    "hermes",
    "exaone",
    "json_plain",
)

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT for module in (import_module(f"{__name__}.{file}") for file in _FILES)
}


def named(format: Any) -> Format:
    """A format itself, or the one of this name; `detect.find_format` takes tokenizers too.

    Raises:
        ToolError: there is no such format; the message has the names.
    """
    if isinstance(format, Format):
        return format
    if not isinstance(format, str) or format not in FORMATS:
        raise ToolError(f"there is no tool format {format!r}; choose one of {', '.join(sorted(FORMATS))}")
    return FORMATS[format]
