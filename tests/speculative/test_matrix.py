"""Greedy text is that of plain decoding: every drafter, each kind of constraint and model.

The fast test takes a few combinations of each; the slow one takes all:
`pytest -m slow tests/speculative/test_matrix.py`.

How many prompts the slow test needs: a drafter writes 24 prompts x 4 kinds x 5 models x 2
sizes of batch = 960 texts, so a fault that spoils one text in a hundred is missed with probability
0.99^960 = 0.00006; the built-in model's 32 prompts are 256 texts a drafter, 0.08.  24 and 32 are
whole batches.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
import torch

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import (
    DraftModel,
    Forced,
    Hints,
    Merge,
    Names,
    NGram,
    Recycling,
    Suffix,
    VocabularyMap,
    auto,
)
from tokenform.decoding.speculative.request import Request

from .models import ARCHITECTURES, model
from .running import decode
from .small_heads import random_heads

PIECES = [b'{"', b'": ', b'", "', b'"}', b"name", b"age", b"true", b"false", b", ", b"12", b" + ", b"(1"]
TOKENS = [b"", *(bytes([i]) for i in range(256)), *PIECES]
EOS = frozenset([0])
VOCABULARY = tf.Vocabulary(TOKENS, eos=[0])
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        "ok": {"type": "boolean"},
    },
    "required": ["name", "ok"],
    "additionalProperties": False,
}
SUMS = 'start: term (" + " term)*\nterm: NUMBER | "(" start ")"\nNUMBER: /[0-9]{1,4}/\n'
KINDS = ("free", "regex", "schema", "lark")


@functools.cache
def small(name: str = "llama", seed: int = 1) -> Any:
    return model(name, seed=seed, layers=1, vocabulary=len(TOKENS))


def other_vocabulary(retokenise: bool) -> VocabularyMap:
    return VocabularyMap(TOKENS, [*TOKENS[:200], b"", *TOKENS[201:]][::-1], retokenise)


DRAFTERS = {
    "forced": Forced,
    "names": Names,
    "ngram": NGram,
    "suffix": Suffix,
    "recycling": Recycling,
    "model": lambda: DraftModel(small(), tokens=4),
    "shared": lambda: DraftModel(small("gpt2"), tokens=3, vocabulary=other_vocabulary(False)),
    "retokenised": lambda: DraftModel(small("gpt2"), tokens=3, vocabulary=other_vocabulary(True)),
    "heads": lambda: random_heads(sequential=True),
    "auto": auto,
    "all": lambda: Merge(Forced(), Names(), Suffix(), Recycling(), DraftModel(small(), tokens=2)),
}


@functools.cache
def grammar(kind: str) -> Any:
    made = {
        "regex": lambda: tf.regex(r"[a-c]{2,5}(-\d{1,3}){0,6}"),
        "schema": lambda: tf.json_schema(SCHEMA),
        "lark": lambda: tf.lark(SUMS),
    }
    return made[kind]() if kind in made else None


def constraint(kind: str) -> Any:
    made = grammar(kind)
    return None if made is None else made.compile(VOCABULARY)


def requests(kind: str, count: int, tokens: int) -> list[Request]:
    rng = random.Random(kind)
    sampler = MaskedSampler(tf.Local(temperature=0.0), len(TOKENS), [0])
    asked = []
    for number in range(count):
        words = [rng.randrange(1, len(TOKENS)) for _ in range(rng.randrange(1, 9))]
        prompt = words * rng.randrange(1, 4)  # repeated, so that what looks things up finds something
        hints = Hints(grammar(kind), VOCABULARY) if kind == "schema" else None
        asked.append(
            Request(
                prompt,
                sampler,
                constraint(kind),
                max_tokens=tokens,
                eos=EOS,
                seed=4,
                number=number,
                hints=hints,
            )
        )
    return asked


@functools.cache
def network(name: str) -> Any:
    return model(name, vocabulary=len(TOKENS))


@functools.cache
def case(name: str, kind: str, count: int, tokens: int) -> tuple[list[Request], list[list[int]]]:
    """The requests and their plain texts, by decoding without drafts, one sequence at a time."""
    asked = requests(kind, count, tokens)
    want = [decode(Backbone(network(name)), [one])[0].tokens for one in asked]
    return asked, want


def check(name: str, kind: str, drafter: str, count: int, tokens: int, batch: int) -> None:
    asked, want = case(name, kind, count, tokens)
    source = DRAFTERS[drafter]()
    for start in range(0, count, batch):
        got = decode(Backbone(network(name)), asked[start : start + batch], source)
        for place, output in enumerate(got, start):
            assert output.error is None
            assert output.tokens == want[place], (name, kind, drafter, batch, place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_a_few_texts_are_those_of_plain_decoding(drafter, kind):
    check("llama", kind, drafter, 2, 14, 2)


def test_plain_texts_are_those_of_the_model_alone():
    """The reference of this file, against full passes without any cache."""
    from .plain import plain

    for kind in KINDS:
        asked, want = case("llama", kind, 2, 14)
        assert want == [plain(network("llama"), one) for one in asked]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_combination(name, kind, drafter):
    torch.set_num_threads(1)
    check(name, kind, drafter, 24, 64, 8)
    check(name, kind, drafter, 24, 64, 1)


@functools.cache
def builtin_texts(kind: str, count: int, tokens: int) -> tuple[Any, list[Any], list[Any], list[list[int]]]:
    """The built-in model in float64: its generator's model, prompts, grammars and plain texts."""
    import copy

    from benchmarks.training.data import examples

    from tokenform.builtin import load

    net = copy.deepcopy(load()[0]).double()
    batch = examples(77, count, held_out=True, tools=0.0)
    grammars: dict[str, Any] = {"free": None, "regex": tf.regex(r"[A-Z][a-z]{2,9}( [A-Z][a-z]{2,9}){0,5}")}
    grammars["lark"] = tf.lark(SUMS)
    chosen = [tf.json_schema(e.record.schema) if kind == "schema" else grammars[kind] for e in batch]
    tokenizer = load()[1]
    prompts = [tokenizer.encode(e.prompt, add_special_tokens=False) for e in batch]
    writer = tf.Generator(net, tokenizer, drafter=None, batch_size=1)
    budget = 400 if kind == "schema" else tokens
    want = [
        writer.sample(p, g, max_tokens=budget, seed=0)[0].tokens for p, g in zip(prompts, chosen, strict=True)
    ]
    return net, prompts, chosen, want


def check_builtin(kind: str, drafter: str, count: int, tokens: int, batch: int) -> None:
    from tokenform.builtin import load, load_draft

    net, prompts, chosen, want = builtin_texts(kind, count, tokens)
    source = {
        "model": lambda: Merge(Forced(), Suffix(), DraftModel(load_draft()[0])),
        "auto": lambda: "auto",
    }[drafter]()
    writer = tf.Generator(net, load()[1], drafter=source, batch_size=batch)
    budget = 400 if kind == "schema" else tokens
    got = [r.tokens for (r,) in writer.sample(prompts, chosen, max_tokens=budget, seed=0)]
    assert got == want


@pytest.mark.parametrize("kind", ["free", "schema"])
def test_the_builtin_model_writes_the_same_with_the_default_drafter(kind):
    check_builtin(kind, "auto", 2, 24, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("drafter", ["auto", "model"])
def test_the_builtin_model(kind, drafter):
    check_builtin(kind, drafter, 32, 64, 8)
    check_builtin(kind, drafter, 32, 64, 1)
