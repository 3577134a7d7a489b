"""The model of the copying benchmark: what it writes under masks that let it, and under masks that do not."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from benchmarks.suites.copying import STYLES, Model, priced, written

import tokenform as tf
from tokenform_bench.engines import Session
from tokenform_bench.judges import Judges
from tokenform_bench.vocabulary import BenchVocabulary

np = pytest.importorskip("numpy")
PIECES = [bytes([b]) for b in range(256)] + [b'": ', b'", "', b"00", b"19", b"  ", b""]
EOS = len(PIECES) - 1


def vocabulary() -> BenchVocabulary:
    """Bytes and a few longer tokens; a text is written by its bytes."""
    return BenchVocabulary("bytes", PIECES, EOS, [EOS], lambda text: list(text.encode()))


def session(schema: Any, **options: Any) -> Session:
    automaton = tf.json_schema(schema, **options).compile(tf.Vocabulary(PIECES, eos=[EOS], special=[EOS]))
    row, state = np.zeros((1, (len(PIECES) + 31) // 32), np.uint32), [automaton.start]

    def advance(token: int) -> None:
        state[0] = automaton.advance(state[0], token)

    return Session(row[0], lambda: automaton.fill_masks(state, row), advance)


@pytest.mark.parametrize("style", STYLES)
def test_defaults_let_every_style_be_copied(style: str) -> None:
    texts = [(schema, STYLES[style](data)) for schema, data in map(priced, map(random.Random, range(16)))]
    # two decimals make nothing of the lightest weights
    valid = [(schema, text) for schema, text in texts if Judges(schema).judge(text).valid]
    assert len(valid) > 4
    for schema, text in valid:
        copied = Model(vocabulary()).write(session(schema), text.encode())
        assert (copied.outcome, copied.text) == ("copied", text)


def test_a_masked_model_goes_on_from_where_its_text_stands() -> None:
    schema = {"type": "object", "properties": {"price": {"type": "number"}}}
    model = Model(vocabulary())
    copied = model.write(session(schema, whitespace="spaced"), b'{"price":3.5}')
    assert copied.outcome == "changed" and json.loads(copied.text) == {"price": 3.5}
    endless = model.write(session(schema, numbers="canonical"), b'{"price": 19.90}')
    assert endless.outcome in ("changed", "endless") and endless.text.startswith('{"price": 19.9')


def test_what_a_piece_has_written() -> None:
    assert written(b"abc", b"ab") == 2
    assert written(b"abc", b" a") == 1
    assert written(b"abc", b"xyz") == 0
