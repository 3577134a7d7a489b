"""LFM2 and LFM2.5: a Python list of calls between two special tokens.

Source: the chat template of LiquidAI/LFM2.5-8B-A1B and the model card of LFM2; models that are told to write
JSON put it between the same tokens.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Name, PythonArguments, Wire

_CALL = (Name(), "(", PythonArguments(json_words=True), ")")
_SECTION = ("<|tool_call_start|>[", "]<|tool_call_end|>")

FORMAT = Format(
    name="lfm2",
    models="LFM2, LFM2.5",
    wire=Wire(call=_CALL, section=_SECTION, between=", "),
    also=(
        Wire(call=(JsonCall("name", "arguments"),), section=_SECTION, between=", ", written=True),
        Wire(call=_CALL, section=("<|tool_call_start|>", "<|tool_call_end|>"), between="\n"),
    ),
    special=("<|tool_call_start|>", "<|tool_call_end|>"),
    trigger_ends_reasoning=True,
    dropped=("<|im_end|>",),
    template=("<|tool_call_start|>",),
)
