"""`tokenform generate --input FILE --output FILE`: a text for each row of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import typer

from tokenform.cli.constraints import constraint, is_named_type, named_type
from tokenform.cli.reporting import reported, tell
from tokenform.errors import OptionError

_ONE_PROMPT = {"prompt": "a prompt", "report": "--report", "as_json": "--json"}
_SPELLING = ("order", "whitespace", "numbers", "strings", "strict")
_COLUMNS = ("schema_column", "regex_column", "grammar_column")
_PASSED = ("seed", "max_tokens", "temperature", "top_p", "batch_size", "threads", *_COLUMNS)
_INTERRUPTED = 130


def write_rows(options: Mapping[str, Any]) -> None:
    """The command's parameters by name: write the rows, say what they came to, and exit with 1 where some
    were put aside."""
    with reported():
        from tokenform.batch import Generate, Limits, run

        if options["source"] is None or options["output"] is None:
            raise OptionError("rows need both --input and --output.")
        for name, shown in _ONE_PROMPT.items():
            if options[name]:
                raise OptionError(f"{shown} is for one prompt, --input is for many; give one of them.")
        if options["n"] != 1:
            raise OptionError("-n is for one prompt; repeat rows under other ids for more texts of a prompt.")
        generate = Generate(
            _writer(options["model"], options["endpoint"]),
            **_constraint(options),
            prompt=options["prompt_column"],
            key=options["id_column"],
            output=options["output_column"],
            **{name: options[name] for name in _PASSED if options[name] is not None},
            **_shown(options),
        )
        limits = Limits(options["workers"], options["timeout"], options["memory"], options["ray"])
        try:
            done = run(
                generate,
                options["source"],
                options["output"],
                limits,
                retry=options["retry"],
                quiet=options["quiet"],
            )
        except KeyboardInterrupt:
            typer.echo("tokenform: stopped; the same command goes on", err=True)
            raise typer.Exit(_INTERRUPTED) from None
    if done.errors is None:
        return
    typer.echo(f"tokenform: {done.refused} of {done.rows} rows were put aside: see {done.errors}", err=True)
    raise typer.Exit(1)


def _shown(options: Mapping[str, Any]) -> dict[str, Any]:
    """How prompts are shown, where the command says so; a server has its own way."""
    shown = {
        "raw": options["raw"] or None,
        "system": options["system"],
        "show_schema": options["show_schema"],
    }
    shown["reason"] = options["reason"] or None
    told = {name: value for name, value in shown.items() if value is not None}
    if told and options["endpoint"] is not None:
        raise OptionError(
            "--raw, --system, --show-schema and --reason are for a model here, not for an endpoint."
        )
    return told


def _constraint(options: Mapping[str, Any]) -> dict[str, Any]:
    """The constraint of all rows, as what can travel: a type or a schema as itself."""
    schema = options["schema"]
    four = schema, options["pattern"], options["choices"] or None, options["grammar_file"]
    spelling = {name: options[name] for name in _SPELLING}
    if all(one is None for one in four) and any(options[name] for name in _COLUMNS):
        return {"spelling": spelling}  # each row has its own
    grammar = constraint(*four, **spelling)
    tell(grammar)
    if schema is None or not is_named_type(schema):
        return {"grammar": grammar, "spelling": spelling}
    sys.path.insert(0, os.getcwd())  # the workers import it from here, too
    return {"schema": named_type(schema), "spelling": spelling}


def _writer(model: str | None, endpoint: str | None) -> Any:
    if endpoint is None:
        return model
    from tokenform.batch import Endpoint

    return Endpoint(endpoint, model)
