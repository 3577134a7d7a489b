"""The model of a worker process, with its vocabulary for the engines and its prompts."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from tokenform.decoding.configuration import context_length, read_vocabulary
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.engine import tokenizers
from tokenform.errors import SchemaWarning, TokenformError
from tokenform.frontends import json_schema
from tokenform.integrations.generation import Generator
from tokenform.integrations.models import open_model
from tokenform_bench.documents import write as write_document
from tokenform_bench.evaluate.passes import Passes
from tokenform_bench.vocabulary import BenchVocabulary

_SCHEMA_CHARACTERS = 4000
_COVERAGE_PROMPT = "Write one JSON document that is valid under this JSON Schema, and nothing else."


class ModelRunner:
    """A model, its vocabulary for the engines, and its prompts.

    Args:
        name: of the model; None for the built-in one.
        asked: how a task is put; see `plan.PROMPTS`.
    """

    def __init__(self, name: str | None, asked: str = "schema") -> None:
        torch.set_num_threads(1)
        opened = open_model(name)
        vocabulary = read_vocabulary(opened.model, opened.tokenizer)
        tokens, special = list(vocabulary.tokens), tokenizers.read(opened.tokenizer).special
        empty = {i for i, token in enumerate(tokens) if not token}
        hidden = sorted({i for i in special if i < len(tokens)} | empty | set(vocabulary.eos))
        self.vocabulary = BenchVocabulary(
            name or "builtin",
            [token or f"<empty_{i}>".encode() for i, token in enumerate(tokens)],
            int(vocabulary.eos[0]),
            hidden,
            lambda text: tokenizers.encode(opened.tokenizer, text, specials=False),
        )
        self.passes = Passes(Backbone(opened.model, size=vocabulary.size))
        self.generator = Generator(name, drafter=None)
        self._context = context_length(opened.model)
        self._own_format = opened.format_prompt is not None
        self._chat = bool(getattr(opened.tokenizer, "chat_template", None))
        self._asked = asked

    def prompt(self, task: dict[str, Any] | None, schema: Any) -> list[int]:
        """The ids of a prompt, the same for all engines; a model with a format of its own has it always."""
        text = _COVERAGE_PROMPT if task is None else str(task["prompt"])
        if self._asked == "library" and task is not None:
            return self._read(task["text"] or text, schema)
        if self._own_format:
            return self._read(text, schema)
        if self._asked == "schema":
            shown = str(write_document(schema, "compact"))[:_SCHEMA_CHARACTERS]
            text = f"{text}\n\n{shown}\n\nDocument:"
        return self._read([{"role": "user", "content": text}] if self._chat else text, schema)

    def _read(self, prompt: Any, schema: Any) -> list[int]:
        grammar = None
        with (
            warnings.catch_warnings(),
            contextlib.suppress(TokenformError),
        ):  # refused: no engine is told of it
            warnings.simplefilter("ignore", SchemaWarning)
            grammar = json_schema(schema)
        return self.generator.prompt_ids(prompt, grammar)

    def room(self, ids: Sequence[int], max_tokens: int) -> int:
        return max_tokens if self._context is None else min(max_tokens, self._context - len(ids))

    def text(self, tokens: list[int]) -> str:
        return b"".join(self.vocabulary.tokens[token] for token in tokens).decode("utf-8", "replace")
