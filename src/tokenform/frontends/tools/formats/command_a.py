"""Command A of 2026: `cofl` elements inside each other; reasoning and answer are marked as well.

Source: the templates and the parser of cohere-melody 0.15 ("Command 5").  Its earlier templates write one
`tool_param` for each argument, raw or JSON.
"""

from tokenform.frontends.tools.layout import Elements, Format, Id, Name, Tagged, Wire

_HEAD = ('<cofl:tool_call id="', Id("[A-Za-z0-9_-]{1,40}"), '" name="', Name(), '">')
_END = "</cofl:tool_call>"
_SECTION = ("<cofl:tool_calls>", "</cofl:tool_calls>")
_ANSWER = ("<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>")

FORMAT = Format(
    name="command_a",
    models="Command A (2026)",
    wire=Wire(
        call=(
            *_HEAD,
            Elements(
                member='<cofl:value name="{name}" type="{kind}">',
                item='<cofl:value type="{kind}">',
                close="</cofl:value>",
                close_item="</cofl:value>",
                marker="</cofl:value>",
                outer=("<cofl:tool_call ", "</cofl:tool_call>"),
                kinds=("raw", "json", "dict", "list"),
            ),
            _END,
        ),
        section=_SECTION,
    ),
    also=(
        Wire(
            call=(
                *_HEAD,
                Tagged(
                    before='<cofl:tool_param name="',
                    middle='" string="true">',
                    json_middle='" string="false">',
                    open_middle='">',
                    after="</cofl:tool_param>",
                ),
                _END,
            ),
            section=_SECTION,
            written=True,
        ),
    ),
    special=("<cofl:tool_calls>", "</cofl:tool_calls>"),
    reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
    trigger_ends_reasoning=True,
    content=_ANSWER,
    prompt_opens=True,
    dropped=(*_ANSWER, "<|END_OF_TURN_TOKEN|>"),
    template=("<cofl:tool_call ",),
)
