"""DeepSeek V3.1: special tokens around the list and each call, the arguments as one line of JSON.

Source: the chat template of deepseek-ai/DeepSeek-V3.1.
"""

from tokenform.frontends.tools.formats.deepseek_v3 import FORMAT as V3
from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Wire

FORMAT = Format(
    name="deepseek_v31",
    models="DeepSeek V3.1, V3.1-Terminus, V3.2-Exp",
    wire=Wire(
        call=("<｜tool▁call▁begin｜>", Name(), "<｜tool▁sep｜>", JsonArguments(), "<｜tool▁call▁end｜>"),
        section=V3.wire.section,
    ),
    special=V3.special,
    trigger_ends_reasoning=True,
    dropped=V3.dropped,
    template=("<｜tool▁sep｜>",),
    template_without=("```json",),
)
