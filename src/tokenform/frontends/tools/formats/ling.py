"""Ling 3: the elements of GLM, with a line feed between them or without.

Source: the parsers of vLLM 0.33 (`parser/ling3.py`) and SGLang 0.5.23 (`ling3_detector.py`).
(Ling 2 and Ring 2 write `hermes`.)
"""

from tokenform.frontends.tools.formats.glm45 import MARKERS
from tokenform.frontends.tools.layout import Format, JsonCall, Name, Tagged, Wire

FORMAT = Format(
    name="ling",
    models="Ling 3",
    wire=Wire(
        call=(
            "<tool_call>",
            Name(),
            "\n",
            Tagged(
                before="<arg_key>",
                middle="</arg_key>\n<arg_value>",
                after="</arg_value>\n",
                markers=MARKERS,
            ),
            "</tool_call>",
        ),
        between="\n",
    ),
    also=(Wire(call=("<tool_call>", JsonCall("name", "arguments"), "</tool_call>")),),
    special=MARKERS,
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<|role_end|>",),
    template=("<arg_key>", "<role>"),
)
