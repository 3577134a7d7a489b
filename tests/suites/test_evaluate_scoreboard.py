"""The scoreboard: its figures by hand, its intervals against the exact law, and whole runs."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from pathlib import Path

import pytest
import torch

from tokenform_bench.evaluate import job, scoreboard
from tokenform_bench.evaluate.__main__ import _options, main, parser
from tokenform_bench.evaluate.passes import Passes
from tokenform_bench.evaluate.plan import BOARD, SCOREBOARD, Options
from tokenform_bench.evaluate.scoreboard import ALL, bootstrap
from tokenform_bench.evaluate.store import Store, StoredCase, Unit, UnitResult, Verdict

sys.path.insert(0, str(Path(__file__).parent))
from tiny_model import TEMPLATE, save_tiny_model
from worker_handlers import run_unit


def binomial(n: int, p: float, share: float) -> int:
    """The least k with P(at most k) >= share."""
    total = 0.0
    for k in range(n + 1):
        total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
        if total >= share:
            return k
    return n


@pytest.mark.parametrize(("ones", "n"), [(30, 100), (5, 40), (1, 200)])
def test_the_bootstrap_of_yes_and_no_is_the_binomial(ones: int, n: int) -> None:
    mean, low, high = bootstrap([1.0] * ones + [0.0] * (n - ones))
    assert mean == ones / n
    for found, share in ((low, 0.025), (high, 0.975)):  # a step of the law may lie within the sampling error
        assert binomial(n, mean, share - 0.006) <= round(found * n) <= binomial(n, mean, share + 0.006)


def test_the_bootstrap_is_paired_and_repeats() -> None:
    assert bootstrap([0.25] * 7) == (0.25, 0.25, 0.25)
    some = [0.5, -0.5, 1.0, 0.0, 0.25]
    assert bootstrap(some) == bootstrap(some)
    mean, low, high = bootstrap([-x for x in some])
    assert low < mean < high and mean == -sum(some) / 5


def board(path: Path) -> scoreboard.Board:
    """Two engines, two families; texts right, wrong but valid, and invalid; one task refused, one failed."""
    with Store(path) as store:
        store.fix_options(Options(job=SCOREBOARD, engines=("tokenform", "none"), tasks=()).as_dict())
        cases = []
        for family, number in (("sums", 3), ("riddles", 2)):
            task = {"prompt": "?", "text": "", "answer": 1, "family": family, "max_tokens": None}
            cases += [StoredCase(BOARD, f"{family}{i}", family, {}, [], task) for i in range(number)]
        store.add_cases(cases)
        session = store.begin_session({"cpu": "<test>"})
        costs = {
            "tokens": 4,
            "forwards": 5,
            "nats": 2.5,
            "mass": -0.5,
            "draws": 5,
            "cpu_s": 0.25,
            "text": "?",
        }
        verdicts = {  # valid, right, fields right of four
            "tokenform": [(True, True, 4), (True, False, 3), (True, True, 4), None, (True, False, 2)],
            "none": [(True, True, 4), (False, False, 0), (True, False, 1), (True, True, 4), "failed"],
        }
        for engine, marks in verdicts.items():
            for case, mark in zip(cases, marks, strict=True):
                unit = Unit(engine, case)
                if mark is None or mark == "failed":
                    store.add_result(
                        unit, UnitResult("refused" if mark is None else "error", "<why>"), session
                    )
                    continue
                store.add_result(unit, UnitResult("ok", **costs), session)
                valid, right, fields = mark
                store.add_verdict(unit.key, Verdict(True, valid, False, {}, right, fields, 4))
        return scoreboard.compute(store)


def test_figures_by_hand(tmp_path: Path) -> None:
    made = board(tmp_path / "r.sqlite")
    ours, free = made.scores[ALL, "tokenform"], made.scores[ALL, "none"]
    assert (ours.tasks, ours.refused, ours.failed) == (5, 1, 0)
    assert (ours.valid, ours.right, ours.wrong_but_valid) == (4, 2, 2)
    assert ours.as_dict()["fields_right"] == pytest.approx((1 + 0.75 + 1 + 0 + 0.5) / 5)
    assert ours.as_dict()["nats_a_token"] == 0.5 and ours.as_dict()["log_mass_a_token"] == pytest.approx(-0.1)
    assert (free.tasks, free.failed, free.valid, free.right) == (4, 1, 3, 2)  # what failed stands in no mean
    assert free.as_dict()["right"] == 0.5 and free.as_dict()["passes"] == 5
    assert made.failures["none"] == [("riddles1", "error <why>")]
    by_family = {one.family: one for one in made.differences}
    assert by_family["sums"].tasks == 3 and by_family["riddles"].tasks == 1 and by_family[ALL].tasks == 4
    assert by_family["sums"].fields[0] == pytest.approx((0 + 0.75 + 0.75) / 3)
    assert by_family["riddles"].verdict == "worse"  # one task: refused here, right there


def test_the_page_and_the_json_say_the_same(tmp_path: Path) -> None:
    made = board(tmp_path / "results.sqlite")
    told = json.loads(json.dumps(made.as_dict(), allow_nan=False))
    cell = next(s for s in told["scores"] if (s["family"], s["engine"]) == (ALL, "tokenform"))
    assert (cell["tasks"], cell["right"], cell["wrong_but_valid"]) == (5, 0.4, 0.4)
    assert main(["report", "--out", str(tmp_path)]) == 1  # a unit failed
    text = (tmp_path / "report.md").read_text()
    assert "| tokenform | 5 | 80.0 % | 40.0 % | 40.0 % | 65.0 % |" in text
    page = (tmp_path / "report.html").read_text()
    assert "&lt;why&gt;" in page and "<svg" in page and "<script" not in page
    assert json.loads((tmp_path / "scoreboard.json").read_text())["scores"] == told["scores"]


def command(model: Path | str, out: Path, *more: str) -> list[str]:
    given = ["scoreboard", "--out", str(out), "--engines", "tokenform,none", "--max-tokens", "40", "--quiet"]
    return [*given, "--workers", "1", "--model", str(model), *more]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat") / "model"
    save_tiny_model(folder, TEMPLATE)
    return folder


@pytest.mark.parametrize("prompt", [pytest.param("library", marks=pytest.mark.slow), "schema"])
def test_a_run_with_a_chat_model(
    model: Path, tmp_path: Path, prompt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "boolean"}}, "required": ["answer"]}
    asked = [
        {"id": n, "prompt": f"Is {n} odd?", "schema": {**schema, "maxProperties": 1}, "answer": True}
        for n in "13"
    ]
    tasks = tmp_path / "odd.jsonl"
    tasks.write_text("\n".join(map(json.dumps, asked)))
    asked = command(model, tmp_path, "--tasks", str(tasks), "--prompt", prompt)
    assert main(asked) == 0
    assert "| tokenform | 2 | 100.0 % |" in capsys.readouterr().out
    database = sqlite3.connect(tmp_path / "results.sqlite")
    query = (
        "SELECT engine, case_id, prompt_tokens, tokens, draws, finished, nats, mass, cpu_s, text FROM results"
    )
    rows = database.execute(query).fetchall()
    assert len(rows) == 4
    assert (
        len({row[:3] for row in rows}) == 4 and len({row[1:3] for row in rows}) == 2
    )  # one prompt, both engines
    for engine, _, _, tokens, draws, finished, nats, mass, cpu, _ in rows:
        assert draws in (tokens, tokens + 1) and nats > 0 and cpu > 0
        assert mass == pytest.approx(0.0, abs=1e-9) if engine == "none" else mass < 0
        assert finished or engine == "none"
    assert main(asked) == 0  # nothing is left to do
    assert database.execute(query).fetchall() == rows


def test_passes_are_shared_and_change_nothing(model: Path) -> None:
    from transformers import AutoModelForCausalLM

    from tokenform.decoding.speculative.backbone import Backbone

    network = AutoModelForCausalLM.from_pretrained(model).eval()
    passes = Passes(Backbone(network))
    steps: list[list[list[int]]] = [[[], [], []], [[5], [5], [7]], [[5, 6], [5, 8], [7, 9]], [[5, 6, 4]]]
    prompts, rows = ((1, 2, 3), (1, 2, 3), (1, 2, 4)), []
    for texts in steps:
        asked = [(prompt, tuple(text)) for prompt, text in zip(prompts, texts, strict=False)]
        made = passes.after(asked)
        rows.append(len(made))
        for prompt, text in asked:
            direct = network(torch.tensor([[*prompt, *text]])).logits[0, -1:]
            row = made[prompt, text].logits[:, : direct.shape[1]]
            torch.testing.assert_close(row, direct, rtol=1e-4, atol=1e-5)
    assert rows == [2, 2, 3, 1] and passes._backbone.counters.forwards == len(steps)
    passes.end()
    assert not passes._backbone.sequences


def test_what_fails_is_tried_again_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "unit_runner", run_unit)
    tasks = tmp_path / "mine.jsonl"
    names = ["a", "flaky-1", "fail-2", "b"]
    tasks.write_text(
        "\n".join(json.dumps({"id": n, "prompt": "p", "schema": {}, "answer": 1}) for n in names)
    )
    out = tmp_path / "run"
    asked = command("unused", out, "--tasks", str(tasks))
    for _ in range(2):  # a second start goes on from the first
        assert main(asked) == 1
        said = capsys.readouterr()
        assert "2 of 8 units failed (fail-2 on" in said.err and "no luck" in said.err
        assert "| tokenform | 3 | 100.0 % |" in said.out  # three are done, the failed one is counted apart
    rows = sqlite3.connect(out / "results.sqlite").execute("SELECT case_id, status FROM results").fetchall()
    assert sorted({case for case, status in rows if status == "error"}) == ["fail-2"]
    assert len(rows) == 8


def test_tasks_may_have_a_number_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("unused", tmp_path, "--tasks", "extraction:many")) == 2
    assert main(command("unused", tmp_path, "--tasks", "riddles")) == 2
    assert main(command("unused", tmp_path, "--engines", "gpt")) == 2
    assert capsys.readouterr().err.count("tokenform: ") == 3


def test_without_a_network_the_tasks_at_hand_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENFORM_TASKS", str(tmp_path / "none"))
    monkeypatch.setenv("TOKENFORM_SHARED", str(tmp_path / "none"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    options = _options(parser().parse_args(["scoreboard"]))
    assert options.tasks == ("extraction:40", "extraction_aside:200")
    said = capsys.readouterr().err
    assert all(
        f"{name} is left out: " in said for name in ("bfcl:200", "gsm8k:50", "human_eval:40", "maskbench:50")
    )
    assert _options(parser().parse_args(["scoreboard", "--tasks", "gsm8k:2", "--quiet"])).tasks == (
        "gsm8k:2",
    )
