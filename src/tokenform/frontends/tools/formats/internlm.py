"""InternLM 2 to 3 and Intern-S1: two special tokens, then one JSON object with "parameters".

Source: the chat-format page of InternLM/InternLM (`chat/chat_format.md`).  Servers put a space between the
two tokens; templates write "arguments" into the history (vLLM's `tool_chat_template_internlm2_tool`), which
the model follows.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="internlm",
    models="InternLM 2, 2.5, 3, Intern-S1",
    wire=Wire(
        call=("<|action_start|><|plugin|>\n", JsonCall("name", "parameters"), "<|action_end|>"),
    ),
    also=(
        Wire(
            call=("<|action_start|><|plugin|>\n", JsonCall("name", "arguments"), "<|action_end|>"),
            written=True,
        ),
    ),
    special=("<|action_start|>", "<|plugin|>", "<|action_end|>"),
    dropped=("<|im_end|>",),
    template=("<|action_start|>", "<|plugin|>"),
)
