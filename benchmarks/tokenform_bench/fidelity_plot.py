"""The picture of `tokenform evaluate fidelity --plot`: distance to the target against what a draw costs.

Purpose: one labelled point for each sampler, a line through the settings of one family.
Invariant: no sampler is left out without a word: one whose distance is 0, or too small for the axis, stands
on the lowest line with its distance; those without a distance, or that drew nothing, are listed below.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenform.errors import OptionError, extras

if TYPE_CHECKING:
    from tokenform_bench.fidelity import Fidelity, Row

_COLOURS = ("#1b6ca8", "#c1440e", "#2f7d32", "#7b3fa0", "#8a6d00", "#b3125f", "#00838f", "#555555")
_MARKERS = "osD^vP*X"
_PLACES = [(across, up) for up in (5, -11, 17, -23, 29, -35, 41) for across in (8, -8)]
"""Where a label may stand, in points from its point; the first that is free."""


def check_picture(path: str | Path) -> None:
    """Says before the draws what `plot` would say after them.

    Raises:
        OptionError: the ending is no picture's, or there is no such folder.
        MissingExtra: matplotlib is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise OptionError(f"{path.name!r} is no picture; choose .png, .svg or .pdf.")
    if not path.parent.is_dir():
        raise OptionError(f"{str(path)!r} can't be written: there is no folder {str(path.parent)!r}.")
    with extras():
        import matplotlib.figure  # noqa: F401


def plot(found: Fidelity, path: str | Path) -> None:
    """Write the picture; the ending of the path chooses its format.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with extras():
        from matplotlib.figure import Figure
    figure = Figure(figsize=(9, 5.6), dpi=130, layout="constrained")
    axes: Any = figure.add_subplot()
    shown = [row for row in found.rows if math.isfinite(row.distance) and row.rows > 0]
    noise = [row.noise for row in shown if row.how == "empirical" and row.noise > 0]
    floor = _floor([row.distance for row in shown], noise)
    families: dict[str, list[Row]] = {}
    labels: dict[tuple[float, float], list[str]] = {}
    for row in shown:
        families.setdefault(row.sampler.split("(")[0].strip(), []).append(row)
    for number, (name, rows) in enumerate(families.items()):
        rows.sort(key=lambda row: row.rows)
        style = {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        heights = [max(row.distance, floor) for row in rows]
        axes.plot([row.rows for row in rows], heights, label=name, markersize=7, linewidth=1, **style)
        for row, height in zip(rows, heights, strict=True):
            text = row.sampler if row.distance > floor else f"{row.sampler}: {_small(row)}"
            near = next((p for p in labels if _close(p, (row.rows, height))), (row.rows, height))
            labels.setdefault(near, []).append(text)
    if noise:
        mean = sum(noise) / len(noise)
        axes.axhline(mean, linestyle="--", color="grey", linewidth=1, label="what so many exact draws show")
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(floor / 1.5, 1.5),
        xlabel="distributions of the model asked for, a draw",
        ylabel="total variation distance to the target",
        title=f"{found.draws} draws a sampler",
    )
    axes.margins(x=0.18)
    axes.legend(fontsize=8, loc="upper right")
    missing = [row.sampler for row in found.rows if row not in shown]
    notes = [f"no distance known: {', '.join(missing)}"] if missing else []
    notes += [f"{name} gave up: {why}" for name, why in found.gave_up.items()]
    if notes:
        figure.supxlabel("\n".join(note[:130] for note in notes), fontsize=8, x=0.01, ha="left")
    _label(figure, axes, labels)
    figure.savefig(path)


def _close(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two points lie upon each other, on logarithmic axes."""
    return all(abs(math.log(a / b)) < 0.02 for a, b in zip(one, other, strict=True))


def _label(figure: Any, axes: Any, labels: dict[tuple[float, float], list[str]]) -> None:
    """Write the labels beside their points, each where it covers no other one, and within the axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    taken = [axes.get_legend().get_window_extent(renderer)]
    taken += [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in map(axes.transData.transform, labels)]
    for point, texts in sorted(labels.items()):
        note = axes.annotate(
            ", ".join(texts), point, xytext=_PLACES[0], textcoords="offset points", fontsize=8
        )
        for across, up in _PLACES:
            note.set_position((across, up))
            note.set_horizontalalignment("left" if across > 0 else "right")
            box = note.get_window_extent(renderer)
            inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1
            if inside and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)


def _floor(distances: list[float], noise: list[float]) -> float:
    """The lowest line: below what can be told apart from 0, and no lower than the points need."""
    told = [distance for distance in distances if distance > 1e-6]
    return max(1e-6, min([*told, *noise, 0.1]) / 3)


def _small(row: Row) -> str:
    return "0" if row.distance == 0 else f"{row.distance:.0e}"
