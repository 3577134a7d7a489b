"""Common parts of the endpoints' answers: usage, probabilities, reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tokenform.decoding.result_field import result_fields
from tokenform.decoding.results import Result
from tokenform.errors import OptionError
from tokenform.server.answering import Work
from tokenform.server.engine import Engine

Likely = list[list[tuple[int, float]]]
LEAST = -9999.0  # JSON's minus infinity, as OpenAI writes it


def head_of(work: Work, kind: str) -> dict[str, Any]:
    """What every object of chats and completions begins with."""
    head = {"id": work.id, "object": kind, "created": work.began, "model": work.engine.name}
    return {**head, "system_fingerprint": "tokenform"}


def usage_of(work: Work, results: Sequence[Result] = ()) -> dict[str, Any]:
    """Tokens of the prompt and of the texts."""
    prompt, thought = work.job.prompt_tokens, sum(map(thought_tokens, results))
    completion = thought + sum(len(one.tokens) for one in results)
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    details = {} if not thought else {"completion_tokens_details": {"reasoning_tokens": thought}}
    return {**counts, **details}


def thought_tokens(result: Result) -> int:
    """Tokens of the thought before a text."""
    return 0 if result.thought is None else len(result.thought.tokens)


def finish(result: Result) -> str:
    """Why a text ended: "length" where the budget cut in, even if the text is complete."""
    return "length" if result.reason == "length" else "stop"


def token_entry(engine: Engine, token: int, logprob: float) -> dict[str, Any]:
    """A token with its probability under the model's own distribution, before masks."""
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
        token_entry(engine, token, logprob) | {"top_logprobs": [token_entry(engine, *one) for one in likely]}
        for token, logprob, likely in zip(tokens, logprobs, listed)
    ]


def extras_of(work: Work, result: Result) -> dict[str, Any]:
    """The requested fields beyond the APIs: certificates, weights, reports on speculation."""
    more: dict[str, Any] = {}
    if result.estimates is not None:
        more["log_weight"] = number(result.log_weight)
        more["logprob"] = number(result.logprob)
        more["certificate"] = {
            name: number(value) if isinstance(value, float) else value
            for name, value in vars(result.estimates).items()
        }
    if work.request.confidence:
        pointers = None if work.request.confidence is True else work.request.confidence
        more["confidence"] = _confidence(result, pointers)
    if work.request.report:
        more["stats"] = dict(vars(result.stats))
        more["cut"] = result.cut
        if result.report is not None:
            more["drafts"] = {name: list(counts) for name, counts in result.report.sources.items()}
        if work.request.grammar is not None:
            more["constraint_report"] = [str(one) for one in work.request.grammar.report]
    return {"tokenform": more} if more else {}


def _confidence(result: Result, pointers: list[str] | None) -> dict[str, Any] | None:
    """The model's probabilities of a document's fields, by its own distribution, before masks; None for a
    text that is no document.
    """
    try:
        fields = result_fields(result, pointers)
    except OptionError:
        return None
    return {
        pointer: {
            "text": one.text,
            "logprob": None if one.logprob is None else number(one.logprob),
            "probability": one.probability,
            "tokens": [one.tokens.start, one.tokens.stop],
        }
        for pointer, one in fields.items()
    }
