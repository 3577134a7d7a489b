"""gpt-oss: Harmony, messages in channels; a call is a message to `functions.NAME`.

Source: OpenAI's Harmony response format.  `wire.call` is the call's message; what may stand around it, and
how messages are read, is in `channels.py`.
"""

from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Wire

FORMAT = Format(
    name="gpt_oss",
    models="gpt-oss 20B, 120B",
    wire=Wire(
        call=(
            "<|channel|>commentary to=functions.",
            Name(),
            " <|constrain|>json<|message|>",
            JsonArguments(),
        ),
    ),
    special=("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"),
    channels=True,
    template=("<|channel|>", "<|call|>"),
)
