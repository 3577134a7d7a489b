"""`tokenform generate`: a model writes what a constraint accepts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tokenform.cli.bulk import write_rows
from tokenform.cli.constraints import constraint
from tokenform.cli.options import (
    BatchSizeOption,
    ChoicesOption,
    EndpointOption,
    GrammarColumnOption,
    GrammarOption,
    IdColumnOption,
    InputOption,
    JsonOption,
    MemoryOption,
    ModelOption,
    NumbersOption,
    OrderOption,
    OutputColumnOption,
    OutputOption,
    PromptColumnOption,
    QuietOption,
    RawOption,
    RayOption,
    ReasonOption,
    RegexColumnOption,
    RegexOption,
    RetryOption,
    SchemaColumnOption,
    SchemaOption,
    ShowSchemaOption,
    StrictOption,
    StringsOption,
    SystemOption,
    ThreadsOption,
    TimeoutOption,
    WhitespaceOption,
    WorkersOption,
)
from tokenform.cli.reporting import cut_note, reported, tell


def generate(
    context: typer.Context,
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; standard input where it is left out.")
    ] = None,
    schema: SchemaOption = None,
    pattern: RegexOption = None,
    choices: ChoicesOption = None,
    grammar_file: GrammarOption = None,
    model: ModelOption = None,
    n: Annotated[int, typer.Option("-n", help="How many texts.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, typer.Option()] = 1.0,
    seed: Annotated[int | None, typer.Option()] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text; it is complete within them.")] = 512,
    order: OrderOption = "declared",
    whitespace: WhitespaceOption = "natural",
    numbers: NumbersOption = "natural",
    strings: StringsOption = "natural",
    strict: StrictOption = False,
    system: SystemOption = None,
    raw: RawOption = False,
    show_schema: ShowSchemaOption = None,
    reason: ReasonOption = False,
    report: Annotated[
        Path | None,
        typer.Option(help="File for what speculation did: .json, .html, or a picture (.png, .svg, .pdf)."),
    ] = None,
    as_json: JsonOption = False,
    source: InputOption = None,
    output: OutputOption = None,
    prompt_column: PromptColumnOption = "prompt",
    id_column: IdColumnOption = "id",
    schema_column: SchemaColumnOption = None,
    regex_column: RegexColumnOption = None,
    grammar_column: GrammarColumnOption = None,
    output_column: OutputColumnOption = "output",
    batch_size: BatchSizeOption = 16,
    workers: WorkersOption = 1,
    threads: ThreadsOption = 1,
    timeout: TimeoutOption = 600.0,
    memory: MemoryOption = None,
    ray: RayOption = None,
    endpoint: EndpointOption = None,
    retry: RetryOption = False,
    quiet: QuietOption = False,
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

        options: dict[str, Any] = {
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
        results = write([text], grammar=grammar, model=model, n=n, **options)[0]
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
