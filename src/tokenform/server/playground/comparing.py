"""Samplers on a small language, beside the exact distribution over its texts.

Invariant: the exact bars are enumerated, never sampled; a language of more than `PREFIXES` prefixes is
refused.  Each sampler has a budget of its own and pays for its own distributions.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from tokenform.decoding.aligned.enumeration import enumerate_target, sampling_noise, trie_distribution
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Tokens
from tokenform.decoding.generator import Generator
from tokenform.errors import SamplingError
from tokenform.server.playground.queries import Query, Seed
from tokenform.server.playground.running import Channel
from tokenform.server.playground.writing import SAMPLERS, Watched

PREFIXES, BATCH, DRAWS, TOKENS, SHOWN = 3000, 32, 500, 64, 16
COMPARED = ("local", "asap", "cars", "awrs", "smc", "mcmc")


class CompareQuery(Query):
    """The options of a comparison."""

    seed: Seed = 0
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS)] = 16
    draws: Annotated[int, Field(ge=1, le=DRAWS)] = 200


def compare(query: CompareQuery, generator: Generator, channel: Channel) -> None:
    """Sends `exact` (texts and their probabilities), then `sampler` for each, then `done`.

    `ess` is a sampler's effective number of draws, `noise` the distance of so many exact draws from the
    distribution by chance.
    """
    draws, seed, most, masked = query.draws, query.seed, query.max_tokens, Masked()
    grammar = query.constraint.grammar
    reference = generator.problem(
        query.model_prompt,
        grammar,
        sampler=masked,
        model=Watched(generator.language_model(), "exact", channel),
        max_tokens=most,
    )
    exact = enumerate_target(reference, limit=PREFIXES, batch=BATCH)
    target = _by_text(reference, exact.probabilities)
    by_number: dict[Tokens, float] = {
        (number,): probability for number, probability in enumerate(target.values())
    }
    shown = sorted(target, key=lambda text: -target[text])[:SHOWN]
    channel.send(
        "exact",
        {
            "texts": shown,
            "probabilities": [target[text] for text in shown],
            "count": len(target),
            "log_z": exact.log_z,
            "noise": sampling_noise(by_number, draws),
        },
    )
    for name in COMPARED:
        model = Watched(generator.language_model(), name, channel)
        sampler = masked if name == "local" else SAMPLERS[name]()
        problem = generator.problem(
            query.model_prompt, grammar, sampler=sampler, model=model, max_tokens=most
        )
        began = time.perf_counter()
        try:
            summary = _distribution(name, problem, sampler, draws, seed)
        except SamplingError as error:
            channel.send("sampler", {"name": name, "gave_up": str(error)})
            continue
        distribution = summary.pop("distribution")
        distance = 0.5 * sum(
            abs(target.get(x, 0.0) - distribution.get(x, 0.0)) for x in {*target, *distribution}
        )
        bars = [distribution.get(text, 0.0) for text in shown]
        seconds = time.perf_counter() - began
        if "ess" in summary:  # the distance by chance of as many exact draws
            summary["noise"] = sampling_noise(by_number, max(round(summary["ess"]), 1))
        channel.send(
            "sampler",
            {
                "name": name,
                "bars": bars,
                "distance": distance,
                "seconds": seconds,
                "forwards": model.forwards,
                **summary,
            },
        )
    channel.send("done", {})


def _distribution(name: str, problem: Problem, sampler: Any, draws: int, seed: int) -> dict[str, Any]:
    """The sampler's distribution over texts: exactly where that is known, else that of its weighted draws."""
    if name == "local":
        return {"distribution": _by_text(problem, trie_distribution(problem, None)), "how": "computed"}
    sample = sampler.sample(problem, draws, seed=seed)
    distribution: dict[str, float] = defaultdict(float)
    for draw, weight in zip(sample.draws, sample.weights.tolist(), strict=True):
        distribution[draw.text] += weight
    how = f"{len(sample.draws)} draws"
    return {"distribution": distribution, "how": how, "exact": sample.exact, "ess": float(sample.ess)}


def _by_text(problem: Problem, distribution: Mapping[Tokens, float]) -> dict[str, float]:
    """A distribution over token sequences as one over texts."""
    tokens = problem.constraint.token_bytes
    texts: dict[str, float] = defaultdict(float)
    for sequence, probability in distribution.items():
        texts[b"".join(tokens[token] for token in sequence).decode("utf-8", "replace")] += probability
    return dict(texts)
