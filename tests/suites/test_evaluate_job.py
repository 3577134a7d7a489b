"""A whole evaluation: stopped in the middle, resumed, nothing lost and nothing counted twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tokenform
import tokenform_bench
from tokenform.batch import progress
from tokenform_bench.evaluate import job, report
from tokenform_bench.evaluate.__main__ import main
from tokenform_bench.evaluate.job import Limits
from tokenform_bench.evaluate.plan import Options
from tokenform_bench.evaluate.store import Store, StoredCase, Unit, UnitResult

sys.path.insert(0, str(Path(__file__).parent))
from tiny_model import save_tiny_model
from worker_handlers import run_unit

SCHEMAS = [
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
        "required": ["a"],
    },
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    {"type": "string", "maxLength": 5},
    {"const": {"k": [1, None]}},
    {"type": "integer", "minimum": 3, "maximum": 40},
    {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
]

# enough that a busy machine's run is still in its middle when the tests come to stop it
TASKS = 15


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("evaluate")
    data = folder / "schemas.jsonl"
    lines = [json.dumps({"id": f"s_{i}", "schema": schema, "tests": []}) for i, schema in enumerate(SCHEMAS)]
    data.write_text("\n".join(lines))
    save_tiny_model(folder / "model")
    return data, folder / "model"


def command(data: Path, model: Path, out: Path, *more: str) -> list[str]:
    return [
        "jsonschemabench", "--out", str(out), "--data", str(data), "--model", str(model), "--limit", "all",
        "--engines", "tokenform,none", "--task-count", str(TASKS), "--max-tokens", "48", "--quiet", *more,
    ]  # fmt: skip


def results(out: Path) -> dict[tuple[str, str, str], tuple[str, str | None, float]]:
    """The results that are committed, or none before there is a database."""
    try:
        db = sqlite3.connect(f"file:{out / 'results.sqlite'}?mode=ro", uri=True)
        rows = db.execute("SELECT engine, kind, case_id, status, text, total_s FROM results").fetchall()
        db.close()
    except sqlite3.OperationalError:
        return {}
    return {row[:3]: row[3:] for row in rows}


def workers(out: Path) -> set[int]:
    """The process ids of the workers that wrote results."""
    db = sqlite3.connect(f"file:{out / 'results.sqlite'}?mode=ro", uri=True)
    names = [worker for (worker,) in db.execute("SELECT DISTINCT worker FROM results")]
    db.close()
    return {int(name.rpartition(":")[2]) for name in names}


def ended(pid: int) -> bool:
    """Whether the process ends within a few seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")  # a zombie that nobody has waited for has ended, too
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_stopped_twice_and_resumed(setting: tuple[Path, Path], tmp_path: Path) -> None:
    data, model = setting
    out = tmp_path / "run"
    source = os.pathsep.join(str(Path(one.__file__).parents[1]) for one in (tokenform, tokenform_bench))
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "tokenform_bench.evaluate", *command(data, model, out, "--workers", "1")]

    def heed() -> None:  # tests that a shell runs in the background inherit that interrupts are ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    seen: dict[tuple[str, str, str], tuple[str, str | None, float]] = {}
    for least, how in ((3, signal.SIGKILL), (9, signal.SIGINT)):
        process = subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL, preexec_fn=heed)
        deadline = time.monotonic() + 400  # a busy machine takes minutes to start a model
        while len(results(out)) < least and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(how)
        assert process.wait() == (-signal.SIGKILL if how == signal.SIGKILL else 130)
        after = results(out)
        assert len(after) >= least
        assert seen.items() <= after.items()  # times included: nothing was run again
        assert all(ended(worker) for worker in workers(out))
        seen = after
    assert main(command(data, model, out, "--workers", "1")) == 0
    final = results(out)
    assert seen.items() <= final.items()
    assert len(final) == 2 * (len(SCHEMAS) + 4 * TASKS)
    assert {status for status, _, _ in final.values()} == {"ok"}
    db = sqlite3.connect(out / "results.sqlite")
    query = "SELECT count(*), sum(valid) FROM verdicts WHERE engine = 'tokenform' AND kind = 'coverage'"
    assert db.execute(query).fetchone() == (len(SCHEMAS), len(SCHEMAS))
    assert db.execute("SELECT count(*) FROM sessions").fetchone() == (3,)
    page, text = report.write_report(out / "results.sqlite", tmp_path / "again")
    assert text.read_text() == (out / "report.md").read_text()
    assert page.stat().st_size > 5_000


def test_what_hangs_or_dies_costs_its_unit_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["sleep", *(f"a{i}" for i in range(6)), "die", *(f"b{i}" for i in range(6)), "eat", "c"]
    data = tmp_path / "d.jsonl"
    data.write_text("\n".join(json.dumps({"id": f"{n}---", "schema": {}}) for n in names))
    monkeypatch.setattr(job, "unit_runner", run_unit)
    options = Options(engines=("tokenform", "none"), data=str(data), tasks=(), limit=None)
    job.run(options, tmp_path / "results.sqlite", Limits(timeout=10, memory_mib=300), quiet=True)
    wrong = {"sleep---": "timeout", "die---": "crash", "eat---": "memory"}
    assert {key: status for key, (status, _, _) in results(tmp_path).items()} == {
        (engine, "coverage", f"{name}---"): wrong.get(f"{name}---", "ok")
        for name in names
        for engine in options.engines
    }
    page, _ = report.write_report(tmp_path / "results.sqlite")
    assert "timeout over 10 s" in page.read_text() and "memory over 300 MiB" in page.read_text()


def test_the_report_of_an_unfinished_run_has_verdicts(tmp_path: Path) -> None:
    case = StoredCase("coverage", "a", "s", {"type": "integer"}, ["type"])
    with Store(tmp_path / "results.sqlite") as store:
        store.fix_options(Options(engines=("none", "tokenform")).as_dict())
        store.add_cases([case])
        times = {"compile_s": 0.1, "first_token_s": 0.2, "model_s": 0.1, "mask_s": 0.1}
        store.add_result(
            Unit("tokenform", case), UnitResult("ok", **times, tokens=1, forwards=1, text="1"), 0.0
        )
    assert main(["report", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "Units: 1 of 2" in text and "| tokenform | 1 | 100.0 %" in text


def test_progress_says_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Meter("units", 1000, 400, False) as meter:
        for step in range(100):
            now[0] += 0.5
            meter.step("ok" if step % 4 else "refused")
        assert meter.line() == "units 500/1000 (50 %)  2.00/s  4:10 left  ok 75  refused 25"
        monkeypatch.setattr(meter, "_terminal", True)
        now[0] += 1
        meter.step("ok")
    shown = capsys.readouterr().err
    assert shown.startswith("400 of 1000 units were done before; going on\n")
    assert "\r[############............] units 501/1000" in shown
    assert shown.count("\n") > 3  # elsewhere than on a terminal: a line now and then


def test_a_database_of_other_options_is_refused(
    setting: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = setting
    arguments = command(data, model, tmp_path, "--tasks", "", "--limit", "0")
    assert main(arguments) == 0
    with Store(tmp_path / "results.sqlite") as store:  # options are free until there is a result
        store.add_result(Unit("none", StoredCase("coverage", "a", "s", {}, [])), UnitResult("ok"), 0.0)
    assert main([*arguments, "--seed", "3"]) == 2
    assert "other options (seed)" in capsys.readouterr().err


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--out", str(tmp_path / "nothing")]) == 2
    ours = ["--engines", "tokenform"]
    assert main(["masks", "--out", str(tmp_path / "a"), "--data", str(tmp_path / "none.jsonl"), *ours]) == 2
    assert main(["masks", "--out", str(tmp_path / "b"), "--engines", "gpt"]) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 3
    assert all("Traceback" not in error for error in errors)


def test_masks_without_a_model(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    data = tmp_path / "d.jsonl"
    tests = [{"valid": True, "data": 5}, {"valid": False, "data": "x"}]
    data.write_text(json.dumps({"id": "one_1", "schema": {"type": "integer"}, "tests": tests}))
    out = tmp_path / "run"
    assert main(["masks", "--out", str(out), "--data", str(data), "--engines", "tokenform", "--quiet"]) == 0
    assert [(status, text) for status, text, _ in results(out).values()] == [("ok", None)]
    assert "| tokenform | 1 | 100.0 % | 100.0 % | 100.0 % |" in (out / "report.md").read_text()


def actor_of_a_result(out: Path) -> int:
    """The process id of the actor behind the worker that wrote the latest result."""
    db = sqlite3.connect(f"file:{out / 'results.sqlite'}?mode=ro", uri=True)
    (worker,) = db.execute("SELECT worker FROM results ORDER BY rowid DESC LIMIT 1").fetchone()
    db.close()
    status = Path(f"/proc/{worker.rpartition(':')[2]}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc to find the actor")
def test_on_a_local_ray_cluster_with_a_killed_worker(
    setting: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # its default of 15 starves on a busy machine
    data, model = setting
    out = tmp_path / "run"
    killed: list[int] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 600
        while not killed and time.monotonic() < deadline:
            if len(results(out)) >= 3:
                killed.append(actor_of_a_result(out))
                os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_one)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        killer.start()
        assert main(command(data, model, out, "--ray", "auto")) == 0
        killer.join()
    finally:
        ray.shutdown()
    assert killed
    assert killed[0] != os.getpid()
    final = results(out)
    assert len(final) == 2 * (len(SCHEMAS) + 4 * TASKS)
    assert {status for status, _, _ in final.values()} == {"ok"}
