"""Seed-OSS: the elements of Qwen3-Coder between tokens of its own, values on the line of their tag.

Source: the chat template of ByteDance-Seed/Seed-OSS-36B-Instruct, which writes booleans as Python does.
"""

from __future__ import annotations

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="seed_oss",
    models="Seed-OSS 36B",
    wire=Wire(
        call=(
            "<seed:tool_call>\n<function=",
            Name(),
            ">\n",
            Tagged(before="<parameter=", middle=">", after="</parameter>\n", python_words=True),
            "</function>\n</seed:tool_call>",
        ),
        between="\n",
    ),
    special=("<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"),
    reasoning=("<seed:think>", "</seed:think>"),
    trigger_ends_reasoning=True,
    dropped=("<seed:eos>",),
    template=("<seed:tool_call>",),
)
