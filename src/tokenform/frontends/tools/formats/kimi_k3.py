"""Kimi K3: XTML, elements made of three special tokens; reasoning, answer and calls are channels.

Source: the chat template of moonshotai/Kimi-K3 (as llama.cpp has it).  Arguments given as text are one `json`
element; servers that put spaces beside special tokens space every marker (vLLM 0.33,
`tool_parsers/kimi_k3_tool_parser.py`): the reader takes both.
"""

from tokenform.frontends.tools.layout import Format, Id, JsonArguments, Name, Part, Tagged, Wire


def _marker(kind: str, name: str, space: str = "") -> str:
    return f"<|{kind}|>{space}{name}{space}<|sep|>"


def _wire(space: str = "", *, whole: bool = False) -> Wire:
    """whole: the arguments are one JSON object."""
    arguments: tuple[Part, ...] = (
        Tagged(
            before=f'<|open|>{space}argument key="',
            middle=f'" type="string"{space}<|sep|>',
            json_middle=f'" type="{{type}}"{space}<|sep|>',
            open_middle=f'"{space}<|sep|>',
            after=_marker("close", "argument", space),
        ),
    )
    if whole:
        arguments = (_marker("open", 'json type="object"'), JsonArguments(), _marker("close", "json"))
    return Wire(
        call=(
            f'<|open|>{space}call tool="',
            Name(),
            '" index="',
            Id("[1-9][0-9]*", full=""),
            f'"{space}<|sep|>',
            *arguments,
            _marker("close", "call", space),
        ),
        section=(_marker("open", "tools", space), _marker("close", "tools", space)),
    )


_ANSWER = (_marker("open", "response"), _marker("close", "response"))
_END = _marker("close", "message")
_SPACED = (
    _marker("open", "response", " "),
    _marker("close", "response", " "),
    _marker("close", "message", " "),
)

FORMAT = Format(
    name="kimi_k3",
    models="Kimi K3",
    wire=_wire(),
    also=(_wire(whole=True), _wire(" ")),
    embedded=("<|open|>", "<|close|>", "<|sep|>"),
    reasoning=(_marker("open", "think"), _marker("close", "think")),
    trigger_ends_reasoning=True,
    content=_ANSWER,
    fenced=True,
    end=_END,
    dropped=(*_ANSWER, _END, *_SPACED, "<|end_of_msg|>"),
    template=("<|open|>", "<|sep|>", "call"),
)
