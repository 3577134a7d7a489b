"""The public face of generation: `Generator`, which opens models by name, and `generate`, one call for all.

Purpose: the decoding layer runs model objects; this one adds the built-in model and names.
Complexity: `generate` keeps the generators of the last few models, so a second call opens nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, overload

from typing_extensions import TypeForm, Unpack

from tokenform.engine.opening import opened_once
from tokenform.errors import OptionError, extras
from tokenform.frontends import one_constraint

with extras():
    from tokenform.decoding import generator
    from tokenform.decoding.calls import DEFAULT_MAX_TOKENS, pair
    from tokenform.decoding.prompts import Prompt, ShowSchema
    from tokenform.decoding.results import Result, T
    from tokenform.decoding.samplers.local import Local
    from tokenform.decoding.speculative.targets import Mixture, Penalties
    from tokenform.decoding.thinking import Thinking
    from tokenform.integrations.models import open_model

_PLACING = ("device", "dtype", "device_map", "trust_remote_code", "gguf_file")


class Generator(generator.Generator):
    """Writes texts with a causal language model: the built-in one, one by name, or a model object.

    Args:
        model: None for the built-in model; a path, GGUF file or hub name; or a Hugging Face causal language
            model.
        tokenizer: the tokenizer of a model object, or a `Vocabulary` where prompts are token ids.
        device, dtype, device_map, trust_remote_code, gguf_file: of a model by path or name; see
            `models.open_model`.
        **options: those of `tokenform.decoding.Generator` (sampler, drafter, transforms, mixture, companion,
            penalties, batch_size, prompt_cache, compile); the companion may be a path or hub name too.
    Raises:
        ModelError, VocabularyError: the model or its tokenizer can't be used.
    """

    def __init__(self, model: Any = None, tokenizer: Any = None, **options: Any) -> None:
        placed = {name: options.pop(name) for name in _PLACING if name in options}
        opened = open_model(model, tokenizer, **placed)
        if opened.format_prompt is not None:
            options.setdefault("format_prompt", opened.format_prompt)
        if isinstance(options.get("companion"), str | os.PathLike):
            options["companion"] = open_model(options["companion"]).model
        super().__init__(opened.model, opened.tokenizer, **options)


@opened_once(4)
def named(model: str | None) -> Generator:
    return Generator(model)


class CallOptions(TypedDict, total=False):
    """The options that `generate` and `agenerate` have in common, for type checkers."""

    seed: int | None
    max_tokens: int
    temperature: float
    top_k: int | None
    top_p: float
    min_p: float
    sampler: Any
    stop: str | Sequence[str]
    on_invalid: Literal["resample", "return", "raise"]
    feedback: bool
    max_tries: int | None
    max_seconds: float | None
    on_length: Literal["return", "raise"]
    raw: bool | None
    system: str | None
    show_schema: ShowSchema | None
    thinking: Thinking | bool | int | None
    chat_options: Mapping[str, Any] | None


class Options(CallOptions, total=False):
    """Those of `generate`."""

    model: Any
    tokenizer: Any
    drafter: Any
    mixture: Mixture | None
    companion: Any
    companion_prompt: Any
    penalties: Penalties | None
    progress: bool | None


class Untyped(TypedDict, total=False):
    """Constraints whose values have no type of their own."""

    schema: Any
    regex: str | re.Pattern[str] | None
    choices: Iterable[str] | None
    grammar: Any
    type: Any


class Constraints(Options, Untyped, total=False):
    """`generate` with those."""


Function = Callable[..., Any]
"""Stands for its arguments by name."""


@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: TypeForm[T], n: Literal[1] = 1, **options: Unpack[Options]
) -> Result[T]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: TypeForm[T], n: Literal[1] = 1, **options: Unpack[Options]
) -> Result[T]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: TypeForm[T], n: int, **options: Unpack[Options]
) -> list[Result[T]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: TypeForm[T], n: int, **options: Unpack[Options]
) -> list[Result[T]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: list[str], *, schema: TypeForm[T], n: Literal[1] = 1, **options: Unpack[Options]
) -> list[Result[T]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: list[str], *, type: TypeForm[T], n: Literal[1] = 1, **options: Unpack[Options]
) -> list[Result[T]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: list[str], *, schema: TypeForm[T], n: int, **options: Unpack[Options]
) -> list[list[Result[T]]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: list[str], *, type: TypeForm[T], n: int, **options: Unpack[Options]
) -> list[list[Result[T]]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, schema: Function, n: Literal[1] = 1, **options: Unpack[Options]
) -> Result[dict[str, Any]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, *, type: Function, n: Literal[1] = 1, **options: Unpack[Options]
) -> Result[dict[str, Any]]: ...
@overload
def generate(prompt: str, *, n: Literal[1] = 1, **options: Unpack[Constraints]) -> Result: ...
@overload
def generate(prompt: list[str], *, n: Literal[1] = 1, **options: Unpack[Constraints]) -> list[Result]: ...
@overload
def generate(prompt: Any, *, n: int = 1, **options: Unpack[Constraints]) -> Any: ...
def generate(
    prompt: Any,
    *,
    schema: Any = None,
    regex: str | re.Pattern[str] | None = None,
    choices: Iterable[str] | None = None,
    grammar: Any = None,
    type: Any = None,  # the argument is named for its caller
    model: Any = None,
    tokenizer: Any = None,
    n: int = 1,
    seed: int | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    sampler: Any = None,
    drafter: Any = "auto",
    mixture: Mixture | None = None,
    companion: Any = None,
    companion_prompt: Any = None,
    penalties: Penalties | None = None,
    stop: str | Sequence[str] = (),
    progress: bool | None = None,
    on_invalid: Literal["resample", "return", "raise"] = "resample",
    feedback: bool = False,
    max_tries: int | None = None,
    max_seconds: float | None = None,
    on_length: Literal["return", "raise"] = "return",
    raw: bool | None = None,
    system: str | None = None,
    show_schema: ShowSchema | None = None,
    thinking: Thinking | bool | int | None = None,
    chat_options: Mapping[str, Any] | None = None,
) -> Any:
    """Write text that a constraint accepts.

    Args:
        prompt: text, chat messages or token ids; or a list of prompts.
        schema: a JSON Schema (mapping, boolean, JSON text) or a Python type; the value is the document.
        regex: a pattern that the whole text matches.
        choices: the texts to choose from.
        grammar: a grammar or a `predicate`, or a list of them, one for each prompt.
        type: a Python type or a function; the value is an instance, or the arguments.
        model: None for the built-in model; a path or hub name; or a model object, with `tokenizer`.
        n, seed, max_tokens, on_length, progress: as for `Generator.sample`.
        on_invalid, feedback, max_tries, max_seconds, raw, system, show_schema: as for `Generator.sample`.
        temperature, top_k, top_p, min_p: as for `Local`; temperature 0 is greedy.
        sampler: draws in place of `Local`: ASAp, CARS, AWRS, SMC, MCMC or Beam, with their own temperature.
        drafter, mixture, companion, companion_prompt, penalties, stop: as for `Generator` and its `sample`.
        thinking, chat_options: as for `Generator.sample`: what a model that thinks may write before the text,
            and arguments of its chat template.
    Returns:
        A `Result`; a list of n for n > 1; for a list of prompts or grammars, a list of these.
    Raises:
        OptionError: more than one constraint is given, or a temperature or truncation beside a sampler.
        Whatever the constraint, the model or the budget raises; all derive from `TokenformError`.
    """
    constraint, options = call_of(
        schema, regex, choices, grammar, type, sampler, temperature, top_k, top_p, min_p,
        n=n, seed=seed, max_tokens=max_tokens, on_length=on_length, stop=stop, on_invalid=on_invalid,
        feedback=feedback, max_tries=max_tries, max_seconds=max_seconds, progress=progress,
        companion_prompt=companion_prompt, raw=raw, system=system, show_schema=show_schema,
        thinking=thinking, chat_options=chat_options,
    )  # fmt: skip
    batched = pair(prompt, constraint)[2]
    changed = drafter != "auto" or mixture is not None or companion is not None or penalties is not None
    known = tokenizer is None and (model is None or isinstance(model, str)) and not changed
    own = {"drafter": drafter, "mixture": mixture, "companion": companion, "penalties": penalties}
    writer = named(model) if known else Generator(model, tokenizer, **own)
    return unwrapped(writer.sample(prompt, constraint, **options), n, batched)


def call_of(
    schema: Any = None,
    regex: Any = None,
    choices: Any = None,
    grammar: Any = None,
    type: Any = None,
    sampler: Any = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """The one constraint that is given (None for free text, which may have stop texts), and the options of
    `Generator.sample`: the sampler, or `Local` with temperature and truncation, and the others as they are.
    """
    local = Local(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    if sampler is not None and local != Local(temperature=0.0):
        name = sampler.__class__.__name__
        raise OptionError(f"a sampler has its own temperature and truncation; give them to {name}(...).")
    options["sampler"] = sampler or local
    if all(one is None for one in (schema, regex, choices, grammar, type)):
        return None, options
    constraint = one_constraint(schema=schema, regex_pattern=regex, choices=choices, grammar=grammar, tp=type)
    return constraint, options


def unwrapped(results: Any, n: int, batched: bool) -> Any:
    """A `Result`; lists of them where several were asked for."""
    if n > 1:
        return results
    return [one for one, *_ in results] if batched else results[0]
