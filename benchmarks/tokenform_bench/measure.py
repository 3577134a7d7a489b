"""Timing and judging one engine on one case, token by token, as a decoding loop calls it from Python.

Purpose: the numbers of every comparison come from here: time to first mask, time per token (mask + advance),
verdicts.
Invariant: a document is accepted if and only if each of its tokens is in the mask before it and EOS is in the
last mask; a token that a mask has and `advance` refuses is an inconsistency, never a refusal. Clock readings
enclose engine calls alone.
Complexity: one mask and one step a token; two passes ("cold": the schema is new to the process; "warm": the
same documents again).
Source: MaskBench's definitions (time to first mask = compile + first mask; time per token = mask + commit).
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import subprocess
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenform_bench.data import Case
from tokenform_bench.documents import write
from tokenform_bench.engines import Compiled, Engine, EngineOptions, EngineRefused, Session, load
from tokenform_bench.vocabulary import BenchVocabulary, tekken

Clock = Callable[[], int]
"""Nanoseconds since some moment."""

CLOCKS: dict[str, Clock] = {"wall": perf_counter_ns, "cpu": process_time_ns}
"""What time is counted in; "cpu" is that of all threads of the process, for machines that others use too."""


@dataclass
class Walk:
    """One document walked: the verdict, where it stopped, and nanoseconds for each token (mask + advance)."""

    accepted: bool
    at: int
    nanoseconds: array[int]
    inconsistent: bool = False


def walk(
    session: Session, tokens: list[int], eos: int, *, filled: bool = False, clock: Clock = perf_counter_ns
) -> Walk:
    """Walk a document; `filled` says that the first mask is there already, so its token isn't timed."""
    times = array("Q")
    fill, advance, row = session.fill, session.advance, session.row
    for index, token in enumerate(tokens):
        first = filled and index == 0
        begun = clock()
        if not first:
            fill()
        masked = clock()
        if not int(row[token >> 5]) >> (token & 31) & 1:
            times.append(masked - begun)
            return Walk(False, index, times)
        stepping = clock()
        try:
            taken = advance(token)
        except Exception:  # every engine has its own; the mask had promised the token
            taken = False
        stepped = clock()
        if taken is False:
            return Walk(False, index, times, inconsistent=True)
        if not first:
            times.append(masked - begun + stepped - stepping)
    begun = clock()
    fill()
    times.append(clock() - begun)
    return Walk(session.allows(eos), len(tokens), times)


@dataclass
class Measured:
    """One engine on one schema.

    Attributes:
        verdict: "pass", "refused", "wrong_accept", "wrong_reject" or "inconsistent".
        first_mask_ns: compile + first mask.
        cold, warm: nanoseconds a token, of all documents.
    """

    verdict: str
    detail: str = ""
    compile_ns: int = 0
    first_mask_ns: int = 0
    cold: array[int] = field(default_factory=lambda: array("Q"))
    warm: array[int] = field(default_factory=lambda: array("Q"))


def measure_case(
    compile_schema: Callable[[], Compiled],
    texts: list[tuple[list[int], bool]],
    eos: int,
    warm: bool,
    clock: Clock = perf_counter_ns,
) -> Measured:
    """Compile, and walk the tokenised documents (tokens, valid), once cold and, if asked, once more."""
    gc.collect(0)
    gc.disable()
    try:
        begun = clock()
        try:
            compiled = compile_schema()
            made = clock()
            session = compiled.session()
            session.fill()
        except EngineRefused as error:
            return Measured("refused", str(error)[:300], clock() - begun)
        result = Measured("pass", "", made - begun, clock() - begun)
        for index, (tokens, valid) in enumerate(texts):
            fresh = session if index == 0 else compiled.session()
            walked = walk(fresh, tokens, eos, filled=index == 0, clock=clock)
            result.cold.extend(walked.nanoseconds)
            _judge(result, walked, valid, index)
        for tokens, _ in texts if warm else ():
            result.warm.extend(walk(compiled.session(), tokens, eos, clock=clock).nanoseconds)
        return result
    finally:
        gc.enable()


_SEVERITY = ("pass", "wrong_reject", "wrong_accept", "inconsistent")


def _judge(result: Measured, walked: Walk, valid: bool, index: int) -> None:
    if walked.inconsistent:
        verdict, detail = (
            "inconsistent",
            f"document {index}: advance refuses token {walked.at}, which the mask has",
        )
    elif walked.accepted and not valid:
        verdict, detail = "wrong_accept", f"document {index} is invalid"
    elif valid and not walked.accepted:
        verdict, detail = "wrong_reject", f"document {index} is valid, refused at token {walked.at}"
    else:
        return
    if _SEVERITY.index(verdict) > _SEVERITY.index(result.verdict):
        result.verdict, result.detail = verdict, detail


def case_measurer(
    engine_name: str, options: EngineOptions, warm: bool, clock: str = "wall"
) -> Callable[[Case], Measured]:
    """Build, in a worker, the function that measures an engine on a case, timed by one of `CLOCKS`."""
    vocabulary = tekken()
    engine = load(engine_name, vocabulary, options)
    _warm(engine, vocabulary)

    def run(case: Case) -> Measured:
        texts = [(vocabulary.encode(write(d.data)), d.valid) for d in case.documents]
        make = partial(engine.json_schema, case.schema)
        return measure_case(make, texts, vocabulary.eos, warm, CLOCKS[clock])

    return run


def _warm(engine: Engine, vocabulary: BenchVocabulary) -> None:
    """What is built once in a process (a reader of grammars, the masks of any string, the languages of
    formats, by a thread whose processor time a clock of the process would count) is no schema's time.
    """
    # tokenform's thread makes "uri" last: whoever asks for it waits for all
    with contextlib.suppress(EngineRefused):
        engine.json_schema({"type": "string", "format": "uri"}).session().fill()
    strings = engine.json_schema({"type": "array", "items": {"type": "string"}})
    walk(strings.session(), vocabulary.encode('["a"]'), vocabulary.eos)
    # several, as where one grammar after the other is read: an interpreter settles on its code only then
    for i in range(10):
        rule = f'pair (", " pair)*\npair{{}} ("left" | "right{i}") "="\n'
        for dialects in ({"lark": "start: " + rule.format(":")}, {"ebnf": "root ::= " + rule.format(" ::=")}):
            with contextlib.suppress(EngineRefused):
                engine.grammar(dialects).session().fill()


def grammar_measurer(
    engine_name: str, options: EngineOptions, clock: str = "wall", warm: bool = False
) -> Callable[[tuple[Any, dict[str, str] | None, list[tuple[str, bool]]]], Measured]:
    """As `case_measurer`, for (schema, grammar dialects or None, (text, valid)), timed by one of `CLOCKS`."""
    vocabulary: BenchVocabulary = tekken()
    engine = load(engine_name, vocabulary, options)
    _warm(engine, vocabulary)

    def run(task: tuple[Any, dict[str, str] | None, list[tuple[str, bool]]]) -> Measured:
        schema, dialects, documents = task
        texts = [(vocabulary.encode(text), valid) for text, valid in documents]
        make = (
            (lambda: engine.json_schema(schema)) if dialects is None else (lambda: engine.grammar(dialects))
        )
        return measure_case(make, texts, vocabulary.eos, warm, CLOCKS[clock])

    return run


def quantiles(
    nanoseconds: NDArray[np.uint64], points: tuple[float, ...] = (0.5, 0.99, 0.999)
) -> dict[str, float]:
    """Mean, quantiles and worst, in microseconds; all nan without samples."""
    names = ["mean", *(f"p{100 * q:g}" for q in points), "worst"]
    if nanoseconds.size == 0:
        return dict.fromkeys(names, float("nan"))
    values = [nanoseconds.mean(), *np.quantile(nanoseconds, points), nanoseconds.max()]
    return {name: float(value) / 1e3 for name, value in zip(names, values, strict=True)}


def environment() -> dict[str, Any]:
    """The hardware, the versions and the commit that a result was measured on."""
    root = Path(__file__).resolve().parents[3]
    try:
        git = ["git", "-C", str(root)]
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        dirty = bool(
            subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
        )
    except (OSError, subprocess.CalledProcessError):
        commit, dirty = "unknown", True
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "commit": commit,
        "dirty": dirty,
    }
