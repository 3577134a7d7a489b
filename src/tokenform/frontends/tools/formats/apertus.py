"""Apertus: special tokens around a JSON list of objects whose only key is the tool's name.

Source: the chat template of swiss-ai/Apertus-8B-Instruct-2509.
"""

from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Wire

FORMAT = Format(
    name="apertus",
    models="Apertus",
    wire=Wire(
        call=("{ ", '"', Name(), '"', " : ", JsonArguments(), "}"),
        section=("<|tools_prefix|>[", "]<|tools_suffix|>"),
        between=", ",
    ),
    special=("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"),
    reasoning=("<|inner_prefix|>", "<|inner_suffix|>"),
    trigger_ends_reasoning=True,
    dropped=("<|assistant_end|>",),
    template=("<|tools_prefix|>",),
)
