"""The local sampler's distribution, against the definition spelled out token by token."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenform import Local
from tokenform.errors import OptionError, SamplingError


def by_definition(logits: list[float], local: Local) -> list[float]:
    """Temperature, top-k, top-p, min-p in this order, each on the renormalised distribution; equals stay
    together."""
    if local.temperature == 0:
        best = max(range(len(logits)), key=lambda t: (logits[t], -t))
        return [float(t == best) for t in range(len(logits))]
    top = max(logits)
    distribution = [math.exp((x - top) / local.temperature) for x in logits]

    def keep(tokens):
        total = sum(distribution[t] for t in tokens)
        return [distribution[t] / total if t in tokens else 0.0 for t in range(len(distribution))]

    distribution = keep({t for t in range(len(distribution)) if distribution[t] > 0})
    tokens = range(len(distribution))
    if local.top_k is not None:
        distribution = keep(
            {t for t in tokens if sum(distribution[o] > distribution[t] for o in tokens) < local.top_k}
        )
    if local.top_p < 1:
        likelier = [
            math.fsum(distribution[o] for o in tokens if distribution[o] > distribution[t]) for t in tokens
        ]
        distribution = keep({t for t in tokens if likelier[t] < local.top_p - 1e-12})
    if local.min_p > 0:
        distribution = keep(
            {
                t
                for t in range(len(distribution))
                if distribution[t] >= local.min_p * max(distribution) * (1 - 1e-12)
            }
        )
    return distribution


settings_of = st.builds(
    Local,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_k=st.sampled_from([None, 1, 2, 3, 50]),
    top_p=st.sampled_from([1.0, 0.93, 0.51, 0.11]),
    min_p=st.sampled_from([0.0, 0.07, 0.41]),
)
rows = st.lists(
    st.one_of(st.floats(-4, 4).map(lambda x: round(x, 3)), st.just(-math.inf)), min_size=1, max_size=7
).filter(lambda row: max(row) > -math.inf)


@settings(max_examples=150, deadline=None)
@given(rows, settings_of)
def test_the_distribution_is_the_documented_one(logits, local):
    distribution = local.log_distribution(torch.tensor([logits], dtype=torch.float64)).exp()[0]
    assert distribution.tolist() == pytest.approx(by_definition(logits, local), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(rows, settings_of)
def test_the_threshold_of_a_row_is_that_of_a_batch(logits, local):
    scores = torch.tensor([logits, logits], dtype=torch.float64)
    least = local.truncation.threshold(scores)[:, 0].tolist()
    row = local.truncation.row_threshold(scores[0].numpy())
    kept = {float(x) for x in logits if x >= row and x > -math.inf}
    assert all(kept == {float(x) for x in logits if x >= one and x > -math.inf} for one in least)


@pytest.mark.parametrize("kind", ["flat", "peaked", "far", "masked", "ties", "equal", "one"])
@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.9, 0.999999, 1 - 1e-12])
def test_the_threshold_of_a_wide_row_is_that_of_sorting_it(kind, top_p):
    rng = np.random.default_rng(3)
    row = rng.standard_normal(20_000) * {"peaked": 4.0, "far": 60.0}.get(kind, 0.5)
    if kind == "masked":
        row[rng.random(len(row)) < 0.7] = -math.inf
    elif kind == "ties":
        row = np.round(row, 1)
    elif kind == "equal":
        row[:] = 1.5
    elif kind == "one":
        row[:] = -math.inf
        row[777] = -3.0
    kept = Local(top_p=top_p).truncation
    sorted_ = kept.threshold(torch.from_numpy(row)[None]).item()
    found = kept.row_threshold(row)
    assert found == sorted_
    for few in (kept.row_threshold(row[:4096]), Local(top_p=top_p, top_k=50).truncation.row_threshold(row)):
        assert few in row


def test_options_and_hopeless_rows_are_refused():
    for wrong in ({"temperature": -1}, {"temperature": math.nan}, {"top_k": 0}, {"top_p": 0}, {"min_p": 2}):
        with pytest.raises(OptionError):
            Local(**wrong)
    with pytest.raises(SamplingError):
        Local().log_distribution(torch.full((1, 3), -math.inf))
