"""DeepSeek V4: DSML as in V3.2, in a section of another name.

Source: `encoding_dsv4.py` of deepseek-ai/DeepSeek-V4, which writes two line feeds before the block and an
empty line where a call has no arguments.  The model is seen to misspell the section's name, to leave it out
and to write a call without arguments as one element that closes itself, or all arguments as one JSON object
(SGLang 0.5.23, `function_call/deepseekv4_detector.py`).
"""

from __future__ import annotations

from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Part, Tagged, Wire


def dsml(section: str, invoke: str, parameter: str) -> tuple[tuple[Part, ...], tuple[str, str]]:
    """The layout of a call and what opens and closes the section, with these names of the elements."""
    arguments = Tagged(
        before=f'<｜DSML｜{parameter} name="',
        middle='" string="true">',
        json_middle='" string="false">',
        open_middle='">',
        after=f"</｜DSML｜{parameter}>\n",
    )
    call = (f'<｜DSML｜{invoke} name="', Name(), '">\n', arguments, f"</｜DSML｜{invoke}>\n")
    return call, (f"<｜DSML｜{section}>\n", f"</｜DSML｜{section}>")


_CALL, _SECTION = dsml("tool_calls", "invoke", "parameter")
_CLOSED = (_CALL[0], Name(), '"/>\n')

FORMAT = Format(
    name="deepseek_v4",
    models="DeepSeek V4",
    wire=Wire(call=_CALL, section=_SECTION),
    also=(
        Wire(call=(*_CALL[:3], JsonArguments(), _CALL[-1]), section=_SECTION, written=True),
        Wire(call=_CLOSED, section=_SECTION),
        Wire(call=_CALL, section=("<｜DSML｜toolcalls>", _SECTION[1])),
        Wire(call=_CALL, section=("<｜DSML｜tool>", _SECTION[1])),
        Wire(call=_CALL),
    ),
    lead="\n\n",
    special=("<think>", "</think>"),
    embedded=("｜DSML｜",),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<｜end▁of▁sentence｜>",),
    template=("｜DSML｜", "tool_calls>"),
)
