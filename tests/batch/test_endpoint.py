"""Rows that a server writes: what is asked, what is judged, what is tried again, what ends the job."""

from __future__ import annotations

import json
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tokenform as tf
from tokenform.batch import Endpoint, Generate, run
from tokenform.errors import ModelError, OptionError

pytest.importorskip("openai", reason="openai is not installed: pip install 'tokenform[endpoint]'")
sys.path.insert(0, str(Path(__file__).parent))
from server import serving

SCHEMA = {"type": "object", "properties": {"n": {"multipleOf": 3, "type": "integer"}}, "required": ["n"]}


def rows(prompts: list[str]) -> dict[str, Any]:
    return {"id": list(range(len(prompts))), "prompt": prompts}


def test_what_is_asked_for() -> None:
    constraints = [
        tf.json_schema(SCHEMA),
        tf.regex("[ab]+"),
        tf.choice(["a", "b"]),
        tf.lark('start: "a" start | "b"'),
        None,
    ]
    with serving(lambda body, number: (200, '{"n": 3}' if "response_format" in body else "b")) as (
        url,
        asked,
    ):
        for constraint in constraints:
            write = Generate(Endpoint(url, extra={"top_k": 5}), constraint, temperature=0.5, max_tokens=9)
            assert write(rows(["p"]))["output_error"].tolist() == [None]
    assert asked[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert asked[0]["response_format"]["json_schema"]["strict"] is True
    assert asked[1]["structured_outputs"] == {"regex": "[ab]+"}
    assert asked[2]["structured_outputs"] == {"choice": ["a", "b"]}
    assert "root ::=" in asked[3]["structured_outputs"]["grammar"]
    assert "structured_outputs" not in asked[4] and "response_format" not in asked[4]
    for body in asked:
        assert body["messages"] == [{"role": "user", "content": "p"}] and body["model"] == "m"
        assert (body["temperature"], body["max_tokens"], body["top_k"]) == (0.5, 9, 5)
    assert len({body["seed"] for body in asked}) == 1  # of the row's id


def test_what_is_not_valid_is_asked_again_and_then_refused() -> None:
    texts = {"late": ['{"n": 4}', '{"n": 9}'], "never": ['{"n": 4}'], "cut": [('{"n": ', "length")]}
    texts["spelt"] = [' {"other": 1,\n"n" : 6.0e0}\n']  # valid, if in no spelling of this library's
    counts: dict[str, int] = {}

    def answer(body: dict[str, Any], _: int) -> tuple[int, Any]:
        prompt = body["messages"][0]["content"]
        counts[prompt] = counts.get(prompt, -1) + 1
        return 200, texts[prompt][min(counts[prompt], len(texts[prompt]) - 1)]

    with serving(answer) as (url, asked):
        out = Generate(Endpoint(url, tries=3), SCHEMA)(rows(list(texts)))
    assert out["output"].tolist() == ['{"n": 9}', None, None, texts["spelt"][0]]
    assert out["output_reason"].tolist() == ["end", None, None, "end"]
    assert "in 3 tries" in out["output_error"][1] and "cut at max_tokens" in out["output_error"][2]
    assert counts == {"late": 1, "never": 2, "cut": 2, "spelt": 0} and len(asked) == 9
    seeds = [body["seed"] for body in asked if body["messages"][0]["content"] == "never"]
    assert len(set(seeds)) == 3


def test_a_server_in_trouble_is_asked_again_and_a_bad_row_is_not() -> None:
    def answer(body: dict[str, Any], number: int) -> tuple[int, Any]:
        prompt = body["messages"][0]["content"]
        if prompt == "bad":
            return 400, "no such schema"
        return (429 if number % 2 else 503, "busy") if number < 4 else (200, "a")

    with serving(answer) as (url, asked):
        out = Generate(Endpoint(url, concurrency=1), tf.regex("a"))(rows(["one", "bad", "two"]))
    assert out["output"].tolist() == ["a", None, "a"] and "no such schema" in out["output_error"][1]
    assert len(asked) == 7


def test_a_job_over_a_server(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"id": i, "prompt": f"row {i}"}) + "\n" for i in range(60)))
    flying, most, guard, down = [0], [0], threading.Lock(), [True]

    def answer(body: dict[str, Any], number: int) -> tuple[int, Any]:
        if down[0] and number >= 20:
            return 401, "no key"
        with guard:
            flying[0] += 1
            most[0] = max(most[0], flying[0])
        time.sleep(0.01)
        with guard:
            flying[0] -= 1
        return 200, json.dumps({"n": body["seed"] % 999 * 3})

    with serving(answer) as (url, asked):
        write = Generate(Endpoint(url, "named", concurrency=5), SCHEMA)
        with pytest.raises(ModelError, match="no key"):
            run(write, source, output, quiet=True)
        assert not output.exists()
        down[0] = False
        done = run(write, source, output, quiet=True)
        seen = len(asked)
    assert (done.written, done.refused) == (60, 0) and 10 <= done.before <= 20
    assert 1 < most[0] <= 5 and seen <= 60 + 10
    values = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in values] == list(range(60))
    assert all(
        row["output"] == json.dumps({"n": write.row_seed(str(row["id"])) % 2**31 % 999 * 3}) for row in values
    )


def test_what_can_not_be_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="is no URL"):
        Endpoint("localhost:8000")
    with pytest.raises(OptionError, match="at least 1"):
        Endpoint("http://x/v1", concurrency=0)
    with pytest.raises(ModelError, match="can't be used"):
        Generate(Endpoint("http://127.0.0.1:9/v1", "m", retries=0), tf.regex("a"))(rows(["x"]))
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    assert b"secret-key" not in pickle.dumps(Generate(Endpoint("http://x/v1"), tf.regex("a")))
