"""Packed masks on logits: the reference against the definition bit by bit, the table of masks against the
automaton.  The kernel's tests are in test_kernel.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import OptionError
from tokenform.masking import MaskTable, apply_mask_, apply_rows


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


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 100), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_rows_name_masks_of_a_table(size, narrower, seed):
    random = np.random.default_rng(seed)
    table = random.integers(0, 2**32, (3, max(1, (size + 31) // 32 - narrower)), dtype=np.uint32)
    rows = random.integers(-1, 3, 4)
    logits = torch.from_numpy(random.normal(size=(4, size)))
    masked = apply_rows(logits.clone(), torch.from_numpy(table.view(np.int32)), torch.from_numpy(rows))
    for row in range(4):
        for token in range(size):
            within = token // 32 < table.shape[1]
            bit = within and int(table[rows[row], token // 32]) >> (token % 32) & 1
            assert masked[row, token] == (logits[row, token] if rows[row] < 0 or bit else -torch.inf)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match=r"\(2, 2\)"):
        apply_mask_(torch.zeros(2, 33), torch.zeros(2, 1, dtype=torch.int32))
    table = torch.zeros(3, 2, dtype=torch.int32)
    with pytest.raises(OptionError, match="rows do not fit"):
        apply_rows(torch.zeros(2, 33), table, torch.zeros(3, dtype=torch.int32))
    with pytest.raises(OptionError, match="or narrower"):
        apply_rows(torch.zeros(2, 31), table, torch.zeros(2, dtype=torch.int32))
    with pytest.raises(OptionError, match="out must be"):
        apply_rows(torch.zeros(2, 33), table, torch.zeros(2, dtype=torch.int32), out=torch.zeros(2, 32))


@pytest.fixture(scope="module")
def vocabulary() -> tf.Vocabulary:
    tokens = [bytes([b]) for b in range(256)] + [b"ab", b"abc", b"</s>"]
    return tf.Vocabulary(tokens, eos=[258], special=[258])


def states_of(automaton: Any, text: bytes) -> list[int]:
    return [automaton.step_bytes(automaton.start, text[:end]) for end in range(len(text) + 1)]


def test_a_table_gives_each_state_its_mask(vocabulary):
    one, two = tf.regex("(a|b)*c{1,9}").compile(vocabulary), tf.regex("[0-9]+x").compile(vocabulary)
    table = MaskTable(vocabulary.size, "cpu", capacity=6)
    wanted = [(one, s) for s in states_of(one, b"abaccc")] + [(two, s) for s in states_of(two, b"12x")]
    own = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
    own[0] = 5
    random = np.random.default_rng(0)
    for _ in range(60):
        batch: list[Any] = [wanted[i] for i in random.integers(0, len(wanted), 5)]
        batch[int(random.integers(5))] = own
        logits = torch.from_numpy(random.normal(size=(5, vocabulary.size + 40)))
        masked = table.apply(logits.clone(), table.rows(batch))
        for row, entry in enumerate(batch):
            bits = entry if isinstance(entry, np.ndarray) else entry[0].mask(entry[1])
            allowed = np.unpackbits(bits.view(np.uint8), bitorder="little")[: vocabulary.size]
            allowed = np.pad(allowed, (0, 40)).astype(bool)
            assert torch.equal(masked[row].isfinite(), torch.from_numpy(allowed))
            assert torch.equal(masked[row][allowed], logits[row][allowed])
    assert len(table) == 6 and table.figures.evictions > 0
    assert table.figures.misses == table.figures.evictions + 6


def test_the_least_recently_used_row_is_taken_over(vocabulary):
    automaton = tf.regex("[a-z]{8}").compile(vocabulary)
    a, b, c, d = ((automaton, s) for s in states_of(automaton, b"qqq"))
    table = MaskTable(vocabulary.size, "cpu", capacity=3)
    table.rows([a, b, c])
    table.rows([a])
    place = table.rows([d])
    assert (table.figures.hits, table.figures.misses, table.figures.evictions) == (1, 4, 1)
    table.rows([a, c])  # b had to go
    assert table.figures.hits == 3
    assert table.rows([d]).equal(place) and table.figures.hits == 4


def test_more_masks_than_rows_are_refused(vocabulary):
    automaton = tf.regex("[a-z]{8}").compile(vocabulary)
    wanted = [(automaton, s) for s in states_of(automaton, b"qq")]
    table = MaskTable(vocabulary.size, "cpu", capacity=2)
    with pytest.raises(OptionError, match="3 masks"):
        table.rows(wanted)
    assert table.rows([wanted[0], wanted[0], wanted[2]]).tolist() == [0, 0, 1]  # it works as before


def test_automata_of_equal_numbers_do_not_share_rows(vocabulary):
    """States of different automata are the same integers; one that is gone leaves no row to a later one."""
    table = MaskTable(vocabulary.size, "cpu", capacity=4)
    for letter in "abcdef":
        automaton = tf.regex(letter).compile(vocabulary)
        logits = torch.zeros(1, vocabulary.size)
        table.apply(logits, table.rows([(automaton, automaton.start)]))
        assert logits[0].isfinite().nonzero().flatten().tolist() == [ord(letter)]
        del automaton
