"""The keywords of a call: one list for `generate`, `sample` and `stream`, functions and methods, plain and
async.

Purpose: editors complete and check the keywords by the typed dictionaries; `Call` reads them at run time.
Invariant: a keyword means the same in every call, and has one default, that of `Call`.
Rejected: the keywords in each signature (each of eight had its own, and they differed); values that are
passed on unread (a misspelt name was an error of an inner method).
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypedDict, TypeVar

from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.calls import (
    DEFAULT_MAX_TOKENS,
    AnySampler,
    check_counts,
    check_reactions,
    check_single,
    ending_at,
    pair,
    seeds_of,
)
from tokenform.decoding.prompts import PromptOptions, ShowSchema
from tokenform.decoding.reason import Reason
from tokenform.decoding.results import Result, too_long
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.targets import Mixture, Penalties
from tokenform.decoding.thinking import Thinking, reasoned, thinking_of
from tokenform.errors import DrafterError, OptionError, TokenformError, UnknownOption
from tokenform.frontends import one_constraint

Reaction = Literal["resample", "return", "raise"]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Own:
    """Stands for the generator's drafter."""

    def __repr__(self) -> str:
        return "OWN"


OWN: Any = _Own()


class Options(TypedDict, total=False):
    """The keywords of every call, beside the prompt, the constraint and `n`."""

    seed: int | Sequence[int] | None
    max_tokens: int
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    sampler: AnySampler | None
    drafter: Any
    batch_size: int | None
    stop: str | Sequence[str] | None
    on_error: Literal["raise", "return"]
    on_invalid: Reaction
    feedback: bool
    max_tries: int | None
    max_seconds: float | None
    on_length: Literal["return", "raise"]
    logprobs: bool
    progress: bool | None
    companion_prompt: Any
    raw: bool | None
    system: str | None
    show_schema: ShowSchema | None
    thinking: Thinking | bool | int | None
    reason: Reason | bool | int | None
    chat_options: Mapping[str, Any] | None


class Untyped(TypedDict, total=False):
    """Constraints whose values have no type of their own; `grammar` and `type` are old names of `schema`."""

    choices: Iterable[str] | None
    regex: str | re.Pattern[str] | None
    grammar: Any
    type: Any


class ModelOptions(TypedDict, total=False):
    """The keywords of a function that choose the model; a method has its generator's."""

    model: Any
    tokenizer: Any
    device: Any
    dtype: Any
    device_map: Any
    trust_remote_code: bool
    gguf_file: str | None
    mixture: Mixture | None
    companion: Any
    penalties: Penalties | None


class AnyOptions(Options, Untyped, total=False):
    """Those of a method, with every constraint."""


class FunctionOptions(Options, ModelOptions, total=False):
    """Those of a function."""


class AnyFunctionOptions(AnyOptions, ModelOptions, total=False):
    """Those of a function, with every constraint."""


class _Streamed(TypedDict, total=False):
    on_field: Mapping[str, Callable[[Any], Any]] | None
    on_reasoning: Callable[[str], Any] | None


class StreamOptions(AnyOptions, _Streamed, total=False):
    """Those of a method that streams."""


class StreamFunctionOptions(AnyFunctionOptions, _Streamed, total=False):
    """Those of a function that streams."""


@dataclass(frozen=True)
class Call:
    """The keywords of a call, read and checked.

    Attributes:
        schema: the constraint, or a list of them; None: any text.  As the caller passed it, but choices and
            patterns are grammars here.
        drafter: `OWN`: the generator's.
        keywords: as the caller passed them.
        The others are the keywords of `Generator.sample` and `Generator.stream`.
    """

    schema: Any = None
    n: int = 1
    seed: int | Sequence[int] | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    sampler: AnySampler | None = None
    drafter: Any = OWN
    batch_size: int | None = None
    stop: str | Sequence[str] | None = ()
    on_error: str = "raise"
    on_invalid: str = "resample"
    feedback: bool = False
    max_tries: int | None = None
    max_seconds: float | None = None
    on_length: str = "return"
    logprobs: bool = True
    progress: bool | None = None
    companion_prompt: Any = None
    raw: bool | None = None
    system: str | None = None
    show_schema: ShowSchema | None = None
    thinking: Thinking | bool | int | None = None
    reason: Reason | bool | int | None = None
    chat_options: Mapping[str, Any] | None = None
    partial: bool = False
    on_field: Mapping[str, Callable[[Any], Any]] | None = None
    on_reasoning: Callable[[str], Any] | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, schema: Any, options: Mapping[str, Any], *, streamed: bool = False) -> Call:
        """The call of these keywords.

        Raises:
            OptionError: a value is not possible, or more than one constraint is given.
            UnknownOption: there is no such keyword; the message names the nearest.
        """
        check_names(options, _STREAMED if streamed else _PLAIN)
        options_of_call = {name: value for name, value in options.items() if name not in CONSTRAINTS}
        constraints = {name: options[name] for name in CONSTRAINTS if name in options}
        call = cls(schema=one_constraint(schema, **constraints), keywords=options, **options_of_call)
        check_reactions(call.on_error, call.on_invalid, call.on_length)
        tries, rows = call.max_tries, call.batch_size
        check_counts(n=call.n, max_tokens=call.max_tokens, max_tries=1 if tries is None else tries)
        check_counts(batch_size=1 if rows is None else rows)
        if call.drafter is not OWN:
            check_drafter(call.drafter)
        if streamed:
            call.check_streamed()
        seconds = call.max_seconds
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise OptionError(f"max_seconds={seconds!r} is not possible; give a number above 0.")
        if call.feedback and call.on_invalid != "resample":
            raise OptionError(f'feedback=True writes texts again; on_invalid="{call.on_invalid}" does not.')
        call.check_values()
        return call

    def check_values(self) -> None:
        """Refuses values that no generator takes, with whatever defaults of its own."""
        self.sampler_of(Local(temperature=0.0))
        thinking_of(self.chat["thinking"])
        PromptOptions(bool(self.raw), self.system, "auto" if self.show_schema is None else self.show_schema)
        if self.chat_options is not None and not isinstance(self.chat_options, Mapping):
            raise OptionError(f"chat_options= is a mapping, not {type(self.chat_options).__name__}.")

    def check_streamed(self) -> None:
        """Refuses keywords that streams don't have."""
        if self.on_field is not None and not self.partial:
            raise OptionError("on_field= is for streams of values; add partial=True.")
        if self.n != 1:
            raise OptionError(f"n={self.n} is not possible: a stream is one text.")
        if self.feedback or self.max_tries is not None or self.max_seconds is not None:
            raise OptionError(
                "a stream gives its text as it is written, so nothing is written again: leave out feedback=, "
                "max_tries= and max_seconds=, or take generate."
            )

    def ready(self, prompt: Any, *, streamed: bool = False) -> Call:
        """The call with its constraints as grammars: read so before a model is opened, which takes seconds.

        Raises:
            OptionError, and what reading the constraints raises.
        """
        prompts, constraints, batched = pair(prompt, self.constraint, self.on_error)
        if streamed:
            check_single(batched)
        seeds_of(self.seed, len(prompts))
        listed = isinstance(self.schema, list | tuple)
        if self.schema is None or not constraints or (listed and self.on_error == "return"):
            return self  # an error of a list's entry is that entry's result
        return replace(self, schema=constraints if listed else constraints[0])

    @property
    def constraint(self) -> Any:
        """The constraint; without one, free text that ends at one of the `stop` texts."""
        return ending_at(self.stop, self.schema)

    @property
    def tries(self) -> int:
        """Most further attempts at a text that validators refuse."""
        return self.max_tries or (TURNS if self.feedback else TRIES)

    @property
    def chat(self) -> dict[str, Any]:
        """The keywords of reasoning and of the chat template."""
        return {"thinking": reasoned(self.thinking, self.reason), "chat_options": self.chat_options}

    def collected(self, written: list[list[Any]], batched: bool, *, listed: bool = False) -> Any:
        """Results and errors of all texts, grouped by prompt, in the shape that the call returns.

        Args:
            batched: whether prompts or constraints were a list.
            listed: a list for each prompt, even of one result, as `sample` returns it.
        """

        def shaped(groups: list[list[Any]]) -> Any:
            each = groups if listed or self.n > 1 else [one for one, *_ in groups]
            return each if batched else each[0]

        if self.on_length == "raise":
            written = [[_whole(one) for one in group] for group in written]
        failed = next((one for group in written for one in group if isinstance(one, TokenformError)), None)
        if failed is None or self.on_error == "return":
            return shaped(written)
        failed.results = shaped(
            [[None if isinstance(one, TokenformError) else one for one in group] for group in written]
        )
        raise failed

    def sampler_of(self, default: AnySampler) -> AnySampler:
        """The call's sampler or the generator's, with the call's temperature and truncation."""
        named = {name: getattr(self, name) for name in LOCAL}
        return drawn_with(self.sampler, default, **named)


def _whole(result: Any) -> Any:
    return too_long(result) if isinstance(result, Result) and result.reason == "length" else result


TRIES, TURNS = 50, 3
"""Most further attempts: by drawing again, and by turns that show the error."""
LOCAL = ("temperature", "top_k", "top_p", "min_p")
AGAIN = ("on_invalid", "feedback", "max_tries", "max_seconds")
CONSTRAINTS = ("choices", "regex", "grammar", "type")
_ONLY_STREAMED = ("partial", "on_field", "on_reasoning")
_KEYWORDS = {one.name: one.default for one in fields(Call) if one.name not in ("schema", "keywords")}
_STREAMED = ("schema", *CONSTRAINTS, *_KEYWORDS)
_PLAIN = tuple(name for name in _STREAMED if name not in _ONLY_STREAMED)
MODEL = tuple(ModelOptions.__annotations__)
_ELSEWHERE = {
    "max_new_tokens": "max_tokens",
    "max_length": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "num_return_sequences": "n",
    "do_sample": "temperature",
    "stop_strings": "stop",
    "stop_sequences": "stop",
    "response_format": "schema",
    "response_model": "schema",
    "output_type": "schema",
    "json_schema": "schema",
    "tools": "schema=tf.tools([...])",
    "tool_choice": "schema=tf.tools([...], tool_choice=...)",
    "system_prompt": "system",
    "enable_thinking": "thinking",
    "temp": "temperature",
    "random_seed": "seed",
    "pattern": "schema=tf.regex(...)",
    "prompts": "the first argument",
    "messages": "the first argument",
}
"""Other libraries' names, and ours."""


def drawn_with(sampler: AnySampler | None, default: AnySampler, **local: Any) -> AnySampler:
    """A sampler, or else the default, with the temperature and truncation in `local`.

    Raises:
        OptionError: both a sampler and `local` are set, or it is no sampler.
    """
    settings = {name: value for name, value in local.items() if value is not None}
    chosen = sampler if sampler is not None else default
    if isinstance(chosen, type) and issubclass(chosen, Local | AlignedSampler):
        raise OptionError(f"sampler= is the class {chosen.__name__}; give {chosen.__name__}(...) itself.")
    if not isinstance(chosen, Local | AlignedSampler):
        raise OptionError(
            f"{type(chosen).__name__} is no sampler; pass Local, ASAp, CARS, AWRS, SMC, MCMC or Beam."
        )
    if not settings:
        return chosen
    if sampler is not None or not isinstance(chosen, Local):
        name = type(chosen).__name__
        raise OptionError(f"a sampler has its own temperature and truncation; give them to {name}(...).")
    return replace(chosen, **settings)


def check_drafter(drafter: Any) -> None:
    """Refuses what can't guess.

    Raises:
        DrafterError
    """
    if isinstance(drafter, str) and drafter != "auto":
        raise DrafterError(f"drafter={drafter!r} is not known; choose 'auto', None or a drafter.")
    if drafter is not None and drafter != "auto" and not hasattr(drafter, "session"):
        raise DrafterError(f"{type(drafter).__name__} is no drafter; see tokenform.drafters.")


def check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuses an unknown keyword, and names the nearest known one.

    Raises:
        UnknownOption
    """
    for name in names:
        if name in known:
            continue
        if name in MODEL:
            raise UnknownOption(f"{name}= says what writes: it is for tf.Generator(...), not for its calls.")
        if name in _ONLY_STREAMED:
            raise UnknownOption(f"{name}= is for streams.")
        hint = f"it takes {', '.join(known)}"
        if (other := _ELSEWHERE.get(name)) is not None and not other.isidentifier():
            hint = f"do you mean {other}?"
        elif other in known:
            hint = f"do you mean {other}=?"
        elif nearest := difflib.get_close_matches(name, known, 1):
            hint = f"do you mean {nearest[0]}=?"
        raise UnknownOption(f"there is no keyword {name}=; {hint}")


def with_keywords(*, streamed: bool = False, model: bool = False) -> Callable[[_Function], _Function]:
    """A function `(…, **options)` with its keywords in the signature that `help` and notebooks show."""

    def of(function: _Function) -> _Function:
        signature = inspect.signature(function)
        parameters = [
            one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        names = {one.name for one in parameters}
        added = {"choices": None, "regex": None, **_KEYWORDS, **dict.fromkeys(MODEL if model else ())}
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in added.items()
            if name not in names and (streamed or name not in _ONLY_STREAMED)
        ]
        function.__signature__ = signature.replace(parameters=[*parameters, *keywords])  # type: ignore[attr-defined]
        return function

    return of
