"""A generator with drafts writes what it writes without, in fewer forward passes."""

from __future__ import annotations

import pytest

import tokenform as tf
from tokenform import errors

SCHEMA = {
    "type": "object",
    "properties": {"first_name": {"type": "string", "maxLength": 8}, "verified": {"type": "boolean"}},
    "required": ["first_name", "verified"],
    "additionalProperties": False,
}
CONSTRAINTS = {
    "free": None,
    "regex": tf.regex(r"[A-Z]{3}-[0-9]{1,4}"),
    "schema": tf.json_schema(SCHEMA),
    "choice": tf.choice(["Ada Lovelace", "Ada Byron"]),
}
PROMPTS = ["Ada", "Grace was born in London in 1815", "x"]


@pytest.mark.parametrize("kind", CONSTRAINTS)
@pytest.mark.parametrize("temperature", [0.0, 1.3])
def test_a_seed_gives_the_same_texts_with_and_without(model, tokenizer, kind, temperature):
    sampler = tf.Local(temperature=temperature)
    tokens, logprobs = [], []
    for drafter in (None, "auto", tf.drafters.NGram()):
        writer = tf.Generator(model, tokenizer, sampler=sampler, drafter=drafter, batch_size=4)
        results = writer.sample(PROMPTS, CONSTRAINTS[kind], n=2, seed=9, max_tokens=40)
        tokens.append([r.tokens for texts in results for r in texts])
        logprobs.append([r.logprob for texts in results for r in texts])
    assert tokens[0] == tokens[1] == tokens[2]
    assert logprobs[1] == pytest.approx(logprobs[0], abs=1e-8)
    assert logprobs[2] == pytest.approx(logprobs[0], abs=1e-8)


def test_drafts_save_passes_and_are_counted(model, tokenizer):
    local = tf.Local(0.0, values="token")  # a value that is decided whole takes its tokens at once
    plain = tf.Generator(model, tokenizer, sampler=local, drafter=None).sample("Ada", tf.json_schema(SCHEMA))[
        0
    ]
    drafted = tf.Generator(model, tokenizer, sampler=local).sample("Ada", tf.json_schema(SCHEMA))[0]
    assert drafted.text == plain.text
    assert plain.stats.drafted == plain.stats.accepted == 0
    assert drafted.stats.drafted >= drafted.stats.accepted > 0
    assert drafted.stats.forwards < plain.stats.forwards
    assert drafted.stats.forwards + drafted.stats.accepted in (drafted.stats.tokens, drafted.stats.tokens + 1)
    assert drafted.stats.evaluations > 0 and drafted.stats.seconds_model > 0


def test_transforms_and_streams_are_the_same(model, tokenizer):
    favoured = tokenizer.encode("Q")[0]

    def favour(tokens, logits):
        logits[favoured] += 5
        return logits

    texts = []
    for drafter in (None, "auto"):
        writer = tf.Generator(model, tokenizer, drafter=drafter, transforms=[favour], sampler=tf.Local())
        grammar = CONSTRAINTS["regex"]
        texts.append("".join(writer.stream("x", grammar, seed=2)))
        assert texts[-1] == writer.sample("x", grammar, seed=2)[0].text
    assert texts[0] == texts[1]


def test_a_failing_transform_ends_the_call_with_its_error(model, tokenizer):
    def broken(tokens, logits):
        raise errors.PredicateError("no.")

    with pytest.raises(errors.PredicateError, match=r"no\."):
        tf.Generator(model, tokenizer, transforms=[broken]).sample("x", CONSTRAINTS["regex"])


@pytest.mark.parametrize("wrong", ["none", 7])
def test_what_is_no_drafter_is_refused(model, tokenizer, wrong):
    with pytest.raises(errors.DrafterError):
        tf.Generator(model, tokenizer, drafter=wrong)
    with pytest.raises(errors.OptionError, match="verifier= is gone"):
        tf.Generator(model, tokenizer, verifier=wrong)
