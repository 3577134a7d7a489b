"""Hunyuan 3 and 4: GLM's elements in a section, a token after the name, which Hunyuan 4 leaves out.

Source: the parsers of vLLM 0.33 (`tool_parsers/hy_v3_tool_parser.py`, `hy_v4_tool_parser.py`) and SGLang
0.5.23 (`function_call/hunyuan_detector.py`).  Checkpoints whose tokens bear a suffix
(`<tool_calls:opensource>`) need a format of one's own.
"""

from tokenform.frontends.tools.formats.glm45 import ARGUMENTS, MARKERS
from tokenform.frontends.tools.layout import Format, Maybe, Name, Wire

FORMAT = Format(
    name="hunyuan_v3",
    models="Hunyuan 3, Hunyuan 4",
    wire=Wire(
        call=("<tool_call>", Name(), Maybe(("<tool_sep>",), written=None), "\n", ARGUMENTS, "</tool_call>\n"),
        section=("<tool_calls>\n", "</tool_calls>"),
    ),
    special=("<tool_calls>", "</tool_calls>", "<tool_sep>", *MARKERS),
    trigger_ends_reasoning=True,
    dropped=("<|eos|>",),
    template=("<tool_calls>", "<arg_key>"),
)
