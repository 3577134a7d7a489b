"""The page of a run: one HTML file that stands alone, and Markdown for a README.

Purpose: show sections of tables and plots, with what they mean and how they were got.
Invariant: both forms show the same tables, built once; nothing is fetched, no script runs.
"""

from __future__ import annotations

import html
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform_bench.evaluate import svg
from tokenform_bench.tables import markdown_table

_FAILURES = 12
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color:
#222; } table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #888; } h2 { margin-top: 2.5rem; } svg { max-width: 100%; height: auto; }
.note { color: #555; } details { margin: .5rem 0; } code { background: #f3f3f3; padding: 0 .25rem; }
""".strip()


@dataclass(frozen=True)
class Section:
    """A heading, what the figures mean, a table, and plots (HTML only)."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    plots: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """All of a report.

    Attributes:
        facts: (name, value) of the run.
        engines: in the order of their colours.
        failures: (case, why) of each engine's units that went wrong; HTML only.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    engines: Sequence[str]
    sections: Sequence[Section]
    failures: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)


def facts(
    options: Mapping[str, Any],
    done: int,
    planned: int,
    sessions: Sequence[Mapping[str, Any]],
    hidden: set[str],
) -> list[tuple[str, str]]:
    """What a run was: its size, its time, its machine, its options but for the hidden ones."""
    seconds = sum(s["last"] - s["started"] for s in sessions)
    machine: dict[str, Any] = sessions[-1]["environment"] if sessions else {}
    settings = " ".join(
        f"{k}={shlex.quote(_shown(v))}" for k, v in options.items() if k not in hidden and v is not None
    )
    return [
        ("Units", f"{done} of {planned}"),
        ("Time", f"{seconds / 60:.1f} minutes in {len(sessions)} starts"),
        (
            "Machine (CPU, cores, Python)",
            ", ".join(str(machine.get(k, "?")) for k in ("cpu", "cores", "python")),
        ),
        ("Commit", f"{machine.get('commit', '?')}{' with changes' if machine.get('dirty') else ''}"),
        ("Options", settings),
    ]


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def to_markdown(page: Page) -> str:
    """The page as Markdown."""
    parts = [f"# {page.title}", "\n".join(f"- {name}: {value}" for name, value in page.facts)]
    for section in page.sections:
        parts += [f"## {section.title}", section.note, markdown_table(section.header, section.rows)]
    return "\n\n".join(parts) + "\n"


def to_html(page: Page) -> str:
    """The page as one HTML file."""
    listed = "".join(f"<li>{html.escape(n)}: <code>{html.escape(v)}</code></li>" for n, v in page.facts)
    body = [f"<h1>{page.title}</h1><ul>{listed}</ul>"]
    for section in page.sections:
        body.append(f"<h2>{html.escape(section.title)}</h2><p class='note'>{html.escape(section.note)}</p>")
        key = svg.legend(page.engines) if section.plots else ""
        body += [key, *section.plots, _table(section.header, section.rows)]
    body.append(_failures(page.failures))
    when = time.strftime("%Y-%m-%d %H:%M")
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    head += f"<title>{page.title}</title>"
    return (
        f"<!doctype html>\n<html lang='en'><head>{head}<style>{_STYLE}</style></head>\n"
        f"<body>{''.join(body)}<p class='note'>Written {when}.</p></body></html>\n"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    lines = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _failures(failures: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    parts = []
    for engine, found in failures.items():
        if found:
            shown = "".join(
                f"<li><code>{html.escape(name)}</code> {html.escape(why[:240])}</li>"
                for name, why in found[:_FAILURES]
            )
            more = f"<li>and {len(found) - _FAILURES} more</li>" if len(found) > _FAILURES else ""
            summary = f"{html.escape(engine)}: {len(found)} units failed or invalid, though not cut"
            parts.append(f"<details><summary>{summary}</summary><ul>{shown}{more}</ul></details>")
    return f"<h2>Failures</h2>{''.join(parts)}" if parts else ""
