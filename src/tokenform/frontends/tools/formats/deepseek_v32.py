"""DeepSeek V3.2: DSML, elements whose parameters say whether they are strings.

Source: `encoding_dsv32.py` of deepseek-ai/DeepSeek-V3.2, which writes two line feeds before the block.
The reader goes by the schema where `string` is missing or says what the schema does not allow.
"""

from __future__ import annotations

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="deepseek_v32",
    models="DeepSeek V3.2, V3.2-Speciale",
    wire=Wire(
        call=(
            '<｜DSML｜invoke name="',
            Name(),
            '">\n',
            Tagged(
                before='<｜DSML｜parameter name="',
                middle='" string="true">',
                json_middle='" string="false">',
                open_middle='">',
                after="</｜DSML｜parameter>\n",
            ),
            "</｜DSML｜invoke>\n",
        ),
        section=("<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>"),
    ),
    lead="\n\n",
    special=("<think>", "</think>"),
    embedded=("｜DSML｜",),
    dropped=("<｜end▁of▁sentence｜>",),
    template=("｜DSML｜",),
)
