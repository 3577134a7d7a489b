"""The evaluation's database, tasks, figures and report, without a model."""

from __future__ import annotations

import json
import random
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tokenform.errors import DataError, OptionError
from tokenform_bench.evaluate import report, svg
from tokenform_bench.evaluate.figures import compute, spread
from tokenform_bench.evaluate.plan import Options, cases_of, units_left
from tokenform_bench.evaluate.store import Store, StoredCase, Unit, UnitResult, Verdict

ENGINES = ("tokenform", "llguidance", "none")


def filled(path: Path, units: int = 60) -> Store:
    """A database with random results of three engines over 12 coverage and 8 quality cases."""
    rng = random.Random(5)
    store = Store(path)
    store.fix_options(Options(engines=ENGINES).as_dict())
    cases = [
        StoredCase("coverage", f"c{i}", f"set{i % 3}", {}, ["type", "enum"][: 1 + i % 2]) for i in range(12)
    ]
    task = {"prompt": "?", "answer": 1, "family": "sums"}
    cases += [StoredCase("quality", f"q{i}", "sums", {}, ["type"], task) for i in range(8)]
    store.add_cases(cases)
    session = store.begin_session({"cpu": "<test>", "cores": 2})
    for unit in units_left(store, Options(engines=ENGINES))[:units]:
        status = rng.choice(["ok", "ok", "ok", "refused", "timeout", "crash"])
        if status != "ok":
            store.add_result(
                unit, UnitResult(status, "<why>", compile_s=0.5 if status == "refused" else None), session
            )
            continue
        times = [rng.uniform(1, 900) for _ in range(rng.randint(1, 30))]
        result = UnitResult(
            "ok",
            compile_s=rng.random(),
            first_token_s=rng.random() + 1,
            model_s=2.0,
            mask_s=sum(times) / 1e6,
            tokens=len(times),
            forwards=len(times) + 1,
            finished=rng.random() < 0.8,
            text="{}",
            mask_us=times,
        )
        store.add_result(unit, result, session)
        valid = rng.random() < 0.6
        correct = rng.random() < 0.5 if unit.case.kind == "quality" else None
        error = None if valid else "<b>bad & wrong</b>"
        store.add_verdict(unit.key, Verdict(True, valid, False, {"jsonschema": error}, correct))
    return store


def test_a_unit_has_one_result(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite") as store:
        case = next(store.cases())
        before = list(store.rows())
        assert not store.add_result(Unit("tokenform", case), UnitResult("crash"), 0.0)
        assert list(store.rows()) == before
        assert len(store.done()) == 60
        assert units_left(store, Options(engines=ENGINES)) == []


def test_a_run_goes_on_with_its_own_options_only(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite", 10) as store:
        assert store.planned()
        assert len(units_left(store, Options(engines=ENGINES))) == 50
        store.fix_options(Options(engines=ENGINES).as_dict())
        with pytest.raises(OptionError, match="max_tokens"):
            store.fix_options(Options(engines=ENGINES, max_tokens=7).as_dict())


def test_what_was_committed_is_there_without_closing(tmp_path: Path) -> None:
    store = filled(tmp_path / "r.sqlite", 20)  # never closed, as after a kill
    with Store(tmp_path / "r.sqlite") as again:
        assert len(again.done()) == 20
        assert list(again.rows()) == list(store.rows())


def test_options_are_free_until_there_is_a_result(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite", 0) as store:
        store.fix_options(Options(engines=ENGINES, max_tokens=7).as_dict())
        assert not store.planned() and store.options()["max_tokens"] == 7 and store.case_count() == 0


def test_two_cases_of_one_name_are_an_error(tmp_path: Path) -> None:
    case = StoredCase("coverage", "a", "s", {}, [])
    with Store(tmp_path / "r.sqlite") as store:
        with pytest.raises(DataError, match="2 coverage cases named 'a'"):
            store.add_cases([case, case])
        assert store.case_count() == 0 and not store.planned()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_text("hello" * 200)
    with pytest.raises(DataError, match=r"x\.sqlite"):
        Store(tmp_path / "x.sqlite")


def test_figures_are_what_plain_sql_says(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with filled(path) as store:
        figures = compute(store)
    db = sqlite3.connect(path)

    def one(query: str, *values: str) -> float:
        return db.execute(query, values).fetchone()[0]

    for engine in ENGINES:
        where = "FROM results LEFT JOIN verdicts USING (engine, kind, case_id) WHERE engine = ?"
        where += " AND kind = 'coverage'"
        coverage = figures.coverage[engine]
        assert coverage.units == one(f"SELECT count(*) {where}", engine) == 12
        assert coverage.compiled == one(f"SELECT count(*) {where} AND status = 'ok'", engine)
        assert coverage.valid == one(f"SELECT count(*) {where} AND valid", engine)
        for subset, by_engine in figures.by_subset.items():
            joined = where.replace("WHERE", "JOIN cases USING (kind, case_id) WHERE subset = ? AND")
            assert by_engine[engine].units == one(f"SELECT count(*) {joined}", subset, engine) == 4
        everywhere = "SELECT kind, case_id FROM results WHERE status = 'ok' GROUP BY 1, 2 HAVING count(*) = 3"
        ok = f"FROM results WHERE engine = ? AND (kind, case_id) IN ({everywhere})"
        efficiency = figures.efficiency[engine]
        assert efficiency.units == one(f"SELECT count(*) {ok}", engine) > 0
        assert efficiency.throughput == pytest.approx(
            one(f"SELECT sum(tokens) / sum(model_s + mask_s) {ok}", engine)
        )
        assert efficiency.forwards_per_token == pytest.approx(
            one(f"SELECT 1.0 * sum(forwards) / sum(tokens) {ok}", engine)
        )
        times = [t for (row,) in db.execute(f"SELECT mask_us {ok}", (engine,)) for t in json.loads(row)]
        assert sorted(times) == sorted(efficiency.token_us)
        assert spread(efficiency.token_us)["mean"] == pytest.approx(sum(times) / len(times))
        right, total = figures.quality["sums"][engine]
        assert total == 8
        assert right == one("SELECT count(*) FROM verdicts WHERE engine = ? AND correct", engine)
    assert figures.by_keyword["type"]["none"].units == 12
    assert figures.by_keyword["enum"]["none"].units == 6
    assert figures.done == figures.planned == 60


class Page(HTMLParser):
    """Checks that tags nest, and collects what would be fetched or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.foreign: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.foreign += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "onload", "onclick")]
        self.foreign += [tag] if tag in ("script", "link", "iframe", "img") else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


@pytest.mark.parametrize("units", [0, 7, 60])
def test_the_report_stands_alone_finished_or_not(tmp_path: Path, units: int) -> None:
    filled(tmp_path / "r.sqlite", units).__exit__()
    page, text = report.write_report(tmp_path / "r.sqlite")
    reader = Page()
    reader.feed(page.read_text("utf-8"))
    reader.close()
    assert reader.open == []
    assert reader.foreign == []
    assert "<why>" not in page.read_text("utf-8")
    markdown = text.read_text("utf-8")
    assert f"Units: {units} of 60" in markdown
    if units == 60:
        assert {"tokenform", "llguidance", "none", "sums"} <= set(reader.cells)
        assert markdown.count("\n|---|") == 6


def test_plots_leave_out_what_is_not_there() -> None:
    assert svg.distribution("t", "u", {"a": []}) == ""
    assert "<polyline" in svg.distribution("t", "u", {"a": [1.0, 10.0, 100.0], "b": []})
    assert svg.bars("t", ["x"], {"a": [float("nan")], "b": [0.5]}).count("<rect") == 1


def test_a_plan_has_all_engines_case_by_case(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"type": "object", "properties": {"type": {"not": {}}}}')
    (tmp_path / "b.json").write_text('{"enum": [1]}')
    options = Options(engines=("tokenform", "none"), data=str(tmp_path), tasks=("extraction",), task_count=2)
    with Store(tmp_path / "r.sqlite") as store:
        store.add_cases(cases_of(options))
        units = units_left(store, options)
    assert [unit.engine for unit in units] == ["tokenform", "none"] * 4
    assert {unit.case.case_id for unit in units} == {"a", "b", "extraction-0-person", "extraction-1-order"}
    assert next(u.case.keywords for u in units if u.case.case_id == "a") == ["not", "properties", "type"]


@pytest.mark.parametrize(
    ("limit", "asked", "tasks"), [(3, None, 3), (None, None, 50), (0, None, 50), (3, 7, 7)]
)
def test_a_small_trial_is_small(limit: int | None, asked: int | None, tasks: int) -> None:
    options = Options(
        engines=("none",), data="generated", limit=limit, tasks=("extraction",), task_count=asked
    )
    assert options.tasks_of_a_family == tasks


@pytest.mark.parametrize(
    "wrong",
    [
        {"engines": ("gpt",)},
        {"engines": ()},
        {"job": "x"},
        {"max_tokens": 0},
        {"limit": -1},
        {"engines": ("none", "none")},
    ],
)
def test_wrong_options_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        Options(**wrong)  # type: ignore[arg-type]


def test_a_data_set_is_read_through_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local folder laid out as the hub's data sets are: configurations in the card's head."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    folder = tmp_path / "data"
    configs = ["configs:"]
    for subset in ("Github_easy", "Snowplow"):
        (folder / subset).mkdir(parents=True)
        rows = [{"unique_id": f"o{i}", "json_schema": json.dumps({"const": i})} for i in range(2)]
        (folder / subset / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
        configs += [f"- config_name: {subset}", "  data_files:", "  - split: test"]
        configs += [f"    path: {subset}/test.jsonl"]
    (folder / "README.md").write_text("\n".join(["---", *configs, "---", ""]))
    cases = list(cases_of(Options(data=f"hub:{folder}", tasks=(), limit=None)))
    assert {(c.case_id, c.subset, c.schema["const"]) for c in cases} == {
        (f"{subset}---o{i}", subset, i) for subset in ("Github_easy", "Snowplow") for i in range(2)
    }
    with pytest.raises(DataError, match="train"):
        list(cases_of(Options(data=f"hub:{folder}", split="train", tasks=())))
    with pytest.raises(DataError, match="nowhere"):
        list(cases_of(Options(data=f"hub:{tmp_path / 'nowhere'}", tasks=())))


def test_the_hub_is_read_by_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"unique_id": "o1", "json_schema": '{"type": "null"}'}]
    monkeypatch.setattr(
        datasets, "get_dataset_config_names", lambda name: ["default", "Github_easy", "Snowplow"]
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda name, subset, split: rows)
    cases = [case for case in cases_of(Options(data="hub", tasks=(), limit=None))]
    assert {(c.case_id, c.subset) for c in cases} == {
        ("Github_easy---o1", "Github_easy"),
        ("Snowplow---o1", "Snowplow"),
    }


def test_a_hub_that_can_not_be_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def fail(name: str) -> list[str]:
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "get_dataset_config_names", fail)
    with pytest.raises(DataError, match="no route"):
        list(cases_of(Options(data="hub")))


def test_databases_of_the_first_form_are_read(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    filled(path).__exit__()
    old = sqlite3.connect(path)
    for table, column in (
        ("results", "nats"),
        ("results", "cpu_s"),
        ("verdicts", "fields"),
        ("verdicts", "fields_right"),
    ):
        old.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    old.close()
    with Store(path) as store:
        rows = list(store.rows())
    assert len(rows) == 60 and {row["fields"] for row in rows} == {row["nats"] for row in rows} == {None}
