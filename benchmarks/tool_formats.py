"""Recorded outputs of tool calls by format: read right, taken by the grammar, refused where malformed.

    python benchmarks/tool_formats.py [FILE] [--cuts]

FILE has a recorded output a line (`../shared/data/tool-calls-dev.jsonl.xz`): `format`, `tools`, `choice`,
`output`, `expected` (the calls), `content`, `reasoning`, `tier` ("refuse": malformed), `tags`.

read      calls, content and reasoning come back as recorded
auto      the grammar of `tool_choice="auto"` takes the outputs that have calls
required  that of "required" takes those that were recorded under it
refused   malformed outputs that the grammar of their own choice refuses
cuts      with --cuts: streaming gives the same as reading at once, for every place where the bytes are cut
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tokenform as tf
from tokenform.errors import ToolError
from tokenform.frontends.tools import ToolCalls, ToolCallStream, parse_tool_calls, read_tools

COLUMNS = ("read", "auto", "required", "refused", "cuts")
FILE = Path(__file__).parents[1] / "../shared/data/tool-calls-dev.jsonl.xz"
BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def seen(calls: ToolCalls) -> tuple[Any, ...]:
    return [(call.name, call.arguments) for call in calls], calls.content, calls.reasoning


def read_right(row: dict[str, Any]) -> bool:
    try:
        calls, content, reasoning = seen(parse_tool_calls(row["output"], row["tools"], format=row["format"]))
    except ToolError:
        calls, content, reasoning = [], None, None
    # where text follows a call the record leaves open what the content is
    open_content = row["content"] is None and {"text_after", "text_between"} & set(row["tags"])
    wanted = [(call["name"], call["arguments"]) for call in row["expected"]]
    return (
        calls == wanted and reasoning == row["reasoning"] and bool(content == row["content"] or open_content)
    )


def taken(row: dict[str, Any], choice: str) -> bool:
    grammar = tf.tools(row["tools"], format=row["format"], tool_choice=choice)
    return grammar.compile(BYTES).matches(row["output"].encode())


def same_at_every_cut(row: dict[str, Any]) -> bool:
    tools, data = read_tools(row["tools"]), row["output"].encode()

    def outcome(*pieces: bytes) -> Any:
        stream = ToolCallStream(tools, format=row["format"])
        try:
            for piece in pieces:
                stream.feed(piece)
            stream.close()
        except ToolError as error:
            return str(error), error.cut, error.calls and seen(error.calls)
        return seen(stream.result)

    whole = outcome(data)
    return all(outcome(data[:at], data[at:]) == whole for at in range(len(data) + 1))


def measured(row: dict[str, Any], cuts: bool) -> Iterator[tuple[str, bool]]:
    if row["tier"] == "refuse":
        yield "refused", not taken(row, row["choice"])
    else:
        yield "read", read_right(row)
        if row["expected"]:
            yield "auto", taken(row, "auto")
            if row["choice"] == "required":
                yield "required", taken(row, "required")
    if cuts:
        yield "cuts", same_at_every_cut(row)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    parser.add_argument("--cuts", action="store_true")
    arguments = parser.parse_args()
    counts: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    failed = []
    with lzma.open(arguments.file, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for column, held in measured(row, arguments.cuts):
                counts[row["format"]][column, held] += 1
                counts["all"][column, held] += 1
                if not held:
                    failed.append(f"{column}: {row['id']}")
    print(f"{'format':16}" + "".join(f"{column:>12}" for column in COLUMNS))
    for name in sorted(counts, key=lambda name: (name == "all", name)):
        totals = [(counts[name][c, True], counts[name][c, True] + counts[name][c, False]) for c in COLUMNS]
        print(f"{name:16}" + "".join(f"{f'{held} of {of}' if of else '-':>12}" for held, of in totals))
    print(*failed, sep="\n")


if __name__ == "__main__":
    main()
