"""Granite 3.0 to 3.3: a special token, then a JSON list of calls.

Source: the chat templates of ibm-granite/granite-3.x-instruct; 3.1 may write the marker as `<tool_call>`,
and servers that drop special tokens leave the bare list.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_CALL = (JsonCall("name", "arguments", turned=True),)

FORMAT = Format(
    name="granite",
    models="Granite 3.0, 3.1, 3.2, 3.3",
    wire=Wire(call=_CALL, section=("<|tool_call|>[", "]"), between=", "),
    also=(
        Wire(call=_CALL, section=("<tool_call>[", "]"), between=", ", written=True),
        Wire(call=_CALL, section=("[", "]"), between=", ", guess=True),
    ),
    special=("<|tool_call|>", "<tool_call>"),
    dropped=("<|end_of_text|>",),
    template=("<|tool_call|>",),
)
