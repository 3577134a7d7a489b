"""Registers the backend with SGLang: what its entry point `sglang.srt.plugins` calls, in each process.

Purpose: by SGLang's own ways throughout: a backend's name among the choices, its maker in the registry, and
two hooks, after which a request's text knows how many tokens it may have.
Invariant: a server that names no backend, or another, is as it was.  Called again, nothing changes.
Source: docs.sglang.io, "Plugin system"; sglang/srt/plugins/hook_registry.py of 0.5.23.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from tokenform.errors import OptionError

logger = logging.getLogger("sglang.tokenform")

NAME = "tokenform"
SUPPORTED = "0.5.23"
"""The version of SGLang whose interfaces were read and run; later ones of 0.5 are tried, with a warning."""

_MANAGER = "sglang.srt.constrained.grammar_manager.GrammarManager"


def register() -> bool:
    """Makes `--grammar-backend tokenform` known, once; whether it is."""
    import sglang

    version = getattr(sglang, "__version__", "unknown")
    if not version.startswith("0.5."):
        logger.warning("tokenform works with SGLang 0.5 from %s on, and this is %s.", SUPPORTED, version)
        return False
    try:
        from sglang.srt.arg_groups import choices
        from sglang.srt.constrained import base_grammar_backend
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    except ImportError as error:
        logger.warning("tokenform works with SGLang %s; this one (%s) has %s.", SUPPORTED, version, error)
        return False
    if NAME in base_grammar_backend.GRAMMAR_BACKEND_REGISTRY:
        return True
    if NAME not in choices.GRAMMAR_BACKEND_CHOICES:
        choices.add_grammar_backend_choices([NAME])
    base_grammar_backend.register_grammar_backend(NAME, make)
    HookRegistry.register(f"{_MANAGER}.process_req_with_grammar", _met, HookType.AFTER)
    HookRegistry.register(f"{_MANAGER}.get_ready_grammar_requests", _ready, HookType.AFTER)
    return True


def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None) -> Any:
    """The backend of a server; in SGLang's wrapper where its model thinks first."""
    from sglang.srt.runtime_context import get_serving

    from tokenform.integrations.sglang.backend import LastGrammars, SglangBackend

    serving = get_serving()
    if serving.constrained_json_whitespace_pattern:
        raise OptionError(
            "--constrained-json-whitespace-pattern is not known to tokenform: documents have the whitespace "
            "of common writers; --constrained-json-disable-any-whitespace leaves it out."
        )
    compact = serving.constrained_json_disable_any_whitespace
    backend: Any = SglangBackend(
        tokenizer, vocab_size, eos_token_ids, whitespace="compact" if compact else "natural"
    )
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    wrapper = ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )
    wrapper.cache = LastGrammars()
    return wrapper


def _met(queued: bool, manager: Any, request: Any) -> None:
    """After a request's grammar was asked for: it was met before, so it is here."""
    if not queued:
        _limit(request)


def _ready(requests: list[Any], manager: Any) -> None:
    """After grammars were compiled."""
    for request in requests:
        _limit(request)


def _limit(request: Any) -> None:
    from tokenform.integrations.sglang.backend import limit

    if request.grammar is not None and not request.finished():
        limit(request)
