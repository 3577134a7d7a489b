"""Drawings of automata and masks as SVG, for notebooks and `tokenform explain --html`.

Invariant: a drawing shows at most `STATES` states; further ones (left out by the core's `mask/drawn.rs`) are
an edge to "…", or not shown.  Texts are escaped.
Rejected: Graphviz (a program to install, for pictures of a dozen nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from tokenform.frontends.byte_vocabulary import byte_vocabulary

STATES = 14
"""Most states of a drawing."""
SOURCE = 1200
"""Longest shown text of a grammar, in characters."""
ROWS = 60
"""Most states of a text that a page shows: the last ones."""
BUCKETS = 96
"""Columns of a heat map."""
_INK, _PALE, _END, _FONT = "#1f2933", "#cbd2d9", "#0b7285", "13px ui-monospace,Menlo,Consolas,monospace"
_WIDE, _HIGH, _RADIUS = 110, 74, 15
Edge = tuple[int, str, int]
"""(number of the state, label, number of the next state; -1: not drawn)."""


def explore(automaton: Any, start: Any = None) -> tuple[list[Any], list[Edge]]:
    """The first states that texts reach, breadth first, and the edges between them.

    Bytes that lead to one state share an edge; a path without a choice is one edge.
    """
    states, edges = automaton.drawn(automaton.start if start is None else start, STATES)
    return states, edges


def _shown(text: bytes) -> str:
    """Bytes as text without spaces and control characters."""
    readable = text.decode("utf-8", "backslashreplace").replace("\n", "\\n").replace(" ", "\u00b7")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in readable)


def automaton_html(automaton: Any) -> str:
    """An automaton for a notebook: its drawing, and the masks of the states that are drawn."""
    states, _ = explore(automaton)
    rows = [(f"state {number}", state) for number, state in enumerate(states)]
    return f"{automaton_svg(automaton)}<br>{masks_svg(automaton, rows)}"


def grammar_html(grammar: Any) -> str:
    """A grammar for a notebook: its source, its report, its automaton over bytes."""
    vocabulary = byte_vocabulary()
    source = grammar.source if len(grammar.source) <= SOURCE else grammar.source[:SOURCE] + "…"
    notes = "".join(f"<li>{escape(str(line))}</li>" for line in grammar.report)
    exact = f"<ul>{notes}</ul>" if notes else "<p>exact: nothing ignored, nothing loosened</p>"
    drawing = automaton_svg(grammar.compile(vocabulary))
    return f'<pre style="white-space:pre-wrap">{escape(source)}</pre>{exact}{drawing}'


def explained_html(
    grammar: Any, automaton: Any, states: Sequence[Any], steps: Sequence[dict[str, Any]]
) -> str:
    """The page of `tokenform explain --html`: the grammar, then the states along a text with their masks.

    Args:
        states: of the automaton, along the text.
        steps: the command's fields of each: `after`, `state`, `allowed`, `distance`, `accepting`, `place`.
    """
    steps_shown = steps[-ROWS:]
    masks = [(step["after"], state) for step, state in zip(steps_shown, states[-ROWS:], strict=True)]
    names = ("after", "state", "allowed", "distance", "accepting", "place")
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(step[name]))}</td>" for name in names) + "</tr>"
        for step in steps_shown
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>tokenform explain</title>\n'
        "<style>body{font:15px system-ui,sans-serif;margin:2em;color:#1f2933}"
        "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #e4e7eb;"
        "font-family:ui-monospace,monospace}"
        "pre{background:#f5f7fa;padding:1em;white-space:pre-wrap}div{overflow-x:auto}</style>\n"
        f"<h1>The grammar</h1><div>{grammar_html(grammar)}</div>\n"
        f"<h1>The states along the text</h1><table><tr>{head}</tr>{body}</table>\n"
        "<h1>What each state allows</h1>"
        f"<div>{masks_svg(automaton, masks)}</div></html>\n"
    )


def automaton_svg(automaton: Any, start: Any = None) -> str:
    """The automaton from a state on: circles are states, doubled where a text may end, arrows take text."""
    states, edges = explore(automaton, start)
    columns = _columns(len(states), edges)
    spots: dict[int, tuple[float, float]] = {}
    x = 34.0
    for column, members in enumerate(columns):
        for row, state in enumerate(members):
            spots[state] = (x, 60 + row * _HIGH + (column % 2) * 14)
        labels = [len(label) for source, label, target in edges if source in members and target != source]
        x += max([_WIDE, *(60 + 8 * length for length in labels)])
    height = 40 + max(y for _, y in spots.values())
    width = 60 + max(x for x, _ in spots.values()) + (90 if any(t == -1 for _, _, t in edges) else 0)
    parts = [_edge(spots, *edge) for edge in edges]
    for number, (x, y) in spots.items():
        accepting = automaton.is_accepting(states[number])
        colour = _END if accepting else _INK
        parts.append(f'<circle cx="{x}" cy="{y}" r="{_RADIUS}" fill="white" stroke="{colour}"/>')
        if accepting:
            parts.append(f'<circle cx="{x}" cy="{y}" r="{_RADIUS - 4}" fill="none" stroke="{_END}"/>')
        parts.append(f'<text x="{x}" y="{y + 4}" text-anchor="middle">{number}</text>')
    return _svg(width, height, "An automaton: states and the texts between them", parts)


def _columns(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """States by their distance from the first."""
    depth = {0: 0}
    for source, _, target in edges:  # breadth first, so a source's depth is known
        if target >= 0:
            depth.setdefault(target, depth.get(source, 0) + 1)
    columns: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for state in range(count):
        columns[depth[state]].append(state)
    return columns


def _edge(spots: dict[int, tuple[float, float]], source: int, label: str, target: int) -> str:
    x, y = spots[source]
    text = escape(label)
    if target == source:
        path = f"M{x - 8} {y - 13} C{x - 26} {y - 46} {x + 26} {y - 46} {x + 8} {y - 13}"
        return _arrow(path, x, y - 40, text)
    if target == -1:
        return _arrow(f"M{x + _RADIUS} {y} L{x + 60} {y}", x + 74, y + 4, "…")
    to_x, to_y = spots[target]
    if to_x > x:
        middle = (x + to_x) / 2
        path = f"M{x + _RADIUS} {y} C{middle} {y} {middle} {to_y} {to_x - _RADIUS - 2} {to_y}"
        return _arrow(path, middle, (y + to_y) / 2 - 6, text)
    if to_x == x:  # within a column: an arc at its right
        side, middle = x + 40, (y + to_y) / 2
        away = 1 if to_y > y else -1
        path = f"M{x + 12} {y + 9 * away} Q{side} {middle} {to_x + 12} {to_y - 11 * away}"
        return _arrow(path, side, middle + 4, text)
    drop = max(y, to_y) + 34
    path = f"M{x} {y + _RADIUS} C{x} {drop} {to_x} {drop} {to_x} {to_y + _RADIUS + 2}"
    return _arrow(path, (x + to_x) / 2, drop - 4, text)


def _arrow(path: str, x: float, y: float, text: str) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{_PALE}" stroke-width="1.5" marker-end="url(#tf-arrow)"/>'
        f'<text x="{x}" y="{y}" text-anchor="middle" paint-order="stroke" stroke="white" stroke-width="4">'
        f"{text}</text>"
    )


def masks_svg(automaton: Any, walked: Sequence[tuple[str, Any]]) -> str:
    """Which tokens each state allows: a row a state, the vocabulary in order of its bytes in columns.

    Args:
        walked: (label, state) for each row, such as the text so far.
    A cell is as dark as the share of its column's tokens that are allowed.
    """
    vocabulary = automaton.vocabulary
    tokens: list[bytes] = list(vocabulary.tokens)
    order = sorted((i for i, token in enumerate(tokens) if token), key=tokens.__getitem__)
    columns = min(BUCKETS, len(order))
    bucket = np.full(len(tokens), -1)
    bucket[order] = np.arange(len(order)) * columns // len(order)
    sizes = np.bincount(bucket[order], minlength=columns)
    left, cell, high = 190, max(5, 560 // columns), 20
    parts = [f'<text x="{left}" y="14">{len(order)} tokens, in order of their bytes</text>']
    for row, (label, state) in enumerate(walked):
        allowed = automaton.allowed_tokens(state)
        columns_of = bucket[np.asarray(allowed, dtype=np.int64)] if len(allowed) else np.zeros(0, np.int64)
        share = np.bincount(columns_of[columns_of >= 0], minlength=columns) / sizes
        y = 24 + row * (high + 4)
        name = escape(_shown(label.encode()) if len(label) <= 20 else "…" + _shown(label.encode())[-19:])
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{name or "start"}</text>')
        for column, part in enumerate(share):
            shade = [255 - int(depth * (0.25 + 0.75 * part)) for depth in (244, 141, 122)]
            fill = f"rgb({shade[0]},{shade[1]},{shade[2]})" if part else "#f1f3f5"
            title = f"from {_shown(tokens[order[int(np.searchsorted(bucket[order], column))]])}: {part:.0%}"
            parts.append(
                f'<rect x="{left + column * cell}" y="{y}" width="{cell}" height="{high}" fill="{fill}">'
                f"<title>{escape(title)}</title></rect>"
            )
        parts.append(f'<text x="{left + columns * cell + 8}" y="{y + 14}">{len(allowed)}</text>')
    height = 30 + len(walked) * (high + 4)
    return _svg(left + columns * cell + 70, height, "Which tokens each state allows", parts)


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'style="max-width:100%;height:auto" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="{escape(label)}">'
        f"<style>text{{font:{_FONT};fill:{_INK};white-space:pre}}</style>"
        '<defs><marker id="tf-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{_INK}"/></marker></defs>'
        f'<rect width="100%" height="100%" rx="6" fill="white"/>{"".join(parts)}</svg>'
    )
