"""Prepacked weights: the same products in less time, the same bits for any number of rows, and the plain
weights for whoever asks."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear
from transformers import LlamaConfig, LlamaForCausalLM

import tokenform as tf
from tokenform.decoding import prepacked
from tokenform.decoding.prepacked import PrepackedLinear, prepack, unpack
from tokenform.integrations.models import open_model

pytestmark = pytest.mark.skipif(
    not prepacked._available(torch.float32),
    reason="this machine's PyTorch has no products with prepacked weights",
)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
}


def llama(tied: bool = True, vocabulary: int = 2048) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
    )
    return LlamaForCausalLM(config).eval()


def prepacked_layers(model: torch.nn.Module) -> int:
    return sum(isinstance(one, PrepackedLinear) for one in model.modules())


def answers(model: Any, ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([ids])).logits
    return logits


@settings(max_examples=60, deadline=None)
@given(
    columns=st.integers(1, 700),
    size=st.integers(1, 700),
    rows=st.integers(0, 40),
    bias=st.booleans(),
    narrow=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_products_are_those_of_the_plain_layer(
    columns: int, size: int, rows: int, bias: bool, narrow: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    plain = torch.nn.Linear(size, columns + -(-(1 << 16) // size), bias=bias)
    inputs = torch.randn(1, rows, size)
    if narrow:
        plain, inputs = plain.bfloat16(), inputs.bfloat16()
    weight, added = plain.weight.double(), None if plain.bias is None else plain.bias.double()
    layer = PrepackedLinear(plain, shared=False)
    with torch.inference_mode():
        got = layer(inputs)
    assert got.dtype == inputs.dtype and got.shape == (1, rows, plain.out_features)
    bound = 2.0**-7 if narrow else 2.0**-20
    size_of = linear(inputs.double().abs(), weight.abs(), None if added is None else added.abs())
    assert bool(((got.double() - linear(inputs.double(), weight, added)).abs() <= bound * size_of).all())


@pytest.mark.parametrize(("columns", "size"), [(576, 576), (1536, 576), (576, 1536), (3000, 130)])
def test_a_row_does_not_depend_on_how_many_there_are(columns: int, size: int) -> None:
    layer = PrepackedLinear(torch.nn.Linear(size, columns, bias=False), shared=False)
    inputs = torch.randn(33, size)
    with torch.inference_mode():
        whole = layer(inputs)
        for count in (1, 2, 3, 5, 8, 17):
            assert torch.equal(layer(inputs[:count]), whole[:count])
        assert torch.equal(layer(inputs[4]), whole[4])
        assert torch.equal(layer(inputs[None, 4:5]), whole[None, 4:5])


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_keeps_its_answers_weights_and_ties(tied: bool) -> None:
    plain, model = llama(tied), prepack(llama(tied))
    assert prepacked_layers(model) >= 8
    ids = [1, 5, 9, 2000, 7]
    assert torch.allclose(answers(model, ids), answers(plain, ids), atol=1e-5)
    assert (model.lm_head.weight is model.model.embed_tokens.weight) == tied
    assert model.num_parameters() == plain.num_parameters() and model.dtype == plain.dtype
    saved = model.state_dict()
    assert saved.keys() == plain.state_dict().keys()
    assert all(torch.equal(saved[name], value) for name, value in plain.state_dict().items())


def test_whoever_moves_copies_or_saves_it_has_the_plain_weights(tmp_path: Path) -> None:
    plain, model, ids = llama(), prepack(llama()), [1, 5, 9]
    want, packed = answers(plain, ids), answers(model, ids)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert prepacked_layers(twin) and torch.equal(answers(twin, ids), packed)
        assert twin.lm_head.weight is twin.model.embed_tokens.weight
    assert torch.allclose(answers(copy.deepcopy(model).double(), ids), answers(plain.double(), ids))
    model.save_pretrained(tmp_path)
    assert torch.equal(answers(LlamaForCausalLM.from_pretrained(tmp_path), ids), want)
    other = llama()
    with torch.no_grad():
        for one in other.parameters():
            one.mul_(0.5)
    model.load_state_dict(other.state_dict())
    assert torch.allclose(answers(model, ids), answers(other, ids), atol=1e-5)
    assert torch.equal(answers(unpack(model), ids), answers(other, ids))
    assert prepacked_layers(model) == 0


def test_gradients_and_training_are_those_of_the_plain_model() -> None:
    plain, model = llama(), prepack(llama())
    ids = torch.tensor([[1, 5, 9, 4]])
    inputs = plain.get_input_embeddings()(ids).detach().requires_grad_()
    grads = [torch.autograd.grad(one(inputs_embeds=inputs).logits.sum(), inputs)[0] for one in (plain, model)]
    assert torch.equal(*grads)
    for one in (plain.train(), model.train()):
        steps = torch.optim.SGD(one.parameters(), lr=0.1)
        one(ids, labels=ids).loss.backward()
        steps.step()
    names = dict(model.named_parameters())
    for name, value in plain.named_parameters():
        assert torch.equal(names[name], value) and value.requires_grad == names[name].requires_grad
    assert torch.allclose(answers(model.eval(), [1, 5]), answers(plain.eval(), [1, 5]), atol=1e-5)


def test_a_shared_weight_that_is_written_to_is_read_anew() -> None:
    plain, model, ids = llama(), prepack(llama()), [1, 5, 9]
    for one in (plain, model):
        with torch.no_grad():
            one.get_input_embeddings().weight[5].mul_(3.0)
    assert torch.allclose(answers(model, ids), answers(plain, ids), atol=1e-5)


def test_layers_that_do_something_else_stay() -> None:
    class Own(torch.nn.Linear):
        pass

    hooked, patched = torch.nn.Linear(300, 300), torch.nn.Linear(300, 300)
    hooked.register_forward_hook(lambda *_: None)
    patched.forward = lambda given: given  # type: ignore[method-assign]
    double = torch.nn.Linear(300, 300).double()
    parts = torch.nn.ModuleList([hooked, patched, Own(300, 300), torch.nn.Linear(8, 8), double])
    shared = torch.nn.Linear(300, 300)
    prepack(torch.nn.ModuleList([parts, shared, torch.nn.ModuleList([shared])]))
    assert prepacked_layers(parts) == 0
    both = prepack(torch.nn.ModuleList([shared, torch.nn.ModuleList([shared])]))
    assert prepacked_layers(both) == 1


def test_models_by_name_are_prepacked_and_write_what_the_object_writes(
    tmp_path: Path, tokenizer: Any
) -> None:
    model = llama(vocabulary=16384)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    named, given = tf.Generator(str(tmp_path)), tf.Generator(model, tokenizer)
    assert prepacked_layers(named.model) and not prepacked_layers(given.model)
    prompts = ["Ada, 36", "Bo", "A longer prompt about Cleo, who is 25 years old and lives in Rome."]
    for drafter in ("auto", None):
        got, want = (
            tf.Generator(one.model, one.tokenizer, drafter=drafter).generate(prompts, SCHEMA, max_tokens=40)
            for one in (named, given)
        )
        assert [one.text for one in got] == [one.text for one in want]
    assert named.generate("Ada", choices=["new", "paid"]).text in ("new", "paid")


def test_a_model_that_would_take_much_of_the_memory_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prepacked._memory_available() > 1 << 20
    model = llama()
    size = sum(one.numel() * one.element_size() for one in model.parameters())
    monkeypatch.setattr(prepacked, "_memory_available", lambda: 3.0 * size - 1)
    assert prepacked_layers(prepack(model)) == 0
    monkeypatch.setattr(prepacked, "_memory_available", lambda: 3.0 * size)
    assert prepacked_layers(prepack(model)) > 0


def test_where_pytorch_has_no_such_products_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = prepacked._available(torch.bfloat16)
    monkeypatch.setattr(prepacked, "_available", lambda dtype: narrow and dtype == torch.bfloat16)
    assert prepacked_layers(prepack(llama())) == 0
    assert (prepacked_layers(prepack(llama().bfloat16())) > 0) == narrow


def test_a_compiler_gets_plain_weights(tmp_path: Path, tokenizer: Any) -> None:
    llama().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    opened = open_model(str(tmp_path))
    assert prepacked_layers(opened.model)
    tf.Generator(opened.model, opened.tokenizer, compile=True)
    assert prepacked_layers(opened.model) == 0
