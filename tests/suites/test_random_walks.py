"""Random tokens from the masks end as valid documents; valid documents are accepted in every spelling."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.suites import walks

from tokenform.batch.workers import run_tasks
from tokenform_bench.data import read_maskbench, sample

pytest.importorskip("mistral_common")


_SECONDS = 900.0  # of a schema: five documents of 2,000 tokens, each as short as can be, take minutes


def _violations(path: Path, count: int, factory: Any, parameters: tuple[Any, ...]) -> tuple[int, list[str]]:
    done, found = 0, []
    cases = sample(read_maskbench(path), count, seed=7)
    for case, outcome in run_tasks(
        cases, factory, parameters, workers=2, timeout=_SECONDS, memory_bytes=4 << 30
    ):
        if outcome.status != "ok":
            found.append(f"{case.id}: {outcome.status} {outcome.detail}")
            continue
        done += outcome.value.done
        found += [
            f"{case.id}: {kind}: {detail}" for kind, detail in outcome.value.violations if kind != "disputed"
        ]
    return done, found


SPELLINGS = [pytest.param({}, id="defaults"), pytest.param({"whitespace": "any"}, id="any whitespace")]


def _walk(path: Path, count: int, options: dict[str, Any]) -> None:
    done, found = _violations(path, count, walks.walker, (5, 60, options))
    assert not found, "\n".join(found[:10])
    assert done >= 3 * count


def _respell(path: Path, count: int, spellings: int) -> None:
    done, found = _violations(path, count, walks.respeller, (spellings,))
    assert not found, "\n".join(found[:10])
    assert done >= spellings * count // 4


@pytest.mark.parametrize("options", SPELLINGS)
def test_walks_end_as_valid_documents(maskbench: Path, options: dict[str, Any]) -> None:
    _walk(maskbench, 15, options)


def test_every_spelling_of_a_valid_document_is_accepted(maskbench: Path) -> None:
    _respell(maskbench, 30, 5)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("options", SPELLINGS)
def test_walks_of_1000_schemas(maskbench: Path, options: dict[str, Any]) -> None:
    _walk(maskbench, 1000, options)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_spellings_of_1000_schemas(maskbench: Path) -> None:
    _respell(maskbench, 1000, 20)


class Broken:
    """Bytes 0..2 and EOS 3; a state is the number of bytes taken; wrong in one way."""

    start = 0

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def mask(self, state: int) -> object:
        import numpy as np

        tokens = 0b0111 if state < 4 else 0
        tokens |= 0b1000 if self.is_accepting(state) != (self.fault == "eos" and state == 2) else 0
        if self.fault == "dead" and state == 3:
            tokens = 0
        return np.array([tokens], np.uint32)

    def is_accepting(self, state: int) -> bool:
        return state == 4

    def advance(self, state: int, token: int) -> int:
        return state + 1

    def distance(self, state: int, within: int | None = None) -> int:
        return (4 - state) + (self.fault == "far")

    def mask_within(self, state: int, budget: int) -> object:
        import numpy as np

        return np.array([0b0111 if self.distance(state + 1) < budget else 0], np.uint32)


@pytest.mark.parametrize(
    ("fault", "kind"), [("eos", "inconsistent"), ("dead", "dead end"), ("far", "over budget"), ("", "")]
)
def test_faults_of_an_automaton_are_found(fault: str, kind: str) -> None:
    import random

    kinds = Counter(
        walks.random_walk(Broken(fault), random.Random(seed), 4, 3)[1].split(":")[0] for seed in range(20)
    )
    assert set(kinds) == {kind}
