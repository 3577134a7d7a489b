"""True certificates are accepted, mutated ones refused; the judge is `benchmarks/suites/certificates.py`."""

from __future__ import annotations

import pytest
from benchmarks.suites import certificates


@pytest.mark.parametrize("seed", range(2))
def test_certificates_are_accepted_exactly_where_they_are_true(seed: int) -> None:
    *_, (_, counts, wrong) = certificates.run(50, 150, seed)
    assert not wrong
    kinds = {kind for kind in counts if kind.startswith("-")}
    assert len(kinds) >= 14, kinds


def test_the_judge_refuses_what_the_engine_would_not_write() -> None:
    import random

    certificate, language = certificates.drawn(random.Random(5))
    assert certificates.is_true(certificate, language)
    certificate["states"][0]["end"] = not certificate["states"][0]["end"]
    assert not certificates.is_true(certificate, language)
