"""Tokenizer, initial circuit and training loop, on a tiny scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.training import train as training
from benchmarks.training.batching import batches, collate
from benchmarks.training.data import examples
from benchmarks.training.vocabulary import train_tokenizer

from tokenform.builtin.prompt import format_prompt


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer((e.prompt + e.answer for e in examples(1, 1500)), 700, 512)


def test_tokenizer_size_and_round_trip(tokenizer: Any) -> None:
    assert len(tokenizer) == 700
    text = 'Zoë paid ¥1,200 — "twice"\t\n\x00 日本 🙂 as of 3.14'
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    alphabet = set(tokenizer.get_vocab())
    assert sum(len(token) == 1 for token in alphabet) >= 256


def test_a_word_is_the_same_tokens_wherever_it_stands(tokenizer: Any) -> None:
    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    for word in ("Zorvan", "kettle", "1815", "2021-03-04", "Ada"):
        inside = ids(word)
        for before, after in ((" ", "."), ('{"a": "', '"}'), ("(", ")"), (": ", ", ")):
            assert ids(before + word + after) == ids(before) + inside + ids(after)


def test_markers_are_single_tokens_and_calls_stay_visible(tokenizer: Any) -> None:
    ids = tokenizer("<|bos|><|user|><tool_call>\n</tool_call><|end|>", add_special_tokens=False)["input_ids"]
    assert len(ids) == 6
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<tool_call>\n</tool_call>"


def test_tokenizer_template_is_the_prompt_format(tokenizer: Any) -> None:
    messages = [{"role": "user", "content": "Hello <|end|>"}]
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"properties": {"a": {"enum": ["é", 2]}}}},
        }
    ]
    rendered = tokenizer.apply_chat_template(
        messages, tools=tools, add_generation_prompt=True, tokenize=False
    )
    assert rendered == format_prompt(messages, tools=tools)


@pytest.mark.parametrize("laid_out", [True, False])
def test_initial_circuit_copies(tokenizer: Any, laid_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not laid_out:
        monkeypatch.setattr(training, "lay_out_induction", lambda model, seed: None)
    model = training.build(training.Options(vocabulary=700), tokenizer).eval()
    half = torch.randint(20, 700, (4, 50), generator=torch.Generator().manual_seed(0))
    ids = torch.cat([half, half], dim=1)
    with torch.no_grad():
        logits = model(ids).logits
    accuracy = float((logits[:, 52:-1].argmax(-1) == ids[:, 53:]).float().mean())
    assert (accuracy > 0.5) is laid_out, accuracy


def test_circuit_is_the_same_for_the_same_seed(tokenizer: Any) -> None:
    one = training.build(training.Options(seed=5), tokenizer).state_dict()
    two = training.build(training.Options(seed=5), tokenizer).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_batches_resume_anywhere(tokenizer: Any) -> None:
    def take(start: int, count: int) -> list[Any]:
        stream = batches(
            tokenizer, seed=3, tokens=300, context=512, text_weight=0.1, start=start, per_chunk=4
        )
        return [next(stream) for _ in range(count)]

    whole = take(0, 7)
    for batch, again in zip(whole[3:], take(3, 4), strict=True):
        assert torch.equal(batch.ids, again.ids) and torch.equal(batch.weights, again.weights)


def test_weights_of_a_batch() -> None:
    batch = collate([([1, 2, 3, 4, 5], 3), ([1, 2, 3], 1)], pad=0, text_weight=0.5, seed=0)
    assert batch.ids.tolist() == [[1, 2, 3, 4, 5], [1, 2, 3, 0, 0]]
    assert batch.weights[0, 2:].tolist() == [1.0, 1.0]
    assert set(batch.weights[0, :2].tolist()) <= {0.0, 0.5}
    assert batch.weights[1].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_run_that_was_cut_off_ends_the_same(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = training.Options(
        hidden=64,
        layers=2,
        heads=2,
        feed=64,
        steps=6,
        batch_tokens=300,
        warmup=2,
        context=512,
        checkpoint_every=2,
    )
    whole = training.train(options, tokenizer, tmp_path / "whole").state_dict()
    real, calls = training.loss_of, []

    def cut_off(*arguments: Any) -> torch.Tensor:
        calls.append(None)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(training, "loss_of", cut_off)
    with pytest.raises(KeyboardInterrupt):
        training.train(options, tokenizer, tmp_path / "cut")
    monkeypatch.setattr(training, "loss_of", real)
    resumed = training.train(options, tokenizer, tmp_path / "cut").state_dict()
    for name, value in whole.items():
        torch.testing.assert_close(resumed[name], value)


def test_export_reads_back(tokenizer: Any, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = training.Options(hidden=64, layers=2, heads=2, feed=64, context=512)
    model = training.build(options, tokenizer)
    training.export(model, tokenizer, tmp_path / "out")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out", local_files_only=True)
    read = AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    assert (
        read("Ada 12", add_special_tokens=False)["input_ids"]
        == tokenizer("Ada 12", add_special_tokens=False)["input_ids"]
    )
    assert read.chat_template == tokenizer.chat_template
    assert torch.equal(again.lm_head.weight, again.model.embed_tokens.weight)
    assert again.generation_config.eos_token_id == tokenizer.eos_token_id
