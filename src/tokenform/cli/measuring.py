"""`tokenform evaluate` and `tokenform bench`: what measures is a package of its own, `tokenform-bench`.

Invariant: nothing here knows what these commands take; every argument, `--help` too, goes to that package.
"""

from __future__ import annotations

import importlib

import typer

from tokenform.cli.reporting import reported
from tokenform.errors import MissingExtra

PACKAGE = "tokenform_bench"
COMMANDS = {
    "evaluate": "Measure engines, models and samplers (needs tokenform-bench).",
    "bench": "Measure servers (needs tokenform-bench).",
}


def add(app: typer.Typer, name: str, summary: str) -> None:

    @app.command(
        name,
        help=summary,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def measure(context: typer.Context) -> None:
        with reported():
            try:
                commands = importlib.import_module(f"{PACKAGE}.commands")
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != PACKAGE:
                    raise
                raise MissingExtra(
                    f"`tokenform {name}` needs tokenform-bench, which is not installed: pip install "
                    "tokenform-bench, or pip install ./benchmarks in a checkout"
                ) from None
        code = commands.app([name, *context.args], prog_name="tokenform", standalone_mode=False)
        raise typer.Exit(code or 0)
