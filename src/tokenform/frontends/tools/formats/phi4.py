"""Phi-4-mini: the word `functools`, then a JSON list of calls.

Source: the model card of microsoft/Phi-4-mini-instruct.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="phi4",
    models="Phi-4-mini",
    wire=Wire(call=(JsonCall("name", "arguments"),), section=("functools[", "]"), between=", "),
    also=(
        Wire(call=(JsonCall("name", "arguments"),), section=("functools [", "]"), between=", ", guess=True),
    ),
    whole_word=True,
    dropped=("<|end|>", "<|endoftext|>"),
    template=("<|tool|>",),
)
