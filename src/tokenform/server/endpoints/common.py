"""What the answers of several endpoints have in common: usage, probabilities, reports, biases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tokenform.decoding.draws import Transform
from tokenform.decoding.results import Result
from tokenform.server.answering import Work
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused

Likely = list[list[tuple[int, float]]]
LEAST = -9999.0  # what JSON holds in place of minus infinity, as OpenAI writes it


def usage_of(work: Work, results: Sequence[Result] = ()) -> dict[str, int]:
    """Tokens of the prompt and of the texts."""
    prompt, written = work.job.prompt_tokens, sum(len(one.tokens) for one in results)
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def finish(work: Work, result: Result) -> str:
    """Why a text ended: a constrained one is always whole."""
    return "stop" if work.wanted.grammar is not None or result.reason != "length" else "length"


def told(engine: Engine, token: int, logprob: float) -> dict[str, Any]:
    """A token with its probability under the model's own law, before masks."""
    data = engine.text(token)
    return {"token": data.decode("utf-8", "replace"), "logprob": number(logprob), "bytes": list(data)}


def number(logprob: float) -> float:
    """A log-probability as JSON holds it."""
    return logprob if math.isfinite(logprob) else LEAST


def probabilities(
    engine: Engine, tokens: Sequence[int], logprobs: Sequence[float], likeliest: Likely
) -> list[dict[str, Any]]:
    """`logprobs.content` of a chat."""
    listed = likeliest or [[] for _ in tokens]
    return [
        told(engine, token, logprob) | {"top_logprobs": [told(engine, *one) for one in likely]}
        for token, logprob, likely in zip(tokens, logprobs, listed)
    ]


def extras_of(work: Work, result: Result) -> dict[str, Any]:
    """What this server tells beyond the APIs, where it was asked for: certificates, weights, speculation."""
    more: dict[str, Any] = {}
    if result.estimates is not None:
        more["log_weight"] = number(result.log_weight)
        more["logprob"] = number(result.logprob)
        more["certificate"] = {
            name: number(value) if isinstance(value, float) else value
            for name, value in vars(result.estimates).items()
        }
    if work.wanted.report:
        more["stats"] = dict(vars(result.stats))
        if work.wanted.grammar is not None:
            more["constraint_report"] = [str(one) for one in work.wanted.grammar.report]
    return {"tokenform": more} if more else {}


def biases(asked: dict[str, float] | None, size: int) -> list[Transform]:
    """`logit_bias`: token ids and what is added to their logits."""
    if not asked:
        return []
    if len(asked) > 1024:
        raise Refused("logit_bias takes up to 1024 tokens.", param="/logit_bias")
    ids, values = [], []
    for name, value in asked.items():
        if not name.isascii() or not name.isdigit() or int(name) >= size:
            raise Refused(f"logit_bias has {name!r}; ids are below {size}.", param="/logit_bias")
        if not -100 <= value <= 100:
            raise Refused("values of logit_bias are from -100 to 100.", param=f"/logit_bias/{name}")
        ids.append(int(name))
        values.append(float(value))
    places, amounts = torch.tensor(ids), torch.tensor(values, dtype=torch.float64)

    def add(_: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        scores[places.to(scores.device)] += amounts.to(scores.device)
        return scores

    return [add]
