"""Outlines: `outlines.Generator(model, Schema, backend="tokenform")`.

Purpose: Outlines names its backends in one function; `register` lets it know another name.
Invariant: the other names are as they were; registered again, nothing changes.
Source: outlines 1.3.3, `backends/__init__.py` (`_get_backend`), `backends/base.py`.

    import outlines
    from tokenform.integrations.outlines import register

    register()
    model = outlines.from_transformers(hf_model, hf_tokenizer)
    print(outlines.Generator(model, Order, backend="tokenform")("An order:", max_new_tokens=100))
"""

from __future__ import annotations

import functools
from typing import Any

import outlines.backends
from outlines.backends.base import BaseBackend

from tokenform.engine import Grammar
from tokenform.errors import ModelError, OptionError
from tokenform.frontends import json_schema, regex
from tokenform.frontends.grammar_text import grammar_of_text

NAME = "tokenform"


class OutlinesBackend(BaseBackend):  # type: ignore[misc]
    """The constraints of one Outlines model: of transformers, llama.cpp or MLX-LM.

    Raises:
        ModelError: Outlines doesn't steer this model's logits.
    """

    def __init__(self, model: Any) -> None:
        kind = type(model).__name__
        if kind not in _PROCESSORS:
            raise ModelError(f"Outlines steers {', '.join(_PROCESSORS)} by tokenform, not {kind}.")
        self._model = model
        self._processor = _PROCESSORS[kind]

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> Any:
        return self._processor(self._model, _documents(json_schema, whitespace_pattern))

    def get_regex_logits_processor(self, regex: str) -> Any:
        """A processor for the texts that a pattern matches as a whole."""
        return self._processor(self._model, _matching(regex))

    def get_cfg_logits_processor(self, grammar: str) -> Any:
        """A processor for a grammar, in Lark's language or in GBNF."""
        return self._processor(self._model, grammar_of_text("grammar", grammar))


def register() -> None:
    """Lets Outlines know the backend "tokenform"."""
    original = outlines.backends._get_backend
    if hasattr(original, "_by_tokenform"):
        return

    @functools.wraps(original)
    def get_backend(backend_name: str, model: Any) -> Any:
        return OutlinesBackend(model) if backend_name == NAME else original(backend_name, model)

    get_backend._by_tokenform = True  # type: ignore[attr-defined]
    outlines.backends._get_backend = get_backend


def _documents(schema: str, whitespace_pattern: str | None) -> Grammar:
    if whitespace_pattern not in (None, ""):
        raise OptionError(
            f"whitespace_pattern={whitespace_pattern!r} is not known to tokenform: leave it out, or give '' "
            "for none."
        )
    return json_schema(schema, whitespace="natural" if whitespace_pattern is None else "compact")


def _matching(pattern: str) -> Grammar:
    return regex(pattern)


def _for_transformers(model: Any, grammar: Grammar) -> Any:
    from tokenform.integrations.transformers import GrammarLogitsProcessor

    return GrammarLogitsProcessor(grammar, model.hf_tokenizer, model=model.model)


def _for_llama_cpp(model: Any, grammar: Grammar) -> Any:
    from tokenform.integrations.llama_cpp import LlamaCppProcessor, read_gguf

    return LlamaCppProcessor(grammar, read_gguf(model.model.model_path))


def _for_mlx_lm(model: Any, grammar: Grammar) -> Any:
    from tokenform.integrations.mlx_lm import MlxProcessor

    return MlxProcessor(grammar, model.mlx_tokenizer)


_PROCESSORS = {"Transformers": _for_transformers, "LlamaCpp": _for_llama_cpp, "MLXLM": _for_mlx_lm}
