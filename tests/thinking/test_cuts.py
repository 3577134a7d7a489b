"""Thoughts and what follows them, in pieces: for any way of cutting a text the same as whole."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.thinking import ThoughtPieces

RECORDED = [
    ("<think>", "</think>", "<think>\nI should greet.\n</think>\n\n", "I should greet."),
    ("", "</think>", "\n\nTwo\n\nparts, < and </thin.\n </think>", "Two\n\nparts, < and </thin."),
    ("[THINK]", "[/THINK]", "[THINK]Grüße, 東京.[/THINK]", "Grüße, 東京."),
    ("<|channel|>analysis<|message|>", "<|end|>", "<|channel|>analysis<|message|>Hm.<|end|><|st", "Hm."),
    ("<seed:think>", "</seed:think>", "<seed:think></seed:think>", ""),
    ("<think>", "</think>", "<think>cut in the mid", "cut in the mid"),
]


@pytest.mark.parametrize(("opener", "closer", "text", "thought"), RECORDED)
def test_any_two_cuts(opener, closer, text, thought):
    data = text.encode()
    for first, second in itertools.combinations_with_replacement(range(len(data) + 1), 2):
        pieces = ThoughtPieces(opener, closer)
        told = [pieces.feed(part) for part in (data[:first], data[first:second], data[second:])]
        told.append(pieces.finish())
        assert "".join(told) == pieces.text == thought
    pieces = ThoughtPieces(opener, closer)
    told = [pieces.feed(bytes([byte])) for byte in data]
    assert "".join([*told, pieces.finish()]) == thought


CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
ANSWERS = ["Hello there.", '{"answer": 4}', CALL, f"I call it.\n{CALL}\n{CALL}", ""]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("tools", [False, True])
def test_items_of_any_cut_are_those_of_the_whole(answer, tools):
    pytest.importorskip("starlette", reason="the server needs tokenform[serve]")
    from tokenform.server.endpoints.items import Writer, items_of
    from tokenform.server.tooling import CallLayout

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool: Any = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    turn: Any = CallLayout([tool], "hermes", None) if tools else None  # type: ignore[arg-type]

    def shown(items: Any) -> list[tuple[Any, ...]]:
        return [(item.text, item.name, item.thought) for item in items]

    work: Any = SimpleNamespace(request=SimpleNamespace(turn=turn))
    result: Any = SimpleNamespace(text=answer, reasoning="I think.", cut_at=None)
    whole = shown(items_of(work, result))
    assert whole[0] == ("I think.", None, True) and not any("think" in text for text, *_ in whole[1:])
    data = answer.encode()
    for cut in range(len(data) + 1):
        for thought in range(len("I think.") + 1):
            writer, pieces = Writer(turn), TextPieces()
            steps = writer.feed("I think."[:thought], thought=True) + writer.feed(
                "I think."[thought:], thought=True
            )
            for part in (data[:cut], data[cut:]):
                steps += writer.feed(pieces.feed(part))
            steps += writer.feed(pieces.finish()) + writer.close()
            assert shown(writer.items) == whole
            for place, (text, *_) in enumerate(whole):
                assert "".join(step.delta for step in steps if step.place == place) == text
