"""Qwen3-Coder: elements with the name in the tag and raw values on lines of their own.

Source: the chat template of Qwen/Qwen3-Coder (Step 3.5 and Nemotron 3 write the same).  The template writes
booleans as Python does (`True`), models write both.
They leave out `<tool_call>` now and then; the reader takes the function alone.
"""

from tokenform.frontends.tools.layout import Format, Maybe, Name, Tagged, Wire

_ARGUMENTS = Tagged(before="<parameter=", middle=">\n", after="\n</parameter>\n", python_words=True)

FORMAT = Format(
    name="qwen3_coder",
    models="Qwen3-Coder, Qwen3-Next-Coder, Qwen 3.5, Step 3.5, Nemotron 3",
    wire=Wire(
        call=("<tool_call>\n<function=", Name(), ">\n", _ARGUMENTS, "</function>\n</tool_call>"),
        between="\n",
    ),
    also=(
        Wire(
            call=(
                "<function=",
                Name(),
                ">\n",
                _ARGUMENTS,
                "</function>",
                Maybe(("</tool_call>",), written=None),
            ),
            between="\n",
            written=True,
        ),
    ),
    special=("<tool_call>", "</tool_call>"),
    dropped=("<|im_end|>", "<|endoftext|>"),
    template=("<function=", "<parameter="),
)
