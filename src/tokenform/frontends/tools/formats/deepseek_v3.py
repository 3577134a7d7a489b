"""DeepSeek V3 and R1: special tokens around the list and each call, the arguments in a fenced block.

Source: the chat templates of deepseek-ai/DeepSeek-V3-0324 and DeepSeek-R1.
"""

from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Wire

FORMAT = Format(
    name="deepseek_v3",
    models="DeepSeek V3, V3-0324, R1, R1-0528",
    wire=Wire(
        call=(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            Name(),
            "\n```json\n",
            JsonArguments(),
            "\n```<｜tool▁call▁end｜>",
        ),
        section=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        between="\n",
    ),
    special=(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
    ),
    trigger_ends_reasoning=True,
    dropped=("<｜end▁of▁sentence｜>",),
    template=("<｜tool▁sep｜>", "```json"),
)
