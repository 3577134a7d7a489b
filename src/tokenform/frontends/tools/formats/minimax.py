"""MiniMax M2: elements with the name as an attribute, values raw or JSON by the schema.

Source: the chat template of MiniMaxAI/MiniMax-M2.
"""

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="minimax",
    models="MiniMax M2, M2.1",
    wire=Wire(
        call=(
            '<invoke name="',
            Name(),
            '">\n',
            Tagged(before='<parameter name="', middle='">', after="</parameter>\n"),
            "</invoke>\n",
        ),
        section=("<minimax:tool_call>\n", "</minimax:tool_call>"),
    ),
    special=("<minimax:tool_call>", "</minimax:tool_call>"),
    prompt_opens=True,
    dropped=("[e~[",),
    template=("<minimax:tool_call>",),
)
