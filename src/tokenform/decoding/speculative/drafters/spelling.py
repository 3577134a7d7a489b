"""How bytes are written in a model's tokens, for drafters that know text rather than tokens.

Purpose: `spelling_of(context)` gives a drafter the tokens of the constraint's vocabulary, and the way in
which the model's own tokenizer writes text, where the generator has one; else longest match.
Invariant: special tokens spell nothing.
Complexity: O(V) once a vocabulary; it is kept as long as the vocabulary lives.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .base import Context
from .other_vocabulary import LongestMatch

Encode = Callable[[bytes], list[int]]

WORD = np.array([byte >= 128 or chr(byte).isalnum() or byte == ord("_") for byte in range(256)])
"""Bytes of words and numbers, bool [256]."""


class Spelling:
    """Args:
    tokens: bytes of every token id.
    encode: bytes -> token ids as the model's tokenizer writes them; None is longest match.
    special: ids that are no text.

    Attributes:
        ids: bytes -> token id.
        firsts: the first byte of each token, uint8 [V]; 0 of one without bytes.
        marks: the tokens of one byte that is ASCII and no letter, digit or `_` or `.`, int64.
        in_word: whether a token ends within a word or a number, bool [V].
        in_next_word: of these, those that begin with whitespace, bool [V].
        quotes: whether a token ends with a double quote, bool [V].
        longest: longest match from the left.
    """

    def __init__(
        self, tokens: Sequence[bytes], encode: Encode | None = None, special: Sequence[int] = ()
    ) -> None:
        self.tokens, hidden = tokens, frozenset(special)
        self.ids = {b: i for i, b in reversed(list(enumerate(tokens))) if b and i not in hidden}
        self.firsts = np.array([one[0] if one else 0 for one in tokens], np.uint8)
        marks = [bytes([one]) for one in range(128) if not chr(one).isalnum() and one not in b"_."]
        self.marks = np.array([self.ids[one] for one in marks if one in self.ids], np.int64)
        self.in_word = WORD[[one[-1] if one else 0 for one in tokens]]
        self.in_next_word = self.in_word & np.array([one[:1].isspace() for one in tokens], np.bool_)
        self.quotes = np.array([one[-1:] == b'"' for one in tokens], np.bool_)
        self.longest = LongestMatch(self.ids)
        self.encode: Encode = encode if encode is not None else self.longest

    def writing(self, encode: Encode | None) -> Spelling:
        """The same tokens with another way of writing text."""
        if encode is None:
            return self
        other = copy.copy(self)
        other.encode = encode
        return other


_KNOWN: WeakKeyDictionary[Any, Spelling] = WeakKeyDictionary()


def spelling_of(context: Context) -> Spelling | None:
    """The spelling of the constraint's vocabulary; None without a constraint."""
    if context.automaton is None:
        return None
    vocabulary = context.automaton.vocabulary
    found = _KNOWN.get(vocabulary)
    if found is None:
        found = _KNOWN[vocabulary] = Spelling(list(vocabulary.tokens), None, list(vocabulary.special))
    return found.writing(context.encode)
