"""tokenform: a model's output matches a constraint, exactly.

Purpose: the names that a program needs; the others stand in `tf.engine` (masks, states, limits),
`tf.samplers`, `tf.drafters`, `tf.targets`, `tf.combinators`, `tf.grammars`, `tf.tool_formats`, `tf.errors`.
Invariant: importing this package imports neither torch nor transformers; what needs them is imported when it
is first asked for: compiling and checking grammars stays quick, and the base package does without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tokenform import errors
from tokenform.engine import Canvas, Grammar, Vocabulary
from tokenform.engine import TokenAutomaton as TokenAutomaton
from tokenform.errors import TokenformError, warn_outside
from tokenform.frontends import choice, from_type, json_schema, predicate, regex
from tokenform.version import __version__

if TYPE_CHECKING:  # `as`: also for programs that are checked strictly
    from tokenform import certificates as certificates
    from tokenform import combinators as combinators
    from tokenform import engine, samplers
    from tokenform import tool_formats as tool_formats
    from tokenform.decoding import Local, Reason, Result
    from tokenform.decoding import Stats as Stats
    from tokenform.decoding.aligned import AWRS as AWRS
    from tokenform.decoding.aligned import CARS as CARS
    from tokenform.decoding.aligned import MCMC as MCMC
    from tokenform.decoding.aligned import SMC as SMC
    from tokenform.decoding.aligned import ASAp as ASAp
    from tokenform.decoding.aligned import Beam as Beam
    from tokenform.decoding.debug import debug as debug
    from tokenform.decoding.likelihood import feasible_mass as feasible_mass
    from tokenform.decoding.likelihood import logprob as logprob
    from tokenform.decoding.speculative import drafters
    from tokenform.decoding.speculative import targets as targets
    from tokenform.frontends import grammars
    from tokenform.frontends.catalog import sql as sql
    from tokenform.frontends.combinators import substring, until
    from tokenform.frontends.expressions import python as python
    from tokenform.frontends.gbnf import gbnf
    from tokenform.frontends.lark import lark
    from tokenform.frontends.names import names as names
    from tokenform.frontends.tools import parse_tool_calls, tools
    from tokenform.integrations.async_generation import AsyncGenerator, agenerate, astream
    from tokenform.integrations.diffusion import DiffusionGenerator
    from tokenform.integrations.generation import Generator, generate, sample, stream
    from tokenform.integrations.program import Program, gen, select
    from tokenform.integrations.program import said as said

_NAMES = {
    "tokenform.decoding": ("Local", "Reason", "Result", "Stats"),
    "tokenform.decoding.aligned": ("ASAp", "AWRS", "Beam", "CARS", "MCMC", "SMC"),
    "tokenform.decoding.debug": ("debug",),
    "tokenform.decoding.likelihood": ("feasible_mass", "logprob"),
    "tokenform.frontends.catalog": ("sql",),
    "tokenform.frontends.combinators": ("substring", "until"),
    "tokenform.frontends.expressions": ("python",),
    "tokenform.frontends.gbnf": ("gbnf",),
    "tokenform.frontends.lark": ("lark",),
    "tokenform.frontends.names": ("names",),
    "tokenform.frontends.tools": ("parse_tool_calls", "tools"),
    "tokenform.integrations.async_generation": ("AsyncGenerator", "agenerate", "astream"),
    "tokenform.integrations.diffusion": ("DiffusionGenerator",),
    "tokenform.integrations.generation": ("Generator", "generate", "sample", "stream"),
    "tokenform.integrations.program": ("Program", "gen", "said", "select"),
}
_LATER = {name: module for module, names in _NAMES.items() for name in names}

_MODULES = {
    "certificates": "tokenform.certificates",
    "combinators": "tokenform.combinators",
    "drafters": "tokenform.decoding.speculative.drafters",
    "grammars": "tokenform.frontends.grammars",
    "samplers": "tokenform.samplers",
    "targets": "tokenform.decoding.speculative.targets",
    "tool_formats": "tokenform.tool_formats",
}

_MOVED_TO = {
    "combinators": ("any_text", "capture", "contains", "literal", "special_token"),
    "engine": (
        "Limits",
        "Matcher",
        "State",
        "accept_tokens",
        "advance",
        "cache_dir",
        "clear_cache",
        "fill_draft_masks",
        "fill_masks",
        "memory_held",
        "set_limits",
    ),
    "samplers": ("BestSpan", "Estimates", "Masked", "Score", "Trie", "load_trie", "save_trie"),
    "tool_formats": ("ToolCallStream", "ToolFormat", "detect_format", "structural_tag"),
}
"""Names that stood here: they are still found, with a warning that says where they are."""
_MOVED = {name: room for room, names in _MOVED_TO.items() for name in names}

__all__ = [
    "AsyncGenerator",
    "Canvas",
    "DiffusionGenerator",
    "Generator",
    "Grammar",
    "Local",
    "Program",
    "Reason",
    "Result",
    "TokenformError",
    "Vocabulary",
    "__version__",
    "agenerate",
    "astream",
    "choice",
    "drafters",
    "engine",
    "errors",
    "from_type",
    "gbnf",
    "gen",
    "generate",
    "grammars",
    "json_schema",
    "lark",
    "parse_tool_calls",
    "predicate",
    "regex",
    "sample",
    "samplers",
    "select",
    "stream",
    "substring",
    "tools",
    "until",
]


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        room = _MOVED[name]
        warn_outside(f"tokenform.{name} is tokenform.{room}.{name} now.", DeprecationWarning)
        return getattr(import_module(f"tokenform.{room}"), name)
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
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *_LATER, *_MODULES, "TokenAutomaton"})
