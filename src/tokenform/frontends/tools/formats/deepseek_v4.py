"""DeepSeek V4: DSML as in V3.2, in a section of another name.

Source: `encoding_dsv4.py` of deepseek-ai/DeepSeek-V4, which writes two line feeds before the block and an
empty line where a call has no arguments.  The model is seen to misspell the section's name, to leave it out
and to write a call without arguments as one element that closes itself, or all arguments as one JSON object
(SGLang 0.5.23, `function_call/deepseekv4_detector.py`), or in one parameter that no tool declares.
"""

from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Tagged, Wire


def dsml(section: str, invoke: str, parameter: str) -> tuple[Wire, Wire, Wire]:
    """With these names of the elements: the layout of calls, the same with all arguments as one JSON object,
    and a call without the section around it."""
    arguments = Tagged(
        before=f'<｜DSML｜{parameter} name="',
        middle='" string="true">',
        json_middle='" string="false">',
        open_middle='">',
        after=f"</｜DSML｜{parameter}>\n",
        wrappers=("arguments", "input"),
    )
    head, end = (f'<｜DSML｜{invoke} name="', Name(), '">\n'), f"</｜DSML｜{invoke}>\n"
    around = (f"<｜DSML｜{section}>\n", f"</｜DSML｜{section}>")
    return (
        Wire(call=(*head, arguments, end), section=around),
        Wire(call=(*head, JsonArguments(), end), section=around, written=True),
        Wire(call=(*head, arguments, end), written=True),
    )


_WIRE, _WHOLE, _BARE = dsml("tool_calls", "invoke", "parameter")
_CLOSER, _OLD_CLOSER = "</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"

FORMAT = Format(
    name="deepseek_v4",
    models="DeepSeek V4",
    wire=_WIRE,
    also=(
        _WHOLE,
        Wire(call=(*_WIRE.call[:2], '"/>\n'), section=_WIRE.section),
        Wire(call=_WIRE.call, section=("<｜DSML｜toolcalls>", _CLOSER), written=True),
        Wire(call=_WIRE.call, section=("<｜DSML｜tool>", _CLOSER), written=True),
        Wire(call=_WIRE.call, section=("<｜DSML｜function_calls>", _OLD_CLOSER)),  # V3.2's name
        _BARE,
    ),
    lead="\n\n",
    embedded=("｜DSML｜",),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    # closers too: one without its opener is no part of the answer
    dropped=("<｜end▁of▁sentence｜>", _CLOSER, _OLD_CLOSER),
    template=("｜DSML｜", "tool_calls>"),
)
