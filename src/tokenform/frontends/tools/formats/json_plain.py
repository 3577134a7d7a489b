"""Plain JSON: one call as an object, several as a list; for models without a format of their own.

A list that is fenced or marked, with text before it, as xLAM and Nemotron write it, is read too.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_CALL = (JsonCall("name", "arguments"),)

FORMAT = Format(
    name="json",
    models="any model that is told to; xLAM",
    wire=Wire(call=_CALL, section=("[", "]"), between=", ", guess=True),
    also=(
        Wire(call=_CALL, guess=True),
        Wire(call=_CALL, section=("```json [", "] ```"), between=", ", guess=True),
        Wire(call=("```json", *_CALL, "```"), guess=True),
        Wire(call=_CALL, section=("``` [", "] ```"), between=", ", guess=True),
        *(
            Wire(call=_CALL, section=(f"<{tag}> [", f"] </{tag}>"), between=", ", guess=True)
            for tag in ("tool_call", "tool_calls", "TOOLCALL")
        ),
        Wire(call=("<tool_call>", *_CALL, "</tool_call>"), guess=True),
        Wire(call=_CALL, section=("[TOOL_CALLS] [", "]"), between=", ", guess=True),
    ),
    bare=True,
    at_start=True,
)
