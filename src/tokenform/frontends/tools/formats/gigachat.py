"""GigaChat 3.1: a special token, then one JSON object; what 3.0 writes in its place is read.

Source: the parser of vLLM (`gigachat3`), by the model's makers: a text may come first, and there is one call.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_CALL = JsonCall("name", "arguments")

FORMAT = Format(
    name="gigachat",
    models="GigaChat 3.1",
    wire=Wire(call=("<|function_call|>", _CALL)),
    also=(Wire(call=("<|message_sep|>\n\nfunction call<|role_sep|>\n", _CALL)),),
    special=("<|function_call|>", "<|message_sep|>", "<|role_sep|>"),
    dropped=("</s>", "<|message_sep|>"),
    template=("<|role_sep|>", "<|function_call|>"),
)
