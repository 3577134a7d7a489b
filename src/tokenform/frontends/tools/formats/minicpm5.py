"""MiniCPM 5: elements with the name as an attribute, values raw or JSON by the schema; no section.

Source: the parsers of SGLang (`minicpm5`) and vLLM (`minicpm5xml`).
"""

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="minicpm5",
    models="MiniCPM 5",
    wire=Wire(
        call=(
            '<function name="',
            Name(),
            '">',
            Tagged(before='<param name="', middle='">', after="</param>"),
            "</function>",
        ),
    ),
    dropped=("<|im_end|>", "</s>"),
    template=("<function name=", "<param name="),
)
