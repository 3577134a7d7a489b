"""Documents without end through one automaton: memory and time, by the number of documents.

Purpose: an engine that lives in a server holds what live texts need, however much has passed through it.
Each kind of traffic runs in a process of its own; a document is new each time, so nothing but the engine's
bounds keeps memory level.
Judged: no error; memory between document 10,000 and the last grows by at most 32 MiB; a token in the last
tenth costs at most 1.2 times one in the second. "compilations": 2,000 schemas are read and compiled in turn,
a third as often as there are documents, and a document of each is written; judged alike.  Time is that of the
thread's processor: others on the machine do not count.

    python benchmarks/soak.py --documents 60000
    python benchmarks/soak.py --kind integers --documents 5000
"""

from __future__ import annotations

import argparse
import json
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tokenform as tf

LETTERS = string.ascii_lowercase
GROWTH_MIB, SLOWDOWN, SETTLED = 32, 1.2, 10_000
SCHEMAS, TOKENS, BOUND = 2_000, 10, 48 << 20


def word(rng: random.Random, length: int = 6) -> str:
    return "".join(rng.choices(LETTERS, k=length))


def any_json(rng: random.Random, depth: int = 0) -> Any:
    """A small value of any kind."""
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind < 5:
        return [rng.randrange(10**6), word(rng), rng.random(), None, True][kind]
    if kind == 5:
        return [any_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {word(rng): any_json(rng, depth + 1) for _ in range(rng.randrange(4))}


def nested(rng: random.Random, depth: int = 0) -> Any:
    return [] if depth > 12 else [nested(rng, depth + 1) for _ in range(rng.choice([0, 1, 1, 2]))]


def sql(rng: random.Random) -> str:
    columns = ", ".join(word(rng) for _ in range(rng.randint(1, 4)))
    return f"SELECT {columns} FROM {word(rng)} WHERE {word(rng)} = {rng.randrange(10**5)}"


SQL = r"""
start: "SELECT " columns " FROM " NAME (" WHERE " condition)?
columns: NAME (", " NAME)*
condition: NAME " = " NUMBER
NAME: /[a-z_]+/
NUMBER: /[0-9]+/
"""

TOOL = {
    "type": "function",
    "function": {
        "name": "order",
        "description": "Orders things.",
        "parameters": {
            "type": "object",
            "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["item", "count"],
        },
    },
}


def tool_call(rng: random.Random) -> str:
    call = {"name": "order", "arguments": {"item": word(rng), "count": rng.randrange(10**6)}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def document(make: Callable[[random.Random], Any]) -> Callable[[random.Random], str]:
    return lambda rng: json.dumps(make(rng), ensure_ascii=False)


KINDS: dict[str, tuple[Callable[[], tf.Grammar], Callable[[random.Random], str]]] = {
    "object": (
        lambda: tf.json_schema({"type": "object"}),
        document(lambda rng: {word(rng): any_json(rng) for _ in range(4)}),
    ),
    "integers": (
        lambda: tf.json_schema({"type": "object", "additionalProperties": {"type": "integer"}}),
        document(lambda rng: {word(rng): rng.randrange(10**5) for _ in range(6)}),
    ),
    "prices": (
        lambda: tf.json_schema(
            {"type": "object", "properties": {"k": {"type": "number", "multipleOf": 0.01}}, "required": ["k"]}
        ),
        document(lambda rng: {"k": rng.randrange(10**7) / 100}),
    ),
    "unique": (
        lambda: tf.json_schema({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        document(lambda rng: [word(rng) for _ in range(6)]),
    ),
    "nested": (
        lambda: tf.json_schema(
            {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}
        ),
        document(nested),
    ),
    "tools": (lambda: tf.tools([TOOL], format="hermes", tool_choice="required"), tool_call),
    "sql": (lambda: tf.lark(SQL), sql),
}


def vocabulary() -> tf.Vocabulary:
    """All bytes, words of two to five letters and a few joints, so that nothing is downloaded."""
    rng = random.Random(0)
    words = {word(rng, rng.randint(2, 5)) for _ in range(30_000)}
    joints = ['": ', '", "', ", ", '{"', '"}', "[[", "]]", "<tool_call>\n", '{"name": "', "SELECT ", " FROM "]
    tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in [*sorted(words), *joints]]
    return tf.Vocabulary([*tokens, b"</s>"], eos=[len(tokens)])


def memory() -> float:
    """MiB that the process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def soak(kind: str, documents: int) -> dict[str, Any]:
    """Runs one kind of traffic in this process."""
    make, write = KINDS[kind]
    vocab = vocabulary()
    automaton = make().compile(vocab)
    rng, row = random.Random(1), np.zeros((1, automaton.mask_words), np.uint32)
    points: list[dict[str, float]] = []
    step, most = max(1, documents // 20), 0.0
    seconds, tokens = 0.0, 0
    for number in range(1, documents + 1):
        ids = vocab.greedy(write(rng).encode()) or []
        state = automaton.start
        begin = time.thread_time()
        for token in ids:
            automaton.fill_masks([state], row)
            state = automaton.advance(state, token)
        ended = automaton.is_accepting(state)
        seconds += time.thread_time() - begin
        tokens += len(ids)
        if not ended:
            raise SystemExit(f"{kind}: a document was not accepted")
        if number % 64 == 0:
            most = max(most, memory())
        if number % step == 0:
            points.append({"documents": number, "mib": max(most, memory()), "us": seconds / tokens * 1e6})
            seconds, tokens, most = 0.0, 0, 0.0
    return {"kind": kind, "points": points, "stats": automaton.stats() | {"held": tf.engine.memory_held()}}


def schema(number: int) -> str:
    """One of the schemas that are compiled in turn."""
    rng = random.Random(number)
    kinds: list[Callable[[], dict[str, Any]]] = [
        lambda: {"type": "string", "maxLength": rng.randint(5, 50)},
        lambda: {"type": "integer", "minimum": rng.randrange(100)},
        lambda: {"enum": [word(rng) for _ in range(rng.randint(2, 12))]},
        lambda: {"type": "array", "items": {"type": "number"}, "maxItems": rng.randint(1, 9)},
        lambda: {"type": "object", "properties": {word(rng): {"type": "string"} for _ in range(3)}},
    ]
    members = {word(rng): rng.choice(kinds)() for _ in range(rng.randint(3, 20))}
    required = list(members)[: rng.randint(1, 3)]
    return json.dumps({"type": "object", "properties": members, "required": required})


def compile_in_turn(times: int) -> dict[str, Any]:
    """Reads and compiles schemas in turn, each time anew, and takes the first tokens of a document."""
    tf.engine.set_limits(
        memory=BOUND
    )  # so that the bound is met early: memory rises to it, and is level then
    vocab, texts = vocabulary(), [schema(number) for number in range(SCHEMAS)]
    row = np.zeros((1, (len(vocab) + 31) // 32), np.uint32)
    points: list[dict[str, float]] = []
    step, most, seconds, rng = max(1, times // 20), 0.0, 0.0, random.Random(1)
    for number in range(1, times + 1):
        begin = time.process_time()
        automaton = tf.json_schema(texts[number % SCHEMAS]).compile(vocab)
        state = automaton.start
        for _ in range(TOKENS):
            automaton.fill_masks([state], row)
            if automaton.is_finished(state):
                break
            state = automaton.advance(state, int(rng.choice(automaton.allowed_tokens(state))))
        seconds += time.process_time() - begin
        most = max(most, memory())
        if number % step == 0:
            points.append({"documents": number, "mib": most, "us": seconds / step / TOKENS * 1e6})
            seconds, most = 0.0, 0.0
    return {"kind": "compilations", "points": points, "stats": {"held": tf.engine.memory_held()}}


def judge(result: dict[str, Any]) -> tuple[float, float]:
    """Growth in MiB since document 10,000 (or a sixth), and the last tenth's cost over the second's."""
    points = result["points"]
    settled = min(SETTLED, points[-1]["documents"] / 6)
    early = max(p["mib"] for p in points if p["documents"] <= settled or p is points[0])
    growth = max(p["mib"] for p in points) - early
    second, last = points[2:4], points[-2:]
    return growth, sum(p["us"] for p in last) / sum(p["us"] for p in second)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--kind", choices=[*KINDS, "compilations"])
    parser.add_argument("--json", action="store_true", help="one kind, in this process, as JSON")
    options = parser.parse_args()
    if options.json:
        compiling = options.kind == "compilations"
        documents: int = options.documents
        result = compile_in_turn(documents // 3) if compiling else soak(options.kind, documents)
        print(json.dumps(result))
        return
    failed = False
    for kind in [options.kind] if options.kind else [*KINDS, "compilations"]:
        command = [sys.executable, __file__, "--json", "--kind", kind, "--documents", str(options.documents)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{kind}: {done.stderr.strip()}")
            failed = True
            continue
        result = json.loads(done.stdout)
        growth, slowdown = judge(result)
        good = growth <= GROWTH_MIB and slowdown <= SLOWDOWN
        failed |= not good
        print(f"{kind}: {'good' if good else 'BAD'}: grows {growth:.1f} MiB, slows down {slowdown:.2f}")
        print("  documents " + " ".join(f"{p['documents']:7d}" for p in result["points"]))
        print("  MiB       " + " ".join(f"{p['mib']:7.1f}" for p in result["points"]))
        print("  us/token  " + " ".join(f"{p['us']:7.2f}" for p in result["points"]))
        print(f"  {result['stats']}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
