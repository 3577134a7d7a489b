"""MaskBench: what compiles is judged right, what isn't supported is refused with a pointer."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.suites.maskcheck import OPTIONS, Tally, judge

from tokenform_bench.data import read_maskbench, sample

ANY = dict.fromkeys(OPTIONS, "any")


def verdicts(path: Path, count: int | None, options: dict[str, str]) -> Tally:
    tally = Tally()
    cases = sample(read_maskbench(path), count, seed=20)
    for verdict in judge(cases, options, workers=2, timeout=20.0, slow=20.0, memory_bytes=3 << 30):
        tally.add(verdict)
    return tally


def test_a_sample_of_300_schemas(maskbench: Path) -> None:
    tally = verdicts(maskbench, 300, ANY)
    wrong = {kind: n for kind, n in tally.counts.items() if kind not in ("pass", "refused")}
    assert not wrong, tally.report(5)
    assert tally.counts["pass"] >= 0.6 * 300, tally.report(3)


@pytest.mark.slow
def test_every_development_schema_with_every_option_at_any(maskbench: Path) -> None:
    tally = verdicts(maskbench, None, ANY)
    assert tally.counts["wrong_accept"] == 0, tally.report(20)
    assert tally.counts["pass"] >= 0.99 * len(tally.verdicts), tally.report(20)
