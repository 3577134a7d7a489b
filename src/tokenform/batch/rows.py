"""What a row asks for: its prompt, its constraint and its seed.

Invariant: a row that asks for something impossible becomes an error of its own; numpy's and arrow's values
are read as the plain values that they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tokenform.errors import OptionError
from tokenform.frontends import Grammar
from tokenform.frontends.grammar_text import grammar_of_text

_KEPT_GRAMMARS = 256


def prompt_of(row: Mapping[str, Any], column: str) -> Any:
    """The row's prompt: text, or chat messages."""
    if column not in row:
        raise OptionError(f"the row has no column {column!r}; it has {', '.join(map(str, row)) or 'none'}.")
    prompt = plain(row[column])
    if isinstance(prompt, str) and prompt.lstrip().startswith('[{"'):  # chat messages in a file of texts
        try:
            messages = json.loads(prompt)
        except ValueError:
            return prompt
        return messages if all(isinstance(one, dict) and "role" in one for one in messages) else prompt
    chat = isinstance(prompt, list) and prompt and all(isinstance(one, dict) for one in prompt)
    if not chat and not isinstance(prompt, str):
        raise OptionError(
            f"the prompt is {type(prompt).__name__}; give text, or a list of chat messages, in {column!r}."
        )
    return prompt


@lru_cache(maxsize=_KEPT_GRAMMARS)
def own_grammar(kind: str, text: str, spelling: tuple[tuple[str, Any], ...]) -> Grammar:
    """The grammar of a row's own schema, pattern or grammar."""
    return grammar_of_text("json" if kind == "schema" else kind, text, **dict(spelling))


def plain(value: Any) -> Any:
    """The value without numpy: texts, numbers, lists and dictionaries; NaN, a missing text, is None."""
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def text_of(value: Any) -> str:
    """A value as a text, the same in every process."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
