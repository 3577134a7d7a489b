"""BFCL v4 (the Berkeley Function Calling Leaderboard): functions, a question, and the calls that answer it.

The single-turn categories in Python: one function or several, one call or several, made up or from users.
What the model writes: {"name": ..., "arguments": {...}}, or an array of them where several are expected.
Invariant: the constraint says what BFCL's own description of the function says (its types in JSON Schema's
words, objects closed where their properties are listed, no defaults), for all engines alike.
The judge: the calls match the expected ones, in any order. A field is a call's name, or an argument that the
answer demands. An argument is right where one of BFCL's possible values fits: strings without regard to case,
spaces and the signs , . / - _ * ^ ' ", numbers by value, lists and objects part by part. An argument that is
neither demanded nor possible makes the call wrong.
Source: Patil et al. 2025; the data is that of `bfcl-eval` (Apache-2.0).
Rejected: its own checker (it judges Python types, which JSON does not have), multi-turn categories (they need
the functions to run), and prompts over 4,000 characters (minutes of prefill on a processor).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any

from tokenform_bench.evaluate.tasks.grading import Marks, documents
from tokenform_bench.evaluate.tasks.task import Task
from tokenform_bench.evaluate.tasks.wheels import Wheel
from tokenform_bench.judges import Judges

WHEEL = Wheel("bfcl-eval", "2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a")
CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple")
LONGEST = 4000
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
_KEPT = ("description", "enum")


def make(count: int, seed: int) -> Iterator[Task]:
    """`count` of the rows, chosen by a hash of seed and id, all categories mixed."""
    tasks = [task for category in CATEGORIES for task in _category(category)]
    tasks.sort(key=lambda task: hashlib.sha256(f"{seed}:{task.id}".encode()).digest())
    yield from islice(filter(_can_be_right, tasks), count)


def _can_be_right(task: Task) -> bool:
    """Whether the answer is a document of the schema: in 26 rows it contradicts the description."""
    document = written(task.answer)
    shown = document if task.schema.get("type") == "array" else document[0]
    return Judges(task.schema).judge(json.dumps(shown)).valid and judge(task.answer, json.dumps(shown)).right


def written(expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of an answer, by the first possible value of every argument that it demands."""
    calls = [next(iter(call.items())) for call in expected]
    return [{"name": name, "arguments": _first(arguments)} for name, arguments in calls]


def _first(arguments: dict[str, Any]) -> dict[str, Any]:
    found = {name: possible[0] for name, possible in arguments.items() if possible and "" not in possible}
    return {name: _inner(value) for name, value in found.items()}


def _inner(value: Any) -> Any:
    if isinstance(value, list):
        return [_inner(part) for part in value]
    return _first(value) if isinstance(value, dict) else value


def _category(category: str) -> Iterator[Task]:
    name = f"BFCL_v4_{category}.json"
    answers = {
        row["id"]: row["ground_truth"] for row in WHEEL.records(f"bfcl_eval/data/possible_answer/{name}")
    }
    for row in WHEEL.records(f"bfcl_eval/data/{name}"):
        task = read(row, answers[row["id"]], several="parallel" in category)
        if len(task.prompt) <= LONGEST:
            yield task


def read(row: dict[str, Any], expected: list[dict[str, Any]], *, several: bool) -> Task:
    """A row with its possible answers as a task."""
    functions = [
        {
            "name": f["name"],
            "description": f.get("description", ""),
            "parameters": parameters(f.get("parameters", {})),
        }
        for f in row["function"]
    ]
    calls = [_call(f["name"], f["parameters"]) for f in functions]
    one = calls[0] if len(calls) == 1 else {"anyOf": calls}
    schema = {"type": "array", "items": one, "minItems": 1} if several else one
    listed = "\n".join(json.dumps(f, ensure_ascii=False) for f in functions)
    question = "\n".join(m["content"] for turn in row["question"] for m in turn)
    form = '{"name": "...", "arguments": {...}}'
    wanted = f"a JSON array of calls: [{form}, ...]" if several else f"one call as JSON: {form}"
    text = f"You can call these functions:\n{listed}\n\n{question}"
    return Task(f"bfcl-{row['id']}", "bfcl", f"{text}\n\nAnswer with {wanted}.", schema, expected, text)


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    properties = {"name": {"const": name}, "arguments": arguments}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parameters(described: Any) -> dict[str, Any]:
    """A description of BFCL's as a JSON Schema."""
    schema = {name: described[name] for name in _KEPT if described.get(name)}
    kind = _TYPES.get(described.get("type"), described.get("type"))
    if kind is not None:
        schema["type"] = kind
    if "properties" in described and kind == "object":
        schema["properties"] = {k: parameters(v) for k, v in described["properties"].items()}
        known = [name for name in described.get("required", ()) if name in schema["properties"]]
        schema |= {"required": known, "additionalProperties": False}
    if "items" in described and kind == "array":
        schema["items"] = parameters(described["items"])
    return schema


def judge(expected: list[dict[str, Any]], text: str) -> Marks:
    """Compare the calls in a text with the expected ones."""
    found = [value for value, _ in documents(text) if isinstance(value, dict | list)]
    listed = found[0] if found and isinstance(found[0], list) else found[:1]
    calls: list[dict[str, Any]] = [call if isinstance(call, dict) else {} for call in listed]
    total = sum(len(_demanded(call)) + 1 for call in expected)
    best, exact = 0, False
    places = list(range(max(len(calls), len(expected))))
    for order in permutations(places) if len(places) <= 4 else [places]:
        pairs = [(expected[k], calls[i]) for k, i in enumerate(order[: len(expected)]) if i < len(calls)]
        marks = [_marks(want, given) for want, given in pairs]
        best = max(best, sum(right for right, _ in marks))
        whole = len(pairs) == len(expected) == len(calls)
        exact = exact or (whole and all(clean for _, clean in marks))
    return Marks(exact, best, total)


def _demanded(call: dict[str, Any]) -> list[str]:
    (arguments,) = call.values()
    return [name for name, possible in arguments.items() if "" not in possible]


def _marks(want: dict[str, Any], given: dict[str, Any]) -> tuple[int, bool]:
    """(fields that are right, whether the call is right)."""
    ((name, arguments),) = want.items()
    if given.get("name") != name or not isinstance(given.get("arguments"), dict):
        return 0, False
    made = given["arguments"]
    right = {key for key, value in made.items() if key in arguments and fits(value, arguments[key])}
    demanded = _demanded(want)
    return 1 + sum(key in right for key in demanded), len(right) == len(made) and right.issuperset(demanded)


def fits(given: Any, possible: list[Any]) -> bool:
    """Whether a value is one of the possible ones."""
    return any(_equal(given, one) for one in possible)


def _equal(given: Any, want: Any) -> bool:
    if isinstance(want, dict):  # each key with its own possible values; "" among them: it may be left out
        if not isinstance(given, dict) or not given.keys() <= want.keys():
            return False
        return all(fits(given[k], v) if k in given else "" in v for k, v in want.items())
    if isinstance(want, list):
        return (
            isinstance(given, list)
            and len(given) == len(want)
            and all(_equal(a, b) for a, b in zip(given, want, strict=True))
        )
    if isinstance(want, str) or isinstance(given, str):
        return isinstance(want, str) and isinstance(given, str) and _bare(given) == _bare(want)
    return bool(given == want) and isinstance(given, bool) == isinstance(want, bool)


def _bare(text: str) -> str:
    return re.sub(r"[\s,./\-_*^'\"]", "", text).casefold()
