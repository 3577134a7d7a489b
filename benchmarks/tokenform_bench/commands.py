"""What `tokenform evaluate ...` and `tokenform bench ...` run; also `python -m tokenform_bench ...`."""

from __future__ import annotations

import typer

from tokenform_bench.evaluate_command import evaluations
from tokenform_bench.serve_command import benches

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure engines, models, servers.")
app.add_typer(evaluations, name="evaluate")
app.add_typer(benches, name="bench")
