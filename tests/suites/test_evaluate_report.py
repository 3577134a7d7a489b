"""The report: its figures are recomputed from the database, and a browser opens it without an error."""

from __future__ import annotations

import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tokenform_bench.evaluate import report

sys.path.insert(0, str(Path(__file__).parent))
from test_evaluate_store import ENGINES, filled

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tables(HTMLParser):
    """The tables of a page by the heading above them: rows of cells, the header first."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._title, self._tag, self._text = "", "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag, self._text = tag, ""
        if tag == "tr":
            self.tables.setdefault(self._title, []).append([])

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "h2":
            self._title = self._text
        elif tag in ("td", "th"):
            self.tables[self._title][-1].append(self._text)


def column(table: list[list[str]], name: str) -> dict[str, str]:
    """First cell -> cell of the column."""
    at = table[0].index(name)
    return {row[0]: row[at] for row in table[1:]}


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def test_the_pages_figures_are_those_of_the_database(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    filled(path).__exit__()
    page, _ = report.write_report(path)
    tables = Tables(page.read_text("utf-8")).tables
    db = sqlite3.connect(path)
    joined = "FROM results LEFT JOIN verdicts USING (engine, kind, case_id) JOIN cases USING (kind, case_id)"
    everywhere = "SELECT kind, case_id FROM results WHERE status = 'ok' GROUP BY 1, 2 HAVING count(*) = 3"
    for engine in ENGINES:

        def one(what: str, where: str, engine: str = engine) -> float:
            return db.execute(f"SELECT {what} {joined} WHERE engine = ? AND {where}", (engine,)).fetchone()[0]

        all_, valid = one("count(*)", "kind = 'coverage'"), one("count(*)", "kind = 'coverage' AND valid")
        compiled = one("count(*)", "kind = 'coverage' AND status = 'ok'")
        coverage = tables["Coverage"]
        assert column(coverage, "schemas")[engine] == str(all_)
        free = engine == "none"  # free text declares nothing
        assert column(coverage, "declared")[engine] == ("-" if free else percent(compiled, all_))
        assert column(coverage, "empirical")[engine] == percent(valid, all_)
        assert column(coverage, "compliance")[engine] == ("-" if free else percent(valid, compiled))
        assert column(coverage, "cut")[engine] == str(one("count(*)", "kind = 'coverage' AND finished = 0"))
        for group, key in (("subset", "subset = 'set1'"), ("keyword", "keywords LIKE '%enum%'")):
            by = column(tables[f"Coverage by {group}"], engine)["set1" if group == "subset" else "enum"]
            key = f"kind = 'coverage' AND {key}"
            total = one("count(*)", key)
            shares = one("total(valid)", key), one("total(status = 'ok')", key)
            assert by == " / ".join(percent(share, total) for share in shares[: 1 if free else 2])
        right = one("count(*)", "kind = 'quality' AND correct")
        assert column(tables["Quality"], engine)["sums"] == percent(
            right, one("count(*)", "kind = 'quality'")
        )
        timed = f"FROM results WHERE engine = ? AND (kind, case_id) IN ({everywhere})"
        times = db.execute(f"SELECT mask_us, first_token_s {timed}", (engine,)).fetchall()
        efficiency = tables["Efficiency"]
        assert column(efficiency, "units")[engine] == str(len(times))
        first = float(column(efficiency, "first token ms")[engine].replace(",", ""))
        assert first == pytest.approx(1e3 * statistics.median(seconds for _, seconds in times), rel=5e-3)
        mask = float(column(efficiency, "mask µs: mean")[engine].replace(",", ""))
        assert mask == pytest.approx(statistics.fmean(t for us, _ in times for t in json.loads(us)), rel=5e-3)
        refused = one("count(*)", "status = 'refused'")
        assert column(tables["Units"], "refused")[engine] == str(refused)


def opened(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The page as a browser has it after loading, and what stands in the browser's console."""
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--enable-logging=stderr", "--v=0", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt install chromium")
def test_a_browser_opens_the_report_without_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<!doctype html><script>undefined_name()</script>")
    assert opened(broken, tmp_path / "profile")[1]  # errors are seen at all
    filled(tmp_path / "r.sqlite").__exit__()
    page, _ = report.write_report(tmp_path / "r.sqlite")
    dom, console = opened(page, tmp_path / "profile")
    assert console == []
    assert Tables(dom).tables == Tables(page.read_text("utf-8")).tables
    assert dom.count("<svg") == 5
