"""The options that several commands share, with the words of their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Schema = Annotated[
    str | None,
    typer.Option("--schema", "-s", help="A JSON Schema: a file, or its text; or a type as module:Name."),
]
Regex = Annotated[str | None, typer.Option("--regex", "-r", help="A pattern that the whole text matches.")]
Choices = Annotated[list[str] | None, typer.Option("--choices", "-c", help="One of the texts; repeat it.")]
Grammar = Annotated[
    str | None, typer.Option("--grammar", "-g", help="A grammar in Lark's language, or in GBNF (.gbnf).")
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A Hugging Face model by path or name; default: built in."),
]
System = Annotated[str | None, typer.Option(help="A system message before the prompt.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Give the model the prompt alone, without its chat template.")
]
Reason = Annotated[
    bool,
    typer.Option("--reason", help="Let the model think first; its answer follows in the form asked for."),
]
ShowSchema = Annotated[
    bool | None,
    typer.Option(
        "--show-schema/--no-show-schema",
        help="Show the model the schema; or nothing of it. Default: a few words that fit.",
    ),
]
Order = Annotated[str, typer.Option(help="Order of keys: declared or any.")]
Whitespace = Annotated[str, typer.Option(help="natural, compact, spaced, indent or any.")]
Numbers = Annotated[str, typer.Option(help="Spelling of numbers: natural, shortest, canonical or any.")]
Strings = Annotated[str, typer.Option(help="Escapes in strings: natural, canonical or any.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse keys of a schema that look like a keyword and are none.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_ROWS = "Rows of a file"
Input = Annotated[
    Path | None, typer.Option("--input", help="The rows: .jsonl, .csv or .parquet.", rich_help_panel=_ROWS)
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", help="The rows with their texts; the same command goes on with it.", rich_help_panel=_ROWS
    ),
]
PromptColumn = Annotated[str, typer.Option(help="The column of prompts.", rich_help_panel=_ROWS)]
IdColumn = Annotated[str, typer.Option(help="The column of ids.", rich_help_panel=_ROWS)]
SchemaColumn = Annotated[
    str | None, typer.Option(help="The column of rows' own schemas.", rich_help_panel=_ROWS)
]
RegexColumn = Annotated[
    str | None, typer.Option(help="The column of rows' own patterns.", rich_help_panel=_ROWS)
]
GrammarColumn = Annotated[
    str | None, typer.Option(help="The column of rows' own grammars (Lark).", rich_help_panel=_ROWS)
]
OutputColumn = Annotated[str, typer.Option(help="The column of texts.", rich_help_panel=_ROWS)]
BatchSize = Annotated[int, typer.Option(min=1, help="Rows that are written together.", rich_help_panel=_ROWS)]
Workers = Annotated[
    int, typer.Option(min=1, help="Processes (with Ray actors), each with a model.", rich_help_panel=_ROWS)
]
Threads = Annotated[
    int, typer.Option(min=1, help="Of the processor, for each worker.", rich_help_panel=_ROWS)
]
Timeout = Annotated[float, typer.Option(help="Seconds for one batch.", rich_help_panel=_ROWS)]
Memory = Annotated[
    int | None, typer.Option(min=1, help="MiB at which a worker is ended.", rich_help_panel=_ROWS)
]
Ray = Annotated[
    str | None,
    typer.Option(help="Work on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT.", rich_help_panel=_ROWS),
]
Endpoint = Annotated[
    str | None,
    typer.Option(help="URL of an OpenAI-compatible server that writes, with --model.", rich_help_panel=_ROWS),
]
Retry = Annotated[
    bool, typer.Option("--retry", help="Try rows again that were put aside.", rich_help_panel=_ROWS)
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=_ROWS)]
