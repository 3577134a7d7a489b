"""Outputs as models and servers write them, by format: the template's own layout, layouts seen in the wild,
and broken ones.  Each case says what it means; the two tests beside (`test_layouts.py`) hold the grammar and
the readers to it.

`must`: the template's layout, which the grammar allows and the reader reads.  `read`: the reader reads it.
`refuse`: the grammar does not allow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def _tool(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


_TEXT, _WHOLE = {"type": "string"}, {"type": "integer"}
TOOLS = [
    _tool("book_table", {"place": _TEXT, "guests": _WHOLE, "terrace": {"type": "boolean"}}, "place"),
    _tool("play", {"song": _TEXT, "volume": {"type": "number"}}, "song"),
    _tool("ping", {}),
    _tool(
        "note",
        {
            "text": _TEXT,
            "tags": {"type": "array", "items": _TEXT},
            "meta": {"type": "object"},
            "until": {"anyOf": [_WHOLE, {"type": "null"}]},
            "owner": {"anyOf": [_TEXT, {"type": "null"}]},
            "mood": {"type": "string", "enum": ["calm", "loud"]},
        },
    ),
    _tool("mcp__music-box__find.songs", {"q": _TEXT}, "q"),
]


@dataclass(frozen=True)
class Layout:
    """One output.

    calls: (name, arguments) in order.  free: content is left open.  readable: refused by the grammar alone.
    """

    name: str
    format: str
    tier: str
    output: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    content: str | None = None
    reasoning: str | None = None
    free: bool = False
    readable: bool = False
    choice: str = "auto"

    def __str__(self) -> str:
        return f"{self.format}/{self.name}"


TABLE: dict[str, Any] = {"place": "Zum Löwen", "guests": 4}
SONG: dict[str, Any] = {"song": "Ode an die Freude", "volume": 0.5}
QUOTED: dict[str, Any] = {"text": 'She said "no"\nC:\\temp\t— 音楽 🎵'}
NESTED: dict[str, Any] = {"tags": ["a", "b"], "meta": {"x": {"y": [1, 2.5, None, True]}}}
BOOK, PLAY = ("book_table", TABLE), ("play", SONG)
PING: tuple[str, dict[str, Any]] = ("ping", {})
DOTTED: tuple[str, dict[str, Any]] = ("mcp__music-box__find.songs", {"q": "waltz"})

DEEP = "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>"
V3 = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}\n```json\n{}\n```<｜tool▁call▁end｜>"
V31 = "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
KIMI = "<|tool_call_begin|>functions.{}:{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
KIMIS = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
PLAY_JSON = '{"song": "Ode an die Freude", "volume": 0.5}'
TABLE_JSON = '{"place": "Zum Löwen", "guests": 4}'
QUOTED_JSON = '{"text": "She said \\"no\\"\\nC:\\\\temp\\t— 音楽 🎵"}'
NESTED_JSON = '{"tags": ["a", "b"], "meta": {"x": {"y": [1, 2.5, null, true]}}}'
HERMES = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
HB, HP = HERMES.format("book_table", TABLE_JSON), HERMES.format("play", PLAY_JSON)
OBJ = '{{"name": "{}", "arguments": {}}}'
OB, OP = OBJ.format("book_table", TABLE_JSON), OBJ.format("play", PLAY_JSON)
ON, OQ, OI = OBJ.format("note", NESTED_JSON), OBJ.format("note", QUOTED_JSON), OBJ.format("ping", "{}")
NOTE_Q, NOTE_N = ("note", QUOTED), ("note", NESTED)
