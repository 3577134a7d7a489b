"""`tokenform evaluate ...`: engines, models and samplers, measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tokenform.cli import options
from tokenform.cli.constraints import constraint
from tokenform.cli.reporting import reported, tell

evaluations = typer.Typer(no_args_is_help=True, help="Measure engines, models and samplers.")


def _job(name: str, summary: str) -> None:
    """A subcommand whose arguments are those of `tokenform_bench.evaluate`."""

    @evaluations.command(
        name,
        help=summary,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def job(context: typer.Context) -> None:
        from tokenform_bench.evaluate.__main__ import main as evaluate

        raise typer.Exit(evaluate([name, *context.args]))


_job("jsonschemabench", "A model writes documents for many schemas under several engines; they are judged.")
_job("masks", "Given documents are walked through each engine's masks, without a model.")
_job("scoreboard", "A model answers tasks with known answers under each engine: right, valid, and the price.")
_job("report", "Write the report of a run again.")


@evaluations.command()
def fidelity(
    prompt: Annotated[str, typer.Argument(help="The prompt.")] = "",
    schema: options.Schema = None,
    pattern: options.Regex = None,
    choices: options.Choices = None,
    grammar_file: options.Grammar = None,
    model: options.Model = None,
    draws: Annotated[int, typer.Option(min=1, help="Texts that each sampler draws.")] = 100,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text.")] = 64,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of the target.")] = 1.0,
    seed: Annotated[int, typer.Option()] = 0,
    max_forwards: Annotated[
        int, typer.Option(min=1, help="Forward passes after which a sampler gives up.")
    ] = 5000,
    plot: Annotated[
        Path | None, typer.Option(help="File for a plot of distance against cost (needs matplotlib).")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """How far each sampler's distribution is from the model's own under the constraint, and what it costs."""
    with reported():
        grammar = constraint(schema, pattern, choices, grammar_file)
        tell(grammar)
        from tokenform.integrations.generation import Generator
        from tokenform_bench.fidelity import LEGEND, default_samplers, evaluate_fidelity
        from tokenform_bench.fidelity_plot import check_picture

        if plot is not None:
            check_picture(plot)
        samplers = default_samplers(temperature=temperature)
        typer.echo(
            f"{draws} draws with each of {len(samplers)} samplers; their distributions are compared with the "
            "model's own under the constraint, which is enumerated where it has few enough texts",
            err=True,
        )
        writer = Generator(None if model == "builtin" else model)
        ids = writer.prompt_ids(prompt, grammar)
        automaton = grammar.compile(writer.vocabulary)
        found = evaluate_fidelity(
            writer.language_model,
            automaton,
            samplers,
            prompt=ids,
            max_tokens=max_tokens,
            draws=draws,
            seed=seed,
            max_forwards=max_forwards,
            report=lambda name: typer.echo(f"{name} ...", err=True),
        )
        if plot is not None:
            found.plot(plot)
    typer.echo(json.dumps(found.as_dict()) if as_json else f"{found.table()}\n\n{LEGEND}")
