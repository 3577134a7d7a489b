"""Hosts' structured outputs, backend by backend, through their own code: vLLM, SGLang, transformers.

    make hosts                                                         # once: their Python files into .hosts
    OMP_NUM_THREADS=1 python benchmarks/hosts.py steps                 # vLLM: microseconds a step
    OMP_NUM_THREADS=1 python benchmarks/hosts.py steps --last "\\"      # ... of texts that escape nothing
    OMP_NUM_THREADS=1 python benchmarks/hosts.py maskbench --drafts 3  # 500 schemas: refused, invalid, cut
    OMP_NUM_THREADS=1 python benchmarks/hosts.py maskbench --host sglang --drafts 3
    OMP_NUM_THREADS=1 python benchmarks/hosts.py maskbench --host transformers

Purpose: what a step costs vLLM's scheduler, whole and inside the backend's calls, and what becomes of schemas
in a batch where each request has another.
Invariant: every backend gets the same requests and drafts, in turns in one process, and a random
model's draws among what its masks allow (transformers: the built-in model's); texts are judged by the package
`jsonschema`, patterns by ECMA-262's rules.
Design: the managers are the hosts' (`suites/hosts/`); calls of grammars, and of a backend that answers for
many of them at once, are timed where they are, the same for all.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(os.environ.get("TOKENFORM_HOSTS", str(ROOT / ".hosts")))
os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
warnings.simplefilter("ignore")

from suites.hosts.texts import random_model  # noqa: E402
from suites.hosts.verdicts import fate  # noqa: E402
from suites.hosts.vllm_manager import Engine  # noqa: E402
from tokenform.builtin.loading import WEIGHTS  # noqa: E402
from tokenform_bench.data import Case, read_maskbench, sample  # noqa: E402
from tokenform_bench.tables import save, text_table  # noqa: E402

BACKENDS = {"tokenform": "auto", "xgrammar": "xgrammar", "guidance": "guidance"}
SIZE = 2048
CALLS = ("accept_tokens", "validate_tokens", "rollback", "fill_bitmask", "is_terminated", "reset")
BATCHED = ("fill_blocks",)
"""Calls of a backend that stand for those of many requests' grammars."""
Outcome = tuple[str, Any, dict[str, str]]
"""A backend's name, its engine after the texts have ended, and what was refused and why."""
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
            "required": ["street", "zip"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "tags", "address"],
    "additionalProperties": False,
}


def params(schema: Any, max_tokens: int) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=max_tokens, structured_outputs=StructuredOutputsParams(json=schema))


class Clock:
    """Processor seconds inside the calls of a backend, by step; of all threads, as each counts its own calls.

    Each call's time is that between two readings less that between two readings just before it: reading the
    clock takes about as long as a fast backend's call, and longer where other code has just run.
    """

    def __init__(self) -> None:
        self.steps: list[float] = []

    def watch(self, thing: Any, names: Sequence[str]) -> None:
        """Counts the calls of some methods of an object."""
        for name in names:
            setattr(thing, name, self._counted(getattr(thing, name)))

    def _counted(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            before = time.thread_time()  # of the processor: other programs' turns don't count
            begin = time.thread_time()
            result = inner(*arguments)
            self.steps[-1] += time.thread_time() - begin - (begin - before)
            return result

        return call


def steps(
    engine: Engine, requests: int, seed: int, count: int, last: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Seconds of each step of new texts of a running engine, whole and inside the backend.

    Args:
        last: tokens that the model draws where nothing else is allowed.
    """
    engine.texts.clear()
    engine.seconds.clear()
    for number in range(requests):
        engine.add(f"{seed}.{number}", params(RECORD, 10_000))
    engine.settle()
    clock = Clock()
    for text in engine.texts.values():
        clock.watch(text.request.structured_output_request.grammar, CALLS)
    backend = engine.manager.backend
    batched = [name for name in BATCHED if hasattr(backend, name)]
    clock.watch(backend, batched)
    draw = random_model(SIZE, seed, boring=last)
    for _ in range(count):
        clock.steps.append(0.0)
        if not engine.step(draw):
            clock.steps.pop()
            break
    for name in batched:
        delattr(backend, name)  # the class's own is back
    return list(engine.seconds), clock.steps


def steps_table(count: int, rounds: int, last: str) -> list[dict[str, Any]]:
    """The first round of an engine is what a schema's first texts cost, the later ones what others do.

    Args:
        last: characters; tokens with one of them come last.
    """
    rows = []
    for drafts in (0, 3):
        for requests in (1, 64, 256):
            engines = {
                name: Engine(str(WEIGHTS / "model"), size=SIZE, drafts=drafts, backend=known, seats=256)
                for name, known in BACKENDS.items()
            }
            pieces = engines["tokenform"].tokenizer.convert_ids_to_tokens(range(SIZE))
            dull = [token for token, piece in enumerate(pieces) if piece and set(last) & set(piece)]
            first: dict[str, tuple[list[float], list[float]]] = {}
            later: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in BACKENDS}
            for turn in range(rounds):
                for name, engine in engines.items():
                    whole, inside = steps(engine, requests, turn, count, dull)
                    if turn == 0:
                        first[name] = (whole, inside)
                    else:
                        later[name][0].extend(whole)
                        later[name][1].extend(inside)
            for engine in engines.values():
                engine.close()
            for met, seconds in (("first", first), ("later", later)):
                for name, (whole, inside) in seconds.items():
                    if not inside:  # of one round there are no later texts
                        continue
                    rows.append(
                        {
                            "drafts": drafts,
                            "requests": requests,
                            "texts": met,
                            "backend": name,
                            "step us": round(1e6 * statistics.mean(whole)),
                            "inside us": round(1e6 * statistics.mean(inside), 1),
                            "inside median us": round(1e6 * statistics.median(inside), 1),
                            "inside p99 us": round(1e6 * sorted(inside)[int(0.99 * (len(inside) - 1))], 1),
                        }
                    )
                    print(rows[-1], flush=True)
    return rows


def maskbench_vllm(cases: list[Case], most: int, drafts: int) -> Iterator[Outcome]:
    from vllm.exceptions import VLLMValidationError

    for name, backend in BACKENDS.items():
        engine = Engine(str(WEIGHTS / "model"), size=SIZE, drafts=drafts, backend=backend, seats=len(cases))
        refused: dict[str, str] = {}
        for number, case in enumerate(cases):
            try:
                engine.add(str(number), params(json.dumps(case.schema), most))
            except (VLLMValidationError, ValueError) as error:
                refused[str(number)] = str(error)
        engine.run(random_model(SIZE, 0))
        yield name, engine, refused
        engine.close()


def maskbench_sglang(cases: list[Case], most: int, drafts: int) -> Iterator[Outcome]:
    from suites.hosts import sglang_manager
    from tokenform.integrations.sglang.plugin import register

    if not register():
        raise SystemExit("this SGLang is not one that the plug-in works with")
    for name in ("tokenform", "xgrammar"):  # the second is SGLang's default
        engine = sglang_manager.Engine(str(WEIGHTS / "model"), size=SIZE, drafts=drafts, backend=name)
        for number, case in enumerate(cases):
            engine.add(str(number), json.dumps(case.schema), most)
        refused = engine.settle()
        engine.run(random_model(SIZE, 0))
        yield name, engine, refused
        engine.close()


def maskbench_transformers(cases: list[Case], most: int, drafts: int) -> Iterator[Outcome]:
    from suites.hosts import transformers_batching
    from tokenform.errors import TokenformError

    if drafts:
        raise SystemExit("transformers' continuous batching has no drafts")
    for name in ("tokenform", "none"):
        engine = transformers_batching.Engine(backend=name)
        refused: dict[str, str] = {}
        for number, case in enumerate(cases):
            try:
                engine.add(str(number), case.schema, most)
            except TokenformError as error:
                refused[str(number)] = f"{type(error).__name__}: {error}"
        engine.run()
        yield name, engine, refused
        engine.close()


HOSTS = {"vllm": maskbench_vllm, "sglang": maskbench_sglang, "transformers": maskbench_transformers}


def maskbench(host: str, limit: int, most: int, drafts: int) -> list[dict[str, Any]]:
    """What became of each schema, by backend."""
    cases = sample(read_maskbench(), limit)
    rows = []
    for name, engine, refused in HOSTS[host](cases, most, drafts):
        fates = Counter("too short" if "BudgetTooSmall" in why else "refused" for why in refused.values())
        named = [f"{cases[int(number)].id}: {why}" for number, why in refused.items() if name == "tokenform"]
        longest = 0
        for number, text in engine.texts.items():
            found = fate(cases[int(number)].schema, text, engine.tokenizer)
            longest = max(longest, len(text.tokens))
            fates[found] += 1
            if found != "valid" and name == "tokenform":
                shown = text.error or text.written(engine.tokenizer)[:200]
                named.append(f"{cases[int(number)].id}: {found} {shown}")
        kinds = ("valid", "refused", "too short", "invalid", "cut", "failed", "not judged")
        row = {"host": host, "drafts": drafts, "backend": name, **{kind: fates[kind] for kind in kinds}}
        rows.append(row | {"longest": longest})
        print(rows[-1], *named, sep="\n", flush=True)
    return rows


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["steps", "maskbench"])
    parser.add_argument("--count", type=at_least_one, default=60, help="steps of a run")
    parser.add_argument(
        "--rounds", type=at_least_one, default=6, help="texts after the first show what others cost"
    )
    parser.add_argument(
        "--last", default="", help="characters that texts of steps write only where they must"
    )
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--drafts", type=int, default=0)
    parser.add_argument("--host", choices=list(HOSTS), default="vllm", help="of maskbench")
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    logging.disable(logging.ERROR)  # hosts log each schema that they refuse, at full length
    if given.what == "steps" or given.host == "vllm":
        from tokenform.integrations.vllm.plugin import register

        if not register():
            raise SystemExit("this vLLM is not one that the plug-in works with")
    if given.what == "steps":
        name, rows = "hosts-steps", steps_table(given.count, given.rounds, given.last)
    else:
        name = f"hosts-{given.host}-drafts-{given.drafts}"
        rows = maskbench(given.host, given.limit, given.max_tokens, given.drafts)
    print(text_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))
    if given.save:
        print(save(given.save, name, {"arguments": vars(given) | {"save": ""}, "rows": rows}))


if __name__ == "__main__":
    main()
