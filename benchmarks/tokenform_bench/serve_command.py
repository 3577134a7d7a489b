"""`tokenform bench serve`: load on an OpenAI-compatible server, ours or another's."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tokenform.cli import options
from tokenform.cli.constraints import read_text, write_file
from tokenform.cli.reporting import reported
from tokenform.errors import DataError
from tokenform_bench import serve as loads

benches = typer.Typer(no_args_is_help=True, help="Measure servers.")


@benches.callback()
def _bench() -> None:
    """Measure servers."""


@benches.command()
def serve(
    url: Annotated[str, typer.Option(help="The server.")] = "http://127.0.0.1:8000",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="What the server calls its model; default: its first.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second, on average.")] = 4.0,
    requests: Annotated[int, typer.Option("--requests", "-n", help="How many.")] = 100,
    schemas: Annotated[
        str | None,
        typer.Option("--schemas", "-s", help="A file: a schema, a JSON array of them, or one a line."),
    ] = None,
    modes: Annotated[
        str, typer.Option(help="schema, free (no constraint), or both in turns: schema,free.")
    ] = "schema",
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 128,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the times of arrival, and of the requests.")] = 0,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request counts as lost.")] = 120.0,
    key: Annotated[str | None, typer.Option(envvar="OPENAI_API_KEY", help="Sent as a bearer's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write every request's times to this JSON file.")] = None,
    as_json: options.Json = False,
) -> None:
    """Send requests at random times; say how long they waited, and how many answers are valid."""
    with reported():
        listed = (
            loads.SCHEMAS if schemas is None else loads.read_schemas(read_text(schemas, DataError), schemas)
        )
        load = loads.Load(
            url,
            model or loads.first_model(url, key),
            rate=rate,
            requests=requests,
            schemas=listed,
            modes=tuple(modes.split(",")),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
            timeout=timeout,
            key=key,
        )
        answers = loads.run(load)
        told = loads.as_json(load, answers)
        if out is not None:
            write_file(out, json.dumps(told, indent=1))
    if as_json:
        typer.echo(json.dumps({name: told[name] for name in ("load", "figures", "errors")}))
    else:
        show(loads.figures(answers))
        for error in told["errors"][:5]:
            typer.echo(f"tokenform: {error}", err=True)
    if any(answer.error is not None or answer.valid is False for answer in answers):
        raise typer.Exit(1)


def show(rows: list[loads.Figures]) -> None:
    """The table: latencies as p50 / p99 in milliseconds."""
    table = Table(title="p50 / p99 in milliseconds", title_justify="left")
    for name in (
        "mode",
        "requests",
        "failed",
        "valid",
        "first text",
        "between",
        "a token",
        "whole",
        "tokens/s",
    ):
        table.add_column(name, justify="left" if name == "mode" else "right")
    for row in rows:
        latencies = (row.first, row.between, row.a_token, row.whole)
        valid = "-" if row.valid is None else f"{row.valid}/{row.requests}"
        spoken = [f"{_ms(p50)} / {_ms(p99)}" for p50, p99 in latencies]
        table.add_row(
            row.mode, str(row.requests), str(row.failed), valid, *spoken, f"{row.tokens_per_second:.1f}"
        )
    Console(width=120).print(table)


def _ms(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f}"
