"""Seeds for the fuzz targets: real schemas, patterns and grammars with the beginnings of their texts.

    python -m benchmarks.suites corpus rust/fuzz/corpus/seeds

Purpose: a fuzzer that starts from `{}` spends its first hour on finding out what JSON is.
Invariant: a file in the folder TARGET is what `rust/fuzz/fuzz_targets/TARGET.rs` reads.
Complexity: one small file a source.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenform_bench.data import DRAFTS, read_maskbench, read_suite, sample
from tokenform_bench.documents import write

from .hostile_inputs.texts import grammar_texts, patterns

LARGEST = 3000
VOCABULARY = Path(__file__).resolve().parents[2] / "rust" / "fuzz" / "vocabulary.bin"
GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"
_MARK = len(b"tokenform grammar\n") + 4  # with the version
_SUM = 8
_TEXTS = [b"", b"abc", b'{"a": [1, "b"]}', b"<tool_call>\n{"]


def seeds(schemas: int, seed: int = 0) -> dict[str, list[bytes]]:
    """Inputs of each target, from the official suite, `schemas` MaskBench schemas, the library's grammars and
    the patterns and grammars of the hostile inputs; the small ones."""
    rng = random.Random(seed)
    documents = list(_documents(schemas, seed))
    found = {
        "schema": [_schema(schema, [document], rng) for schema, document in documents],
        "lived": [_schema(schema, [document, document, {"a": 1}], rng) for schema, document in documents],
        "limits": [
            bytes([rng.randrange(256)]) + _schema(schema, [document], rng) for schema, document in documents
        ],
        "threads": [
            bytes([rng.randrange(256)]) + _schema(schema, [document], rng) for schema, document in documents
        ],
        "regex": [_joined(rng, pattern, rng.choice(_TEXTS)) for pattern in _patterns(documents)],
        "grammar": [],
        "compose": [],
        "saved": [],
    }
    for grammar, text in _grammars(documents[:200]):
        data = grammar.to_bytes()
        kind, first = _parts(data)
        said = data[_MARK:-_SUM]
        found["saved"].append(b"\0" + said + b"\xff" + text)
        if kind == "gbnf":
            found["grammar"].append(b"\0" + first + b"\0" + text)
        elif kind == "context_free":
            found["grammar"].append(b"\1" + first + b"\0" + text)
        elif kind == "composite":
            found["compose"].append(first + b"\0" + text)
    return {target: [data for data in inputs if len(data) <= LARGEST] for target, inputs in found.items()}


def _documents(schemas: int, seed: int) -> Iterator[tuple[Any, Any]]:
    for group in read_suite(DRAFTS):
        yield from ((group.case.schema, document.data) for document in group.case.documents[:1])
    for case in sample(read_maskbench(None), schemas, seed):
        yield from ((case.schema, document.data) for document in case.documents[:1])


def _schema(schema: object, documents: list[Any], rng: random.Random) -> bytes:
    texts = [write(document).encode("utf-8", "replace")[:200] for document in documents]
    return _joined(rng, json.dumps(schema, separators=(",", ":")), b"\0".join(texts))


def _joined(rng: random.Random, source: str, text: bytes) -> bytes:
    return bytes([rng.randrange(256)]) + source.encode("utf-8", "replace") + b"\0" + text


def _patterns(documents: list[tuple[Any, Any]]) -> list[str]:
    """Those of the schemas, at any depth, and the hostile ones."""
    found: dict[Any, None] = dict.fromkeys(patterns().values())
    todo = [schema for schema, _ in documents]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            todo += part.values()
            keys = part.get("patternProperties")
            found.update(dict.fromkeys([part.get("pattern"), *(keys if isinstance(keys, dict) else ())]))
        elif isinstance(part, list):
            todo += part
    return [pattern for pattern in found if isinstance(pattern, str)]


def _grammars(documents: list[tuple[Any, Any]]) -> Iterator[tuple[Any, bytes]]:
    """Grammars of every kind with the beginning of a text."""
    import tokenform as tf
    from tokenform.errors import TokenformError

    for file in sorted(GRAMMARS.glob("*.lark")):
        examples = file.with_name(file.stem + ".examples.txt").read_bytes()
        yield tf.lark(file.read_text()), examples[:200]
    for reader, text in grammar_texts().values():
        if len(text) > LARGEST:
            continue
        try:
            yield getattr(tf, reader)(text), b"xxab"
        except TokenformError:
            continue
    word, rest = tf.regex("[a-z]+"), tf.until("</end>|stop")
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    for beginning in _TEXTS:
        yield from (
            (made, beginning)
            for made in (word | tf.choice(["1", "abc"]), word + rest, rest, word & tf.regex(".{3}"))
        )
        for layout in ("hermes", "llama3_json", "mistral_v11", "qwen3_coder", "gpt_oss"):
            try:
                yield tf.tools([tool], format=layout), beginning
            except (TokenformError, ValueError):
                continue
        yield tf.substring("the quick brown fox"), beginning
        yield tf.gbnf('root ::= "a" root? | [0-9]{1,3} (" " | "\\n")*'), beginning
        yield tf.gbnf('root ::= x "b" | x root\nx[max_tokens=3] ::= [ab"{]*', dialect="xgrammar"), beginning
        text = {"type": "any_text", "max_tokens": 2}
        tag = {"type": "tag", "begin": "ab", "content": text, "end": "{"}
        yield tf.tool_formats.structural_tag({"format": {"type": "star", "content": tag}}), beginning
    for schema, document in documents:
        try:
            grammar = tf.json_schema(schema)
            yield grammar, write(document).encode("utf-8", "replace")[:200]
            yield word + grammar, b"abc"
        except TokenformError:
            continue


def _parts(data: bytes) -> tuple[str, bytes]:
    """The kind of a saved grammar and its first text (see `rust/core/src/saved.rs`)."""
    at, texts = _MARK, list[bytes]()
    for skipped in (0, 4):  # the number of texts stands between the two
        at += skipped
        length = int.from_bytes(data[at : at + 4], "little")
        texts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return texts[0].decode(), texts[1]


def vocabulary() -> bytes:
    """The built-in model's tokens as `fuzz_targets/vocabulary.rs` reads them; special ones are empty."""
    import tokenform as tf

    known = tf.Generator().vocabulary
    special = {*known.special, *known.eos}
    tokens = [b"" if number in special else token for number, token in enumerate(known.tokens)]
    return b"".join(bytes([len(token)]) + token for token in tokens)


def make(folder: Path, schemas: int = 400) -> int:
    """Writes the seeds, a folder for each target, and the vocabulary; how many seeds."""
    VOCABULARY.write_bytes(vocabulary())
    found = seeds(schemas)
    for target, inputs in found.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (folder / target / f"seed-{number:05d}").write_bytes(data)
    return sum(map(len, found.values()))
