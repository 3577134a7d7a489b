"""Walking and timing: verdicts come from masks alone, and a mask that `advance` contradicts is found."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
import pytest

from tokenform_bench.engines import ENGINES, EngineMissing, EngineOptions, EngineRefused, Session, load
from tokenform_bench.measure import measure_case, quantiles, walk
from tokenform_bench.tables import markdown_table, number, text_table

EOS = 40


def session(language: list[int], refuse: int | None = None) -> Session:
    """Allows exactly the token sequence `language`, over 41 ids; `advance` refuses the token `refuse`."""
    row, place = np.zeros(2, np.uint32), [0]

    def fill() -> None:
        row[:] = 0
        token = language[place[0]] if place[0] < len(language) else EOS
        row[token >> 5] |= np.uint32(1 << (token & 31))

    def advance(token: int) -> bool:
        place[0] += 1
        return token != refuse

    return Session(row, fill, advance)


class Fixed:
    def __init__(self, make: Callable[[], Session]) -> None:
        self.session = make


@pytest.mark.parametrize(
    ("tokens", "accepted", "at"),
    [([1, 33, 2], True, 3), ([1, 33], False, 2), ([1, 2], False, 1), ([], False, 0)],
)
def test_a_walk_is_judged_by_masks(tokens: list[int], accepted: bool, at: int) -> None:
    walked = walk(session([1, 33, 2]), tokens, EOS)
    assert (walked.accepted, walked.at, walked.inconsistent) == (accepted, at, False)
    assert len(walked.nanoseconds) == at + 1


def test_the_first_mask_is_not_counted_twice() -> None:
    begun = session([1, 33, 2])
    begun.fill()
    assert len(walk(begun, [1, 33, 2], EOS, filled=True).nanoseconds) == 3


def test_a_token_that_only_the_mask_allows_is_an_inconsistency() -> None:
    result = measure_case(
        lambda: Fixed(lambda: session([1, 33, 2], 33)), [([1, 33, 2], True)], EOS, warm=False
    )
    assert result.verdict == "inconsistent"


def test_the_gravest_verdict_stands() -> None:
    texts = [([1, 2], True), ([1, 33, 2], False), ([1, 33, 2], True)]
    result = measure_case(lambda: Fixed(lambda: session([1, 33, 2])), texts, EOS, warm=True)
    assert result.verdict == "wrong_accept"
    assert len(result.warm) == 2 + 4 + 4


def test_a_refusal_is_a_verdict() -> None:
    def refuse() -> Fixed:
        raise EngineRefused("no such keyword")

    assert measure_case(refuse, [], EOS, warm=False).verdict == "refused"


def test_quantiles_are_microseconds() -> None:
    stats = quantiles(np.arange(1, 1001, dtype=np.uint64) * 1000)
    assert stats["mean"] == 500.5
    assert stats["worst"] == 1000
    assert 990 <= stats["p99"] <= 991
    assert np.isnan(
        quantiles(np.frombuffer(array("Q"), np.uint64) if array("Q") else np.empty(0, np.uint64))["mean"]
    )


def test_tables() -> None:
    assert [number(v) for v in (0.01234, 12.34, 123.4, 12345.6, None, float("nan"), 0)] == [
        "0.0123", "12.3", "123", "12,346", "-", "-", "0",
    ]  # fmt: skip
    assert text_table(["a", "b"], [["x", "1"]]).split("\n")[2] == "x  1"
    assert markdown_table(["a"], [["x"]]).split("\n") == ["| a |", "|---|", "| x |"]


def test_an_unknown_engine_is_named() -> None:
    from tokenform_bench.vocabulary import BenchVocabulary

    with pytest.raises(EngineMissing, match="tokenform, llguidance"):
        load("nothing", BenchVocabulary("x", [], 0, [], lambda text: []), EngineOptions())


PEERS = [name for name in ENGINES if name != "none"]


@pytest.mark.parametrize("name", PEERS)
def test_each_engine_judges_a_plain_schema_right(name: str) -> None:
    pytest.importorskip("mistral_common")
    from tokenform_bench.vocabulary import tekken

    vocabulary = tekken()
    try:
        engine = load(name, vocabulary, EngineOptions())
    except EngineMissing as error:
        pytest.skip(str(error))
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    texts = [(vocabulary.encode('{"a": 12}'), True), (vocabulary.encode('{"a": "x"}'), False)]
    result = measure_case(lambda: engine.json_schema(schema), texts, vocabulary.eos, warm=True)
    assert result.verdict == "pass"
    assert result.first_mask_ns > 0
