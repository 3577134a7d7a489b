"""The same samplers on the engine's own automata."""

from __future__ import annotations

import math

import numpy as np
import pytest
from toy import EOS, TOKENS, TableModel

tf = pytest.importorskip("tokenform", reason="the compiled engine is not built", exc_type=ImportError)

from tokenform.decoding.aligned.automaton_constraint import AutomatonConstraint  # noqa: E402
from tokenform.decoding.aligned.cars import CARS  # noqa: E402
from tokenform.decoding.aligned.enumeration import enumerate_target  # noqa: E402
from tokenform.decoding.aligned.masked import Masked  # noqa: E402
from tokenform.decoding.aligned.smc import SMC  # noqa: E402


@pytest.fixture(scope="module")
def compiled():
    return tf.regex("00000|1[01]{4}").compile(tf.Vocabulary(TOKENS, eos=[EOS]))


def test_the_engine_spans_the_same_target(compiled, exact):
    found = enumerate_target(Masked().bind(TableModel(5, scale=1.0), compiled))
    assert found.log_measure == pytest.approx(exact.log_measure)


@pytest.mark.parametrize("budget", [3, 4, 5])
def test_budgets_by_the_engines_distances(compiled, exact, budget):
    problem = Masked().bind(TableModel(5, scale=1.0), compiled, max_tokens=budget)
    short = {x: v for x, v in exact.log_measure.items() if len(x) <= budget}
    assert enumerate_target(problem).log_measure == pytest.approx(short)


def test_samplers_run_on_it(compiled, exact):
    problem = CARS().bind(TableModel(5, scale=1.0), compiled)
    sample = CARS().sample(problem, 30, seed=0)
    assert {d.tokens for d in sample.draws} <= set(exact.log_measure)
    log_z = SMC(20).sample(problem, 30, seed=0).log_z
    assert abs(log_z.value - exact.log_z) <= 4.5 * log_z.error


def test_json_documents_within_a_budget():
    """A recursive schema, an unlimited language: all draws are complete and within the budget."""
    vocabulary = tf.Vocabulary(
        [bytes([b]) for b in range(32, 127)] + [b'":', b'{"', b"true", b"<eos>"], eos=[98]
    )
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["boolean", "integer"]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    automaton = tf.json_schema(schema).compile(vocabulary)
    sampler = SMC(8)
    problem = sampler.bind(TableModel(0, vocab_size=99, eos=(98,), scale=0.5), automaton, max_tokens=14)
    sample = sampler.sample(problem, 5, seed=0)
    import json

    for draw in sample.draws:
        value = json.loads(draw.text)
        assert isinstance(value["a"], (bool, int))
        assert len(draw.tokens) <= 14
    assert math.isfinite(sample.log_z.value)


def test_fingerprints_of_grammars():
    vocabulary = tf.Vocabulary(TOKENS, eos=[EOS])
    prints = [
        AutomatonConstraint(tf.regex(p).compile(vocabulary)).fingerprint
        for p in ("00000|1[01]{4}", "1[01]{4}|00000", "0{4}")
    ]
    assert prints[0] == prints[1] != prints[2]
    zero = tf.regex("0").compile(vocabulary)
    assert np.array_equal(AutomatonConstraint(zero).candidates([zero.start])[0], [0])
