"""Keyword by keyword, engine by engine: enforced, loosened, refused?

    python benchmarks/features.py    # pip install "tokenform[peers]"; --markdown for a table of the docs

For each keyword (`features.jsonl`) a small schema, texts that it accepts, and texts that break this keyword
alone, as the package `jsonschema` says.  An engine's masks are walked along each text over the 256 bytes and
an end, so that no tokenisation can be at fault; spaces, order of keys and spelling of numbers are those of
`json.dumps`.

    enforced     every valid text accepted, every broken one refused
    loosened     a broken text accepted, and nothing said (or a warning)
    too tight    a valid text refused
    refuses      the schema is refused, with an error
    fails        the schema is accepted, and a text raises or runs into an empty mask

guidance compiles its schemas with llguidance; Outlines with outlines-core (or llguidance, XGrammar, by
choice); instructor has no masks: it judges a finished text, and asks the service again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema

from tokenform_bench.engines import ENGINES, EngineMissing, EngineOptions, EngineRefused, load
from tokenform_bench.tables import markdown_table, text_table
from tokenform_bench.vocabulary import BenchVocabulary

BYTES = BenchVocabulary(
    "bytes", [bytes([b]) for b in range(256)] + [b"</s>"], 256, [256], lambda text: list(text.encode())
)


class Feature(NamedTuple):
    """A schema, values that it accepts, and values that break the keyword."""

    name: str
    schema: dict[str, Any]
    good: list[Any]
    bad: list[Any]


FEATURES = [
    Feature(**json.loads(line))
    for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
]


def verdict(engine: Any, feature: Feature) -> tuple[str, str]:
    """What the engine does with the keyword, and a word about why."""
    try:
        compiled = engine.json_schema(feature.schema)
    except EngineRefused as refusal:
        return "refuses", str(refusal).strip().splitlines()[0]
    try:
        good = [accepts(compiled.session(), value) for value in feature.good]
        bad = [accepts(compiled.session(), value) for value in feature.bad]
    except Exception as error:  # each engine has its own
        return "fails", (str(error).strip() or type(error).__name__).splitlines()[0]
    if any(bad):
        return "loosened", f"accepts {json.dumps(feature.bad[bad.index(True)])}"
    if not all(good):
        return "too tight", f"refuses {json.dumps(feature.good[good.index(False)])}"
    return "enforced", ""


def accepts(session: Any, value: Any) -> bool:
    """Whether the masks allow the text of the value, and then the end."""
    for token in [*json.dumps(value).encode(), BYTES.eos]:
        session.fill()
        if not session.allows(token):
            return False
        if token != BYTES.eos:
            session.advance(token)
    return True


def check(feature: Feature) -> None:
    """The independent judge agrees on what is valid."""
    validator = jsonschema.Draft202012Validator(
        feature.schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    assert all(map(validator.is_valid, feature.good)), feature.name
    assert not any(map(validator.is_valid, feature.bad)), feature.name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", default=",".join(name for name in ENGINES if name != "none"))
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    parser.add_argument("--why", action="store_true", help="print what each refusal and slip was")
    arguments = parser.parse_args()
    heads, columns, why = [], [], []
    for name in arguments.engines.split(","):
        try:
            engine = load(name, BYTES, EngineOptions(whitespace="spaced"))
        except EngineMissing as error:
            why.append(f"{name}: not installed ({error})")
            continue
        found = [verdict(engine, feature) for feature in FEATURES]
        heads.append(f"{name} {engine.version}")
        columns.append([kind for kind, _ in found])
        why += [f"{name}, {f.name}: {k}: {w}" for f, (k, w) in zip(FEATURES, found, strict=True) if w]
    rows = [[f.name, *cells] for f, *cells in zip(FEATURES, *columns, strict=True)]
    counts = [Counter(column) for column in columns]
    for kind in ("enforced", "loosened", "too tight", "refuses", "fails"):
        rows.append([f"all: {kind}", *(str(count[kind]) for count in counts)])
    table = markdown_table if arguments.markdown else text_table
    print(table(["keyword", *heads], rows))
    if arguments.why:
        print("\n".join(why))


for _feature in FEATURES:
    check(_feature)
if __name__ == "__main__":
    main()
