"""A model writes under the constraint: each token with its origin, or weighted draws.

Invariant: one request has at most `DRAWS` texts of `TOKENS` tokens, and `FORWARDS` passes of the model; it
ends when its reader is gone.
"""

from __future__ import annotations

import codecs
import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from tokenform.decoding.aligned import AWRS, CARS, MCMC, SMC, ASAp, Beam
from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.aligned.wrapped import Metered
from tokenform.decoding.debug import is_forced
from tokenform.decoding.generator import Generator
from tokenform.decoding.results import Result
from tokenform.decoding.samplers.local import Local
from tokenform.frontends import to_constraint
from tokenform.server.playground.inspecting import shown_token
from tokenform.server.playground.queries import Query, Seed, Temperature
from tokenform.server.playground.running import Channel

TOKENS, DRAWS, FORWARDS = 512, 32, 5000
SAMPLERS: dict[str, Callable[..., AlignedSampler]] = {
    "asap": lambda **common: ASAp(max_forwards=FORWARDS // 2, **common),
    "cars": CARS,
    "awrs": AWRS,
    "smc": lambda **common: SMC(8, **common),
    "mcmc": lambda **common: MCMC(5, **common),
    "beam": lambda **common: Beam(**common),
}


class WriteQuery(Query):
    """How to write."""

    sampler: Literal["local", "asap", "cars", "awrs", "smc", "mcmc", "beam"] = "local"
    temperature: Temperature | None = None
    top_p: Annotated[float, Field(ge=0.01, le=1)] = 1.0
    seed: Seed = 0
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS)] = 200
    n: Annotated[int, Field(ge=1, le=DRAWS)] = 8


class Watched(Metered):
    """A language model that stops when its reader is gone."""

    def __init__(self, model: LanguageModel, name: str, channel: Channel) -> None:
        super().__init__(model, name, FORWARDS, lambda line: None)
        self._channel = channel

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """See `LanguageModel`."""
        self._channel.check()
        return super().logprobs(prefixes)


def write(query: WriteQuery, generator: Generator, channel: Channel) -> None:
    """Sends `token` for each token or `draw` for each text, then `done`."""
    (_write_one if query.sampler == "local" else _draw)(query, generator, channel)


def _write_one(query: WriteQuery, generator: Generator, channel: Channel) -> None:
    sampler = Local(temperature=query.temperature or 0.0, top_p=query.top_p)
    constraint = to_constraint(query.constraint.grammar)
    (row,) = generator.rows(query.model_prompt, constraint, 1, query.seed, query.max_tokens)
    state, tokens = row.automaton.start, generator.vocabulary.tokens
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with contextlib.closing(generator.decoder(sampler, 1).run([row], 1)) as steps:
        for place, (_, token) in enumerate(steps):
            if token is None:
                break
            channel.send(
                "token",
                {
                    "text": decoder.decode(tokens[token]),
                    "token": shown_token(tokens[token]),
                    "logprob": row.output.token_logprobs[place],
                    "origin": "drafted" if row.output.guessed[place] else "drawn",
                    "forced": is_forced(row.automaton, state, token),
                },
            )
            state = row.automaton.advance(state, token)
    if row.output.error is not None:
        raise row.output.error
    result: Result = generator.result(row, constraint)
    stats = result.stats
    channel.send(
        "done",
        {
            "text": result.text,
            "logprob": result.logprob,
            "reason": result.reason,
            "cut": result.cut,
            "tokens": stats.tokens,
            "forwards": stats.forwards,
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "seconds": {
                "model": stats.seconds_model,
                "mask": stats.seconds_mask,
                "draft": stats.seconds_draft,
            },
        },
    )


def _draw(query: WriteQuery, generator: Generator, channel: Channel) -> None:
    temperature = 1.0 if query.temperature is None else query.temperature
    sampler = SAMPLERS[query.sampler](temperature=temperature, top_p=query.top_p)
    model = Watched(generator.language_model(), query.sampler, channel)
    problem = generator.problem(
        query.model_prompt,
        query.constraint.grammar,
        max_tokens=query.max_tokens,
        sampler=sampler,
        model=model,
    )
    channel.send("target", {"target": problem.target})
    sample = sampler.sample(problem, query.n, seed=query.seed)
    for draw, weight in zip(sample.draws, sample.weights.tolist(), strict=True):
        channel.send("draw", {"text": draw.text, "logprob": draw.logprob, "weight": weight})
    log_z, bounds = sample.log_z, sample.certificate
    summary: dict[str, Any] = {
        "exact": sample.exact,
        "ess": sample.ess,
        "forwards": sample.counts.forwards,
        "attempts": sample.counts.attempts,
        "log_z": None if log_z is None else finite(log_z.value),
        "log_z_error": None if log_z is None else finite(log_z.error),
        "distance": 0.0 if sample.exact else None if bounds is None else bounds.distance,
    }
    channel.send("done", summary)


def finite(value: float) -> float | None:
    """JSON has no infinities."""
    return value if math.isfinite(value) else None
