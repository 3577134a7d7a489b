"""One text as it is written, and for each token where it came from: for pages and logs that show it.

Invariant: the text is that of `Generator.stream` with the same arguments.
"""

from __future__ import annotations

from collections.abc import Generator as Yields
from dataclasses import dataclass
from typing import Any

from tokenform.decoding.calls import DEFAULT_MAX_TOKENS
from tokenform.decoding.debug import is_forced
from tokenform.decoding.generator import Generator
from tokenform.decoding.results import Result
from tokenform.decoding.samplers.local import Local
from tokenform.frontends import to_constraint


@dataclass(frozen=True)
class Written:
    """One token as it is taken.

    Attributes:
        token: its id.
        data: its bytes, which may be a part of a character.
        logprob: natural logarithm of its probability under the model's own distribution.
        guessed: it is an accepted draft.
        forced: the constraint left no other text here.
    """

    token: int
    data: bytes
    logprob: float
    guessed: bool
    forced: bool


def trace(
    generator: Generator,
    prompt: Any,
    grammar: Any = None,
    *,
    sampler: Local,
    seed: int | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
) -> Yields[Written, None, Result]:
    """Write one text for one prompt.

    Yields:
        `Written` for each token as it is taken.
    Returns:
        The `Result`, as the generator's return value.
    Raises:
        As `Generator.sample` does.

    >>> import tokenform as tf
    >>> steps = trace(tf.Generator(), "It has been paid.", tf.choice(["paid"]), sampler=tf.Local(0.0))
    >>> next(steps).forced
    True
    """
    constraint = to_constraint(grammar)
    (row,) = generator.rows(prompt, constraint, 1, seed, max_tokens)
    state, tokens = row.automaton.start, generator.vocabulary.tokens
    for place, (_, token) in enumerate(generator.decoder(sampler, 1).run([row], 1)):
        if token is None:
            break
        forced = is_forced(row.automaton, state, token)
        state = row.automaton.advance(state, token)
        yield Written(
            token, tokens[token], row.output.token_logprobs[place], row.output.guessed[place], forced
        )
    if row.output.error is not None:
        raise row.output.error
    return generator.result(row, constraint)
