"""DeepSeek V4.1: DSML with a space before the name of each element.

Source: the V4.1 encoding of vLLM 0.33 (`tokenizers/deepseek_v41_encoding.py`), after the model's own.
"""

from tokenform.frontends.tools.formats.deepseek_v4 import FORMAT as V4
from tokenform.frontends.tools.formats.deepseek_v4 import dsml
from tokenform.frontends.tools.layout import Format

_WIRE, _WHOLE, _BARE = dsml(" calls", " invoke", " parameter")

FORMAT = Format(
    name="deepseek_v41",
    models="DeepSeek V4.1",
    wire=_WIRE,
    also=(_WHOLE, _BARE),
    lead="\n\n",
    special=V4.special,
    embedded=V4.embedded,
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=(*V4.dropped, "</｜DSML｜ calls>"),
    template=("｜DSML｜", " calls>"),
)
