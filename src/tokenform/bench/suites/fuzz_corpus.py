"""Seeds for the fuzz target: real schemas with the beginnings of their documents.

    python -m tokenform.bench.suites corpus rust/fuzz/corpus/schema

Purpose: a fuzzer that starts from `{}` spends its first hour on finding out what JSON is.
Invariant: a file is what `rust/fuzz/fuzz_targets/schema.rs` reads: options, schema, a byte 0, document.
Complexity: one small file a schema.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from tokenform.bench.data import DRAFTS, read_maskbench, read_suite, sample
from tokenform.bench.documents import write

LARGEST = 3000


def seeds(schemas: int, seed: int = 0) -> list[bytes]:
    """Inputs from the official suite and from `schemas` MaskBench schemas, the small ones."""
    rng = random.Random(seed)
    out = []
    for group in read_suite(DRAFTS):
        out += [_input(group.case.schema, document.data, rng) for document in group.case.documents[:1]]
    for case in sample(read_maskbench(None), schemas, seed):
        out += [_input(case.schema, document.data, rng) for document in case.documents[:1]]
    return [data for data in out if len(data) <= LARGEST]


def _input(schema: object, document: object, rng: random.Random) -> bytes:
    text = json.dumps(schema, separators=(",", ":")).encode()
    return bytes([rng.randrange(256)]) + text + b"\0" + write(document).encode("utf-8", "replace")[:200]


def make(folder: Path, schemas: int = 400) -> int:
    """Writes the seeds; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    found = seeds(schemas)
    for number, data in enumerate(found):
        (folder / f"seed-{number:05d}").write_bytes(data)
    return len(found)
