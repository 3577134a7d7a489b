"""Did a change move a verdict, a mask or the work?  A table of them for every development schema, held
against the one that is kept.

    python benchmarks/regression.py               # compares; ends with 1 where a verdict or a mask is another
    python benchmarks/regression.py --every 10    # a tenth of the schemas
    python benchmarks/regression.py --write       # keeps what is so now, where a change is meant

Purpose: what one change moves anywhere is seen in the change itself.  A row: the verdicts of a schema's
documents (or the kind of error that the schema is), a hash of the masks along its first document, and the
states that the automaton made: work that is counted, the same on every machine.
Invariant: more states are told and fail nothing; another verdict or mask fails.  Rows whose data is not here
(`TOKENFORM_SHARED`) are left out, and their number is said; those of `features.jsonl` are always here.
Complexity: 6,760 schemas, twice (as models write, and every spelling), over bytes: 18 s of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tokenform as tf
from tokenform.errors import DataError, TokenformError
from tokenform_bench.data import MASKBENCH_FILE, read_maskbench, shared_file
from tokenform_bench.documents import write

HERE = Path(__file__).parent
KEPT = HERE / "results" / "regression.json.xz"
FEATURES = HERE / "features.jsonl"
SPELLINGS: dict[str, dict[str, Any]] = {
    "natural": {},
    "any": {"order": "any", "whitespace": "any", "numbers": "any", "strings": "any"},
}
STEPS = 200
"""Masks of a document."""
Row = list[Any]
"""Verdicts, hash of masks, states."""


def cases() -> Iterator[tuple[str, Any, list[Any]]]:
    """Name, schema and documents of each case that is here."""
    for line in FEATURES.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        yield f"feature {one['name']}", one["schema"], [*one["good"], *one["bad"]]
    try:
        where = shared_file(MASKBENCH_FILE)
    except DataError:
        return
    for case in read_maskbench(where):
        yield case.id, case.schema, [document.data for document in case.documents]


def row(schema: Any, documents: list[Any], options: dict[str, Any], vocabulary: tf.Vocabulary) -> Row:
    """What the engine says of a schema."""
    try:
        automaton = tf.json_schema(schema, **options).compile(vocabulary)
        texts = [write(one).encode() for one in documents]
        verdicts = "".join(_verdict(automaton, text) for text in texts)
        digest = hashlib.blake2b(digest_size=6)
        state = automaton.start
        for byte in texts[0][:STEPS] if texts else b"":
            mask = automaton.mask(state)
            digest.update(memoryview(mask))
            if not automaton.allows(state, byte):
                break
            state = automaton.advance(state, byte)
    except TokenformError as error:
        return [type(error).__name__, "", 0]
    return [verdicts, digest.hexdigest(), automaton.state_count]


def _verdict(automaton: tf.TokenAutomaton, text: bytes) -> str:
    try:
        return "1" if automaton.matches(text) else "0"
    except TokenformError as error:
        return f"({type(error).__name__})"


def table(every: int) -> dict[str, Row]:
    """The rows of every `every`-th case."""
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of keys that a schema misspells
        for number, (name, schema, documents) in enumerate(cases()):
            if number % every == 0:
                for spelling, options in SPELLINGS.items():
                    made[f"{name} {spelling}"] = row(schema, documents, options, vocabulary)
    return made


def read(path: Path = KEPT) -> dict[str, Row]:
    """The table that is kept."""
    kept: dict[str, Row] = json.loads(lzma.decompress(path.read_bytes()))
    return kept


def changed(now: dict[str, Row], kept: dict[str, Row]) -> list[str]:
    """Lines that tell each verdict or mask that is another, and each row that the kept table has not."""
    lines = []
    for name, (verdicts, masks, _) in now.items():
        if name not in kept:
            lines.append(f"{name}: not in the table")
        elif kept[name][0] != verdicts:
            lines.append(f"{name}: verdicts {kept[name][0]} -> {verdicts}")
        elif kept[name][1] != masks:
            lines.append(f"{name}: a mask along the first document is another")
    return lines


def work(now: dict[str, Row], kept: dict[str, Row]) -> list[str]:
    """States before and now, and the rows that moved most."""
    both = [(name, kept[name][2], one[2]) for name, one in now.items() if name in kept]
    before, after = (sum(pair[place] for pair in both) for place in (1, 2))
    moved = sorted((pair for pair in both if pair[1] != pair[2]), key=lambda pair: -abs(pair[2] - pair[1]))
    lines = [f"states: {before:,} -> {after:,} ({100 * (after / max(before, 1) - 1):+.2f} %)"]
    return lines + [f"  {name}: {old:,} -> {new:,}" for name, old, new in moved[:10]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=1, help="take one schema of so many")
    parser.add_argument("--write", action="store_true", help="keep what is so now")
    parser.add_argument("--out", type=Path, default=KEPT, help="the table")
    arguments = parser.parse_args()
    if arguments.write:
        now = table(1)
        text = json.dumps(dict(sorted(now.items())), separators=(",", ":"), ensure_ascii=False)
        arguments.out.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{len(now):,} rows, {arguments.out.stat().st_size:,} bytes: {arguments.out}")
        return 0
    kept = read(arguments.out)
    now = table(arguments.every)
    lines = changed(now, kept)
    print(*lines, *work(now, kept), sep="\n")
    print(f"{len(now):,} rows compared, {len(kept) - len(now):,} not looked at, {len(lines):,} changed")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
