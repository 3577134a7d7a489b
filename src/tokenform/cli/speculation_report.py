"""A report as a file: JSON, a page, or a picture of acceptance by depth and by source and of the times.

Invariant: JSON and the page's table need nothing else; pictures need matplotlib, which is optional.
Rejected: a page that draws with scripts (it could not be read offline or mailed).
"""

from __future__ import annotations

import html
import io
import json
from pathlib import Path
from typing import Any

from tokenform.decoding.speculative.request import Report
from tokenform.errors import MissingExtra, OptionError, extras

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } svg { max-width: 100%; height: auto; }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
""".strip()
_PICTURES = (".png", ".svg", ".pdf")


def check_report(path: str | Path) -> None:
    """Says before a run what `write_report` would say after it.

    Raises:
        OptionError: another ending, or a folder that does not exist.
        MissingExtra: a picture is asked for and matplotlib is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in (".json", ".html", *_PICTURES):
        raise OptionError(f"{path.name!r} has no known ending; choose .json, .html, .png, .svg or .pdf.")
    if not path.parent.is_dir():
        raise OptionError(f"{str(path)!r} can't be written: there is no folder {str(path.parent)!r}.")
    if path.suffix.lower() in _PICTURES:
        with extras():
            import matplotlib.figure  # noqa: F401


def write_report(report: Report, path: str | Path) -> None:
    """Writes `.json`, `.html`, `.png`, `.svg` or `.pdf`.

    Raises:
        OptionError: another ending, or a folder that does not exist.
        MissingExtra: a picture is asked for and matplotlib is not installed.
    """
    check_report(path)
    path = Path(path)
    ending = path.suffix.lower()
    try:
        if ending == ".json":
            path.write_text(json.dumps(report.as_dict(), indent=1), "utf-8")
        elif ending == ".html":
            path.write_text(_page(report), "utf-8")
        else:
            plot(report, path)
    except OSError as error:
        raise OptionError(f"{str(path)!r} can't be written: {error.strerror or error}.") from None


def plot(report: Report, path: str | Path) -> None:
    """Writes the picture to a file; its ending chooses the format.

    Raises:
        OptionError: the run has drafted nothing.
        MissingExtra: matplotlib is not installed.
    """
    _figure(report).savefig(path)


def _figure(report: Report) -> Any:
    with extras():
        from matplotlib.figure import Figure
    if not report.depths:
        raise OptionError("there is nothing to plot: no draft was scored")
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    by_depth, by_source, times = figure.subplots(1, 3)
    depths = sorted(report.depths)
    shares = [report.depths[d][1] / report.depths[d][0] for d in depths]
    bars = by_depth.bar(depths, shares, color="#4477aa")
    if len(depths) <= 12:  # a share of one draft is no rate: say of how many
        counts = [f"{report.depths[d][1]} of {report.depths[d][0]}" for d in depths]
        by_depth.bar_label(bars, counts, padding=2, fontsize=7)
    by_depth.set(
        xlabel="depth in the draft", ylabel="accepted share", ylim=(0, 1.12), title="Acceptance by depth"
    )
    by_depth.xaxis.get_major_locator().set_params(integer=True)
    by_depth.set_yticks([0, 0.25, 0.5, 0.75, 1])
    names = sorted(report.sources, key=lambda s: -report.sources[s][1])
    by_source.barh(names, [report.sources[s][0] for s in names], color="#bbccee", label="drafted")
    by_source.barh(names, [report.sources[s][1] for s in names], color="#4477aa", label="accepted")
    by_source.invert_yaxis()
    by_source.set(xlabel="tokens", title=f"{report.tokens_per_forward:.2f} tokens per forward")
    by_source.legend()
    parts = {"model": report.seconds_model, "draft": report.seconds_draft, "mask": report.seconds_mask}
    times.bar(list(parts), list(parts.values()), color=["#4477aa", "#ccbb44", "#228833"])
    times.set(ylabel="seconds", title="Time")
    return figure


def _page(report: Report) -> str:
    """One HTML page: the figures as tables, and the picture where it can be drawn."""
    totals = {
        "tokens": report.tokens,
        "target forwards": report.forwards,
        "tokens per forward": f"{report.tokens_per_forward:.2f}",
        "drafted": report.drafted,
        "accepted": report.accepted,
        "seconds in the model": f"{report.seconds_model:.3f}",
        "seconds in drafters": f"{report.seconds_draft:.3f}",
        "seconds in masks and draws": f"{report.seconds_mask:.3f}",
    }
    parts = [
        _table(("", ""), list(totals.items())),
        "<h2>By source</h2>",
        _table(("source", "drafted", "accepted"), [(s, *n) for s, n in sorted(report.sources.items())]),
        "<h2>By depth</h2>",
        _table(("depth", "reached", "accepted"), [(d, *n) for d, n in sorted(report.depths.items())]),
        *(f"<p>{html.escape(note)}</p>" for note in report.notes),
    ]
    try:
        drawing = io.StringIO()
        _figure(report).savefig(drawing, format="svg")
        parts.insert(1, drawing.getvalue()[drawing.getvalue().index("<svg") :])
    except (OptionError, MissingExtra) as error:
        parts.insert(1, f"<p>{html.escape(str(error))}</p>")
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<meta charset="utf-8">\n<title>Speculation</title>\n<style>{_STYLE}</style>\n'
        f"<h1>Speculation</h1>\n{body}\n"
    )


def _table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    def line(cells: tuple[Any, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return "\n".join(["<table>", line(header, "th"), *(line(row, "td") for row in rows), "</table>"])
