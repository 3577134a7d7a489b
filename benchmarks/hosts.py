"""vLLM's structured outputs, backend by backend: its own manager, a random model in the place of a real one.

    make hosts                                                    # once: vLLM's Python files into .hosts
    OMP_NUM_THREADS=1 python benchmarks/hosts.py steps            # microseconds a step
    OMP_NUM_THREADS=1 python benchmarks/hosts.py maskbench        # 500 schemas: refused, invalid, cut

Purpose: what a step costs the scheduler, whole and inside the backend's calls, and what becomes of schemas.
Invariant: every backend gets the same requests, drafts and random draws among what its masks
allow, in turns in one process; texts are judged by the package `jsonschema`.
Design: the manager is vLLM's (`bench/hosts/vllm_manager.py`); calls are timed by a grammar object around the
backend's, the same for all.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(os.environ.get("TOKENFORM_HOSTS", str(ROOT / ".hosts")))
os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
warnings.simplefilter("ignore")

from tokenform.bench.data import read_maskbench, sample  # noqa: E402
from tokenform.bench.hosts.vllm_manager import Engine, random_model  # noqa: E402
from tokenform.bench.tables import save, text_table  # noqa: E402
from tokenform.builtin.loading import WEIGHTS  # noqa: E402

BACKENDS = {"tokenform": "auto", "xgrammar": "xgrammar", "guidance": "guidance"}
SIZE = 2048
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


def timed(grammar: Any, spent: list[float]) -> Any:
    """The grammar object with the processor seconds of its calls added to `spent[-1]`."""
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

    def call(name: str) -> Any:
        inner = getattr(grammar, name)

        def run(self: Any, *arguments: Any) -> Any:
            begin = time.thread_time()  # of the processor: other programs' turns don't count
            result = inner(*arguments)
            spent[-1] += time.thread_time() - begin
            return result

        return run

    names = ("accept_tokens", "validate_tokens", "rollback", "fill_bitmask", "is_terminated", "reset")
    return type("Timed", (StructuredOutputGrammar,), {name: call(name) for name in names})()


def steps(engine: Engine, requests: int, seed: int, count: int) -> tuple[list[float], list[float]]:
    """Seconds of each step of new texts of a running engine, whole and inside the backend."""
    engine.texts.clear()
    engine.seconds.clear()
    for number in range(requests):
        engine.add(f"{seed}.{number}", params(RECORD, 10_000))
    engine.settle()
    inside: list[float] = []
    spent = [0.0]
    for text in engine.texts.values():
        asked = text.request.structured_output_request
        asked.grammar = timed(asked.grammar, spent)
    draw = random_model(SIZE, seed)
    for _ in range(count):
        spent.append(0.0)
        if not engine.step(draw):
            break
        inside.append(spent[-1])
    return list(engine.seconds), inside


def steps_table(count: int, rounds: int) -> list[dict[str, Any]]:
    """The first round of an engine is what a schema's first texts cost, the later ones what others do."""
    rows = []
    for drafts in (0, 3):
        for requests in (1, 64, 256):
            engines = {
                name: Engine(str(WEIGHTS / "model"), size=SIZE, drafts=drafts, backend=known, seats=256)
                for name, known in BACKENDS.items()
            }
            first: dict[str, tuple[list[float], list[float]]] = {}
            later: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in BACKENDS}
            for turn in range(rounds):
                for name, engine in engines.items():
                    whole, inside = steps(engine, requests, turn, count)
                    if turn == 0:
                        first[name] = (whole, inside)
                    else:
                        later[name][0].extend(whole)
                        later[name][1].extend(inside)
            for engine in engines.values():
                engine.close()
            for met, seconds in (("first", first), ("later", later)):
                for name, (whole, inside) in seconds.items():
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


def fate(case: Any, text: Any, engine: Engine) -> str:
    """What became of one schema."""
    import jsonschema

    if text.reason == "error":
        return "failed"
    written = engine.written(text)
    if text.reason == "length":
        return "cut"
    try:
        value = json.loads(written)
    except ValueError:
        return "invalid"
    kind = jsonschema.validators.validator_for(case.schema, default=jsonschema.Draft202012Validator)
    try:
        return "valid" if kind(case.schema).is_valid(value) else "invalid"
    except Exception:  # a schema that the judge can't read
        return "not judged"


def maskbench(limit: int, max_tokens: int, drafts: int) -> list[dict[str, Any]]:
    from vllm.exceptions import VLLMValidationError

    cases = sample(read_maskbench(), limit)
    rows = []
    for name, backend in BACKENDS.items():
        engine = Engine(str(WEIGHTS / "model"), size=SIZE, drafts=drafts, backend=backend, seats=len(cases))
        fates: Counter[str] = Counter()
        named: list[str] = []
        for number, case in enumerate(cases):
            try:
                engine.add(str(number), params(json.dumps(case.schema), max_tokens))
            except (VLLMValidationError, ValueError) as error:
                fates["too short" if "BudgetTooSmall" in str(error) else "refused"] += 1
        engine.run(random_model(SIZE, 0))
        longest = 0
        for number, text in engine.texts.items():
            found = fate(cases[int(number)], text, engine)
            longest = max(longest, len(text.tokens))
            fates[found] += 1
            if found in ("invalid", "failed") and name == "tokenform":
                named.append(f"{cases[int(number)].id}: {found} {text.error or engine.written(text)[:200]}")
        engine.close()
        kinds = ("valid", "refused", "too short", "invalid", "cut", "failed", "not judged")
        rows.append({"backend": name, **{kind: fates[kind] for kind in kinds}, "longest": longest})
        print(rows[-1], *named, sep="\n", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["steps", "maskbench"])
    parser.add_argument("--count", type=int, default=60, help="steps of a run")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--drafts", type=int, default=0)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    from tokenform.integrations.vllm.plugin import register

    if not register():
        raise SystemExit("this vLLM is not one that the plug-in works with")
    if given.what == "steps":
        rows = steps_table(given.count, given.rounds)
    else:
        rows = maskbench(given.limit, given.max_tokens, given.drafts)
    print(text_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]))
    if given.save:
        print(
            save(given.save, f"hosts-{given.what}", {"arguments": vars(given) | {"save": ""}, "rows": rows})
        )


if __name__ == "__main__":
    main()
