"""Makes the result of a row that has ended.

Purpose: a row's text, value and reason to end, in one place for all who run rows; where the budget cut in
(`Result.cut_at`), and which values it made (`Result.cut`).
Invariant: without the budget the text is the same up to the cut, and goes on with the token that was refused
there.  So the model's own are the values that are complete by then, and what the constraint forces after that
beginning; all others are listed.
Rejected: going back to the last whole value and closing from there.  A stream has sent the rest already, and
a required field has to be written anyway.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tokenform.decoding.calls import Constraint
from tokenform.decoding.pieces import first_stop
from tokenform.decoding.prompts import ReadPrompt
from tokenform.decoding.result_field import json_values
from tokenform.decoding.results import Result, Stats, finder, read_value
from tokenform.decoding.row import Row
from tokenform.decoding.speculative.request import UNKNOWN, Cut
from tokenform.engine import TokenAutomaton
from tokenform.errors import InvalidSchema
from tokenform.frontends.json_pointer import pointer_of
from tokenform.frontends.tools import ToolCallStream
from tokenform.frontends.tools.calls import ToolCalls

if TYPE_CHECKING:
    from tokenform.decoding.alternatives import Origin

_NUMERIC = b"0123456789.eE+-"


def result_of(
    row: Row,
    grammar: Constraint,
    token_bytes: Sequence[bytes],
    *,
    origin: Origin,
    prompt: ReadPrompt,
    keep_invalid: bool = False,
) -> Result:
    """The result of a row that has ended.

    Args:
        token_bytes: of each token id.
        origin: the generator that wrote it.
        prompt: what the model read.
        keep_invalid: return a text that validators refuse too, with its `error`.
    Raises:
        InvalidType: validators refuse it.
    """
    output = row.output
    text = b"".join(map(token_bytes.__getitem__, output.tokens)).decode("utf-8", errors="replace")
    end, stopped = first_stop(text, row.stop, row.automaton.matches)
    text = text[:end]
    cut, place, pointers = output.cut, None, list[str]()
    value, error = read_value(grammar, text)
    if error is not None and not keep_invalid:
        raise error
    if cut is not None:
        place = min(cut_at(cut, output.tokens, token_bytes), len(text))
        value = whole_calls(value, grammar, text[:place])
        calls = isinstance(value, ToolCalls)
        pointers = [""] if calls else cut_values(cut, text, output.tokens, token_bytes, row.automaton)
    return Result(
        text,
        output.tokens,
        value,
        output.logprob,
        error=error,
        stats=Stats.of(output),
        report=output.report if row.drafted else None,
        token_logprobs=output.token_logprobs,
        guessed=output.guessed,
        likeliest=output.likeliest,
        decided=output.decided,
        reason=output.reason,
        automaton=row.automaton,
        origin=origin,
        cut_at=place,
        cut=pointers,
        prompt=prompt,
        thought=row.thought,
        stopped=stopped,
        find=finder(grammar),
    )


def cut_at(cut: Cut, tokens: Sequence[int], token_bytes: Sequence[bytes]) -> int:
    """How many characters of a text were written before the budget cut in.

    Args:
        token_bytes: of each token id.
    """
    return len(b"".join(token_bytes[token] for token in tokens[: cut.place]).decode("utf-8", "ignore"))


def cut_values(
    cut: Cut, text: str, tokens: Sequence[int], token_bytes: Sequence[bytes], automaton: TokenAutomaton
) -> list[str]:
    """JSON Pointers of the values that the budget made, inner ones first; [""] for a text that is no JSON
    document.  An open container is listed if none of its values is.
    """
    listed: list[tuple[tuple[str | int, ...], int]] = []  # with the start of each
    byte_offsets = [0, *accumulate(len(sign.encode()) for sign in text)]
    before = b"".join(token_bytes[token] for token in tokens[: cut.place])
    refused = b"" if cut.refused == UNKNOWN else token_bytes[cut.refused]
    unchanged, open_number = _unchanged_bytes(text.encode(), before, refused, automaton)
    try:
        values = json_values(text)
    except InvalidSchema:
        return [""]
    for path, value, start, end in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if byte_offsets[end] < unchanged or (byte_offsets[end] == unchanged and not (number and open_number)):
            continue
        if not isinstance(value, dict | list) or not any(at > start for _, at in listed):
            listed.append((path, start))
    return [pointer_of(path) for path, _ in listed]


def whole_calls(value: Any, grammar: Any, written: str) -> Any:
    """Of a text of tool calls, the calls whose arguments were complete at the cut; any other value as it is.

    Args:
        written: the text before the cut.
    """
    if not isinstance(value, ToolCalls) or grammar.tool_reader is None:
        return value
    arguments: dict[int, str] = {}
    for delta in ToolCallStream(**grammar.tool_reader).feed(written):
        for call in delta.get("tool_calls", ()):
            arguments[call["index"]] = arguments.get(call["index"], "") + call["function"]["arguments"]
    whole = [call for number, call in enumerate(value) if is_whole(arguments.get(number, ""))]
    return ToolCalls(whole, value.content, value.reasoning)


def is_whole(arguments: str) -> bool:
    """Whether the JSON text of a call's arguments has been written to its end."""
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


def _unchanged_bytes(
    data: bytes, before: bytes, refused: bytes, automaton: TokenAutomaton
) -> tuple[int, bool]:
    """How many bytes of a text would be the same without the budget, and whether a number that ends there may
    go on."""
    unchanged = _common_length(data, before + refused)
    if unchanged < len(before + refused):
        return unchanged, (before + refused)[unchanged] in _NUMERIC
    state = automaton.step_bytes(automaton.start, data[:unchanged])
    forced = _common_length(data[unchanged:], bytes(automaton.forced_bytes(state)))
    return unchanged + forced, not forced


def _common_length(one: bytes, other: bytes) -> int:
    """The length of the longest common prefix."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
