"""The evaluation: exact and empirical distances, costs, agreement on log Z, with and without enumeration."""

from __future__ import annotations

import json
import math

import pytest
from toy import StringsAutomaton, TableModel, local_distribution

from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.enumeration import (
    enumerate_target,
    sampling_noise,
    total_variation,
    trie_distribution,
)
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.smc import SMC
from tokenform.errors import LimitExceeded
from tokenform_bench.fidelity import default_samplers, evaluate_fidelity, kl_divergence


def test_every_sampler_on_the_toy(automaton, problem, exact, tmp_path):
    result = evaluate_fidelity(TableModel(5, scale=1.0), automaton, draws=30)
    assert [row.sampler for row in result.rows] == list(default_samplers())
    rows = {row.sampler: row for row in result.rows}
    assert result.texts == 89
    assert result.log_z == pytest.approx(exact.log_z)
    assert rows["local masking"].distance == pytest.approx(
        total_variation(exact.probabilities, local_distribution(problem))
    )
    assert rows["ASAp(until=0.05)"].distance <= 0.05
    assert rows["CARS"].distance == 0
    unknown = {row.sampler for row in result.rows if math.isinf(row.log_z_error)}
    assert unknown <= {"local masking", "AWRS"}  # they say so
    for row in result.rows:
        assert abs(row.agreement) <= 5 or row.sampler in unknown
        assert row.rows > 0
        assert row.distance <= rows["local masking"].distance + row.noise
        if row.how == "empirical":
            assert row.noise == pytest.approx(sampling_noise(exact.probabilities, 30))
    assert json.loads(json.dumps(result.as_dict()))["rows"][0]["sampler"] == "local masking"
    assert all(name in result.table() for name in rows)
    pytest.importorskip("matplotlib")
    result.plot(tmp_path / "distance.png")
    assert (tmp_path / "distance.png").stat().st_size > 5000


def test_without_enumeration_certificates_and_log_z_remain():
    strings = [format(i, "010b").encode() for i in range(1024)]
    samplers = {
        "local masking": Masked(),
        "ASAp": ASAp(),
        "CARS": CARS(),
        "SMC(20)": SMC(20),
        "SMC(5)": SMC(5),
    }
    result = evaluate_fidelity(
        TableModel(3, scale=0.5), StringsAutomaton(strings), samplers, draws=40, limit=50
    )
    rows = {row.sampler: row for row in result.rows}
    assert result.log_z is None
    assert rows["ASAp"].how == "certificate"
    assert 0 < rows["ASAp"].distance <= 1
    assert rows["SMC(20)"].how == "none"
    assert math.isnan(rows["SMC(20)"].distance)
    assert all(abs(row.agreement) <= 5 for row in result.rows)


def test_the_distribution_of_local_masking_is_the_brute_force_one(problem):
    distribution, expected = trie_distribution(problem, None), local_distribution(problem)
    assert distribution == pytest.approx(expected)
    assert total_variation(distribution, expected) <= 1e-12
    assert kl_divergence(distribution, expected) == pytest.approx(0, abs=1e-12)


def test_enumeration_has_a_limit(problem):
    with pytest.raises(LimitExceeded):
        enumerate_target(problem, limit=20)
    assert kl_divergence({(0,): 1.0}, {(1,): 1.0}) == math.inf


def test_a_sampler_that_needs_too_many_passes_gives_up_and_progress_is_told(automaton):
    said: list[str] = []
    found = evaluate_fidelity(
        TableModel(3, scale=2.0), automaton, draws=40, limit=0, max_forwards=12, report=said.append
    )
    assert found.gave_up and all("max_forwards" in why for why in found.gave_up.values())
    assert any("walks, distance at most" in line for line in said)
    bounded = evaluate_fidelity(TableModel(3), automaton, draws=5, limit=0, max_forwards=100_000)
    assert not bounded.gave_up
