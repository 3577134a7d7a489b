"""`tokenform check`: is a document accepted, and if not, where does it go wrong."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from tokenform.cli import options
from tokenform.cli.constraints import constraint, read_file
from tokenform.cli.reporting import reported, said_at, tell
from tokenform.frontends.byte_vocabulary import byte_vocabulary


def check(
    document: Annotated[str | None, typer.Argument(help="A file; standard input for - or none.")] = None,
    schema: options.Schema = None,
    pattern: options.Regex = None,
    choices: options.Choices = None,
    grammar_file: options.Grammar = None,
    order: options.Order = "any",
    whitespace: options.Whitespace = "any",
    numbers: options.Numbers = "any",
    strings: options.Strings = "any",
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Say whether a document is accepted; if not, where it goes wrong and what was expected there."""
    with reported():
        spelling = {"whitespace": whitespace, "numbers": numbers, "strings": strings}
        grammar = constraint(schema, pattern, choices, grammar_file, order=order, strict=strict, **spelling)
        tell(grammar)
        piped = document in (None, "-")
        data = (sys.stdin.buffer.read() if piped else read_file(document)).rstrip(b"\r\n")
        verdict = grammar.compile(byte_vocabulary()).check(data)
        only_order = False
        if verdict is not None and schema is not None and order == "declared":
            unordered = constraint(schema, None, None, None, order="any", **spelling)
            only_order = unordered.compile(byte_vocabulary()).check(data) is None
    if verdict is None:
        typer.echo('{"accepted": true}' if as_json else "accepted")
        return
    offset, expected, pointer = verdict
    line, column = data.count(b"\n", 0, offset) + 1, offset - (data.rfind(b"\n", 0, offset) + 1) + 1
    if as_json:
        place = {"byte": offset, "line": line, "column": column, "expected": expected, "pointer": pointer}
        typer.echo(json.dumps({"accepted": False, "valid_in_another_order": only_order} | place))
    else:
        found = "the end" if offset >= len(data) else repr(data[offset : offset + 1].decode("latin-1"))
        where = "" if pointer is None else f" ({said_at(pointer)})"
        typer.echo(
            f"refused at byte {offset}, line {line}, column {column}: "
            f"found {found}, expected {' or '.join(expected) or 'nothing more'}{where}"
        )
        if only_order:
            typer.echo(
                "the document is valid: only its keys stand in another order than declared (--order any)"
            )
    raise typer.Exit(1)
