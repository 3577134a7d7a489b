"""The JSON-Schema-Test-Suite under a ratchet: no group is judged worse than `baseline.json` says.

Better results are recorded by `python -m benchmarks.suites official --record`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.suites import official

from tokenform_bench.data import Document

BASELINE = Path(__file__).with_name("baseline.json")


def _check(drafts: list[str]) -> None:
    verdicts = official.run(drafts)
    worse = official.worse(verdicts, official.read_baseline(BASELINE))
    assert not worse, "\n".join(f"{v.id} {v.kind} {v.detail[:300]}" for v in worse[:20])


def test_2020_12_is_not_judged_worse_than_the_baseline(official_suite: Path) -> None:
    _check(["draft2020-12"])


@pytest.mark.slow
def test_older_drafts_are_not_judged_worse_than_the_baseline(official_suite: Path) -> None:
    _check(["draft4", "draft6", "draft7", "draft2019-09"])


def _verdict(name: str, kind: str) -> official.GroupVerdict:
    return official.GroupVerdict(name, "draft7", True, kind, 0, 1)


def test_worse_than_the_baseline_is_found(tmp_path: Path) -> None:
    before = [_verdict("a", "pass"), _verdict("b", "refused"), _verdict("c", "wrong")]
    official.record(before, tmp_path / "baseline.json")
    baseline = official.read_baseline(tmp_path / "baseline.json")
    assert baseline == {"b": "refused", "c": "wrong"}
    assert official.worse(before, baseline) == []
    after = [
        _verdict("a", "refused"),
        _verdict("b", "wrong"),
        _verdict("c", "pass"),
        _verdict("new", "crash"),
    ]
    assert [v.id for v in official.worse(after, baseline)] == ["a", "b", "new"]


def test_a_document_is_written_in_four_spellings() -> None:
    texts = dict(official.spellings(Document({"a": [1, "\ud800"], "b": 2}, True), "seed"))
    assert texts["compact"] == b'{"a":[1,"\\ud800"],"b":2}'
    assert set(texts) == {"compact", "spaced", "indent", "shuffled"}
