"""A price under a budget: in the middle of a number its masks need less than the default limit on work."""

from __future__ import annotations

import pytest

import tokenform as tf

transformers = pytest.importorskip("transformers")

PRICE = {"type": "number", "multipleOf": 0.01, "minimum": -99999999999.99, "maximum": 99999999999.99}


def test_a_price_is_written_within_a_budget() -> None:
    from tokenform.builtin.loading import WEIGHTS

    vocab = tf.Vocabulary.from_tokenizer(transformers.AutoTokenizer.from_pretrained(str(WEIGHTS / "model")))
    record = {
        "type": "object",
        "properties": {"amount": PRICE, "other": PRICE},
        "required": ["amount"],
        "additionalProperties": False,
    }
    matcher = tf.Matcher(tf.json_schema(record).compile(vocab), max_tokens=199)
    for token in vocab.greedy(b'{"amount": 273281') or []:
        assert token in matcher.allowed_tokens()
        matcher.accept_tokens([token])
    assert len(matcher.allowed_tokens()) > 10
