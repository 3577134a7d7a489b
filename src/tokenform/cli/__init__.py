"""The command `tokenform`: the library's main jobs from a shell, each command a file.

Invariant: exit code 0: done, or accepted; 1: refused (the document, or a constraint that can't be met);
2: bad input or usage.  An error is one sentence on standard error; standard output holds results alone.
"""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from tokenform import __version__
from tokenform.cli import check, demo, explain, generate, measuring, serve, tools, verify
from tokenform.errors import SchemaWarning

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Structured generation, exactly.")
for command in (
    generate.generate,
    check.check,
    tools.tools,
    explain.explain,
    verify.verify,
    serve.serve,
    demo.demo,
):
    app.command()(command)
for name, summary in measuring.COMMANDS.items():
    measuring.add(app, name, summary)


def _show_version(show: bool) -> None:
    if show:
        typer.echo(f"tokenform {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Structured generation, exactly."""
    warnings.simplefilter("ignore", SchemaWarning)  # commands tell it in a sentence of their own


def main() -> None:
    """The entry point of the installed command."""
    app()
