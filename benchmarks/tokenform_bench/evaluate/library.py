"""Texts of the library itself on a scoreboard: `Generator.sample` at its defaults, without drafts.

Purpose: tokenform is judged by what its users get, prompts, whole values and forced text included; the other
engines are masks in a loop (`write`).
Invariant: greedy; the same prompts and limits as theirs.  Nats and mass are read off afterwards, in a pass
over the texts (`tokenform.logprob`), which nobody is charged for.
Complexity: the batch's processor seconds are divided by the tokens of each text.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from tokenform.decoding import Local
from tokenform.decoding.likelihood import logprob
from tokenform.errors import SchemaWarning, TokenformError
from tokenform.frontends import json_schema
from tokenform_bench.evaluate.model import ModelRunner
from tokenform_bench.evaluate.plan import Options
from tokenform_bench.evaluate.store import StoredCase, UnitResult

_LENGTH = "length"


def answer(cases: Sequence[StoredCase], runner: ModelRunner, options: Options) -> list[UnitResult]:
    """What the library writes for these cases, all in one batch for each limit."""
    found: list[UnitResult | None] = [None] * len(cases)
    batches: dict[int, list[tuple[int, list[int], Any]]] = {}
    for number, case in enumerate(cases):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SchemaWarning)
                grammar = json_schema(case.schema)
                grammar.compile(runner.generator.vocabulary)
        except TokenformError as error:
            found[number] = UnitResult("refused", f"{type(error).__name__}: {error}"[:500])
            continue
        ids = runner.prompt(case.task, case.schema)
        batches.setdefault(options.most_tokens_of(case), []).append((number, ids, grammar))
    for most, batch in batches.items():
        for (number, _, _), result in zip(batch, _batch(batch, most, runner, options), strict=True):
            found[number] = result
    return [one or UnitResult("error", "not written") for one in found]


def _batch(
    batch: list[tuple[int, list[int], Any]], most: int, runner: ModelRunner, options: Options
) -> list[UnitResult]:
    generator, prompts = runner.generator, [ids for _, ids, _ in batch]
    grammars = [grammar for _, _, grammar in batch]
    generator.batch_size = len(batch)
    begun, cpu = time.perf_counter(), time.process_time()
    written = generator.sample(
        prompts,
        grammars,
        max_tokens=most,
        seed=options.seed,
        sampler=Local(temperature=options.temperature),
        on_error="return",
        logprobs=False,
        progress=False,
    )
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    results = [one for (one,) in written]
    whole = sum(len(one.tokens) for one in results if not isinstance(one, Exception)) or 1
    return [
        UnitResult.failed(one)
        if isinstance(one, Exception)
        else _result(one, ids, grammar, runner, len(one.tokens) / whole, seconds, cpu)
        for one, ids, grammar in zip(results, prompts, grammars, strict=True)
    ]


def _result(
    text: Any, ids: list[int], grammar: Any, runner: ModelRunner, share: float, seconds: float, cpu: float
) -> UnitResult:
    with torch.inference_mode():
        likely = logprob(runner.generator, [text.tokens], grammar, prompt=[ids], end=text.reason != _LENGTH)
    return UnitResult(
        "ok",
        compile_s=0.0,
        model_s=text.stats.seconds_model,
        mask_s=text.stats.seconds_mask,
        total_s=seconds * share,
        prompt_tokens=len(ids),
        tokens=len(text.tokens),
        forwards=text.stats.forwards,
        finished=True,
        text=text.text,
        nats=-float(likely.free_total[0]),
        mass=float(likely.log_mass.sum()),
        draws=len(likely.tokens[0]),
        cpu_s=cpu * share,
    )
