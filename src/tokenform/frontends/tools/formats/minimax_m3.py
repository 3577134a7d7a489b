"""MiniMax M3: elements inside each other, each marker with a token of its own before it.

Source: the `to_xml` macro of the chat template of MiniMaxAI/MiniMax-M3, as ModelScope's swift and the parsers
of vLLM 0.33 and SGLang 0.5.23 have it.  The template leaves out members that are null; names in other quotes,
or none, are read (vLLM 0.33, `parser/minimax_m3.py`).
"""

from tokenform.frontends.tools.layout import Elements, Format, Name, Wire

_MARK = "]<]minimax[>["
_SECTION = (f"{_MARK}<tool_call>\n", f"{_MARK}</tool_call>")


def _wire(quote: str) -> Wire:
    elements = Elements(
        member=_MARK + "<{name}>",
        item=_MARK + "<item>",
        close=_MARK + "</{name}>",
        close_item=_MARK + "</item>",
        marker=_MARK,
    )
    call = (f"{_MARK}<invoke name={quote}", Name(), f"{quote}>", elements, f"{_MARK}</invoke>\n")
    return Wire(call=call, section=_SECTION)


FORMAT = Format(
    name="minimax_m3",
    models="MiniMax M3",
    wire=_wire('"'),
    also=(_wire("'"), _wire("")),
    special=("<mm:think>", "</mm:think>"),
    embedded=(_MARK,),
    reasoning=("<mm:think>", "</mm:think>"),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("[e~[",),
    template=(_MARK, "<invoke name="),
)
