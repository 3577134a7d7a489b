"""The report of an evaluation: its sections, and its files.

Purpose: show the figures, with what they mean and how they were got.
Invariant: everything comes out of the database; `page` builds both forms of it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from tokenform_bench.evaluate import scoreboard, svg
from tokenform_bench.evaluate.figures import Coverage, Figures, compute, spread
from tokenform_bench.evaluate.page import Page, Section, facts, to_html, to_markdown
from tokenform_bench.evaluate.plan import SCOREBOARD
from tokenform_bench.evaluate.store import Store
from tokenform_bench.tables import number


def write_report(database: str | Path, folder: str | Path | None = None) -> tuple[Path, Path]:
    """Write `report.html` and `report.md` beside the database, or into a folder; returns their paths. A
    scoreboard's figures are written as `scoreboard.json` too."""
    database = Path(database)
    target = Path(folder) if folder is not None else database.parent
    target.mkdir(parents=True, exist_ok=True)
    with Store(database) as store:
        if store.options().get("job") == SCOREBOARD:
            board = scoreboard.compute(store)
            (target / "scoreboard.json").write_text(json.dumps(board.as_dict(), indent=1), "utf-8")
            made = scoreboard.page(board)
        else:
            made = _page(compute(store))
    page, text = target / "report.html", target / "report.md"
    page.write_text(to_html(made), "utf-8")
    text.write_text(to_markdown(made), "utf-8")
    return page, text


def _page(figures: Figures) -> Page:
    hidden, masks = {"job", "engines"}, figures.options.get("job") == "masks"
    if masks:
        hidden |= {"tasks", "task_count", "max_tokens", "temperature", "model", "prompt"}
    known = facts(figures.options, figures.done, figures.planned, figures.sessions, hidden)
    title = "Masks without a model" if masks else "JSONSchemaBench"
    return Page(title, known, figures.engines, sections(figures), figures.failures)


def sections(figures: Figures) -> list[Section]:
    """The report's sections; those without data are left out."""
    found = [
        _coverage(figures),
        _subsets(figures),
        _efficiency(figures),
        _quality(figures),
        _keywords(figures),
    ]
    return [section for section in [*found, _statuses(figures)] if section.rows]


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def _coverage(figures: Figures) -> Section:
    masks = figures.options.get("job") == "masks"
    note = (
        "Declared: the constraint compiles. Empirical: every document of the schema is judged right. "
        if masks
        else "Declared: the constraint compiles. Empirical: two independent validators find the text valid. "
    )
    header = ["engine", "schemas", "declared", "empirical", "compliance", "cut", "invalid", "disputed"]
    rows = []
    for engine in figures.engines:
        c = figures.coverage[engine]
        if c.units:
            free = engine == "none"  # free text is held to nothing: it declares nothing
            shares = [
                "-" if free else _percent(c.declared),
                _percent(c.empirical),
                "-" if free else _percent(c.compliance),
            ]
            counts = figures.cut[engine], figures.invalid[engine], c.disputed
            rows.append([engine, str(c.units), *shares, *map(str, counts)])
    return Section(
        "Coverage",
        note + "Compliance: empirical / declared. Cut: not ended within the limit of tokens. Invalid: ended, "
        "and invalid all the same. Disputed: the two validators disagree.",
        header,
        rows,
    )


def _breakdown(figures: Figures, groups: dict[str, dict[str, Coverage]]) -> list[list[str]]:
    rows = []
    for name, by_engine in sorted(groups.items(), key=lambda item: (-_units(item[1]), item[0])):
        shares = [
            _percent(c.empirical) + ("" if engine == "none" else f" / {_percent(c.declared)}")
            for engine, c in by_engine.items()
        ]
        rows.append([name, str(_units(by_engine)), *shares])
    return rows


def _units(by_engine: dict[str, Coverage]) -> int:
    return max(c.units for c in by_engine.values())


def _subsets(figures: Figures) -> Section:
    groups = figures.by_subset
    labels = sorted(groups, key=lambda name: (-_units(groups[name]), name))[:24]
    shares = {engine: [groups[label][engine].empirical for label in labels] for engine in figures.engines}
    counts = [_units(groups[label]) for label in labels]
    plots = [svg.bars("Empirical coverage by subset", labels, shares, counts)] if labels else []
    header = ["subset", "schemas", *figures.engines]
    note = "Empirical / declared coverage by subset; bars: empirical coverage and its 95 % interval (Wilson)."
    return Section("Coverage by subset", note, header, _breakdown(figures, groups), plots)


def _keywords(figures: Figures) -> Section:
    header = ["keyword", "schemas", *figures.engines]
    note = "Empirical / declared coverage over the schemas in whose text the keyword stands."
    return Section("Coverage by keyword", note, header, _breakdown(figures, figures.by_keyword))


def _efficiency(figures: Figures) -> Section:
    rows = []
    for engine in figures.engines:
        e = figures.efficiency[engine]
        if not e.compile_s:
            continue
        compile_ms, first = spread(v * 1e3 for v in e.compile_s), spread(v * 1e3 for v in e.first_token_s)
        token = spread(e.token_us)
        mean = float("nan") if not e.per_token_s else sum(e.per_token_s) / len(e.per_token_s)
        cells = [compile_ms["median"], compile_ms["p99"], first["median"], first["p99"]]
        cells += [token["mean"], token["median"], token["p99"], token["worst"]]
        rows.append(
            [
                engine,
                str(e.units),
                *map(number, cells),
                number(mean * 1e3),
                number(e.throughput),
                number(e.forwards_per_token),
            ]
        )
    first_name = "first mask ms" if figures.options.get("job") == "masks" else "first token ms"
    header = [
        "engine",
        "units",
        "compile ms",
        "p99",
        first_name,
        "p99",
        "mask µs: mean",
        "median",
        "p99",
        "worst",
    ]
    header += ["token ms", "tokens/s", "forwards/token"]
    token_times = {name: figures.efficiency[name].token_us for name in figures.engines}
    firsts = {name: [v * 1e3 for v in figures.efficiency[name].first_token_s] for name in figures.engines}
    plots = [
        "<p>Share of tokens whose mask and advance take longer:</p>",
        svg.distribution("Time per token", "µs a token, mask + advance", token_times),
        f"<p>Share of schemas with a longer time to the {first_name.removesuffix(' ms')}:</p>",
        svg.distribution("Time to first", f"ms to the {first_name.removesuffix(' ms')}", firsts),
    ]
    note = (
        "Over the schemas that every engine could run, so that all are timed on the same. "
        "Mask: computing it and advancing; token: model and mask together."
    )
    if figures.options.get("job") != "masks":
        note += (
            " A mask takes longer here than in a benchmark without a model, for every engine: a forward pass "
            "between two masks empties the processor's caches (benchmarks/between_passes.py times the same "
            "masks both ways), and most masks are a schema's first."
        )
    return Section("Efficiency", note, header, rows, plots if rows else ())


def _quality(figures: Figures) -> Section:
    rows = []
    for family, by_engine in sorted(figures.quality.items()):
        total = max(n for _, n in by_engine.values())
        shares = [_percent(right / n) if n else "-" for right, n in by_engine.values()]
        rows.append([family, str(total), *shares])
    note = "Share of right answers; engine `none` writes without a constraint."
    return Section("Quality", note, ["tasks", "number", *figures.engines], rows)


def _statuses(figures: Figures) -> Section:
    kinds = sorted(
        {kind for counts in figures.statuses.values() for kind in counts}, key=lambda k: (k != "ok", k)
    )
    rows = [[engine, *(str(figures.statuses[engine][kind]) for kind in kinds)] for engine in figures.engines]
    note = "How the units ended. A unit over its limits, or whose process died, costs itself alone."
    return Section("Units", note, ["engine", *kinds], rows if kinds else [])
