"""The weights in the package: small, offline, and able to copy facts that they never saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.training import evaluate
from benchmarks.training.data import examples

from tokenform.builtin import load, load_draft, loading
from tokenform.errors import ModelError

LARGEST = 12_000_000


@pytest.fixture(autouse=True, scope="module")
def offline() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr("socket.socket.connect", _refuse)
        yield


def _refuse(*_: Any) -> None:
    raise OSError("the built-in model must not use the network")


def test_sizes() -> None:
    model, draft = (loading.WEIGHTS / name / "model.safetensors" for name in ("model", "draft"))
    assert model.stat().st_size <= LARGEST
    assert draft.stat().st_size * 5 <= model.stat().st_size


def test_one_tokenizer_for_both() -> None:
    assert load()[1].get_vocab() == load_draft()[1].get_vocab()
    assert load() is load()


def test_missing_weights_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"python -m benchmarks\.training\.train"):
        loading.read(tmp_path)


@pytest.mark.slow
def test_copies_unseen_facts_without_a_constraint() -> None:
    model, tokenizer = load()
    batch = examples(evaluate.EVALUATION_SEED, 60, held_out=True, tools=0.0)
    texts = evaluate.greedy(model, tokenizer, [e.prompt for e in batch], 160)
    assert evaluate.score(texts, batch).report()["field_match"] >= 0.4


@pytest.mark.slow
def test_copies_unseen_facts_under_the_schema() -> None:
    model, tokenizer = load()
    batch = examples(evaluate.EVALUATION_SEED, 60, held_out=True, tools=0.0)
    report = evaluate.score(evaluate.constrained(model, tokenizer, batch, 200), batch).report()
    assert report["valid"] == 1.0
    assert report["field_match"] >= 0.6
