"""One object that writes batches wherever it lands: keyed by rows, not by partitions."""

from __future__ import annotations

import functools
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.batch import Generate
from tokenform.batch.opening import KEPT, OPEN
from tokenform.errors import ModelError, OptionError, UnsupportedRegex

sys.path.insert(0, str(Path(__file__).parent))
from writers import Walker, absent, walker

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}, "required": ["n"]}


def batch(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]}


def test_columns_go_in_and_come_out() -> None:
    rows = [{"id": i, "prompt": f"row {i}", "kept": i * i} for i in range(5)]
    out = Generate(walker, SCHEMA)(batch(rows))
    assert [json.loads(text)["n"] <= 99 for text in out["output"]] == [True] * 5
    assert out["kept"].tolist() == [0, 1, 4, 9, 16] and out["output_error"].tolist() == [None] * 5
    assert out["output_reason"].tolist() == ["end"] * 5 and out["output_cut"].tolist() == [None] * 5
    assert out["output_tokens"].dtype == np.int64 and out["output_logprob"].dtype == np.float64
    assert [len(text) for text in out["output"]] == out["output_tokens"].tolist()


@settings(max_examples=25, deadline=None)
@given(st.permutations(list(range(12))), st.integers(1, 5), st.integers(1, 12))
def test_a_row_does_not_depend_on_its_partition(order: list[int], size: int, cut: int) -> None:
    rows = [{"id": f"r{i}", "prompt": f"row {i % 4}"} for i in range(12)]
    whole = Generate(walker, tf.regex("[a-z]{3,9}"), seed=5)(batch(rows))
    expected = dict(zip(whole["id"], whole["output"]))
    assert len({expected[f"r{i}"] for i in (0, 4, 8)}) == 3  # the same prompt under other ids
    moved = [rows[i] for i in order]
    write = Generate(walker, tf.regex("[a-z]{3,9}"), seed=5, batch_size=size)
    for part in (moved[:cut], moved[cut:]):
        if part:
            out = write(batch(part))
            assert {key: expected[key] for key in out["id"]} == dict(zip(out["id"], out["output"]))


def test_rows_bring_their_own_constraints() -> None:
    rows = [
        {"prompt": "a", "schema": {"const": 1}, "regex": None, "lark": ""},
        {"prompt": "b", "schema": json.dumps({"const": "x"}), "regex": None, "lark": float("nan")},
        {"prompt": "c", "schema": None, "regex": "yes|no", "lark": None},
        {"prompt": "d", "schema": None, "regex": None, "lark": 'start: "go" "!"*'},
        {"prompt": "e", "schema": None, "regex": None, "lark": None},
        {"prompt": "f", "schema": {"type": "strin"}, "regex": None, "lark": None},
        {"prompt": "g", "schema": {"const": 1}, "regex": "a", "lark": None},
        {"prompt": "h", "schema": None, "regex": "(a)\\1", "lark": None},
    ]
    write = Generate(
        walker, choices=["all"], schema_column="schema", regex_column="regex", grammar_column="lark"
    )
    out = write(batch(rows))
    assert (
        out["output"][0] == "1" and json.loads(out["output"][1]) == "x" and out["output"][2] in ("yes", "no")
    )
    assert out["output"][3].startswith("go") and out["output"][4] == "all"
    assert out["output"][5:].tolist() == [None] * 3
    assert [str(error).partition(":")[0] for error in out["output_error"][5:]] == [
        "InvalidSchema", "OptionError", "UnsupportedRegex",
    ]  # fmt: skip
    with pytest.raises(UnsupportedRegex):
        Generate(walker, regex_column="regex", on_error="raise")(batch([{"prompt": "", "regex": "(a)\\1"}]))


def test_a_bad_row_is_said_beside_the_others() -> None:
    rows: list[dict[str, Any]] = [{"prompt": "a"}, {"prompt": "long"}, {"prompt": None}, {"prompt": ["x"]}]
    rows.append({"prompt": [{"role": "user", "content": "hi"}]})
    rows.append({"prompt": '[{"role": "user", "content": "hi"}]'})
    array = np.empty(len(rows), object)
    array[:] = [row["prompt"] for row in rows]
    seen: list[Any] = []

    class Seeing(Walker):
        def sample(self, prompts: Any, *arguments: Any, **options: Any) -> Any:
            seen.extend(prompts)
            return super().sample(
                [p if isinstance(p, str) else "chat" for p in prompts], *arguments, **options
            )

    out = Generate(Seeing, tf.regex("[ab]"))({"prompt": array})
    assert [error is None for error in out["output_error"]] == [True, False, False, False, True, True]
    assert "PromptTooLong: the prompt is too long" in out["output_error"][1]
    assert seen[-1] == seen[-2] == [{"role": "user", "content": "hi"}]


def test_it_travels_and_opens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenform.batch.opening.OPEN", {})
    made: list[int] = []

    def make() -> Walker:
        made.append(1)
        return Walker()

    write = Generate(make, tf.regex("[a-z]+"))
    for _ in range(3):
        write(batch([{"prompt": "x"}]))
    assert made == [1]
    travelling = Generate(functools.partial(walker), tf.json_schema(SCHEMA), seed=3)
    travelling.constraint()
    again = pickle.loads(pickle.dumps(travelling))
    rows = batch([{"id": 1, "prompt": "x"}])
    assert again(rows)["output"].tolist() == travelling(rows)["output"].tolist()
    assert again.fingerprint() == travelling.fingerprint()
    with pytest.raises(OptionError, match="can't travel"):
        pickle.dumps(Generate(walker, tf.from_type(lambda_type())))


def weather(city: str) -> str:
    """The weather."""
    return city


def test_tools_of_functions_travel() -> None:
    grammar = tf.tools([weather], format="hermes", tool_choice="required")
    travelling = Generate(walker, schema=grammar, seed=3)
    again = pickle.loads(pickle.dumps(travelling))
    (call,) = again.constraint().parse(
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    )
    assert (call.name, call.arguments) == ("weather", {"city": "Rome"})


def lambda_type() -> Any:
    from pydantic import BaseModel

    class Local(BaseModel):
        n: int

    return Local


def test_what_is_wrong_is_said_before_any_work() -> None:
    with pytest.raises(OptionError, match="Walker can't travel"):
        Generate(Walker())
    with pytest.raises(OptionError, match="batch_size=0"):
        Generate(batch_size=0)
    with pytest.raises(OptionError, match="on_error"):
        Generate(on_error="ignore")
    with pytest.raises(OptionError, match="schema_column"):
        Generate(walker, [tf.regex("a"), tf.regex("b")])
    with pytest.raises(tf.errors.UnsatisfiableSchema):
        Generate(walker, schema={"type": "integer", "minimum": 2, "maximum": 1})
    with pytest.raises(OptionError, match="already"):
        Generate(walker)(batch([{"prompt": "a", "output": "b"}]))
    with pytest.raises(ModelError, match="no weights here"):
        Generate(absent)(batch([{"prompt": "a"}]))
    assert Generate(walker)({"prompt": np.array([], dtype=object)})["output"].tolist() == []
    assert len(OPEN) <= KEPT


def test_frames_of_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"id": [3, 4], "prompt": ["a", "b"]}, index=[10, 11])
    write = Generate(walker, tf.regex("[a-z]{4}"))
    out = write.frame(frame)
    assert out.index.tolist() == [10, 11] and out["id"].tolist() == [3, 4]
    parts = list(write.frames(iter([frame[:1], frame[1:]])))
    assert pandas.concat(parts)["output"].tolist() == out["output"].tolist()


def test_rows_say_what_the_budget_made() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    rows = {"prompt": ["The number is 48211234."] * 2}
    out = Generate(schema=schema, max_tokens=5)(rows)
    whole = Generate(schema=schema, max_tokens=60)(rows)
    assert whole["output_reason"].tolist() == ["end"] * 2 and whole["output_cut"].tolist() == [None] * 2
    assert out["output_reason"].tolist() == ["length"] * 2 and out["output"][0] != whole["output"][0]
    assert [json.loads(one) for one in out["output_cut"]] == [["/n"]] * 2
