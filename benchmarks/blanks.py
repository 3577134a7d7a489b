"""A model that wants nothing but blanks: how many each engine lets it write, place by place.

    python benchmarks/blanks.py       # pip install "tokenform[peers]"; --markdown for a table of the docs
    python benchmarks/blanks.py --most 100000 --spelling any

Purpose: small or quantized models fall into a state in which a blank is likelier than all else, again and
again; where the mask allows one more each time, the text ends at `max_tokens` (vLLM #38696, #40080, #42110).
The model here writes a document as `json.dumps` does, but at one place wants blanks alone: it takes the
longest token of blanks that the mask has, as long as it has one, and goes on where it has none.
Vocabulary: the bytes, runs of blanks as tokenizers have them, and an end.  Engines are as they come
(`--spelling`: all alike).  "no end": still allowed after `--most` tokens.
"""

from __future__ import annotations

import argparse
from typing import Any

from tokenform_bench.engines import ENGINES, EngineMissing, EngineOptions, load
from tokenform_bench.engines.base import OWN
from tokenform_bench.vocabulary import BenchVocabulary

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "string"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
TEXT = '{"a": [1, 2], "b": "x"}'
PLACES = {
    "before all": 0,
    "after {": 1,
    "after a key": 4,
    "after :": 5,
    "after [": 7,
    "between items": 9,
    "between keys": 13,
    "before }": 22,
    "after all": 23,
}
"""How many characters of the text stand before."""
RUNS = [blank * count for blank in (b" ", b"\n", b"\t") for count in (2, 4, 8, 16)] + [b"\r\n", b"\n  "]
BLANKS = [*(blank.encode() for blank in " \n\t\r"), *RUNS]
TOKENS = [bytes([byte]) for byte in range(256)] + RUNS + [b"</s>"]
EOS = len(TOKENS) - 1
IDS = sorted((TOKENS.index(blank) for blank in BLANKS), key=lambda token: -len(TOKENS[token]))
VOCABULARY = BenchVocabulary("blanks", TOKENS, EOS, [EOS], lambda text: list(text.encode()))


def written(compiled: Any, place: int, most: int) -> tuple[int, int, bool]:
    """Tokens and characters of blanks at a place, and whether more was still allowed."""
    session = compiled.session()
    for byte in TEXT.encode()[:place]:
        session.fill()
        if session.allows(byte):  # a blank of `json.dumps` that the engine does not write
            session.advance(byte)
        elif byte != ord(" "):
            raise ValueError(f"{bytes([byte])!r} is refused")
    characters = 0
    for count in range(most):
        session.fill()
        token = next((token for token in IDS if session.allows(token)), None)
        if token is None:
            return count, characters, False
        session.advance(token)
        characters += len(TOKENS[token])
    return most, characters, True


def column(name: str, options: EngineOptions, most: int) -> tuple[str, dict[str, str]]:
    """The engine's version, and what it allows at each place.

    Raises:
        EngineMissing: it is not installed.
    """
    engine = load(name, VOCABULARY, options)
    compiled = engine.json_schema(SCHEMA)
    found = {}
    for place, before in PLACES.items():
        try:
            tokens, characters, more = written(compiled, before, most)
            found[place] = "no end" if more else f"{characters} in {tokens}" if tokens else "0"
        except Exception as error:  # each engine has its own
            found[place] = f"fails: {str(error)[:40]}"
    return engine.version, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", default=",".join(name for name in ENGINES if name != "none"))
    parser.add_argument("--most", type=int, default=4096, help="tokens of blanks at one place")
    parser.add_argument("--spelling", choices=["any", "spaced", "compact"], help="default: each engine's own")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    arguments = parser.parse_args()
    options = EngineOptions(whitespace=arguments.spelling) if arguments.spelling else OWN
    columns = {}
    for name in arguments.engines.split(","):
        try:
            version, found = column(name, options, arguments.most)
            columns[f"{name} {version}"] = found
        except EngineMissing as missing:
            print(f"# {missing}")
    rows = [["blanks", *columns], *([place, *(one[place] for one in columns.values())] for place in PLACES)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        if arguments.markdown:
            print("| " + " | ".join(row) + " |")
            if number == 0:
                print("|---" * len(row) + "|")
        else:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)))


if __name__ == "__main__":
    main()
