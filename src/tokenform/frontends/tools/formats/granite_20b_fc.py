"""Granite 20B function calling: a marker, then one JSON object.

Source: the model card of ibm-granite/granite-20b-functioncalling.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="granite_20b_fc",
    models="Granite 20B function calling",
    wire=Wire(call=("<function_call> ", JsonCall("name", "arguments")), between=" "),
    dropped=("<|endoftext|>",),
    template=("<function_call>",),
)
