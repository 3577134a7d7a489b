"""Mistral's tokenizers v11 and v13: a special token before each name and before each object of arguments.

Source: mistral-common, `tokens/tokenizers/instruct.py`, versions 11 and 13 (v11 has a call id, v13 dropped
it). Some servers leave out `[ARGS]` when they turn tokens into text, which is read and allowed too.
"""

from tokenform.frontends.tools.layout import Format, Id, JsonArguments, JsonCall, Maybe, Name, Wire

FORMAT = Format(
    name="mistral_v11",
    models="Mistral Small 3.1 and later, Devstral, Magistral, Ministral 3, Mistral Medium 3",
    wire=Wire(
        call=(
            "[TOOL_CALLS]",
            Name(),
            Maybe(("[CALL_ID]", Id("[a-zA-Z0-9]{9}")), written=None),
            Maybe(("[ARGS]",), written=None),
            JsonArguments(),
        ),
    ),
    also=(Wire(call=(JsonCall("name", "arguments"),), section=("[TOOL_CALLS][", "]"), between=", "),),
    special=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]"),
    reasoning=("[THINK]", "[/THINK]"),
    trigger_ends_reasoning=True,
    short_ids=True,
    dropped=("</s>",),
    template=("[TOOL_CALLS]", "[ARGS]"),
)
