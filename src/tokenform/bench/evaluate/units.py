"""What a worker process does: a unit of work in, its result out.

Purpose: hold the model and the engines of one process, and run units one after the other.
Invariant: whatever an engine raises becomes the unit's status; only a hang, a crash or a memory limit ends
the process, and the pool turns that into the unit's status.
Rejected: judging here (a validator's slow regular expression would be charged to the engine).
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tokenform.batch.workers import note, untimed
from tokenform.bench.data import Case, Document
from tokenform.bench.documents import write as write_document
from tokenform.bench.engines import OWN, Engine, EngineOptions, EngineRefused, load
from tokenform.bench.evaluate.plan import BOARD, SCOREBOARD, Options
from tokenform.bench.evaluate.store import Unit, UnitResult, Verdict
from tokenform.bench.evaluate.tasks import Marks, judge_of
from tokenform.bench.evaluate.tasks.grading import first_object
from tokenform.bench.measure import measure_case
from tokenform.bench.suites.judges import Judges
from tokenform.bench.vocabulary import BenchVocabulary, tekken
from tokenform.errors import SchemaWarning, TokenformError
from tokenform.frontends import json_schema

_SCHEMA_CHARACTERS = 4000
_COVERAGE_PROMPT = "Write one JSON document that is valid under this JSON Schema, and nothing else."


class ModelRunner:
    """A model, its vocabulary for the engines, and its prompts.

    Args:
        name: of the model; None for the built-in one.
        asked: how a task is put; see `plan.PROMPTS`.
        shared: whether engines that write on one prompt share its passes.
    """

    def __init__(self, name: str | None, asked: str = "schema", *, shared: bool = False) -> None:
        import torch

        from tokenform.bench.evaluate.passes import Passes
        from tokenform.decoding.configuration import context_length, read_vocabulary
        from tokenform.decoding.speculative.backbone import Backbone
        from tokenform.engine import tokenizers
        from tokenform.integrations.generation import Generator
        from tokenform.integrations.models import open_model

        torch.set_num_threads(1)
        opened = open_model(name)
        vocabulary = read_vocabulary(opened.model, opened.tokenizer)
        tokens, special = list(vocabulary.tokens), tokenizers.read(opened.tokenizer).special
        empty = {i for i, token in enumerate(tokens) if not token}
        hidden = sorted({i for i in special if i < len(tokens)} | empty | set(vocabulary.eos))
        self.vocabulary = BenchVocabulary(
            name or "builtin",
            [token or f"<empty_{i}>".encode() for i, token in enumerate(tokens)],
            int(vocabulary.eos[0]),
            hidden,
            lambda text: tokenizers.encode(opened.tokenizer, text, specials=False),
        )
        self.passes = Passes(Backbone(opened.model, size=vocabulary.size), shared=shared)
        self._generator = Generator(name)
        self._context = context_length(opened.model)
        self._own_format = opened.format_prompt is not None
        self._chat = bool(getattr(opened.tokenizer, "chat_template", None))
        self._asked = asked

    def prompt(self, task: dict[str, Any] | None, schema: Any) -> list[int]:
        """The ids of a prompt, the same for all engines; a model with a format of its own has it always."""
        text = _COVERAGE_PROMPT if task is None else str(task["prompt"])
        if self._asked == "library" and task is not None:
            return self._read(task["text"] or text, schema)
        if self._own_format:
            return self._read(text, schema)
        if self._asked == "schema":
            shown = str(write_document(schema, "compact"))[:_SCHEMA_CHARACTERS]
            text = f"{text}\n\n{shown}\n\nDocument:"
        return self._read([{"role": "user", "content": text}] if self._chat else text, schema)

    def _read(self, prompt: Any, schema: Any) -> list[int]:
        grammar = None
        with (
            warnings.catch_warnings(),
            contextlib.suppress(TokenformError),
        ):  # refused: no engine is told of it
            warnings.simplefilter("ignore", SchemaWarning)
            grammar = json_schema(schema)
        return self._generator.prompt_ids(prompt, grammar)

    def room(self, ids: list[int], max_tokens: int) -> int:
        return max_tokens if self._context is None else min(max_tokens, self._context - len(ids))

    def text(self, tokens: list[int]) -> str:
        return b"".join(self.vocabulary.tokens[token] for token in tokens).decode("utf-8", "replace")


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


def unit_runner(options: Options, log: str | None = None) -> Callable[[Unit], UnitResult]:
    """Build, in a worker, the function that runs a unit; what engines print goes to the file `log`."""
    if log is not None:
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), 2)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    worker = f"{platform.node()}:{os.getpid()}"
    board = options.job == SCOREBOARD
    shared = OWN if board else EngineOptions(options.order, options.whitespace)
    runner = None if options.job == "masks" else ModelRunner(options.model, options.prompt, shared=board)
    vocabulary = tekken() if runner is None else runner.vocabulary
    engines = Engines(vocabulary, shared)

    def run(unit: Unit) -> UnitResult:
        engine = engines[unit.engine]  # made here, outside the unit's time
        if runner is None:
            return _guarded(lambda: _mask_unit(unit, engine, vocabulary), worker)
        return _guarded(lambda: _model_unit(unit, engine, runner, options), worker)

    return run


def _guarded(run: Callable[[], UnitResult], worker: str) -> UnitResult:
    """The unit's result, with its time; what the engine raises is its status."""
    begun = time.perf_counter()
    try:
        result = run()
    except EngineRefused as error:
        result = UnitResult("refused", str(error)[:500], compile_s=time.perf_counter() - begun)
    except Exception as error:  # an engine's own error in the middle of a text
        result = UnitResult("error", f"{type(error).__name__}: {error}"[:500])
    result.total_s, result.worker = time.perf_counter() - begun, worker
    return result


def _model_unit(unit: Unit, engine: Engine, runner: ModelRunner, options: Options) -> UnitResult:
    """Let the model write under the engine's constraint."""
    from tokenform.bench.evaluate.write import write

    case = unit.case
    ids = runner.prompt(case.task, case.schema)  # the same for all engines: only the constraint differs
    most = options.max_tokens if case.task is None else case.task.get("max_tokens") or options.max_tokens
    begun, cpu = time.perf_counter(), time.process_time()
    session = engine.json_schema(case.schema).session()
    compiled, compiled_cpu = time.perf_counter() - begun, time.process_time() - cpu
    note(compiled)
    try:
        written = write(
            runner.passes,
            ids,
            session,
            runner.vocabulary.eos,
            len(runner.vocabulary.tokens),
            max_tokens=runner.room(ids, most),
            temperature=options.temperature,
            seed=zlib.crc32(f"{options.seed}:{case.kind}:{case.case_id}".encode()),
        )
    except Exception as error:  # an engine's own error in the middle of a text
        return UnitResult("error", f"{type(error).__name__}: {error}"[:500], compile_s=compiled)
    return UnitResult(
        "ok",
        compile_s=compiled,
        first_token_s=compiled + written.first_token_s,
        model_s=written.model_s,
        mask_s=sum(written.step_ns) / 1e9,
        prompt_tokens=len(ids),
        tokens=len(written.tokens),
        forwards=written.forwards,
        finished=written.finished,
        text=runner.text(written.tokens),
        mask_us=[round(ns / 1e3, 2) for ns in written.step_ns],
        nats=written.nats,
        mass=written.mass,
        draws=written.draws,
        cpu_s=compiled_cpu + written.cpu_s,
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
