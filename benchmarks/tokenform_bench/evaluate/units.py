"""What a worker process does: units of work in, their results out.

Purpose: hold the model and the engines of one process, and run units, those of a group in lockstep.
Invariant: whatever an engine raises becomes the unit's status; only a hang, a crash or a memory limit ends
the process, and the pool turns that into the unit's status.
Rejected: judging here (a validator's slow regular expression would be charged to the engine).
"""

from __future__ import annotations

import os
import platform
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenform.batch.workers import note, untimed
from tokenform_bench.data import Case, Document
from tokenform_bench.documents import write as write_document
from tokenform_bench.engines import OWN, Engine, EngineOptions, EngineRefused, load
from tokenform_bench.evaluate.plan import BOARD, SCOREBOARD, Options
from tokenform_bench.evaluate.store import StoredCase, Unit, UnitResult, Verdict
from tokenform_bench.evaluate.tasks import Marks, judge_of
from tokenform_bench.evaluate.tasks.grading import first_object
from tokenform_bench.judges import Judges
from tokenform_bench.measure import measure_case
from tokenform_bench.vocabulary import BenchVocabulary, tekken

if TYPE_CHECKING:  # with torch
    from tokenform_bench.evaluate.model import ModelRunner
    from tokenform_bench.evaluate.write import Written


class Engines:
    """The engines of a process, each made when it is first asked for."""

    def __init__(self, vocabulary: BenchVocabulary, options: EngineOptions) -> None:
        self._vocabulary, self._options = vocabulary, options
        self._made: dict[str, Engine] = {}

    def __getitem__(self, name: str) -> Engine:
        if name not in self._made:
            with untimed():  # what is built once in a process is not the first schema's time
                engine = load(name, self._vocabulary, self._options)
                engine.json_schema({"type": "null"}).session().fill()
            self._made[name] = engine
        return self._made[name]


LIBRARY = "tokenform"
"""On a scoreboard this engine is the library as its users have it: `Generator`, batched like the others."""
Group = Sequence[Unit]
"""Units that a worker runs together."""


def unit_runner(options: Options, log: str | None = None) -> Callable[[Group], list[UnitResult]]:
    """Build, in a worker, the function that runs units; what engines print goes to the file `log`."""
    if log is not None:
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), 2)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    worker = f"{platform.node()}:{os.getpid()}"
    board = options.job == SCOREBOARD
    shared = OWN if board else EngineOptions(options.order, options.whitespace)
    runner = None
    if options.job != "masks":
        from tokenform_bench.evaluate.model import ModelRunner

        runner = ModelRunner(options.model, options.prompt)
    vocabulary = tekken() if runner is None else runner.vocabulary
    engines = Engines(vocabulary, shared)

    def run(group: Group) -> list[UnitResult]:
        made = [engines[unit.engine] for unit in group]  # made here, outside the units' time
        if runner is None:
            found = [
                _guarded(partial(_mask_unit, unit, engine, vocabulary))
                for unit, engine in zip(group, made, strict=True)
            ]
        else:
            library = [number for number, unit in enumerate(group) if board and unit.engine == LIBRARY]
            others = [number for number in range(len(group)) if number not in library]
            written = _written([(group[i], made[i]) for i in others], runner, options)
            own = _answered([group[i] for i in library], runner, options)
            placed = dict(zip([*others, *library], [*written, *own], strict=True))
            found = [placed[number] for number in range(len(group))]
        for result in found:
            result.worker = worker
        return found

    return run


def _guarded(run: Callable[[], UnitResult]) -> UnitResult:
    """The unit's result, with its time; what the engine raises is its status."""
    begun = time.perf_counter()
    try:
        result = run()
    except EngineRefused as error:
        result = UnitResult("refused", str(error)[:500], compile_s=time.perf_counter() - begun)
    except Exception as error:  # an engine's own error in the middle of a text
        result = UnitResult.failed(error)
    result.total_s = time.perf_counter() - begun
    return result


def _written(asked: Sequence[tuple[Unit, Engine]], runner: ModelRunner, options: Options) -> list[UnitResult]:
    """Let the model write under the engines' constraints, all texts in lockstep."""
    from tokenform_bench.evaluate.write import Task, write

    found = [_guarded(partial(_begin, unit, engine, runner, options)) for unit, engine in asked]
    begun = {number: one for number, one in enumerate(found) if isinstance(one, _Begun)}
    tasks = [
        Task(one.ids, one.session, runner.room(one.ids, options.most_tokens_of(case)), _seed(case, options))
        for case, one in ((asked[number][0].case, one) for number, one in begun.items())
    ]
    vocabulary = runner.vocabulary
    texts = write(runner.passes, tasks, vocabulary.eos, len(vocabulary.tokens), options.temperature)
    for (number, one), text in zip(begun.items(), texts, strict=True):
        found[number] = _result(one, text, runner)
    return found


def _seed(case: StoredCase, options: Options) -> int:
    return zlib.crc32(f"{options.seed}:{case.kind}:{case.case_id}".encode())


def _answered(group: Group, runner: ModelRunner, options: Options) -> list[UnitResult]:
    from tokenform_bench.evaluate.library import answer

    return answer([unit.case for unit in group], runner, options)


@dataclass
class _Begun(UnitResult):
    """A unit that is compiled: its prompt, and its engine at the beginning of a text."""

    ids: tuple[int, ...] = ()
    session: Any = None


def _begin(unit: Unit, engine: Engine, runner: ModelRunner, options: Options) -> UnitResult:
    ids = runner.prompt(
        unit.case.task, unit.case.schema
    )  # the same for all engines: only the constraint differs
    begun, cpu = time.perf_counter(), time.process_time()
    session = engine.json_schema(unit.case.schema).session()
    compiled = time.perf_counter() - begun
    note(compiled)
    return _Begun("ok", compile_s=compiled, cpu_s=time.process_time() - cpu, ids=tuple(ids), session=session)


def _result(begun: _Begun, text: Written | Exception, runner: ModelRunner) -> UnitResult:
    if isinstance(text, Exception):
        result = UnitResult.failed(text)
        result.compile_s = begun.compile_s
        return result
    compiled, mask = begun.compile_s or 0.0, sum(text.step_ns) / 1e9
    return UnitResult(
        "ok",
        compile_s=compiled,
        first_token_s=compiled + text.first_token_s,
        model_s=text.model_s,
        mask_s=mask,
        total_s=compiled + text.model_s + mask,
        prompt_tokens=len(begun.ids),
        tokens=len(text.tokens),
        forwards=text.forwards,
        finished=text.finished,
        text=runner.text(text.tokens),
        mask_us=[round(ns / 1e3, 2) for ns in text.step_ns],
        nats=text.nats,
        mass=text.mass,
        draws=text.draws,
        cpu_s=(begun.cpu_s or 0.0) + text.cpu_s,
    )


def _mask_unit(unit: Unit, engine: Engine, vocabulary: BenchVocabulary) -> UnitResult:
    """Walk the case's documents without a model; the verdict goes into `detail` ("pass", "wrong_accept:
    ...")."""
    documents = [Document(data, valid) for data, valid in unit.case.documents or ()]
    texts = [(vocabulary.encode(write_document(d.data)), d.valid) for d in documents]
    case = Case(unit.case.case_id, unit.case.schema, tuple(documents))
    measured = measure_case(lambda: engine.json_schema(case.schema), texts, vocabulary.eos, False)
    if measured.verdict == "refused":
        return UnitResult("refused", measured.detail, compile_s=measured.compile_ns / 1e9)
    return UnitResult(
        "ok",
        f"{measured.verdict}: {measured.detail}" if measured.detail else measured.verdict,
        compile_s=measured.compile_ns / 1e9,
        first_token_s=measured.first_mask_ns / 1e9,
        mask_s=sum(measured.cold) / 1e9,
        tokens=len(measured.cold),
        mask_us=[round(float(ns) / 1e3, 2) for ns in np.frombuffer(measured.cold, np.uint64)]
        if measured.cold
        else [],
    )


JudgeTask = tuple[tuple[str, str, str], Any, str, dict[str, Any] | None]
"""(key of the unit, schema, text, the case's task or None)."""


def judge_runner() -> Callable[[JudgeTask], Verdict]:
    """Build, in a worker, the function that judges a text."""

    def run(task: JudgeTask) -> Verdict:
        (engine, kind, _), schema, text, asked = task
        read = first_object(text)[1] if kind == BOARD and engine == "none" else text  # free text is parsed
        judgement = Judges(schema).judge(read)
        marks = None if asked is None else judge_of(asked["family"])(asked["answer"], text)
        verdict = Verdict(judgement.parses, judgement.valid, judgement.disputed, judgement.verdicts)
        return verdict if marks is None else replace(verdict, **graded(marks))

    return run


def graded(marks: Marks) -> dict[str, Any]:
    """The columns of a verdict that say whether the answer is right."""
    return {"correct": marks.right, "fields_right": marks.fields_right, "fields": marks.fields}
