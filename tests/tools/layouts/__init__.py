"""All cases, format by format."""

from __future__ import annotations

from . import elements, lists, marked, nested, newer, tagged, unmarked
from .cases import TOOLS, Layout

LAYOUTS: list[Layout] = [
    *marked.hermes(),
    *tagged.qwen3_coder(),
    *tagged.glm("glm45", "\n"),
    *tagged.glm("glm47", ""),
    *tagged.glm("spark", ""),
    *tagged.minicpm5(),
    *marked.deepseek_v3(),
    *marked.deepseek_v31(),
    *tagged.deepseek_v32(),
    *tagged.minimax(),
    *marked.kimi_k2(),
    *unmarked.llama3_json(),
    *unmarked.pythonic("llama3_pythonic"),
    *unmarked.pythonic("llama4_pythonic"),
    *lists.mistral_v3(),
    *lists.mistral_v11(),
    *lists.gpt_oss(),
    *lists.granite(),
    *lists.granite_20b_fc(),
    *lists.phi4(),
    *lists.phi4("firefunction", "<|eot_id|>"),
    *lists.command_r(),
    *unmarked.json_plain(),
    *newer.nemotron(),
    *newer.hunyuan(),
    *newer.apriel(),
    *newer.functionary(),
    *newer.gigachat(),
    *newer.minimax_m1(),
    *newer.internlm(),
    *newer.apertus(),
    *newer.exaone(),
    *newer.lfm2(),
    *newer.olmo3(),
    *elements.deepseek_v4(),
    *elements.dsml("deepseek_v41", "calls", " "),
    *elements.qwen_like("seed_oss", "seed:", ("<seed:think>", "</seed:think>"), "<seed:eos>"),
    *elements.qwen_like("mimo", "", ("<think>", "</think>"), "<|im_end|>"),
    *elements.step3(),
    *elements.hunyuan_v3(),
    *elements.ling(),
    *elements.kimi_k3(),
    *nested.gemma4(),
    *nested.functiongemma(),
    *nested.minimax_m3(),
    *nested.command_a(),
]

__all__ = ["LAYOUTS", "TOOLS", "Layout"]
