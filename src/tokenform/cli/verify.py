"""`tokenform verify`: whether a certificate of masks is right."""

from __future__ import annotations

import json

import typer

from tokenform import certificates
from tokenform.cli.constraints import read_file
from tokenform.cli.reporting import reported
from tokenform.errors import DataError


def verify(
    file: str = typer.Argument(help="A certificate, as `tokenform explain --certificate` writes it."),
) -> None:
    """Check a certificate of masks, by a checker that shares no code with the engine."""
    with reported():
        try:
            said = certificates.check(json.loads(read_file(file)))
        except certificates.CannotCheck as error:
            raise DataError(f"this can't be checked: {error}.") from None
        except (certificates.Unproven, ValueError, RecursionError) as error:
            typer.echo(f"refused: {error}", err=True)
            raise typer.Exit(1) from None
        typer.echo(f"accepted: {said}")
