"""Seed-OSS: the elements of Qwen3-Coder between tokens of its own.

Source: the chat template of ByteDance-Seed/Seed-OSS-36B-Instruct, which writes values on the line of their
tag and booleans as Python does; a line feed at either end of a value is none of it (vLLM 0.33,
`parser/qwen3.py`).
"""

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="seed_oss",
    models="Seed-OSS 36B",
    wire=Wire(
        call=(
            "<seed:tool_call>\n<function=",
            Name(),
            ">\n",
            Tagged(before="<parameter=", middle=">\n", after="\n</parameter>\n", python_words=True),
            "</function>\n</seed:tool_call>",
        ),
        between="\n",
    ),
    special=("<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"),
    reasoning=("<seed:think>", "</seed:think>"),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<seed:eos>",),
    template=("<seed:tool_call>",),
)
