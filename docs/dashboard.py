"""What the kept tables were from commit to commit: the rows and the picture of docs/dashboard.md.

    python docs/dashboard.py     # the same as text

Purpose: a verdict, a mask or work that moved is seen with the commit that moved it, without a service beside
the repository: the history itself has every table.
Invariant: the pages are built without a network; in a copy without history its table is one row.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = "benchmarks/results/regression.json.xz"
BASELINE = "tests/suites/baseline.json"
PLACE = "<!-- history -->"
"""Where the page has it."""


@dataclass
class Commit:
    """One commit of a file, and the file."""

    name: str
    day: str
    subject: str
    data: bytes


def commits(path: str, root: Path = ROOT) -> list[Commit]:
    """Those that changed a file, the oldest first; the file alone where there is no history of it."""
    told = _git(root, "log", "--reverse", "--format=%h\t%cs\t%s", "--", path)
    lines = [] if told is None else [line.split("\t", 2) for line in told.decode().splitlines()]
    found = [
        Commit(name, day, subject, data)
        for name, day, subject in lines
        if (data := _git(root, "show", f"{name}:{path}")) is not None
    ]
    here = (root / path).read_bytes()
    if not found or found[-1].data != here:
        found.append(Commit("here", "", "not committed", here))
    return found


def _git(root: Path, *words: str) -> bytes | None:
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def rows(root: Path = ROOT) -> Iterator[dict[str, Any]]:
    """What the table of each commit says, and what it says otherwise than the one before."""
    before: dict[str, list[Any]] = {}
    for commit in commits(TABLE, root):
        table: dict[str, list[Any]] = json.loads(lzma.decompress(commit.data))
        told = [verdicts for verdicts, _, _ in table.values() if set(verdicts) <= {"0", "1"}]
        both = [(before[name], row) for name, row in table.items() if name in before]
        masks = json.dumps([row[1] for _, row in sorted(table.items())])
        yield {
            "commit": commit.name,
            "day": commit.day,
            "rows": len(table),
            "accepted": sum(verdicts.count("1") for verdicts in told),
            "refused": sum(verdicts.count("0") for verdicts in told),
            "no schema": len(table) - len(told),
            "masks": hashlib.blake2b(masks.encode(), digest_size=4).hexdigest(),
            "states": sum(row[2] for row in table.values()),
            "verdicts moved": sum(old[0] != new[0] for old, new in both),
            "masks moved": sum(old[1] != new[1] for old, new in both),
            "what": textwrap.shorten(commit.subject, 70, placeholder=" ..."),
        }
        before = table


def official(root: Path = ROOT) -> Iterator[dict[str, Any]]:
    """Documents of the official suite that are judged right, by draft."""
    for commit in commits(BASELINE, root):
        counts: dict[str, str] = json.loads(commit.data).get("counts", {})
        told = {
            name.removesuffix(" required"): text.removesuffix(" documents")
            for name, text in counts.items()
            if name.endswith(" required")
        }
        if told:
            yield {"commit": commit.name, "day": commit.day, **told}


def written(found: list[dict[str, Any]]) -> str:
    """Rows as a table, the newest first."""
    names = list(dict.fromkeys(name for row in found for name in row))
    lines = [names, ["---"] * len(names)]
    lines += [[_cell(row.get(name, "")) for name in names] for row in reversed(found)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|").replace("<", "&lt;")


def drawn(found: list[dict[str, Any]]) -> str:
    """States by commit, as bars; in the colour of the page's text."""
    most = max((row["states"] for row in found), default=0) or 1
    last, wide = found[-40:], 320
    step = min(wide / max(len(last), 1), 24)
    bars = []
    for place, row in enumerate(last):
        left, high = place * step + 1, 100 * row["states"] / most
        name = escape(f"{row['commit']} {row['day']}: {row['states']:,} states")
        bars.append(
            f'<rect x="{left:.1f}" y="{120 - high:.1f}" width="{step - 2:.1f}" height="{high:.1f}">'
            f"<title>{name}</title></rect>"
        )
    text = f'<text x="0" y="12" font-size="12">{most:,} states</text>'
    return (
        f'<svg viewBox="0 0 {wide} 122" role="img" aria-label="States of all rows, commit by commit" '
        f'style="width:100%;max-width:{wide}px" fill="currentColor">{text}{"".join(bars)}</svg>'
    )


def page(text: str) -> str:
    """The page with the history in its place."""
    found = list(rows())
    parts = [drawn(found), written(found), "## The official suite", written(list(official()))]
    return text.replace(PLACE, "\n\n".join(parts))


if __name__ == "__main__":
    print(written(list(rows())), written(list(official())), sep="\n\n")
