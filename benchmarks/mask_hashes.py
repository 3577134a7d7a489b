"""Did a change move a mask? A hash a schema over masks, those of a budget, forced bytes and distances along
its documents.

    python benchmarks/mask_hashes.py --limit 800 --out before.json
    python benchmarks/mask_hashes.py --limit 800 --against before.json       # names the schemas that differ
    python benchmarks/mask_hashes.py --option whitespace=any --option strings=any --out any.json

Purpose: judge a refactor of the engine. Each schema of MaskBench's development split is compiled over
131,072 tokens; each of its documents is followed until its first refused token. Complexity: a mask of 16 KB
is hashed a token; all 6,760 schemas take about twenty minutes on one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import tokenform as tf
from tokenform.errors import TokenformError
from tokenform_bench.data import Case, read_maskbench, sample
from tokenform_bench.documents import write
from tokenform_bench.vocabulary import tekken

DOCUMENTS, TOKENS = 3, 400
"""Documents of a schema, and tokens of a document."""
BUDGET = 60
"""Tokens left, for the masks of budgets."""


def hashed(case: Case, vocabulary: tf.Vocabulary, encode: Any, options: dict[str, str]) -> str:
    """The hash of what the engine says along the schema's documents; the kind of error where it says no."""
    seen = hashlib.blake2b(digest_size=12)
    try:
        automaton = tf.json_schema(case.schema, **options).compile(vocabulary)  # type: ignore[arg-type]
    except TokenformError as error:
        return type(error).__name__
    for document in case.documents[:DOCUMENTS]:
        state = automaton.start
        for token in encode(write(document.data))[:TOKENS]:
            try:
                seen.update(memoryview(automaton.mask(state)))
                seen.update(memoryview(automaton.mask_within(state, BUDGET)))
                seen.update(repr((automaton.forced(state), automaton.distance(state, BUDGET))).encode())
                if not automaton.allows(state, token):
                    break
                state = automaton.advance(state, token)
            except TokenformError as error:
                seen.update(type(error).__name__.encode())
                break
        seen.update(b"end" if automaton.is_accepting(state) else b"open")
    return seen.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of maskbench-dev.jsonl.xz")
    parser.add_argument("--limit", type=int, help="a sample of so many schemas")
    parser.add_argument("--option", action="append", default=[], help="of json_schema, as name=value")
    parser.add_argument("--out", type=Path, help="where to keep the hashes")
    parser.add_argument("--against", type=Path, help="hashes kept by --out, to compare with")
    chosen = parser.parse_args()
    bench = tekken()
    vocabulary = tf.Vocabulary(bench.tokens, eos=[bench.eos], special=bench.special)
    options = dict(one.split("=", 1) for one in chosen.option)
    cases = read_maskbench(chosen.data)
    if chosen.limit:
        cases = iter(sample(cases, chosen.limit, seed=0))
    found = {case.id: hashed(case, vocabulary, bench.encode, options) for case in cases}
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=0))
    whole = hashlib.blake2b(json.dumps(found, sort_keys=True).encode(), digest_size=12).hexdigest()
    print(f"{len(found)} schemas, {whole}")
    if chosen.against:
        known = json.loads(chosen.against.read_text())
        differ = [name for name in found if known.get(name) != found[name]]
        print(f"{len(differ)} differ", *differ[:40], sep="\n")
        raise SystemExit(bool(differ))


if __name__ == "__main__":
    main()
