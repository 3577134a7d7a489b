"""One schema, four everyday keywords, every engine: who refuses it, who loosens it, who enforces it.

    python benchmarks/difference.py    # pip install "tokenform[peers]"; --markdown for a table of the docs

Each text breaks one keyword of the schema (or none), as the package `jsonschema` says.  An engine accepts
a text if its masks allow each byte in turn and then the end.  The vocabulary is the 256 bytes and an end, so
that no tokenisation can be at fault; whitespace, order of keys and spelling of numbers are those of
`json.dumps`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import jsonschema

from tokenform_bench.engines import ENGINES, EngineMissing, EngineOptions, EngineRefused, load
from tokenform_bench.vocabulary import BenchVocabulary

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "pattern": "^[A-Z]+-[0-9]{4}$", "maxLength": 8},
        "price": {"type": "number", "minimum": 0, "multipleOf": 0.25},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["sku", "price", "tags"],
    "additionalProperties": False,
}
TEXTS: dict[str, dict[str, Any]] = {
    "valid": {"sku": "ABC-2041", "price": 12.75, "tags": ["lamp", "new"]},
    "pattern": {"sku": "ABC-204", "price": 12.75, "tags": ["lamp", "new"]},
    "maxLength": {"sku": "ABCDE-2041", "price": 12.75, "tags": ["lamp", "new"]},
    "multipleOf": {"sku": "ABC-2041", "price": 12.8, "tags": ["lamp", "new"]},
    "uniqueItems": {"sku": "ABC-2041", "price": 12.75, "tags": ["lamp", "lamp"]},
}
"""By the keyword that the text breaks."""
BYTES = BenchVocabulary(
    "bytes", [bytes([b]) for b in range(256)] + [b"</s>"], 256, [256], lambda text: list(text.encode())
)


def verdicts(name: str) -> tuple[str, dict[str, bool] | str]:
    """The engine's version, and which texts it accepts, or why it refuses the schema.

    Raises:
        EngineMissing: it is not installed.
    """
    engine = load(name, BYTES, EngineOptions(whitespace="spaced"))
    try:
        compiled = engine.json_schema(SCHEMA)
        return engine.version, {kind: accepts(compiled.session(), value) for kind, value in TEXTS.items()}
    except EngineRefused as refusal:
        return engine.version, f"refuses the schema: {refusal}"
    except Exception as error:  # each engine has its own
        return engine.version, f"accepts the schema, then fails in the middle of a text: {error}"


def accepts(session: Any, value: Any) -> bool:
    """Whether the masks allow the text of the value, and then the end."""
    for token in [*json.dumps(value).encode(), BYTES.eos]:
        session.fill()
        if not session.allows(token):
            return False
        if token != BYTES.eos:
            session.advance(token)
    return True


def cells(found: dict[str, bool] | str) -> list[str]:
    """What to say about each keyword."""
    if isinstance(found, str):
        return [found.partition(":")[0].partition(",")[0], *["-"] * (len(TEXTS) - 1)]
    first = "accepted" if found["valid"] else "refused, wrongly"
    return [
        first,
        *("accepted, wrongly" if ok else "refused" for kind, ok in found.items() if kind != "valid"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", default=",".join(name for name in ENGINES if name != "none"))
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    arguments = parser.parse_args()
    for kind, value in TEXTS.items():
        broken = [error.validator for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(value)]
        assert broken == ([] if kind == "valid" else [kind]), (kind, broken)
    heads = ["engine", "a valid text", *(f"breaks {kind}" for kind in TEXTS if kind != "valid")]
    rows, reasons = [], []
    for name in arguments.engines.split(","):
        try:
            version, found = verdicts(name)
        except EngineMissing as error:
            reasons.append(f"{name}: not installed ({error})")
            continue
        rows.append([f"{name} {version}", *cells(found)])
        if isinstance(found, str):
            reasons.append(f"{name} {found.strip().splitlines()[0]}")
    if arguments.markdown:
        lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    else:
        widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in [heads, *rows]
        ]
    print("\n".join([*lines, *reasons]))


if __name__ == "__main__":
    main()
