"""DeepSeek V3.2: DSML, elements whose parameters say whether they are strings.

Source: `encoding_dsv32.py` of deepseek-ai/DeepSeek-V3.2, which writes two line feeds before the block.
The reader goes by the schema where `string` is missing or says what the schema does not allow.
"""

from tokenform.frontends.tools.formats.deepseek_v4 import dsml
from tokenform.frontends.tools.layout import Format

_WIRE, _WHOLE, _BARE = dsml("function_calls", "invoke", "parameter")

FORMAT = Format(
    name="deepseek_v32",
    models="DeepSeek V3.2, V3.2-Speciale",
    wire=_WIRE,
    also=(_WHOLE, _BARE),
    lead="\n\n",
    embedded=("｜DSML｜",),
    dropped=("<｜end▁of▁sentence｜>", "</｜DSML｜function_calls>"),
    template=("｜DSML｜",),
)
