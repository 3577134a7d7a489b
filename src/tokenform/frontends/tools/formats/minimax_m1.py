"""MiniMax M1: one JSON object a line, between two markers.

Source: the chat template of MiniMaxAI/MiniMax-M1-80k and its function-call guide.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="minimax_m1",
    models="MiniMax M1",
    wire=Wire(
        call=(JsonCall("name", "arguments"),),
        section=("<tool_calls>\n", "\n</tool_calls>"),
        between="\n",
    ),
    special=("<tool_calls>", "</tool_calls>"),
    dropped=("<end_of_sentence>",),
    template=("<tool_calls>", "<end_of_sentence>"),
)
