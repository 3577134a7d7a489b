"""A model writes under the constraint: each token with where it came from, or weighted draws.

Invariant: one request has at most `DRAWS` texts of `TOKENS` tokens, and `FORWARDS` passes of the model; it
ends when its reader is gone.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Sequence
from typing import Any

from tokenform.decoding.aligned import AWRS, CARS, MCMC, SMC, ASAp, Beam
from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.aligned.wrapped import Metered
from tokenform.decoding.generator import Generator
from tokenform.decoding.results import Result
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.trace import trace
from tokenform.server.playground.asked import Query
from tokenform.server.playground.inspecting import shown_token
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
SETTINGS = ("sampler", "temperature", "top_p", "seed", "max_tokens", "n")


class Watched(Metered):
    """A language model that is asked no more once nobody reads."""

    def __init__(self, model: LanguageModel, name: str, channel: Channel) -> None:
        super().__init__(model, name, FORWARDS, lambda line: None)
        self._channel = channel

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """See `LanguageModel`."""
        self._channel.check()
        return super().logprobs(prefixes)


def write(asked: Query, generator: Generator, channel: Channel) -> None:
    """Sends `token` for each token or `draw` for each text, then `done`."""
    name = asked.name("sampler", "local", {"local": None, **SAMPLERS})
    if name == "local":
        _write_one(asked, generator, channel)
    else:
        _draw(name, asked, generator, channel)


def _write_one(asked: Query, generator: Generator, channel: Channel) -> None:
    sampler = Local(
        temperature=asked.number("temperature", 0.0, 0.0, 5.0), top_p=asked.number("top_p", 1.0, 0.01, 1.0)
    )
    steps = trace(
        generator,
        asked.told,
        asked.grammar,
        seed=asked.count("seed", 0, 1 << 53, 0),
        max_tokens=asked.count("max_tokens", 200, TOKENS),
        sampler=sampler,
    )
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        while True:
            step = next(steps)
            channel.send(
                "token",
                {
                    "text": decoder.decode(step.data),
                    "token": shown_token(step.data),
                    "logprob": step.logprob,
                    "origin": "drafted" if step.guessed else "drawn",
                    "forced": step.forced,
                },
            )
    except StopIteration as end:
        result: Result = end.value
    finally:
        steps.close()
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


def _draw(name: str, asked: Query, generator: Generator, channel: Channel) -> None:
    sampler = SAMPLERS[name](
        temperature=asked.number("temperature", 1.0, 0.05, 5.0), top_p=asked.number("top_p", 1.0, 0.01, 1.0)
    )
    model = Watched(generator.language_model(), name, channel)
    problem = generator.problem(
        asked.told,
        asked.grammar,
        max_tokens=asked.count("max_tokens", 200, TOKENS),
        sampler=sampler,
        model=model,
    )
    channel.send("target", {"target": problem.target})
    sample = sampler.sample(problem, asked.count("n", 8, DRAWS), seed=asked.count("seed", 0, 1 << 53, 0))
    for draw, weight in zip(sample.draws, sample.weights.tolist(), strict=True):
        channel.send("draw", {"text": draw.text, "logprob": draw.logprob, "weight": weight})
    log_z, bounds = sample.log_z, sample.certificate
    known: dict[str, Any] = {
        "exact": sample.exact,
        "ess": sample.ess,
        "forwards": sample.counts.forwards,
        "attempts": sample.counts.attempts,
        "log_z": None if log_z is None else finite(log_z.value),
        "log_z_error": None if log_z is None else finite(log_z.error),
        "distance": 0.0 if sample.exact else None if bounds is None else bounds.distance,
    }
    channel.send("done", known)


def finite(value: float) -> float | None:
    """JSON has no infinities."""
    return value if math.isfinite(value) else None
