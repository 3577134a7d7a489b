"""Draws of the aligned samplers (ASAp, CARS, AWRS, SMC, MCMC, Beam) as results of a generator.

Invariant: equal seeds give equal draws; the sample's own estimates go with every result of it.
Rejected: running them on the drafting loop (they need distributions of many prefixes at once, not the next
token of one text; `aligned/backbone_lm.py` gets those from the backbone).
Complexity: the sampler's; the model's keys and values are cached while the call runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.aligned.results import Sample
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.aligned.side_by_side import side_by_side
from tokenform.decoding.calls import ends_of
from tokenform.decoding.options import Call
from tokenform.decoding.pieces import first_stop
from tokenform.decoding.progress import Progress
from tokenform.decoding.results import Estimates, Result, Stats, finder, read_value
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.thinking import Thought
from tokenform.engine import Grammar
from tokenform.errors import SamplingError, TokenformError
from tokenform.frontends import Condition, any_text

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator


def all_weighted(
    generator: Generator,
    sampler: AlignedSampler,
    requests: Sequence[tuple[Any, Grammar | Condition, int | None]],
    call: Call,
) -> list[list[Result | TokenformError]]:
    """Results or errors for each prompt with its constraint and its seed, a batch at a time."""
    results: list[list[Result | TokenformError]] = []
    size, validators = call.batch_size or generator.batch_size, call.on_invalid == "resample"
    with Progress(len(requests), call.progress) as bar:

        def draw(request: tuple[Any, Grammar | Condition, int | None], model: LanguageModel) -> list[Result]:
            prompt, grammar, seed = request
            drawn = weighted(
                generator, sampler, prompt, grammar, call.n, seed,
                model=model, max_tokens=call.max_tokens, validators=validators, stop=call.stop,
                **call.chat,
            )  # fmt: skip
            bar.advance(texts=1)
            return drawn

        model = generator.language_model()
        for start in range(0, len(requests), size):
            jobs = [partial(draw, one) for one in requests[start : start + size]]
            for found in side_by_side(model, jobs):
                if isinstance(found, BaseException):
                    raise found
                results.append(
                    [one.error or one for one in found] if call.on_invalid == "raise" else [*found]
                )
    return results


def weighted(
    generator: Generator,
    sampler: AlignedSampler,
    prompt: Any,
    grammar: Grammar | Condition,
    n: int,
    seed: int | None,
    *,
    model: LanguageModel,
    max_tokens: int,
    validators: bool = True,
    stop: str | Sequence[str] | None = (),
    **chat: Any,
) -> list[Result]:
    """At least one and at most n results of one prompt, in the order drawn; the errors are those of `sample`.

    Args:
        model: a `language_model` of the generator's.
        validators: as for `Generator.problem`.
        stop: as for `sample`.
        chat: as for `think`.
    """
    ends = ends_of(stop, grammar)
    ids, prompt_length, thought = think(
        generator, sampler, prompt, grammar, max_tokens=max_tokens, seed=seed, **chat
    )
    text_budget = max_tokens - (0 if thought is None else len(thought.tokens))
    problem = generator.problem(
        ids, grammar, model=model, max_tokens=text_budget, sampler=sampler, validators=validators
    )
    results = draw_weighted(sampler, problem, grammar, n, seed, thought)
    for result in results:
        result.prompt = generator.shown(ids[:prompt_length])
    if ends:
        assert isinstance(grammar, Grammar)
        accepts = grammar.compile(generator.vocabulary).matches
        for result in results:
            end, result.stopped = first_stop(result.text, ends, accepts)
            result.text = result.text[:end]
            result.value, result.error = read_value(grammar, result.text)
    return results


def think(
    generator: Generator,
    sampler: AlignedSampler,
    prompt: Any,
    grammar: Grammar | Condition,
    *,
    max_tokens: int,
    seed: int | None,
    thinking: Any = None,
    chat_options: Any = None,
) -> tuple[list[int], int | None, Thought | None]:
    """Writes a thought where the prompt has opened one or the call requests one; returns the prompt's ids
    with the thought, how many are the prompt's own (None: all), and the thought.

    All draws of a call share it, and their distribution is the target after it.
    The thought is drawn token by token, with the sampler's temperature.
    """
    ids, start = generator.started(prompt, grammar, thinking, chat_options)
    if start is None:
        return ids, None, None
    if not start.in_thought:  # the mask of both is not at hand here
        return generator.started(prompt, grammar, False, chat_options)[0], None, None
    text = any_text() if isinstance(grammar, Condition) else grammar
    row = generator.rows(ids, text, 1, seed, max_tokens, thinking=thinking, chat_options=chat_options)[0]
    drawn = getattr(sampler, "transforms", sampler)
    decoder = generator.decoder(Local(temperature=getattr(drawn, "temperature", 1.0)), 1)
    try:
        number = decoder.join(row)
        while row.thought is None and row.output.error is None:
            decoder.steps()
        if row.output.error is not None:
            raise row.output.error
        decoder.cancel(number)
    finally:
        decoder.close()
    return list(row.prompt), row.read, row.thought


def draw_weighted(
    sampler: AlignedSampler,
    problem: Problem,
    grammar: Grammar | Condition,
    n: int,
    seed: int | None,
    thought: Thought | None = None,
) -> list[Result]:
    """At least one and at most n results, in the order drawn.

    Args:
        grammar: reads the values of texts.
        seed: key of the draws; None takes a fresh one.
        thought: the one that the problem's prompt ends with.
    Raises:
        SamplingError: nothing could be drawn within the sampler's limits.
    """
    sample = sampler.sample(problem, n, seed=seed)
    if not sample.draws:
        raise SamplingError(
            f"{type(sampler).__name__} drew no text within its limits; raise them, or take another sampler."
        )
    results = results_of(sample, grammar, thought)
    for result in results:
        if _ended_by_budget(problem, result.tokens):
            result.reason, result.cut_at, result.cut = "length", len(result.text), [""]
    return results


def _ended_by_budget(problem: Problem, tokens: Sequence[int]) -> bool:
    """Whether a text has `max_tokens` tokens and could go on.

    Nothing else is a cut: these samplers draw from the texts that fit, as their target says.
    """
    if len(tokens) != problem.max_tokens:
        return False
    prefix = problem.root()
    for token in tokens:
        prefix = problem.extend(prefix, token)
    (following,) = problem.constraint.candidates([prefix.state])
    return bool(np.setdiff1d(following, problem.model.eos).size)


def results_of(sample: Sample, grammar: Grammar | Condition, thought: Thought | None = None) -> list[Result]:
    """A sample's draws with its estimates; each draw has an equal part of the work."""
    counts, share = sample.counts, len(sample.draws)
    log_z: Any = sample.log_z
    certificate = sample.certificate
    estimates = Estimates(
        target=sample.target,
        exact=sample.exact,
        log_z=None if log_z is None else log_z.value,
        log_z_error=None if log_z is None else log_z.error,
        distance=0.0 if sample.exact else None if certificate is None else certificate.distance,
        ess=sample.ess,
        forwards=counts.forwards,
        evaluations=counts.evaluations,
        attempts=counts.attempts,
    )
    results = []
    for place, draw in enumerate(sample.draws):
        value, error = read_value(grammar, draw.text)
        stats = Stats(
            forwards=_part(counts.forwards, share, place),
            tokens=len(draw.tokens),
            evaluations=_part(counts.evaluations, share, place),
        )
        results.append(
            Result(
                draw.text,
                list(draw.tokens),
                value,
                draw.logprob,
                draw.log_weight,
                stats,
                estimates,
                error=error,
                thought=thought,
                find=finder(grammar),
            )
        )
    return results


def _part(total: int, share: int, place: int) -> int:
    """Part `place` of `total` in `share` whole parts that sum up to it."""
    return total // share + (place < total % share)
