"""The JSON-Schema-Test-Suite under a ratchet: each document in every spelling, all drafts, required and
optional tests.

Purpose: say for each group of the suite whether the engine judges it right, and hold that against a committed
baseline.
Invariant: a group passes if and only if it compiles and every document, written compact, spaced, indented and
with keys shuffled, is judged as the suite says; a schema refused as unsatisfiable passes where the suite has
only invalid documents.
Complexity: about 8,300 documents, four spellings each, over a byte vocabulary.
Source: json-schema-org/JSON-Schema-Test-Suite; its README on `format` (an annotation in the required tests of
every draft, an assertion in `optional/format`).
Rejected: a percentage as the ratchet (a group that breaks could hide behind another that was mended).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenform.batch.workers import run_tasks
from tokenform.errors import TokenformError, UnsatisfiableSchema
from tokenform_bench.data import DRAFTS, Document, SuiteGroup, read_suite, suite_registry
from tokenform_bench.documents import STYLES, shuffled, write

from .maskcheck import byte_vocabulary, rejected_at

OPTIONS = {"order": "any", "whitespace": "any", "numbers": "any", "strings": "any"}


@dataclass(frozen=True)
class GroupVerdict:
    """What became of a group.

    Attributes:
        kind: "pass", "refused", "wrong", or how its worker ended ("timeout", "crash", ...).
        right: documents judged right in every spelling.
    """

    id: str
    draft: str
    required: bool
    kind: str
    right: int
    total: int
    detail: str = ""


def metaschemas() -> dict[str, Any]:
    """The drafts' own schemas by URL, which some groups refer to."""
    from jsonschema_specifications import REGISTRY

    return {uri: REGISTRY[uri].contents for uri in REGISTRY}


def needs_registry(schema: Any) -> bool:
    """Whether the schema refers to another document (or names a `$schema` of its own)."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                if (
                    key in ("$ref", "$dynamicRef", "$recursiveRef")
                    and isinstance(value, str)
                    and not value.startswith("#")
                ):
                    return True
                if key == "$schema" and isinstance(value, str) and "localhost" in value:
                    return True
                stack.append(value)
        elif isinstance(node, list):
            stack.extend(node)
    return False


def spellings(document: Document, seed: str) -> Iterable[tuple[str, bytes]]:
    """(name, text) of each spelling; a string that UTF-8 can't carry is written with escapes."""
    rng = random.Random(seed)
    for style in STYLES:
        yield style, _encode(write(document.data, style))
    yield "shuffled", _encode(write(shuffled(document.data, rng)))


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in text).encode(
            "utf-8"
        )


def group_judge(archive: str | None = None) -> Callable[[SuiteGroup], GroupVerdict]:
    """Build, in a worker, the function that judges one group."""
    import tokenform as tf

    vocabulary = byte_vocabulary()
    shared = metaschemas()
    registries = {draft: {**shared, **suite_registry(draft, archive)} for draft in DRAFTS}

    def judge(group: SuiteGroup) -> GroupVerdict:
        case, total = group.case, len(group.case.documents)

        def verdict(kind: str, right: int, detail: str = "") -> GroupVerdict:
            return GroupVerdict(
                case.id, group.draft, group.required, kind, right, total, f"{group.description}: {detail}"
            )

        options: dict[str, Any] = dict(OPTIONS)
        asserts = group.is_format or group.file == "optional/format-assertion"
        options["formats"] = "assert" if asserts else "annotate"
        if needs_registry(case.schema):
            options["registry"] = registries[group.draft]
        try:
            automaton = tf.json_schema(case.schema, **options).compile(vocabulary)
        except UnsatisfiableSchema as error:
            invalid = sum(not document.valid for document in case.documents)
            return verdict("pass" if invalid == total else "wrong", invalid, str(error))
        except TokenformError as error:
            return verdict("refused", 0, f"{type(error).__name__} {error.keyword or ''}: {error}")
        right, wrong = 0, []
        for document in case.documents:
            failures = []
            for name, text in spellings(document, case.id):
                accepted = bool(automaton.matches(text))
                if accepted and not document.valid:
                    failures.append(f"{name} accepts {text[:120]!r}")
                elif document.valid and not accepted:
                    failures.append(f"{name} refuses {text[:120]!r} at byte {rejected_at(automaton, text)}")
            right += not failures
            wrong += [f"{document.note}: {failure}" for failure in failures[:1]]
        return verdict("wrong" if wrong else "pass", right, "; ".join(wrong[:4]))

    return judge


def run(
    drafts: Iterable[str], *, only: str | None = None, workers: int = 2, timeout: float = 20.0
) -> list[GroupVerdict]:
    """Judge the groups of the drafts (whose id holds `only`), in the suite's order."""
    groups = [g for g in read_suite(drafts) if not only or only in g.case.id]
    verdicts = {}
    for group, outcome in run_tasks(
        groups, group_judge, workers=workers, timeout=timeout, memory_bytes=3 << 30
    ):
        verdict = outcome.value
        if outcome.status != "ok":
            total = len(group.case.documents)
            verdict = GroupVerdict(
                group.case.id, group.draft, group.required, outcome.status, 0, total, outcome.detail
            )
        verdicts[group.case.id] = verdict
    return [verdicts[g.case.id] for g in groups]


def summary(verdicts: list[GroupVerdict]) -> list[tuple[str, str, int, int, int, dict[str, int]]]:
    """(draft, "required"/"optional", documents right, documents, groups, group counts by kind)."""
    rows = []
    for draft in DRAFTS:
        for required in (True, False):
            mine = [v for v in verdicts if v.draft == draft and v.required == required]
            if mine:
                counts = dict(Counter(v.kind for v in mine))
                name = "required" if required else "optional"
                rows.append(
                    (draft, name, sum(v.right for v in mine), sum(v.total for v in mine), len(mine), counts)
                )
    return rows


_RANK = {"pass": 0, "refused": 1}  # everything else is worse than refusing


def worse(verdicts: list[GroupVerdict], baseline: dict[str, str]) -> list[GroupVerdict]:
    """The groups that are judged worse than the baseline says (a group that it doesn't list passed)."""
    return [v for v in verdicts if _RANK.get(v.kind, 2) > _RANK.get(baseline.get(v.id, "pass"), 2)]


def read_baseline(path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(path.read_text("utf-8"))["not_passing"]
    return found


def record(verdicts: list[GroupVerdict], path: Path) -> None:
    """Write the baseline: every group that doesn't pass, with its kind, and the counts for a reader."""
    failing = {v.id: v.kind for v in verdicts if v.kind != "pass"}
    counts = {
        f"{draft} {name}": f"{right} of {total} documents"
        for draft, name, right, total, _, _ in summary(verdicts)
    }
    path.write_text(json.dumps({"counts": counts, "not_passing": failing}, indent=1) + "\n", "utf-8")
