"""guidance: `json` and `grammar` for its models, in the place of `guidance.json`.

Purpose: `from tokenform.integrations.guidance import json` instead of `from guidance import json`: what
llguidance refuses (`uniqueItems`, `not`, ...) is enforced, and with `max_tokens` a text is complete, not cut.
Names, captures, f-strings, chat blocks and guidance's own grammars around it work as before.
Invariant: guidance's engine samples and counts as for its own grammars; masks come from this engine's parser
for our grammars, and from guidance's for every other.
Rejected: guidance's grammars as ours (its nodes hold temperatures, captures and tool calls beside the text).
Source: guidance 0.3.1, `_parser.py` (`TokenParser`) and `models/_engine/_engine.py`.

    import guidance
    from tokenform.integrations.guidance import json

    model = guidance.models.Transformers("Qwen/Qwen3-0.6B")
    model += "An order: " + json("order", schema=schema, max_tokens=100)
    print(model["order"])
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
from guidance._ast import ASTNode, Function
from guidance._schema import LLInterpreterResponse
from guidance.models._engine import _engine

from tokenform.engine import Grammar, Matcher, Vocabulary
from tokenform.engine.packed import mask_bits, mask_words
from tokenform.errors import ModelError
from tokenform.frontends import from_type, json_schema, to_grammar
from tokenform.integrations.request_matcher import only_end


def json(
    name: str | None = None,
    *,
    schema: Any = None,
    temperature: float = 0.0,
    max_tokens: int | None = None,
    **options: Any,
) -> Function:
    """A document of a schema or type, captured under a name; `options` are those of `json_schema`.

    Raises, here or when a model runs it:
        TokenformError: the schema is wrong; `BudgetTooSmall`: no text is so short.
    """
    constraint = {} if schema is None else schema
    document = (
        json_schema(constraint, **options)
        if isinstance(constraint, Mapping | bool | str)
        else from_type(constraint, **options)
    )
    return grammar(document, name, temperature=temperature, max_tokens=max_tokens)


def grammar(
    constraint: Any, name: str | None = None, *, temperature: float = 0.0, max_tokens: int | None = None
) -> Function:
    """A text of any grammar, schema or type: `grammar(tf.regex("[0-9]{4}"), "year")`."""
    node = _Node(_GrammarText(to_grammar(constraint), name, temperature, max_tokens))
    return Function(lambda model: model + node, (), {})


class _GrammarText(str):
    """Carries a grammar in the place of its text."""

    def __new__(
        cls, grammar: Grammar, name: str | None, temperature: float, max_tokens: int | None
    ) -> _GrammarText:
        text = super().__new__(cls, "a grammar of tokenform")
        text.grammar, text.name, text.temperature, text.max_tokens = grammar, name, temperature, max_tokens
        return text

    grammar: Grammar
    name: str | None
    temperature: float
    max_tokens: int | None


class _Node(ASTNode):  # type: ignore[misc]
    def __init__(self, constraint: _GrammarText) -> None:
        self.constraint = constraint

    def ll_grammar(self) -> str:
        return self.constraint

    def _run(self, interpreter: Any, **options: Any) -> Any:
        if not isinstance(getattr(interpreter, "engine", None), _engine.Engine):
            raise ModelError(f"guidance does not run this model itself ({type(interpreter).__name__}).")
        return interpreter.grammar(self, **options)


class _Parser:
    """guidance's `TokenParser` over a matcher; a mask is bytes [V], one for each token."""

    def __init__(self, constraint: _GrammarText, tokenizer: Any, enable_ff_tokens: bool) -> None:
        self._constraint = constraint
        self._tokenizer = tokenizer
        self._fast_forward = enable_ff_tokens
        vocabulary = _vocabulary(tokenizer._ll_tokenizer)
        self._matcher = Matcher(constraint.grammar.compile(vocabulary), max_tokens=constraint.max_tokens)
        self._row = np.zeros((1, mask_words(vocabulary.size)), dtype=np.uint32)
        self._size = vocabulary.size
        self._written = b""
        self._done = False

    def done(self) -> bool:
        return self._done

    def cleanup(self) -> None:
        self._done = True

    def has_pending_stop(self) -> bool:
        return only_end(self._matcher)

    def is_accepting(self) -> bool:
        return self._matcher.is_accepting()

    def process_prompt(
        self, prompt_tokens: list[int], ensure_bos_token: bool = True
    ) -> tuple[list[int], int, list[int], Future[Any]]:
        bos = self._tokenizer.bos_token_id
        missing = ensure_bos_token and bos is not None and prompt_tokens[:1] != [bos]
        return [bos] if missing else [], 0, *self._go_on([])

    def advance(self, token_id: int) -> tuple[int, list[int], Future[Any]]:
        """Takes a token; there is never backtracking, and forced tokens come with it."""
        self._matcher.accept_tokens([int(token_id)])
        return 0, *self._go_on([] if self._matcher.is_terminated() else [int(token_id)])

    def _go_on(self, new_tokens: list[int]) -> tuple[list[int], Future[Any]]:
        forced = self._matcher.forced_tokens() if self._fast_forward and not self.has_pending_stop() else []
        self._matcher.accept_tokens(forced)
        tokens = new_tokens + forced
        written = self._tokenizer.decode(tokens)
        self._written += written
        event = {"hex": written.hex(), "num_tokens": len(tokens), "log_prob": 0.0, "is_generated": True}
        progress: list[dict[str, Any]] = [{"object": "text", **event}]
        stop, mask = self.has_pending_stop(), None
        if stop and self._constraint.name is not None:
            capture = {"name": self._constraint.name, "hex": self._written.hex(), "log_prob": 0.0}
            progress.append({"object": "capture", **capture})
        if not stop:
            self._matcher.fill_mask(self._row)
            mask = mask_bits(self._row, self._size).tobytes()
        answer = {
            "progress": progress,
            "stop": stop,
            "temperature": None if stop else self._constraint.temperature,
        }
        future: Future[Any] = Future()
        future.set_result((mask, LLInterpreterResponse.model_validate(answer), 0.0))
        return tokens, future


@functools.lru_cache(8)
def _vocabulary(tokenizer: Any) -> Vocabulary:
    """The vocabulary that guidance's masks are for."""
    ids = range(tokenizer.vocab_size)
    special = [one for one in ids if tokenizer.is_special_token(one)]
    return Vocabulary([tokenizer.decode_bytes([one]) for one in ids], [tokenizer.eos_token], special)


_guidance_parser = _engine.TokenParser


def _parser(
    grammar: str, tokenizer: Any, enable_backtrack: bool = True, enable_ff_tokens: bool = True
) -> Any:
    if isinstance(grammar, _GrammarText):
        return _Parser(grammar, tokenizer, enable_ff_tokens)
    return _guidance_parser(grammar, tokenizer, enable_backtrack, enable_ff_tokens)


_engine.TokenParser = _parser  # the engine's loop has no other hook for a parser
