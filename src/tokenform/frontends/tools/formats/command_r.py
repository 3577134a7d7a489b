"""Command R7B and Command A: special tokens around an indented JSON list; reasoning and answer are marked as
well.

Source: the chat template of CohereForAI/c4ai-command-r7b-12-2024.  Command R and R+ of 2024 wrote `Action:`
and a fenced list, which the reader takes too.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_ANSWER = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")

FORMAT = Format(
    name="command_r",
    models="Command R7B, Command A, Command A Reasoning",
    wire=Wire(
        call=(JsonCall("tool_name", "parameters", id="tool_call_id"),),
        section=("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"),
        between=",\n    ",
    ),
    also=(
        Wire(
            call=(JsonCall("tool_name", "parameters"),),
            section=("Action: ```json [", "] ```"),
            between=", ",
        ),
    ),
    special=(
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
    ),
    reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
    trigger_ends_reasoning=True,
    content=_ANSWER,
    dropped=(*_ANSWER, "<|END_OF_TURN_TOKEN|>"),
    template=("<|START_ACTION|>",),
)
