"""What a chat model is told about the form of its answer, at the end of a text prompt.

Purpose: a model that is refused what it wants to write derails; told what is wanted, it mostly wants that.
Invariant: the words say nothing that the constraint does not, and nothing where nothing short can be said.
Decided by what a small chat model writes, see `docs/decisions.md`; `benchmarks/prompts.py` measures it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from tokenform.errors import LimitExceeded

_JSON = "Answer with JSON."
CHOICES = 1000
"""Most characters of choices, or of a pattern, that are shown unasked."""


def instruction(grammar: Any, show: bool | Literal["auto"]) -> str:
    """The words for a constraint; "" for none.

    Args:
        grammar: anything with `schema` and `tools`, as a `Grammar`.
        show: "auto" says in short what is wanted; True shows the schema, the pattern or the grammar whole;
            False says nothing.
    """
    if show is False or grammar.tools:
        return ""  # the template shows tools
    try:
        schema = grammar.schema
    except LimitExceeded:  # a text that nests deeper than Python reads
        return _JSON
    if schema is not None:
        if show is True:
            return (
                f"Answer with JSON that matches this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
            )
        return _of_schema(schema)
    kind, what = next(iter((getattr(grammar, "form", None) or {"": None}).items()))
    if kind == "language" and isinstance(what, Mapping):
        return _of_language(what, show)
    source = getattr(grammar, "source", "")
    if show is True and source and kind in ("grammar", "gbnf"):
        return f"Answer with a text of this grammar:\n{source}"
    return ""


def _of_schema(schema: Any) -> str:
    values = schema.get("enum") if isinstance(schema, Mapping) else None
    if values:
        return _one_of([json.dumps(one, ensure_ascii=False) for one in values])
    return _JSON


def _of_language(language: Mapping[str, Any], show: bool | Literal["auto"]) -> str:
    words, pattern = language.get("words"), language.get("regex")
    if words:
        return _one_of([str(one) for one in words], show is True)
    if pattern and pattern != "(?s).*" and (show is True or len(pattern) <= CHOICES):
        return f"Answer with a text that matches the regular expression {pattern}"
    return ""


def _one_of(words: list[str], all_of_them: bool = False) -> str:
    listed = ", ".join(words)
    return f"Answer with one of: {listed}" if all_of_them or len(listed) <= CHOICES else ""
