"""Hosts that hand over all ids at each step: MLX-LM itself, and the calls that others make."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
import torch

import tokenform as tf
from tokenform.builtin.loading import WEIGHTS, load
from tokenform.errors import BudgetTooSmall, VocabularyError
from tokenform.integrations.history_matcher import HistoryMatcher
from tokenform.integrations.llama_cpp import LlamaCppProcessor, read_gguf
from tokenform.integrations.torch_processors import DynamoProcessor, LMDeployProcessor, TensorRTProcessor

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "multipleOf": 7},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
        "note": {"type": "string"},
    },
    "required": ["n", "tags", "note"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vocabulary():
    return tf.Vocabulary.from_tokenizer(load()[1], size=2080)


def write(step, vocabulary, prompt=(5, 6, 7), most=40, seed=0):
    """A text by `step(ids, logits) -> logits`, with random logits."""
    random = np.random.default_rng(seed)
    ids = list(prompt)
    while len(ids) - len(prompt) < most:
        logits = random.standard_normal(vocabulary.size).astype(np.float32)
        ids.append(int(np.argmax(step(ids, logits))))
        if ids[-1] in vocabulary.eos:
            break
    return ids[len(prompt) :]


def check(tokens, vocabulary, most=40):
    assert tokens[-1] in vocabulary.eos and len(tokens) <= most
    jsonschema.validate(json.loads(b"".join(vocabulary.token(one) for one in tokens[:-1])), SCHEMA)


def test_llama_cpp_pythons_calls(vocabulary):
    processor = LlamaCppProcessor(tf.json_schema(SCHEMA), vocabulary, max_tokens=40)
    for seed in range(4):  # one after the other, the same prompt and others
        prompt = (5, 6, 7) if seed % 2 else (9,)
        step = lambda ids, logits: processor(np.array(ids, np.intc), logits)  # noqa: E731
        check(write(step, vocabulary, prompt, seed=seed), vocabulary)


def test_torch_hosts_calls(vocabulary):
    grammar = tf.json_schema(SCHEMA)
    lmdeploy = LMDeployProcessor(grammar, vocabulary, max_tokens=40)
    dynamo = DynamoProcessor(grammar, vocabulary, max_tokens=40)
    tensorrt = TensorRTProcessor(grammar, vocabulary, max_tokens=40)

    def by_lmdeploy(ids, logits):
        return lmdeploy(torch.tensor(ids), torch.from_numpy(logits)).numpy()

    def by_dynamo(ids, logits):
        dynamo(ids, torch.from_numpy(logits))
        return logits

    def by_tensorrt(ids, logits):
        both = torch.from_numpy(logits).repeat(1, 2, 1)
        tensorrt(1, both, [ids, ids], None)
        assert torch.equal(both[0, 0], both[0, 1])
        return both[0, 1].numpy()

    for step in (by_lmdeploy, by_dynamo, by_tensorrt):
        check(write(step, vocabulary), vocabulary)


def test_drafts_are_taken_back(vocabulary):
    following, other = (HistoryMatcher(tf.json_schema(SCHEMA), vocabulary, max_tokens=40) for _ in range(2))
    following.allowed([1])
    other.allowed([1])
    tokens = write(
        lambda ids, logits: np.where(other.allowed(ids), logits, -np.inf), vocabulary, prompt=(1,), seed=3
    )
    ahead = following.allowed([1, *tokens[:6]]).copy()
    back = following.allowed([1, *tokens[:2]]).copy()
    assert np.array_equal(following.allowed([1, *tokens[:6]]), ahead)
    fresh = HistoryMatcher(tf.json_schema(SCHEMA), vocabulary, max_tokens=40)
    fresh.allowed([1])
    assert np.array_equal(fresh.allowed([1, *tokens[:2]]), back)
    wrong = int(np.flatnonzero(~back)[5])
    only = following.allowed([1, *tokens[:2], wrong])
    assert np.flatnonzero(only).tolist() == vocabulary.eos


def test_too_few_tokens(vocabulary):
    with pytest.raises(BudgetTooSmall, match="max_tokens=3"):
        HistoryMatcher(tf.json_schema(SCHEMA), vocabulary, max_tokens=3)


def test_the_vocabulary_of_a_gguf_file(needs, tmp_path):
    gguf = needs("gguf")
    tokenizer = load()[1]
    expected = tf.Vocabulary.from_tokenizer(tokenizer)
    file = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    by_id = {token: piece for piece, token in tokenizer.get_vocab().items()}
    added = {int(token): one for token, one in tokenizer.added_tokens_decoder.items()}
    kinds = [1 if token not in added else 3 if added[token].special else 4 for token in range(len(tokenizer))]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([by_id[token] for token in range(len(tokenizer))])
    writer.add_token_types(kinds)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    found = read_gguf(file)
    assert (found.tokens, found.eos, found.special) == (expected.tokens, expected.eos, expected.special)
    empty = tmp_path / "empty.gguf"
    writer = gguf.GGUFWriter(str(empty), "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(VocabularyError, match="holds no vocabulary"):
        read_gguf(empty)


@pytest.mark.filterwarnings("ignore")
def test_mlx_lm_writes_by_the_processor(needs):
    needs("mlx.core")
    mlx_lm = needs("mlx_lm")
    from tokenform.integrations.mlx_lm import MlxProcessor as Processor

    model, tokenizer = mlx_lm.load(str(WEIGHTS / "model"))
    processor = Processor(tf.json_schema(SCHEMA), tokenizer, max_tokens=40)
    text = "".join(
        piece.text
        for piece in mlx_lm.stream_generate(
            model, tokenizer, "The order:", max_tokens=40, logits_processors=[processor]
        )
    )
    jsonschema.validate(json.loads(text), SCHEMA)


def test_old_names_warn() -> None:
    from tokenform.integrations import llama_cpp, mlx_lm

    for module, new in ((llama_cpp, "LlamaCppProcessor"), (mlx_lm, "MlxProcessor")):
        with pytest.warns(DeprecationWarning, match=f"write {new}"):
            assert module.GrammarProcessor is getattr(module, new)
        with pytest.raises(AttributeError, match="no attribute 'Other'"):
            module.Other  # noqa: B018
