"""MiMo V2: the elements of Qwen3-Coder, values on the line of their tag and taken to the letter.

Source: the chat template of XiaomiMiMo/MiMo-V2-Flash, as the parsers of vLLM 0.33 and SGLang 0.5.23 read it.
(MiMo 7B and MiMo-VL write `hermes`.)
"""

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="mimo",
    models="MiMo V2 Flash",
    wire=Wire(
        call=(
            "<tool_call>\n<function=",
            Name(),
            ">\n",
            Tagged(before="<parameter=", middle=">", after="</parameter>\n", python_words=True),
            "</function>\n</tool_call>",
        ),
        between="\n",
    ),
    special=("<tool_call>", "</tool_call>"),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<|im_end|>",),
    template=("<function=", "<parameter=", "You are MiMo"),
)
