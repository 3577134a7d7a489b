"""Choices of a real model: the greedy one is the likeliest whole option, where wrong options begin well."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

import tokenform as tf

ROWS = Path(__file__).parents[2] / "benchmarks" / "choices.jsonl"


@torch.inference_mode()
def likeliest(gen: tf.Generator, ids: list[int], options: list[str]) -> str:
    """By one plain pass an option, its end counted."""
    scores = {}
    for option in options:
        tokens = gen.spell(option.encode())
        table = torch.log_softmax(
            gen.model(torch.tensor([[*ids, *tokens]])).logits[0, len(ids) - 1 :].double(), -1
        )
        known = sum(table[at, token].item() for at, token in enumerate(tokens))
        scores[option] = known + float(np.logaddexp.reduce(table[-1, list(gen.vocabulary.eos)].numpy()))
    return max(scores, key=scores.__getitem__)


def test_a_greedy_choice_is_the_argmax_over_whole_choices(smol: tf.Generator) -> None:
    rows = [row for line in ROWS.read_text().splitlines() if (row := json.loads(line))["kind"] == "trap"]
    right = {"whole": 0, "token": 0}
    for row in rows:
        prompt, grammar = [{"role": "user", "content": row["question"]}], tf.choice(row["options"])
        (result,) = smol.sample(prompt, grammar)
        assert result.text == likeliest(smol, smol.prompt_ids(prompt, grammar), row["options"])
        assert result.stats.forwards == 1
        (token,) = smol.sample(prompt, grammar, sampler=tf.Local(0.0, values="token"))
        right["whole"] += result.text == row["right"]
        right["token"] += token.text == row["right"]
    assert right["whole"] >= 20 and right["token"] <= 5, right


def test_so_it_is_for_everyday_questions(smol: tf.Generator) -> None:
    """Capitals, topics, "None of …", long options beside short ones; the prompts are strings."""
    rows = [row for line in ROWS.read_text().splitlines() if (row := json.loads(line))["half"] == "aside"]
    for row in rows[::4]:  # `benchmarks/choices.py` asks all
        grammar = tf.choice(row["options"])
        (result,) = smol.sample(row["question"], grammar)
        ids = smol.prompt_ids(row["question"], grammar)
        assert result.text == likeliest(smol, ids, row["options"]), row["question"]
        assert result.stats.forwards == 1
