"""`tf.logprob` against plain passes, enumeration and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import ModelError, OptionError

from .judge import WORDS, generator, logprobs, model, tokenizer

PROMPTS = ["no", "newark", "the"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), st.integers(0, 2))
def test_numbers_are_those_of_one_plain_pass_a_text(texts: list[str], seed: int) -> None:
    gen, grammar = generator(seed=seed), tf.choice(WORDS)
    automaton = grammar.compile(gen.vocabulary)
    prompts = [PROMPTS[at % 3] for at in range(len(texts))]
    found = tf.logprob(gen, texts, grammar, prompt=prompts)
    for row, (text, prompt) in enumerate(zip(texts, prompts, strict=True)):
        ids, tokens = gen.prompt_ids(prompt), [*gen.spell(text.encode()), gen.vocabulary.eos[0]]
        assert found.tokens[row] == tokens
        table, state = logprobs(gen.model, [*ids, *tokens])[len(ids) - 1 :], automaton.start
        for at, token in enumerate(tokens):
            mass = np.logaddexp.reduce(table[at][automaton.allowed_tokens(state)])
            assert found.free[row, at].item() == pytest.approx(table[at][token], abs=1e-9)
            assert found.log_mass[row, at].item() == pytest.approx(mass, abs=1e-9)
            assert found.masked[row, at].item() == pytest.approx(table[at][token] - mass, abs=1e-9)
            state = automaton.advance(state, token)
        assert not found.inside[row, len(tokens) :].any() and found.inside[row, : len(tokens)].all()


def test_a_constrained_draw_is_replayed() -> None:
    gen, grammar = generator(), tf.json_schema({"properties": {"a": {"type": "boolean"}}, "required": ["a"]})
    local = tf.Local(1.0, values="token")
    results = [gen.sample(one, grammar, seed=1, sampler=local)[0] for one in PROMPTS]
    found = tf.logprob(gen, [one.tokens for one in results], grammar, prompt=PROMPTS, end=False)
    for row, result in enumerate(results):
        assert found.free[row][: len(result.tokens)].tolist() == pytest.approx(result.token_logprobs)
    masses = tf.feasible_mass(gen, [one.tokens for one in results], grammar, prompt=PROMPTS)
    assert [len(one) for one in masses] == [len(one.tokens) + 1 for one in results]


def test_all_token_sequences_of_a_grammar_have_mass_one() -> None:
    gen, grammar = generator(), tf.choice(["no", "new"])
    automaton, eos = grammar.compile(gen.vocabulary), set(gen.vocabulary.eos)
    paths, todo = [], [((), automaton.start)]
    while todo:
        path, state = todo.pop()
        for token in automaton.allowed_tokens(state).tolist():
            if token in eos:
                paths.append([*path, token])
            else:
                todo.append(((*path, token), automaton.advance(state, token)))
    assert len(paths) > 4
    found = tf.logprob(gen, paths, grammar, prompt="a")
    assert found.total.exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_gradients_are_those_of_finite_differences() -> None:
    read = tokenizer()
    net = model.__wrapped__(len(read))
    grammar, texts = tf.json_schema({"enum": ["no", "new york"]}), ['"no"', '"new york"']

    def value() -> torch.Tensor:
        found = tf.logprob(net, texts, grammar, prompt=["a", "the new"], tokenizer=read)
        return (
            (found.total * torch.tensor([1.0, -0.7])).sum()
            + found.log_mass.sum()
            + 0.3 * found.free_total.sum()
        )

    value().backward()
    draw = np.random.default_rng(0)
    for parameter in (
        net.lm_head.weight,
        net.model.embed_tokens.weight,
        net.model.layers[0].mlp.up_proj.weight,
    ):
        assert parameter.grad is not None
        rows = parameter.grad.abs().sum(1).topk(5).indices.tolist()
        for row in rows:
            column, step = int(draw.integers(parameter.shape[1])), 1e-5
            with torch.no_grad():
                parameter[row, column] += step
                above = value()
                parameter[row, column] -= 2 * step
                below = value()
                parameter[row, column] += step
            assert abs((above - below).item() / (2 * step) - parameter.grad[row, column].item()) <= 1e-6


def test_a_refused_text_is_impossible_and_leaves_gradients_finite() -> None:
    read = tokenizer()
    net = model.__wrapped__(len(read))
    found = tf.logprob(net, ["no", "the", "new"], tf.choice(["no", "new york"]), prompt="a", tokenizer=read)
    assert math.isfinite(found.total[0]) and found.total[1] == found.total[2] == -math.inf
    assert torch.isfinite(found.free_total).all()
    torch.where(found.allowed, found.masked, 0.0).sum().backward()
    assert all(one.grad is None or torch.isfinite(one.grad).all() for one in net.parameters())


def test_what_is_not_possible_is_refused() -> None:
    gen = generator()
    with pytest.raises(ModelError):
        tf.logprob(gen.model, ["no"])
    with pytest.raises(OptionError):
        tf.logprob(gen, ["no", "new"], prompt=["a", "b", "c"])
    with pytest.raises(OptionError):
        tf.logprob(gen, [""], end=False)
    assert tf.logprob(gen, "no").log_mass.abs().sum() == 0
