"""A file through `Generate`: killed, poisoned, gone on with; the output is that of an undisturbed run."""

from __future__ import annotations

import csv
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tokenform as tf
from tokenform.batch import Generate, Limits, run
from tokenform.batch.journal import Journal
from tokenform.cli import app
from tokenform.errors import DataError, ModelError, OptionError

sys.path.insert(0, str(Path(__file__).parent))
from writers import Walker, absent, logged, walker

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9999}, "s": {"enum": ["x", "y"]}},
    "required": ["n", "s"],
}


def rows_of(count: int, poisoned: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    return [{"id": f"r{i}", "prompt": "poison" if i in poisoned else f"row {i % 7}"} for i in range(count)]


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_script_without_a_guard_is_told_of_it(tmp_path: Path) -> None:
    save(tmp_path / "in.jsonl", rows_of(1))
    program = """
import functools, sys
sys.path.insert(0, {tests!r})
import tokenform.batch as batch
from writers import walker

batch.run(batch.Generate(walker, {schema!r}), "in.jsonl", "out.jsonl", quiet=True)
"""
    script = tmp_path / "script.py"
    script.write_text(program.format(tests=str(Path(__file__).parent), schema=SCHEMA))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "another process works" not in done.stderr
    assert "OptionError: each worker imports the script" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr
    assert done.stderr.splitlines()[-1].endswith("its error stands above")


PROGRAM = """
import functools, sys
sys.path.insert(0, {tests!r})
import tokenform.batch as batch
from writers import logged

if __name__ == "__main__":
    write = batch.Generate(functools.partial(logged, {log!r}, {delay}), {schema!r}, batch_size=8)
    batch.run(write, {source!r}, {output!r}, batch.Limits(workers=2), quiet=True)
"""


def killed_run(folder: Path, source: Path, output: Path, kills: int, delay: float) -> list[str]:
    """Run in a process that is killed so many times when it has got on a little; returns what was written."""
    log = folder / "log"
    program = folder / "program.py"
    program.write_text(
        PROGRAM.format(
            tests=str(Path(__file__).parent), log=str(log), delay=delay, schema=SCHEMA, source=str(source),
            output=str(output),
        )
    )  # fmt: skip
    journal = output.with_name(f"{output.name}.journal")
    environment = {**os.environ, "PYTHONPATH": str(Path(tf.__file__).parents[1])}
    for _ in range(kills):
        before = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen([sys.executable, str(program)], env=environment)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.stat().st_size > before + 2000:
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not output.exists()
    assert subprocess.run([sys.executable, str(program)], env=environment, check=False).returncode == 0
    return [line.partition(" ")[2] for line in log.read_text().splitlines()]


def check_killed(tmp_path: Path, count: int, kills: int, delay: float) -> None:
    poisoned = (count // 3,)
    source = save(tmp_path / "in.jsonl", rows_of(count, poisoned))
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    done = run(Generate(walker, SCHEMA, batch_size=8), source, whole, quiet=True)
    assert (done.rows, done.written, done.refused, done.before) == (count, count - 1, 1, 0)
    written = killed_run(tmp_path, source, output, kills, delay)
    assert output.read_bytes() == whole.read_bytes()
    errors = lines(tmp_path / "out.errors.jsonl")
    assert errors == lines(tmp_path / "whole.errors.jsonl")
    assert [(one["id"], one["error"]) for one in errors] == [(f"r{poisoned[0]}", "crash")]
    assert [row["id"] for row in lines(output)] == [f"r{i}" for i in range(count) if i not in poisoned]
    # nothing twice but what was in hand: at a kill two batches of 8; the poisoned batch each row thrice
    assert count <= len(written) <= count + kills * 2 * 8 + 3 * 8 * (kills + 1)


@pytest.mark.timeout(600)
def test_killed_and_poisoned_200_rows(tmp_path: Path) -> None:
    check_killed(tmp_path, 200, 1, 0.004)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_and_poisoned_20000_rows(tmp_path: Path) -> None:
    check_killed(tmp_path, 20_000, 3, 0.0)


def test_a_finished_job_is_done_and_more_rows_are_added(tmp_path: Path) -> None:
    source, output, log = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "log"
    save(source, rows_of(20))
    write = Generate(functools.partial(logged, str(log)), SCHEMA, batch_size=4)
    assert run(write, source, output, quiet=True).before == 0
    first = output.read_bytes()
    assert run(write, source, output, quiet=True).before == 20
    assert output.read_bytes() == first and len(log.read_text().splitlines()) == 20
    changed = [*rows_of(24)[:3], {"id": "r3", "prompt": "another"}, *rows_of(24)[4:]]
    save(source, changed)
    assert run(write, source, output, quiet=True).before == 19  # r3 asks for something else now
    assert [row["prompt"] for row in lines(output)] == [row["prompt"] for row in changed]
    assert output.read_bytes().splitlines()[:3] == first.splitlines()[:3]
    assert len(log.read_text().splitlines()) == 25
    with pytest.raises(OptionError, match="another seed"):
        run(Generate(functools.partial(logged, str(log)), SCHEMA, seed=1), source, output, quiet=True)


def test_bad_rows_are_put_aside_with_their_reason(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    kept = [{"id": i, "prompt": "a", "regex": "[a-z]{4}"} for i in range(4)]
    bad = [
        {"id": "x", "prompt": "a", "regex": "(a"},
        {"id": "y", "prompt": "long", "regex": None},
        {"id": "z", "prompt": "broken", "regex": None},
        {"id": "w", "prompt": "asleep", "regex": None},
        {"id": "v", "text": "no prompt"},
        {"id": "2", "prompt": "the same id", "regex": None},
    ]
    text = "".join(json.dumps(row) + "\n" for row in [*kept, *bad])
    source.write_text(text + '{"id": 9, "prom\n[1]\n\n' + json.dumps({"prompt": "no id"}) + "\n")
    write = Generate(walker, SCHEMA, regex_column="regex", batch_size=4)
    done = run(write, source, output, Limits(workers=2, timeout=4), quiet=True)
    assert (done.rows, done.written, done.refused) == (13, 5, 8)
    assert [row["id"] for row in lines(output)] == [0, 1, 2, 3, "14"]
    aside = {
        one["id"] or one["reason"].partition(":")[0]: one for one in lines(tmp_path / "out.errors.jsonl")
    }
    assert {name: one["error"] for name, one in aside.items()} == {
        "x": "InvalidRegex", "y": "PromptTooLong", "z": "error", "w": "timeout", "v": "OptionError",
        "line 10": "DataError", "line 11": "DataError", "line 12": "DataError",
    }  # fmt: skip
    assert "a fault of the engine" in aside["z"]["reason"] and aside["x"]["row"]["regex"] == "(a"
    assert "'2' was there before" in aside["line 10"]["reason"]
    again = run(write, source, output, Limits(timeout=4), retry=True, quiet=True)
    assert (again.before, again.written, again.refused) == (5, 5, 8)


def test_csv_and_parquet(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "prompt"], ["1", 'a "quoted"\nprompt, of two lines'], ["2", "é"], ["3"]])
    write = Generate(walker, tf.regex('[a-z,"]{6}'))
    done = run(write, table, tmp_path / "out.csv", quiet=True)
    assert (done.written, done.refused) == (2, 1)
    with (tmp_path / "out.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    run(write, table, tmp_path / "out.jsonl", quiet=True)
    assert [row["output"] for row in found] == [row["output"] for row in lines(tmp_path / "out.jsonl")]
    assert found[0]["prompt"] == 'a "quoted"\nprompt, of two lines'
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run(write, table, tmp_path / "out.parquet", quiet=True)
    assert [row["output"] for row in parquet.read_table(tmp_path / "out.parquet").to_pylist()] == [
        row["output"] for row in found
    ]
    run(
        Generate(walker, tf.regex("[a-z]"), output="more"),
        tmp_path / "out.parquet",
        tmp_path / "2.jsonl",
        quiet=True,
    )
    assert [row["output"] for row in lines(tmp_path / "2.jsonl")] == [row["output"] for row in found]


def test_workers_change_nothing(tmp_path: Path) -> None:
    source = save(tmp_path / "in.jsonl", rows_of(30))
    for workers in (1, 3):
        run(
            Generate(walker, SCHEMA, batch_size=4),
            source,
            tmp_path / f"{workers}.jsonl",
            Limits(workers),
            quiet=True,
        )
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "3.jsonl").read_bytes()


def test_the_journal_heals_and_guards(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.check_job({"seed": 1})
        journal.add([("a", "1", {"text": "é"}), ("b", "1", {"error": "x", "reason": "y"})])
        journal.add([("c", "1", {"text": "3"})])
        with pytest.raises(DataError, match="another process"):
            Journal(path)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with Journal(path) as journal:
            kept = [key for key in "abc" if journal.done(key, "1")]
            assert kept == ["", "", "ab", "abc"][sum(end <= cut for end in ends)].split() or kept == list(
                ["", "", "ab", "abc"][sum(end <= cut for end in ends)]
            )
            journal.check_job({"seed": 1})
            journal.add([("d", "1", {"text": "4"})])
        with Journal(path) as journal:
            assert journal.read("d") == {"text": "4"} and not journal.done("d", "2")
            assert not journal.done("b", "1", failures=False)
            if "a" in kept:
                assert journal.read("a") == {"text": "é"}
            with pytest.raises(OptionError, match="another seed"):
                journal.check_job({"seed": 2})
    for foreign in (b"hello\n", b'{"a": 1}\n', b"id,prompt\n1,a\n", b"no end of line", b'"format"'):
        path.write_bytes(foreign)
        with pytest.raises(DataError, match="not the journal"):
            Journal(path)
        assert path.read_bytes() == foreign


def test_what_stops_a_job_leaves_what_is_done(tmp_path: Path) -> None:
    source, output = save(tmp_path / "in.jsonl", rows_of(3)), tmp_path / "out.jsonl"
    with pytest.raises((DataError, ModelError), match="no weights here"):
        run(Generate(absent, SCHEMA), source, output, quiet=True)
    assert not output.exists()
    with pytest.raises(OptionError, match="is no kind of table"):
        run(Generate(walker, SCHEMA), source, tmp_path / "out.xml", quiet=True)
    with pytest.raises(OptionError, match="is the input"):
        run(Generate(walker, SCHEMA), source, source, quiet=True)
    with pytest.raises(DataError, match="can't be read"):
        run(Generate(walker, SCHEMA), tmp_path / "none.jsonl", output, quiet=True)
    with pytest.raises(OptionError, match="workers"):
        Limits(workers=0)
    assert Counter(type(one) for one in Walker(None).seen) == Counter()


@pytest.mark.timeout(600)
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    facts = [("Ada Lovelace", "London"), ("Maria Rossi", "Lisbon"), ("Karl Berg", "Oslo")]
    given = [{"id": n, "prompt": f"{n} lives in {c}."} for n, c in facts]
    save(tmp_path / "in.jsonl", [*given, {"id": 4, "prompt": 3}])
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    (tmp_path / "city.json").write_text(json.dumps(schema))
    call = functools.partial(CliRunner().invoke, app)
    rows = ["generate", "--input", "in.jsonl", "--output", "out.jsonl", "--quiet"]
    done = call([*rows, "--schema", "city.json", "--max-tokens", "40"])
    assert done.exit_code == 1
    assert "1 of 4 rows were put aside: see out.errors.jsonl" in done.output
    found = lines(tmp_path / "out.jsonl")
    assert [json.loads(row["output"])["city"] for row in found] == [c for _, c in facts]
    direct = tf.generate([row["prompt"] for row in given], schema=schema, max_tokens=40)
    assert [row["output"] for row in found] == [result.text for result in direct]
    for more, said in (
        (["--schema", "city.json", "--seed", "4"], "another max_tokens and seed"),
        (["a prompt", "--schema", "city.json"], "a prompt is for one prompt"),
        ([], "no constraint is given"),
    ):
        failed = call([*rows, *more])
        assert failed.exit_code == 2 and said in failed.output, failed.output
    assert call(["generate", "--input", "in.jsonl", "-r", "a"]).exit_code == 2
