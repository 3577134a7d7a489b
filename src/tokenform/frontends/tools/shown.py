"""Tools and calls as text, for models whose chat template leaves them out.

Purpose: such a model reads the definitions in a system message, with the layout in which calls are read back,
and its earlier calls as it might have written them.
Invariant: a call is written by the format's own grammar, so that it reads back as the call; no format is
spelled out here again.
Complexity: a small grammar for each call.
Rejected: a writer for each part of a layout (the grammar has it all, and the reader is a third).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tokenform import _core
from tokenform.errors import TokenformError, ToolError
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.tools.calling import tools as tools_of
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.tool import Tool

_ONE_SPELLING = {"whitespace": "spaced", "numbers": "canonical", "strings": "canonical", "order": "declared"}
_MOST = 1 << 16  # bytes of a call


def written_call(name: str, arguments: Mapping[str, Any], format: Format) -> str:
    """A call in the format's layout.

    Raises:
        ToolError: the format can't say it.
    """
    exact = {
        "type": "object",
        "properties": {key: {"const": value} for key, value in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }
    try:
        grammar = tools_of(
            [Tool(name, "", exact)],
            format=format,
            tool_choice="required",
            parallel=False,
            reasoning="none",
            json_options=_ONE_SPELLING,
        )
        automaton = grammar.core.compile(byte_vocabulary())
        return _shortest(automaton).decode()
    except (
        TokenformError,
        UnicodeError,
        TypeError,
        ValueError,
    ) as error:  # no JSON, or nothing of the format
        raise ToolError(f"the call of {name!r} can't be written as {format.name}: {error}") from error


def _shortest(automaton: _core.TokenAutomaton) -> bytes:
    """A shortest accepted text: of the bytes that may be next the first that comes nearer to an end."""
    state, text = automaton.start, bytearray()
    left = automaton.distance(state)
    while left and len(text) < _MOST:
        for byte in range(256):
            if automaton.allows(state, byte):
                following = automaton.advance(state, byte)
                nearer = automaton.distance(following)
                if nearer is not None and nearer < left:
                    break
        else:
            break
        state, left = following, nearer
        text.append(byte)
    return bytes(text)


def shown_tools(definitions: Sequence[Mapping[str, Any]], format: Format) -> str:
    """What a system message says of tools: a line of JSON for each, and how a call is written."""
    lines = [json.dumps(one.get("function", one), ensure_ascii=False) for one in definitions]
    try:
        example = written_call("TOOL_NAME", {"ARGUMENT_NAME": "VALUE"}, format)
    except ToolError:  # a format of calls that have other parts: the grammar will see to it
        example = ""
    how = f"\n\nTo call a tool, write:\n{example}" if example else ""
    return "You can call these tools:\n" + "\n".join(lines) + how
