"""No schema hangs or kills the process: each gives a clear error or a working grammar; the engine goes on."""

from __future__ import annotations

from tokenform.bench.hard_cases import hard_cases
from tokenform.bench.suites import hostile


def test_hostile_schemas_do_no_harm() -> None:
    verdicts = hostile.run(timeout=20.0)
    harm = [v for v in verdicts if not v.harmless and v.kind != "slow"]  # seconds are the benchmark's matter
    assert not harm, "\n".join(f"{v.kind} {v.name} {v.detail[:300]}" for v in harm[:20])
    assert len(verdicts) > 500


def test_hard_cases_are_named_once_and_have_texts() -> None:
    cases = hard_cases()
    assert len({case.name for case in cases}) == len(cases)
    assert all(case.texts for case in cases)
