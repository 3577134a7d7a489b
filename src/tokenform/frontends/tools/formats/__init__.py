"""The table of formats: a new format is one file beside this one and one line here.

The order is that of detection: of the formats whose marks a chat template bears, the first is meant.
"""

from __future__ import annotations

from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.formats import (
    apertus,
    command_r,
    deepseek_v3,
    deepseek_v4,
    deepseek_v31,
    deepseek_v32,
    deepseek_v41,
    exaone,
    glm45,
    glm47,
    gpt_oss,
    granite,
    granite_20b_fc,
    hermes,
    hunyuan,
    internlm,
    json_plain,
    kimi_k2,
    ling,
    llama3_json,
    llama3_pythonic,
    llama4_pythonic,
    mimo,
    minimax,
    minimax_m1,
    mistral_v3,
    mistral_v11,
    nemotron,
    phi4,
    qwen3_coder,
    seed_oss,
    step3,
)
from tokenform.frontends.tools.layout import Format

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        gpt_oss,
        deepseek_v41,
        deepseek_v4,
        deepseek_v32,
        deepseek_v3,
        deepseek_v31,
        kimi_k2,
        minimax,
        minimax_m1,
        hunyuan,
        seed_oss,
        mimo,
        qwen3_coder,
        ling,
        glm45,
        glm47,
        step3,
        mistral_v11,
        mistral_v3,
        command_r,
        phi4,
        granite,
        granite_20b_fc,
        nemotron,
        internlm,
        apertus,
        llama4_pythonic,
        llama3_pythonic,
        llama3_json,
        exaone,
        hermes,
        json_plain,
    )
}


def find_format(name: Any) -> Format:
    """The format of this name, or of a tokenizer's chat template.

    Raises:
        ToolError: there is no such format (the message has the names), or the template shows none.
    """
    if isinstance(name, Format):
        return name
    if not isinstance(name, str) and hasattr(name, "chat_template"):
        from tokenform.frontends.tools.detect import detect_format

        return detect_format(name)
    if name not in FORMATS:
        raise ToolError(f"there is no tool format {name!r}; choose one of {', '.join(sorted(FORMATS))}")
    return FORMATS[name]
