"""tokenform: a model's output matches a constraint, exactly.

Purpose: the public names.  Reading order for the code: the README's map.
Invariant: importing this package imports neither torch nor transformers; what needs them is imported when it
is first asked for: compiling and checking grammars stays quick, and the base package does without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tokenform import errors
from tokenform.disk_cache import cache_dir
from tokenform.engine import (
    Grammar,
    Limits,
    Matcher,
    State,
    TokenAutomaton,
    Vocabulary,
    accept_tokens,
    advance,
    clear_cache,
    fill_draft_masks,
    fill_masks,
    memory_held,
    set_limits,
)
from tokenform.errors import TokenformError
from tokenform.frontends import any_text, choice, from_type, json_schema, predicate, regex

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tokenform import tool_formats
    from tokenform.decoding import Estimates, Local, Result, Stats
    from tokenform.decoding.aligned import (
        AWRS,
        CARS,
        MCMC,
        SMC,
        ASAp,
        Beam,
        BestSpan,
        Masked,
        Score,
        Trie,
        load_trie,
        save_trie,
    )
    from tokenform.decoding.debug import debug
    from tokenform.decoding.likelihood import feasible_mass, logprob
    from tokenform.decoding.speculative import drafters, targets
    from tokenform.frontends import grammars
    from tokenform.frontends.captures import capture
    from tokenform.frontends.combinators import contains, literal, special_token, substring, until
    from tokenform.frontends.gbnf import gbnf
    from tokenform.frontends.lark import lark
    from tokenform.frontends.structural_tag import structural_tag
    from tokenform.frontends.tools import (
        ToolCallStream,
        ToolFormat,
        detect_format,
        parse_tool_calls,
        tools,
    )
    from tokenform.integrations.async_generation import AsyncGenerator, agenerate, astream
    from tokenform.integrations.generation import Generator, generate, sample, stream
    from tokenform.integrations.program import Program, gen, said, select

_ALIGNED = (
    "ASAp",
    "AWRS",
    "Beam",
    "BestSpan",
    "CARS",
    "MCMC",
    "Masked",
    "SMC",
    "Score",
    "Trie",
    "load_trie",
    "memory_held",
    "save_trie",
)
_PROGRAMS = ("Program", "gen", "said", "select")
_COMBINATORS = ("contains", "literal", "special_token", "substring", "until")
_TOOLS = ("ToolCallStream", "ToolFormat", "detect_format", "parse_tool_calls", "tools")
_LATER = {
    **dict.fromkeys(_ALIGNED, "tokenform.decoding.aligned"),
    **dict.fromkeys(_COMBINATORS, "tokenform.frontends.combinators"),
    **dict.fromkeys(_PROGRAMS, "tokenform.integrations.program"),
    "capture": "tokenform.frontends.captures",
    **dict.fromkeys(_TOOLS, "tokenform.frontends.tools"),
    "gbnf": "tokenform.frontends.gbnf",
    "lark": "tokenform.frontends.lark",
    "structural_tag": "tokenform.frontends.structural_tag",
    "Estimates": "tokenform.decoding",
    "debug": "tokenform.decoding.debug",
    "AsyncGenerator": "tokenform.integrations.async_generation",
    "agenerate": "tokenform.integrations.async_generation",
    "astream": "tokenform.integrations.async_generation",
    "Generator": "tokenform.integrations.generation",
    "feasible_mass": "tokenform.decoding.likelihood",
    "logprob": "tokenform.decoding.likelihood",
    "generate": "tokenform.integrations.generation",
    "sample": "tokenform.integrations.generation",
    "stream": "tokenform.integrations.generation",
    "Local": "tokenform.decoding",
    "Result": "tokenform.decoding",
    "Stats": "tokenform.decoding",
}

_MODULES = {
    "tool_formats": "tokenform.tool_formats",
    "drafters": "tokenform.decoding.speculative.drafters",
    "grammars": "tokenform.frontends.grammars",
    "targets": "tokenform.decoding.speculative.targets",
}

__all__ = [
    "AWRS",
    "CARS",
    "MCMC",
    "SMC",
    "ASAp",
    "AsyncGenerator",
    "Beam",
    "BestSpan",
    "Estimates",
    "Generator",
    "Grammar",
    "Limits",
    "Local",
    "Masked",
    "Matcher",
    "Program",
    "Result",
    "Score",
    "State",
    "Stats",
    "TokenAutomaton",
    "TokenformError",
    "ToolCallStream",
    "ToolFormat",
    "Trie",
    "Vocabulary",
    "__version__",
    "accept_tokens",
    "advance",
    "agenerate",
    "any_text",
    "astream",
    "cache_dir",
    "capture",
    "choice",
    "clear_cache",
    "contains",
    "debug",
    "detect_format",
    "drafters",
    "errors",
    "feasible_mass",
    "fill_draft_masks",
    "fill_masks",
    "from_type",
    "gbnf",
    "gen",
    "generate",
    "grammars",
    "json_schema",
    "lark",
    "literal",
    "load_trie",
    "logprob",
    "memory_held",
    "parse_tool_calls",
    "predicate",
    "regex",
    "said",
    "sample",
    "save_trie",
    "select",
    "set_limits",
    "special_token",
    "stream",
    "structural_tag",
    "substring",
    "targets",
    "tool_formats",
    "tools",
    "until",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _LATER:
        value = getattr(import_module(_LATER[name]), name)
    else:
        place = "; it is tokenform.errors." + name if hasattr(errors, name) else ""
        raise AttributeError(f"module 'tokenform' has no attribute {name!r}{place}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
