"""The options that several commands share, with the words of their help."""

from __future__ import annotations

from typing import Annotated

import typer

SchemaOption = Annotated[
    str | None, typer.Option("--schema", "-s", help="A JSON Schema file, or a type as module:Name.")
]
RegexOption = Annotated[
    str | None, typer.Option("--regex", "-r", help="A pattern that the whole text matches.")
]
ChoicesOption = Annotated[
    list[str] | None, typer.Option("--choices", "-c", help="One of the texts; repeat it.")
]
GrammarOption = Annotated[
    str | None, typer.Option("--grammar", "-g", help="A grammar in Lark's language, or in GBNF (.gbnf).")
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A Hugging Face model by path or name; default: built in."),
]
OrderOption = Annotated[str, typer.Option(help="Order of keys: declared or any.")]
WhitespaceOption = Annotated[str, typer.Option(help="natural, compact, spaced, indent or any.")]
NumbersOption = Annotated[str, typer.Option(help="Spelling of numbers: natural, canonical or any.")]
StringsOption = Annotated[str, typer.Option(help="Escapes in strings: any or canonical.")]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse keys of a schema that look like a keyword and are none.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
