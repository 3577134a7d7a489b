"""The table of formats: a new format is one file beside this one and one line here.

The order is that of detection: of the formats whose marks a chat template bears, the first is meant.
"""

from __future__ import annotations

from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.formats import (
    apertus,
    apriel,
    command_a,
    command_r,
    deepseek_v3,
    deepseek_v4,
    deepseek_v31,
    deepseek_v32,
    deepseek_v41,
    exaone,
    firefunction,
    functionary,
    functiongemma,
    gemma4,
    gigachat,
    glm45,
    glm47,
    gpt_oss,
    granite,
    granite_20b_fc,
    hermes,
    hunyuan,
    hunyuan_v3,
    internlm,
    json_plain,
    kimi_k2,
    kimi_k3,
    lfm2,
    ling,
    llama3_json,
    llama3_pythonic,
    llama4_pythonic,
    mimo,
    minicpm5,
    minimax,
    minimax_m1,
    minimax_m3,
    mistral_v3,
    mistral_v11,
    nemotron,
    olmo3,
    phi4,
    qwen3_coder,
    seed_oss,
    spark,
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
        kimi_k3,
        kimi_k2,
        minimax_m3,
        minimax,
        minimax_m1,
        apriel,
        hunyuan,
        hunyuan_v3,
        seed_oss,
        mimo,
        qwen3_coder,
        glm45,
        glm47,
        spark,
        ling,
        step3,
        mistral_v11,
        mistral_v3,
        command_a,
        command_r,
        firefunction,
        phi4,
        gigachat,
        minicpm5,
        granite,
        granite_20b_fc,
        nemotron,
        gemma4,
        functiongemma,
        internlm,
        apertus,
        lfm2,
        olmo3,
        llama4_pythonic,
        llama3_pythonic,
        functionary,
        llama3_json,
        hermes,
        exaone,
        json_plain,
    )
}


def named(format: Any) -> Format:
    """A format itself, or the one of this name; `finding.find_format` takes tokenizers too.

    Raises:
        ToolError: there is no such format; the message has the names.
    """
    if isinstance(format, Format):
        return format
    if not isinstance(format, str) or format not in FORMATS:
        raise ToolError(f"there is no tool format {format!r}; choose one of {', '.join(sorted(FORMATS))}")
    return FORMATS[format]
