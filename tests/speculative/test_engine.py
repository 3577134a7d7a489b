"""Speculation under real constraints: regular expressions, JSON Schemas, grammars."""

from __future__ import annotations

import functools
import json

import pytest

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import Forced, Hints, Merge, Suffix, auto
from tokenform.decoding.speculative.policies import Controller
from tokenform.decoding.speculative.request import Request

from .models import ARCHITECTURES, model
from .plain import plain
from .running import decode

PIECES = [b'{"', b'": ', b'", "', b'"}', b"name", b"age", b"true", b"false", b", ", b"12"]
TOKENS = [b"", *(bytes([i]) for i in range(256)), *PIECES]
EOS = 0
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "ok": {"type": "boolean"},
    },
    "required": ["name", "ok"],
    "additionalProperties": False,
}


VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS])


@functools.cache
def grammar(kind: str):
    return {
        "regex": lambda: tf.regex(r"[a-c]{2,5}(-\d{1,3})?"),
        "schema": lambda: tf.json_schema(SCHEMA),
        "choice": lambda: tf.choice(["name", "name and age", "none"]),
    }[kind]()


def constraint(kind: str):
    return grammar(kind).compile(VOCABULARY)


def requests(kind: str, local, tokens: int = 40) -> list[Request]:
    sampler = MaskedSampler(local, len(TOKENS), [EOS])
    hints = Hints(grammar(kind), VOCABULARY)
    return [
        Request(
            p,
            sampler,
            constraint(kind),
            max_tokens=tokens,
            eos=frozenset([EOS]),
            seed=4,
            number=i,
            hints=hints,
        )
        for i, p in enumerate(([5, 6, 5], [100, 101, 102, 100]))
    ]


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("kind", ["regex", "schema", "choice"])
def test_texts_are_those_of_plain_decoding_and_complete(name, kind):
    net = model(name, vocabulary=len(TOKENS))
    asked = requests(kind, tf.Local(temperature=0.0 if name == "llama" else 0.9, values="token"))
    want = [plain(net, r) for r in asked]
    for drafter, policy in ((Merge(Forced(), Suffix()), None), (auto(), Controller())):
        got = decode(Backbone(net), asked, drafter, policy=policy)
        assert [o.tokens for o in got] == want
        for o in got:
            assert o.error is None and constraint(kind).is_accepting(o.state)
            if kind == "schema":
                assert set(json.loads(b"".join(TOKENS[t] for t in o.tokens))) >= {"name", "ok"}


def test_a_tight_budget_is_kept_with_drafts():
    net = model("qwen3", vocabulary=len(TOKENS))
    need = constraint("schema").distance(constraint("schema").start)
    asked = requests("schema", tf.Local(temperature=1.0), tokens=need + 2)
    got = decode(Backbone(net), asked, Merge(Forced(), Suffix()))
    assert [o.tokens for o in got] == [plain(net, r) for r in asked]
    assert all(constraint("schema").is_accepting(o.state) and len(o.tokens) <= need + 2 for o in got)
