"""Tables and result files of the benchmarks: aligned text, Markdown, and JSON kept with the hardware and the
commit."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenform_bench.measure import environment


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits; "-" for nothing."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned: the first to the left, the others to the right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, ["-" * w for w in widths], *rows]:
        cells = [
            str(c).ljust(w) if i == 0 else str(c).rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])


def save(folder: Path, name: str, payload: dict[str, Any], stamp: str | None = None) -> Path:
    """Write `<name>-<time>.json` with the environment beside the payload; returns the path."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = stamp or time.strftime("%Y%m%d-%H%M%S")
    path = folder / f"{name}-{stamp}.json"
    path.write_text(
        json.dumps({"name": name, "time": stamp, "environment": environment(), **payload}, indent=1), "utf-8"
    )
    return path
