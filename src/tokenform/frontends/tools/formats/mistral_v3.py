"""Mistral's tokenizers v2 to v7: one special token, then a JSON list of calls.

Source: mistral-common, `tokens/tokenizers/instruct.py`, versions 3 and 7 (an id may end each call).
Servers that drop special tokens leave the bare list, which the reader takes too.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_CALL = (JsonCall("name", "arguments", last_id="[a-zA-Z0-9]{9}", turned=True),)

FORMAT = Format(
    name="mistral_v3",
    models="Mistral 7B v0.3, Mixtral 8x22B, Mistral Nemo, Mistral Large 2407, Mistral Small 2409",
    wire=Wire(call=_CALL, section=("[TOOL_CALLS][", "]"), between=", "),
    also=(Wire(call=_CALL, section=("[", "]"), between=", ", guess=True),),
    special=("[TOOL_CALLS]",),
    short_ids=True,
    dropped=("</s>",),
    template=("[TOOL_CALLS]",),
    template_without=("[ARGS]",),
)
