"""Values that hold every marker of every format, written under a format's masks and read back."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools import parse_tool_calls, tools
from tokenform.frontends.tools.judge import byte_vocabulary

from .writers import WRITERS, Writer

TEXT = {"type": "string"}
TOOLS = [
    {"name": "edit", "parameters": {"type": "object", "properties": {"s": TEXT, "n": {"type": "integer"}}}},
    {"name": "now", "parameters": {"type": "object", "properties": {}}},
]


@lru_cache(maxsize=1)
def markers() -> list[str]:
    """Of all formats: what opens and closes calls and arguments, whole and in parts."""
    found: dict[str, None] = {}
    for writer in WRITERS.values():
        pieces = writer.call(0, "edit", {"s": "", "n": 1})
        texts = [piece.text for piece in pieces if piece.role in ("open", "close", "key", "end", "frame")]
        for text in (*writer.section, *writer.fence, *writer.text, *texts):
            found |= dict.fromkeys([text, text.strip(), *re.findall(r"<[^<>]*>|\[[A-Z_/]+\]", text)])
    return [text for text in found if text]


def value(rng: random.Random, own: list[str]) -> str:
    """A text with some of them; own: those of the format, which come more often."""
    parts = ["x", " y", "\n", "<", '"', "'", "\\", "{", "}", "ä"]
    pieces = [rng.choice(rng.choice([own or parts, markers(), parts])) for _ in range(rng.randrange(1, 8))]
    return "".join([rng.choice(["", "a"]), *pieces, rng.choice(["", "z"])])


def own_markers(writer: Writer) -> list[str]:
    pieces = writer.call(0, "edit", {"s": "", "n": 1})
    return [piece.text for piece in pieces if piece.role in ("open", "close", "key", "end") and piece.text]


@lru_cache(maxsize=64)
def _automaton(name: str) -> Any:
    prompt = "<|start|>assistant" if name == "gpt_oss" else "<|assistant|>"
    grammar = tools(TOOLS, format=name, tool_choice="edit", prompt=prompt, reasoning="none")
    return grammar.core.compile(byte_vocabulary())


def fate(name: str, text: str, behind: bool = False) -> str:
    """What becomes of the value: "kept" byte for byte, "refused" by the masks, or "changed", which is wrong.

    behind: another argument comes after it.
    """
    writer = WRITERS[name]
    given: dict[str, Any] = {"s": text, "n": 7} if behind else {"s": text}
    body = "".join(piece.text for piece in writer.call(0, "edit", given))
    output = writer.section[0] + body + writer.section[1]
    if name == "gpt_oss":
        output = output.removeprefix("<|start|>assistant")
    if not _automaton(name).matches(output.encode()):
        return "refused"
    try:
        found = parse_tool_calls(output, TOOLS, format=name, reasoning="none")
    except ToolError:
        return "changed"
    same = len(found) == 1 and found[0].arguments == given and not (found.content or "").strip()
    return "kept" if same else "changed"
