"""Reads a call's arguments: prompts and grammars, seeds, stop texts, reactions to errors.

Invariant: results have the order of the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.prompts import is_batch
from tokenform.decoding.samplers.local import Local
from tokenform.engine import Grammar
from tokenform.errors import OptionError, TokenformError, warn_outside
from tokenform.frontends import Condition, to_constraint
from tokenform.frontends.coercion import is_json
from tokenform.frontends.combinators import contains, until

DEFAULT_MAX_TOKENS = 512

Constraint = Grammar | Condition
AnySampler = Local | AlignedSampler


def check_counts(**counts: Any) -> None:
    """Refuses, by name, values that are no whole number of at least 1."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise OptionError(f"{name}={value!r} is not possible; give a whole number of at least 1.")


def check_reactions(on_error: str = "raise", on_invalid: str = "raise", on_length: str = "return") -> None:
    """Refuses unknown values of `on_error`, `on_invalid` and `on_length`."""
    if on_invalid not in ("resample", "return", "raise"):
        raise OptionError(f'on_invalid={on_invalid!r} is not known; choose "resample", "return" or "raise".')
    if on_error not in ("raise", "return"):
        raise OptionError(f'on_error={on_error!r} is not known; choose "raise" or "return".')
    if on_length not in ("raise", "return"):
        raise OptionError(f'on_length={on_length!r} is not known; choose "return" or "raise".')


def check_varied(n: int, sampler: AnySampler) -> None:
    """Warns if a prompt's texts can only be equal."""
    if n > 1 and isinstance(sampler, Local) and sampler.temperature == 0:
        warn_outside(
            f"greedy decoding writes one text for a prompt, so all {n} are equal; give a temperature "
            "above 0, or another sampler, or leave n out.",
            UserWarning,
        )


def seeds_of(seed: int | Sequence[int] | None, count: int) -> Sequence[int | None]:
    """The seed of each prompt."""
    if seed is None or isinstance(seed, Integral):
        return [seed if seed is None else int(seed)] * count
    if not isinstance(seed, Sequence) or not all(one is None or isinstance(one, Integral) for one in seed):
        raise OptionError(f"seed={seed!r} is not possible; give a whole number, or one for each prompt.")
    if len(seed) != count:
        raise OptionError(f"{len(seed)} seeds can't be paired with {count} prompts.")
    return list(seed)


def texts_of(stop: str | Sequence[str] | None) -> list[str]:
    """The texts at which a text ends; None: there are none.

    Raises:
        OptionError: one is empty, or no text.
    """
    if stop is None:
        return []
    texts = [stop] if isinstance(stop, str) or not isinstance(stop, Iterable) else list(stop)
    if not all(isinstance(one, str) and one for one in texts):
        raise OptionError(f"stop={stop!r} is not possible; give texts, none of them empty.")
    return texts


def ends_of(stop: str | Sequence[str] | None, grammar: Grammar | Condition) -> list[str]:
    """The stop texts that count under a constraint: none in a JSON document, which says itself where it ends.

    Raises:
        OptionError: whether a text is complete is not known at each place.
    """
    stops = texts_of(stop) if grammar.schema is None else []
    if stops and isinstance(grammar, Condition):
        raise OptionError("stop= is not for a predicate, or a grammar & a language; leave it out.")
    return stops


def ending_at(stop: str | Sequence[str] | None, grammar: Any) -> Any:
    """The constraint; for None, free text that ends at the first of these texts, or without any of them."""
    stops = texts_of(stop)
    if isinstance(grammar, list | tuple):
        return [ending_at(stops, one) for one in grammar]
    if grammar is not None or not stops:
        return grammar
    containing = contains(stops[0])
    for one in stops[1:]:
        containing = containing | contains(one)
    return until(stops) | ~containing


def pair(prompt: Any, grammar: Any, on_error: str = "raise") -> tuple[list[Any], list[Any], bool]:
    """Prompts and grammars in equal number, and whether either was a list; with "return" an error replaces
    its grammar in a list."""
    many_prompts, many_grammars = is_batch(prompt), isinstance(grammar, list | tuple)
    prompts = list(prompt) if many_prompts else [prompt]
    constraints = list(grammar) if many_grammars else [grammar]
    if many_grammars and on_error != "return":
        _check_listed(constraints, prompts)
    if many_prompts and many_grammars and len(prompts) != len(constraints):
        raise OptionError(
            f"{len(prompts)} prompts can't be paired with {len(constraints)} grammars; "
            "give as many of each, or one of either."
        )
    if many_prompts and not many_grammars:
        shared = to_constraint(grammar)
        return prompts, [shared] * len(prompts), True
    if many_grammars and not many_prompts:
        prompts = prompts * len(constraints)
    return_errors = many_grammars and on_error == "return"
    constraints_read = [
        _constraint_or_error(constraint) if return_errors else to_constraint(constraint)
        for constraint in constraints
    ]
    return prompts, constraints_read, many_prompts or many_grammars


def _check_listed(constraints: list[Any], prompts: list[Any]) -> None:
    """Refuses an empty list beside prompts, and one of texts to choose from."""
    if not constraints and prompts:
        raise OptionError("schemas: the list is empty; give a schema, or one for each prompt.")
    if constraints and all(isinstance(one, str) and not is_json(one) for one in constraints):
        raise OptionError(
            "schemas: a list has a schema for each prompt, and none of these texts is JSON; for one of the "
            f"texts write choices={constraints[:3]!r}{'' if len(constraints) <= 3 else ' and so on'}."
        )


def check_single(batched: bool) -> None:
    """Refuses a stream of several prompts or constraints."""
    if batched:
        raise OptionError("a stream has one prompt and one grammar, not a list of either.")


def _constraint_or_error(constraint: Any) -> Constraint | TokenformError:
    try:
        return to_constraint(constraint)
    except TokenformError as error:  # of this entry alone
        return error
