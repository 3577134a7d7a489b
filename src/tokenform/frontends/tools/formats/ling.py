"""Ling 3: the elements of GLM, with a line feed between them or without.

Source: the parsers of vLLM 0.33 (`parser/ling3.py`) and SGLang 0.5.23 (`ling3_detector.py`).
(Ling 2 and Ring 2 write `hermes`.)
"""

from dataclasses import replace

from tokenform.frontends.tools.formats.glm45 import FORMAT as GLM45
from tokenform.frontends.tools.layout import JsonCall, Wire

FORMAT = replace(
    GLM45,
    name="ling",
    models="Ling 3",
    also=(Wire(call=("<tool_call>", JsonCall("name", "arguments"), "</tool_call>")),),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<|role_end|>",),
    template=("<arg_key>", "<role>"),
)
