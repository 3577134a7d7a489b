"""Packed masks on logits, against the definition bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenform.errors import OptionError
from tokenform.masking import apply_mask_


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 100), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_apply_mask_is_bit_by_bit(size, batch, seed):
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**32, (batch, (size + 31) // 32), dtype=np.uint32)
    logits = torch.from_numpy(random.normal(size=(batch, size)))
    masked = apply_mask_(logits.clone(), torch.from_numpy(words.view(np.int32)))
    for row in range(batch):
        for token in range(size):
            allowed = int(words[row, token // 32]) >> (token % 32) & 1
            assert masked[row, token] == (logits[row, token] if allowed else -torch.inf)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match=r"\(2, 2\)"):
        apply_mask_(torch.zeros(2, 33), torch.zeros(2, 1, dtype=torch.int32))
