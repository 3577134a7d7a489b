"""Kimi K2: special tokens around the list and each call; the id holds the name and a counter.

Source: the chat template of moonshotai/Kimi-K2-Instruct and its tool-call guide.
"""

from tokenform.frontends.tools.layout import Format, Id, JsonArguments, Maybe, Name, Wire

_HEAD = (
    "<|tool_call_begin|>",
    Maybe(("functions.",), written=None),
    Name(),
    Maybe((":", Id("[0-9]+", "functions.{name}:{id}")), written=True),
    "<|tool_call_argument_begin|>",
    JsonArguments(),
)

FORMAT = Format(
    name="kimi_k2",
    models="Kimi K2, K2 Thinking, K2.5",
    wire=Wire(
        call=(*_HEAD, "<|tool_call_end|>"),
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ),
    also=(
        Wire(
            call=(*_HEAD, "<|tool_call_end|>"),
            section=("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),
        ),
        Wire(call=(*_HEAD, Maybe(("<|tool_call_end|>",), written=None)), written=True),
    ),
    special=(
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    ),
    trigger_ends_reasoning=True,
    dropped=("<|im_end|>",),
    template=("<|tool_calls_section_begin|>",),
)
