"""Llama 3.1, 3.2 and 3.3: one JSON object with "parameters", without a marker.

Source: Meta's model card for Llama 3.1 ("JSON based tool calling"); calls in a row are separated as vLLM
reads them.
A list of objects is read too.
The object is a call only at the start of the output: anywhere else the text may well speak of JSON.
"""

from __future__ import annotations

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="llama3_json",
    models="Llama 3.1, 3.2, 3.3",
    wire=Wire(call=(JsonCall("name", "parameters"),), between="; ", guess=True),
    also=(Wire(call=(JsonCall("name", "parameters"),), section=("[", "]"), between=", ", guess=True),),
    special=("<|python_tag|>",),
    at_start=True,
    prefix="<|python_tag|>",
    text_after=False,
    dropped=("<|python_tag|>", "<|eot_id|>", "<|eom_id|>"),
    template=("<|start_header_id|>", '"parameters"'),
)
