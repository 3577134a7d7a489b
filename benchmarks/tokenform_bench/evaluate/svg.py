"""Two plots as SVG text: grouped bars, and distributions on a logarithmic axis.

Purpose: a report that stands alone, in one file without scripts.
Invariant: every engine has the same colour and dash in every plot; nothing is told by colour alone.
Rejected: matplotlib (an optional package; a report must not need it) and plotting scripts from the network.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

COLOURS = ("#1b6ca8", "#c1440e", "#2f7d32", "#7b3fa0", "#8a6d00", "#555555")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2")
_FONT = 'font-family="system-ui,sans-serif" font-size="12"'


def legend(engines: Sequence[str]) -> str:
    """One line with a sample of each engine's colour and dash."""
    parts = []
    for i, name in enumerate(engines):
        x = 10 + 150 * i
        stroke = f'stroke="{_colour(i)}" stroke-width="4" {_dash(i)}'
        line = f'<line x1="{x}" y1="10" x2="{x + 26}" y2="10" {stroke}/>'
        parts.append(f'{line}<text x="{x + 32}" y="14">{html.escape(name)}</text>')
    return _svg(20 + 150 * len(engines), 22, "Engines", parts)


def bars(
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    counts: Sequence[int] | None = None,
) -> str:
    """Grouped horizontal bars of shares between 0 and 1: for each label one bar an engine.

    Args:
        counts: how many cases stand behind each label; shown, and the bars get 95 % intervals (Wilson 1927).
    """
    left, width, thick, gap = 190, 520, 11, 8
    group = thick * len(series) + gap
    height = group * len(labels) + 30
    parts = []
    for tick in range(0, 101, 25):
        x = left + width * tick / 100
        parts.append(f'<line x1="{x}" y1="0" x2="{x}" y2="{height - 24}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{height - 8}" text-anchor="middle">{tick} %</text>')
    for row, label in enumerate(labels):
        y = row * group
        middle = y + (group - gap) / 2 + 4
        shown = label if counts is None else f"{label} (n = {counts[row]})"
        parts.append(f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{html.escape(shown)}</text>')
        for i, (name, values) in enumerate(series.items()):
            share = values[row]
            if math.isnan(share):
                continue
            tip = f"<title>{html.escape(f'{label}, {name}: {100 * share:.1f} %')}</title>"
            size = (
                f'x="{left}" y="{y + i * thick}" width="{max(share * width, 0.5):.1f}" height="{thick - 2}"'
            )
            parts.append(f'<rect {size} fill="{_colour(i)}">{tip}</rect>')
            if counts is not None and counts[row]:
                low, high = (left + width * end for end in interval(share, counts[row]))
                at = y + i * thick + (thick - 2) / 2
                parts.append(
                    f'<line x1="{low:.1f}" y1="{at:.1f}" x2="{high:.1f}" y2="{at:.1f}" stroke="#222"/>'
                )
    return _svg(left + width + 40, height, title, parts)


def interval(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of so many cases, by Wilson's score."""
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def distribution(title: str, unit: str, series: Mapping[str, Sequence[float]]) -> str:
    """For each engine the share of samples above a value, both axes logarithmic; samples must be positive."""
    left, width, height = 60, 620, 260
    samples = {name: sorted(v for v in values if v > 0) for name, values in series.items()}
    known = [v for values in samples.values() for v in (values[:1] + values[-1:])]
    if not known:
        return ""
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    high = max(high, low + 1)
    floor = min(-1.0, -math.ceil(math.log10(max(len(values) for values in samples.values()))))
    parts = []
    for power in range(low, high + 1):
        x = left + width * (power - low) / (high - low)
        parts.append(f'<line x1="{x:.1f}" y1="10" x2="{x:.1f}" y2="{height}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{height + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(int(floor), 1):
        y = 10 + (height - 10) * power / floor
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#eee"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * 10.0**power:g} %</text>')
    for i, (name, values) in enumerate(samples.items()):
        if not values:
            continue
        points = []
        for place in sorted({round(len(values) * (1 - 10 ** (floor * k / 200))) for k in range(201)}):
            if place < len(values):
                share = math.log10(1 - place / len(values))
                x = left + width * (math.log10(values[place]) - low) / (high - low)
                points.append(f"{x:.1f},{10 + (height - 10) * max(share, floor) / floor:.1f}")
        style = f'fill="none" stroke="{_colour(i)}" stroke-width="2" {_dash(i)}'
        parts.append(
            f'<polyline {style} points="{" ".join(points)}"><title>{html.escape(name)}</title></polyline>'
        )
    parts.append(
        f'<text x="{left + width / 2}" y="{height + 34}" text-anchor="middle">{html.escape(unit)}</text>'
    )
    return _svg(left + width + 40, height + 42, title, parts)


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _dash(index: int) -> str:
    dash = _DASHES[index % len(_DASHES)]
    return f'stroke-dasharray="{dash}"' if dash else ""


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {_FONT}>'
    return f"{head}<title>{html.escape(title)}</title>{''.join(parts)}</svg>"
