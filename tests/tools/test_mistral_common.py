"""Mistral's own tokenizers write calls; the grammar allows what they write and the reader reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tokenform.frontends.tools import parse_tool_calls, tool_shape

from .tree_matcher import accepts

pytest.importorskip("mistral_common")

ARGUMENTS: list[dict[str, Any]] = [
    {"city": "Paris", "n": 3},
    {"city": 'say "hi"\n\\ é 日本 🎉', "n": -1},
    {"city": "[TOOL_CALLS][{", "n": 0},
]
TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
        },
    }
]


def written(arguments: list[dict[str, Any]], tekken: bool) -> str:
    """The calls as mistral-common's tokenizer v3 encodes them, as text with special tokens."""
    from mistral_common.protocol.instruct.messages import AssistantMessage, ToolMessage, UserMessage
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.tool_calls import FunctionCall, ToolCall
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    tokenizer = MistralTokenizer.v3(is_tekken=tekken)
    calls = [
        ToolCall(id=f"abcdefg{i:02}", function=FunctionCall(name="get_weather", arguments=json.dumps(a)))
        for i, a in enumerate(arguments)
    ]
    answers = [ToolMessage(tool_call_id=call.id, content="x") for call in calls]
    messages = [UserMessage(content="hi"), AssistantMessage(content=None, tool_calls=calls), *answers]
    encoded = tokenizer.encode_chat_completion(ChatCompletionRequest(messages=messages))
    text = str(tokenizer.decode(encoded.tokens, special_token_policy=SpecialTokenPolicy.KEEP))
    return text.split("[/INST]", 1)[1].split("</s>", 1)[0].replace("▁", " ")


@pytest.mark.parametrize("tekken", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_calls_of_tokenizer_v3(tekken: bool, count: int) -> None:
    arguments = ARGUMENTS[:count]
    text = written(arguments, tekken)
    got = parse_tool_calls(text, TOOLS, format="mistral_v3")
    assert [call.arguments for call in got] == arguments
    # SentencePiece puts a space after the marker, which is no part of the layout.
    layout = text.replace("[TOOL_CALLS] ", "[TOOL_CALLS]")
    assert accepts(tool_shape(TOOLS, format="mistral_v3", tool_choice="required"), layout)
