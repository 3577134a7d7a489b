"""`tokenform generate`: a model writes what a constraint accepts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tokenform.cli import options
from tokenform.cli.bulk import write_rows
from tokenform.cli.constraints import constraint
from tokenform.cli.reporting import cut_note, reported, tell


def generate(
    context: typer.Context,
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; standard input where it is left out.")
    ] = None,
    schema: options.Schema = None,
    pattern: options.Regex = None,
    choices: options.Choices = None,
    grammar_file: options.Grammar = None,
    model: options.Model = None,
    n: Annotated[int, typer.Option("-n", help="How many texts.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, typer.Option()] = 1.0,
    seed: Annotated[int | None, typer.Option()] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text; it is complete within them.")] = 512,
    order: options.Order = "declared",
    whitespace: options.Whitespace = "natural",
    numbers: options.Numbers = "natural",
    strings: options.Strings = "natural",
    strict: options.Strict = False,
    system: options.System = None,
    raw: options.Raw = False,
    show_schema: options.ShowSchema = None,
    reason: options.Reason = False,
    report: Annotated[
        Path | None,
        typer.Option(help="File for what speculation did: .json, .html, or a picture (.png, .svg, .pdf)."),
    ] = None,
    as_json: options.Json = False,
    source: options.Input = None,
    output: options.Output = None,
    prompt_column: options.PromptColumn = "prompt",
    id_column: options.IdColumn = "id",
    schema_column: options.SchemaColumn = None,
    regex_column: options.RegexColumn = None,
    grammar_column: options.GrammarColumn = None,
    output_column: options.OutputColumn = "output",
    batch_size: options.BatchSize = 16,
    workers: options.Workers = 1,
    threads: options.Threads = 1,
    timeout: options.Timeout = 600.0,
    memory: options.Memory = None,
    ray: options.Ray = None,
    endpoint: options.Endpoint = None,
    retry: options.Retry = False,
    quiet: options.Quiet = False,
) -> None:
    """Write text that a schema, type, pattern or list of choices accepts: for a prompt, or for each row of a
    file (--input, --output)."""
    if source is not None or output is not None:
        write_rows(context.params)
        return
    with reported():
        spelling = {"order": order, "whitespace": whitespace, "numbers": numbers, "strings": strings}
        grammar = constraint(schema, pattern, choices, grammar_file, strict=strict, **spelling)
        tell(grammar)
        from tokenform.cli.speculation_report import check_report, write_report
        from tokenform.decoding.speculative.request import Report
        from tokenform.integrations.generation import generate as write

        if report is not None:
            check_report(report)

        chosen: dict[str, Any] = {
            "temperature": temperature,
            "top_p": top_p,
            "seed": seed,
            "max_tokens": max_tokens,
            "system": system,
            "raw": raw or None,
            "show_schema": show_schema,
            "reason": reason or None,
        }
        text = prompt if prompt is not None else sys.stdin.read()
        results = write([text], grammar=grammar, model=model, n=n, **chosen)[0]
        written = results if n > 1 else [results]
        for result in written:
            if result.reason == "length" and not as_json:
                typer.echo(f"tokenform: note: {cut_note(result)}", err=True)
            typer.echo(json.dumps(described(result), ensure_ascii=False) if as_json else result.text)
        if report is not None:
            total = Report()
            for result in written:
                total.add(result.report or Report(forwards=result.stats.forwards, tokens=result.stats.tokens))
            write_report(total, report)


def described(result: Any) -> dict[str, Any]:
    """A result as JSON."""
    return {
        "text": result.text,
        "tokens": result.tokens,
        "logprob": result.logprob,
        "reason": result.reason,
        "reasoning": result.reasoning,
        "cut": result.cut,
        "stats": vars(result.stats),
    }
