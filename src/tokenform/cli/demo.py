"""`tokenform demo`: a document by the built-in model, and what it cost."""

from __future__ import annotations

import json

import typer

from tokenform.cli import options
from tokenform.cli.generate import described
from tokenform.cli.reporting import reported


def demo(as_json: options.Json = False) -> None:
    """Write a document for a real schema with the built-in model, and say what it cost."""
    with reported():
        from tokenform.integrations.demonstration import PROMPT, SCHEMA, demonstrate

        result, verdict = demonstrate()
    if as_json:
        typer.echo(json.dumps(described(result) | {"valid": verdict is None}, ensure_ascii=False))
    else:
        stats = result.stats
        typer.echo(f"prompt    {PROMPT}")
        typer.echo(f"schema    {', '.join(SCHEMA['properties'])}")
        typer.echo(f"document  {result.text}")
        typer.echo(f"judged    {'valid' if verdict is None else verdict} (by the package jsonschema)")
        masks = 1e6 * stats.seconds_mask / max(stats.tokens, 1)
        typer.echo(
            f"figures   {stats.tokens} tokens in {stats.forwards} forward passes; "
            f"model {stats.seconds_model:.2f} s, masks {masks:.0f} µs a token; "
            f"log-probability {result.logprob:.1f}"
        )
    if verdict is not None:
        raise typer.Exit(1)
