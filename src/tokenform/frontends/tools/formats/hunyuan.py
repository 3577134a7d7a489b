"""Hunyuan A13B: a marker, then a JSON list of calls; reasoning and answer are marked as well.

Source: the chat template of tencent/Hunyuan-A13B-Instruct.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="hunyuan",
    models="Hunyuan A13B",
    wire=Wire(
        call=(JsonCall("name", "arguments"),),
        section=("<tool_calls>[", "]</tool_calls>"),
        between=", ",
    ),
    special=("<tool_calls>", "</tool_calls>"),
    dropped=("<answer>", "</answer>", "<|eos|>"),
    template=("<tool_calls>", "<|extra_0|>"),
)
