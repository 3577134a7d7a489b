"""Public complaints about engines, each with the right answers: by masks, and by what is generated."""

from __future__ import annotations

import random
from typing import Any

import pytest
from benchmarks.suites import cases

from tokenform_bench import data

try:
    CASES = cases.read_cases()
except data.DataError as missing:
    pytest.skip(str(missing), allow_module_level=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_right_texts_are_accepted(case: dict[str, Any]) -> None:
    assert cases.wrong_by_masks(case) is None
    if case["id"] in cases.REFUSED:
        return
    _, automaton = cases.made(case)
    if automaton is None or not case["accept"]:
        return
    rng = random.Random(case["id"])
    for _ in range(3):
        state, written = automaton.start, []
        while not (automaton.is_accepting(state) and rng.random() < 0.5):
            allowed = [token for token in automaton.allowed_tokens(state).tolist() if token != 256]
            if not allowed:
                break
            near = min(allowed, key=lambda token: automaton.distance(automaton.advance(state, token)))
            written.append(rng.choice(allowed) if len(written) < 20 else near)
            state = automaton.advance(state, written[-1])
        assert cases.taken(automaton, written), written
        if all(isinstance(text, str) for text in case["refuse"]):
            assert bytes(written) not in {text.encode() for text in case["refuse"]}
