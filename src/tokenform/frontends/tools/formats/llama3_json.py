"""Llama 3.1, 3.2 and 3.3: one JSON object with "parameters", without a marker.

Source: Meta's model card for Llama 3.1 ("JSON based tool calling"); calls in a row are separated as vLLM
reads them.
A list of objects is read too.
The object is a call only at the start of the output: anywhere else the text may well speak of JSON.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_CALL = (JsonCall("name", "parameters"),)

FORMAT = Format(
    name="llama3_json",
    models="Llama 3.1, 3.2, 3.3",
    wire=Wire(call=_CALL, between="; ", guess=True),
    also=(
        Wire(call=_CALL, between="\n", guess=True, written=True),
        Wire(call=_CALL, section=("[", "]"), between=", ", guess=True),
    ),
    special=("<|python_tag|>",),
    at_start=True,
    prefix="<|python_tag|>",
    dropped=("<|python_tag|>", "<|eot_id|>", "<|eom_id|>"),
    template=("<|start_header_id|>", '"parameters"'),
)
