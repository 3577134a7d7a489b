"""A row that has ended as a result.

Purpose: text, value and ends of what a row wrote, in one place for all who run rows; where a budget cut in
(`Result.cut_at`), and which of the values it made (`Result.cut`).
Invariant: without the budget the text begins alike up to the cut, and goes on with the token that was
refused there.  So a value that is complete by then, and what the constraint alone makes of that beginning, is
what the model wrote; all else is listed.
Rejected: going back to the last whole value and closing from there.  A stream has told the rest already, and
a field that is required has to be written anyway.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tokenform.decoding.calls import Constraint, texts_of
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
    spelled: Sequence[bytes],
    stop: str | Sequence[str] = (),
    *,
    origin: Origin,
    prompt: ReadPrompt,
    refused: bool = False,
) -> Result:
    """What a row that has ended holds.

    Args:
        spelled: the bytes of each token id.
        stop: texts at which the text ends, which are left out.
        origin: who wrote it.
        prompt: what the model read.
        refused: a text that validators refuse is given back too, with the `error`.
    Raises:
        InvalidType: validators refuse it.
    """
    output = row.output
    text = b"".join(map(spelled.__getitem__, output.tokens)).decode("utf-8", errors="replace")
    text = text[: min((at for one in texts_of(stop) if (at := text.find(one)) >= 0), default=None)]
    cut, place, made = output.cut, None, list[str]()
    value, error = read_value(grammar, text)
    if error is not None and not refused:
        raise error
    if cut is not None:
        place = min(cut_at(cut, output.tokens, spelled), len(text))
        value = whole_calls(value, grammar, text[:place])
        calls = isinstance(value, ToolCalls)
        made = [""] if calls else cut_values(cut, text, output.tokens, spelled, row.automaton)
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
        cut=made,
        prompt=prompt,
        thought=row.thought,
        find=finder(grammar),
    )


def cut_at(cut: Cut, tokens: Sequence[int], spelled: Sequence[bytes]) -> int:
    """How many characters of a text were written before the budget cut in.

    Args:
        spelled: the bytes of each token id.
    """
    return len(b"".join(spelled[token] for token in tokens[: cut.place]).decode("utf-8", "ignore"))


def cut_values(
    cut: Cut, text: str, tokens: Sequence[int], spelled: Sequence[bytes], automaton: TokenAutomaton
) -> list[str]:
    """JSON Pointers of the values that the budget made, those inside of others first; of a text that is no
    JSON document [""].  A container that was open is listed where none of its values is.
    """
    listed: list[tuple[tuple[str | int, ...], int]] = []  # with the start of each
    places = [0, *accumulate(len(sign.encode()) for sign in text)]
    before = b"".join(spelled[token] for token in tokens[: cut.place])
    wanted = b"" if cut.refused == UNKNOWN else spelled[cut.refused]
    same, going = _same(text.encode(), before, wanted, automaton)
    try:
        values = json_values(text)
    except InvalidSchema:
        return [""]
    for path, value, start, end in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if places[end] < same or (places[end] == same and not (number and going)):
            continue
        if not isinstance(value, dict | list) or not any(at > start for _, at in listed):
            listed.append((path, start))
    return [pointer_of(path) for path, _ in listed]


def whole_calls(value: Any, grammar: Any, written: str) -> Any:
    """The value of a text of tool calls with the calls alone whose arguments were complete by the cut; any
    other as it is.

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


def _same(data: bytes, before: bytes, wanted: bytes, automaton: TokenAutomaton) -> tuple[int, bool]:
    """How many bytes of a text would be there without the budget, and whether a number that ends there may go
    on."""
    same = _shared(data, before + wanted)
    if same < len(before + wanted):
        return same, (before + wanted)[same] in _NUMERIC
    state = automaton.step_bytes(automaton.start, data[:same])
    forced = _shared(data[same:], bytes(automaton.forced_bytes(state)))
    return same + forced, not forced


def _shared(one: bytes, other: bytes) -> int:
    """The length of what two texts begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
