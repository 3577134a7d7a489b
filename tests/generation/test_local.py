"""The local sampler's law, against the definition spelled out token by token."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenform import Local
from tokenform.errors import OptionError, SamplingError


def by_definition(logits: list[float], local: Local) -> list[float]:
    """Temperature, top-k, top-p, min-p in this order, each on the renormalised law, in plain Python."""
    if local.temperature == 0:
        best = max(range(len(logits)), key=lambda t: (logits[t], -t))
        return [float(t == best) for t in range(len(logits))]
    top = max(logits)
    law = [math.exp((x - top) / local.temperature) for x in logits]

    def keep(tokens):
        total = sum(law[t] for t in tokens)
        return [law[t] / total if t in tokens else 0.0 for t in range(len(law))]

    law = keep({t for t in range(len(law)) if law[t] > 0})
    ranked = sorted(range(len(law)), key=lambda t: (-law[t], t))
    if local.top_k is not None:
        law = keep(set(ranked[: local.top_k]))
    if local.top_p < 1:
        kept, mass = set(), 0.0
        for token in ranked:
            if mass >= local.top_p - 1e-12:
                break
            kept.add(token)
            mass += law[token]
        law = keep(kept)
    if local.min_p > 0:
        law = keep({t for t in range(len(law)) if law[t] >= local.min_p * max(law) * (1 - 1e-12)})
    return law


settings_of = st.builds(
    Local,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_k=st.sampled_from([None, 1, 2, 3, 50]),
    top_p=st.sampled_from([1.0, 0.93, 0.51, 0.11]),
    min_p=st.sampled_from([0.0, 0.07, 0.41]),
)
rows = st.lists(st.one_of(st.floats(-4, 4), st.just(-math.inf)), min_size=1, max_size=7).filter(
    lambda row: max(row) > -math.inf
)


@settings(max_examples=150, deadline=None)
@given(rows, settings_of)
def test_the_law_is_the_documented_one(logits, local):
    law = local.log_law(torch.tensor([logits], dtype=torch.float64)).exp()[0]
    assert law.tolist() == pytest.approx(by_definition(logits, local), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(rows, settings_of, st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5))
def test_draws_invert_the_cumulative_law(logits, local, uniforms):
    stacked = torch.tensor([logits] * len(uniforms), dtype=torch.float64)
    law = local.log_law(stacked)[0].exp().cumsum(0)
    for u, token in zip(uniforms, local.draw(stacked, uniforms), strict=True):
        below = float(law[token - 1]) if token else 0.0
        assert below - 1e-12 <= u * float(law[-1]) <= float(law[token]) + 1e-12
        assert float(law[token]) > below


def test_a_draw_never_lands_on_a_masked_token():
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    for u in (0.0, 0.4999999, 0.5, 1 - 2**-53):
        assert Local().draw(logits, [u])[0] in (1, 3)


def test_options_and_hopeless_rows_are_refused():
    for wrong in ({"temperature": -1}, {"temperature": math.nan}, {"top_k": 0}, {"top_p": 0}, {"min_p": 2}):
        with pytest.raises(OptionError):
            Local(**wrong)
    with pytest.raises(SamplingError):
        Local().draw(torch.full((1, 3), -math.inf), [0.5])
