"""The public face of generation: `Generator`, which opens models by name, and `generate`, `sample` and
`stream`, functions for one call.

Purpose: the decoding layer runs model objects; this one adds the built-in model and names.
Complexity: the generators of the last few models are cached, so a second call opens nothing.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Mapping
from typing import Any, Literal, overload

from typing_extensions import TypeForm, Unpack

from tokenform.engine.opening import opened_once
from tokenform.errors import OptionError, extras

with extras():
    from tokenform.decoding import async_generator, generator
    from tokenform.decoding.options import (
        MODEL,
        AnyFunctionOptions,
        AnyOptions,
        Call,
        FunctionOptions,
        StreamFunctionOptions,
        StreamOptions,
        check_names,
        with_keywords,
    )
    from tokenform.decoding.partial import Partials, TextStream
    from tokenform.decoding.prompts import Prompt
    from tokenform.decoding.results import Result, T
    from tokenform.decoding.writing import Function, Many
    from tokenform.integrations.models import open_model, with_template

_PLACEMENT = ("device", "dtype", "device_map", "trust_remote_code", "gguf_file")
_OPTIONS = (*_PLACEMENT, *list(inspect.signature(generator.Generator).parameters)[2:])


class Generator(generator.Generator):
    """Writes texts with a causal language model: the built-in one, one by name, or a model object.

    Args:
        model: None for the built-in model; a path, GGUF file or hub name; or a Hugging Face causal language
            model.
        tokenizer: the tokenizer of a model object, or a `Vocabulary` where prompts are token ids.
        device, dtype, device_map, trust_remote_code, gguf_file: of a model by path or name; see
            `models.open_model`.
        chat_template: Jinja text that writes chat messages, in place of the tokenizer's own.
        **options: those of `tokenform.decoding.Generator` (sampler, temperature, drafter, transforms,
            mixture, companion, penalties, batch_size, prompt_cache, compile); the companion may be a path or
            hub name too.
    Raises:
        ModelError, VocabularyError: the model or its tokenizer can't be used.
    """

    def __init__(
        self, model: Any = None, tokenizer: Any = None, *, chat_template: str | None = None, **options: Any
    ) -> None:
        if isinstance(model, generator.Generator):
            raise OptionError("this is a Generator already; call its generate, sample or stream.")
        check_names(options, _OPTIONS)  # before a model is opened
        placement = {name: options.pop(name) for name in _PLACEMENT if name in options}
        opened = open_model(model, tokenizer, **placement)
        if chat_template is not None:
            opened = with_template(opened, chat_template)
        if opened.format_prompt is not None:
            options.setdefault("format_prompt", opened.format_prompt)
        if isinstance(options.get("companion"), str | os.PathLike):
            options["companion"] = open_model(options["companion"]).model
        self._shared: async_generator.AsyncGenerator | None = None
        self._sharing = threading.Lock()
        super().__init__(opened.model, opened.tokenizer, **options)

    def shared(self) -> async_generator.AsyncGenerator:
        """This generator for event loops; calls that run at once are one batch."""
        with self._sharing:
            if self._shared is None:
                self._shared = async_generator.AsyncGenerator(self)
            return self._shared

    @with_keywords()
    async def agenerate(self, prompt: Any, schema: Any = None, **options: Unpack[AnyOptions]) -> Any:
        """`generate` for event loops: calls that run at once share the model's passes."""
        return await self.shared().generate(prompt, schema, **options)

    @with_keywords(streamed=True)
    def astream(
        self, prompt: Any, schema: Any = None, **options: Unpack[StreamOptions]
    ) -> async_generator.AsyncStream[Any]:
        """`stream` for event loops: `async for` gives the pieces."""
        return self.shared().stream(prompt, schema, **options)


@opened_once(4)
def named(model: str | None) -> Generator:
    return Generator(model)


def parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keywords of a function's call that choose the model, and the others."""
    model_options = {name: options[name] for name in MODEL if options.get(name) is not None}
    return model_options, {name: value for name, value in options.items() if name not in MODEL}


def writer_of(model_options: dict[str, Any]) -> generator.Generator:
    """The generator of a function's call; it may open a model, so the call is read before.

    Raises:
        OptionError: a Generator beside options of a model.
    """
    model_options = {**model_options}
    model = model_options.pop("model", None)
    if isinstance(model, async_generator.AsyncGenerator):
        model = model.generator
    if isinstance(model, generator.Generator):
        if model_options:
            raise OptionError(f"model= is a Generator, which has its own {', '.join(model_options)}.")
        return model
    if not model_options and (model is None or isinstance(model, str)):
        return named(model)
    return Generator(model, **model_options)


@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Many, schema: TypeForm[T], *, n: Literal[1] = 1, **options: Unpack[FunctionOptions]
) -> list[Result[T]]: ...
@overload
def generate(
    prompt: Many, schema: TypeForm[T], *, n: int, **options: Unpack[FunctionOptions]
) -> list[list[Result[T]]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, schema: TypeForm[T], *, n: Literal[1] = 1, **options: Unpack[FunctionOptions]
) -> Result[T]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    prompt: Prompt, schema: TypeForm[T], *, n: int, **options: Unpack[FunctionOptions]
) -> list[Result[T]]: ...
@overload
def generate(
    prompt: Prompt, schema: Function, *, n: Literal[1] = 1, **options: Unpack[FunctionOptions]
) -> Result[dict[str, Any]]: ...
@overload
def generate(
    prompt: str, schema: Any = None, *, n: Literal[1] = 1, **options: Unpack[AnyFunctionOptions]
) -> Result: ...
@overload
def generate(
    prompt: Many, schema: Any = None, *, n: Literal[1] = 1, **options: Unpack[AnyFunctionOptions]
) -> list[Result]: ...
@overload
def generate(
    prompt: Any, schema: Any = None, *, n: int = 1, **options: Unpack[AnyFunctionOptions]
) -> Any: ...
@with_keywords(model=True)
def generate(prompt: Any, schema: Any = None, *, n: int = 1, **options: Any) -> Any:
    """Write text that a constraint accepts, with the built-in model or another.

    The keywords, results and errors are those of `Generator.generate`, and:

    Args:
        model: None for the built-in model; a path, GGUF file or hub name; a model object, with `tokenizer`;
            or a `Generator`, which excludes the options below.
        tokenizer, device, dtype, device_map, trust_remote_code, gguf_file, mixture, companion, penalties: as
            for `Generator`.
    Returns:
        A `Result`; a list of n for n > 1; for a list of prompts or constraints, a list of these.
    Raises:
        OptionError: more than one constraint is given, or a temperature or truncation beside a sampler.
        Whatever the constraint, the model or the budget raises; all derive from `TokenformError`.

    >>> import tokenform as tf
    >>> tf.generate("The order has been paid.", choices=["new", "paid"]).text
    'paid'
    """
    model_options, call_options = parted(options)
    call = Call.of(schema, {"n": n, **call_options}).ready(prompt)
    return writer_of(model_options).write(prompt, call)


@with_keywords(model=True)
def sample(prompt: Any, schema: Any = None, **options: Unpack[AnyFunctionOptions]) -> Any:
    """`Generator.sample` with the keywords of `generate`: a list of n results for each prompt."""
    model_options, call_options = parted(options)
    call = Call.of(schema, call_options).ready(prompt)
    return writer_of(model_options).write(prompt, call, listed=True)


@overload
def stream(
    prompt: Prompt,
    schema: TypeForm[T],
    *,
    partial: Literal[True],
    **options: Unpack[StreamFunctionOptions],
) -> Partials[T]: ...
@overload
def stream(
    prompt: Prompt, schema: Any = None, *, partial: Literal[True], **options: Unpack[StreamFunctionOptions]
) -> Partials: ...
@overload
def stream(
    prompt: Prompt,
    schema: Any = None,
    *,
    partial: Literal[False] = False,
    **options: Unpack[StreamFunctionOptions],
) -> TextStream: ...
@with_keywords(streamed=True, model=True)
def stream(prompt: Any, schema: Any = None, **options: Any) -> Any:
    """Write one text in pieces, as they come: `Generator.stream` with the keywords of `generate`.

    >>> import tokenform as tf
    >>> "".join(tf.stream("The order has been paid.", choices=["new", "paid"]))
    'paid'
    """
    model_options, call_options = parted(options)
    call = Call.of(schema, call_options, streamed=True).ready(prompt, streamed=True)
    return writer_of(model_options).pieces(prompt, call)
