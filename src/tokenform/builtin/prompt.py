"""The text that the built-in model reads: one chat template, for prompts, schemas and tools.

Purpose: `format_prompt` turns a prompt and a JSON Schema into model text.  The template itself is
`chat_template.jinja`, which the tokenizer carries too, so that chat messages read the same everywhere.
Invariant: the rendered schema is at most `OUTLINE_LIMIT` characters long, however large the schema is.
Rejected: the schema as JSON text; an outline (`{"name": string, "age": integer}`) is a third as long
and has the keys in the order and the spelling in which the document will have them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

TEMPLATE_PATH = Path(__file__).with_name("chat_template.jinja")
OUTLINE_LIMIT = 800
"""Longest outline of a schema, in characters."""

_SHAPES = ((4, 24), (3, 16), (2, 16), (2, 8), (1, 8), (0, 1))
"""(depth, width) of the outline, from the fullest to the shortest: the first that is short enough is used."""

BOS, EOS, PAD = "<|bos|>", "<|end|>", "<|pad|>"
ROLE_MARKERS = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>", "<|schema|>")
TEXT_MARKERS = ("<tool_call>", "</tool_call>")
"""Tokens of their own that are ordinary text, so that decoding keeps them."""


@lru_cache(maxsize=1)
def _template() -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    return environment.from_string(TEMPLATE_PATH.read_text(encoding="utf-8"))


def format_prompt(
    prompt: str | Sequence[dict[str, Any]],
    schema: dict[str, Any] | bool | None = None,
    tools: Sequence[dict[str, Any]] | None = None,
) -> str:
    """The text after which the built-in model writes its answer.

    Args:
        prompt: the user's text, or chat messages (`role`, `content`, `tool_calls`).
        schema: JSON Schema of the wanted document; its outline is put after the last message.
        tools: tool definitions (OpenAI's shape, or `name`, `description`, `parameters` alone).

    Returns:
        Text with the markers of the roles spelled out; tokenise it without adding special tokens.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    text = ""
    for depth, width in _SHAPES:
        text = _template().render(
            messages=messages,
            schema=schema,
            tools=list(tools) if tools else None,
            schema_depth=depth,
            schema_width=width,
            add_generation_prompt=True,
        )
        if schema is None or len(text) - text.rfind("<|schema|>") <= OUTLINE_LIMIT:
            break
    return text
