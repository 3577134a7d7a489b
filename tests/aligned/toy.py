"""The discriminating toy: a table model, few, overlapping tokens, a language of 17 strings.

Tokens 0, 1, 00, 11, 01 and EOS; L = 00000 | 1[01]{4}.  89 token sequences spell the 17 strings, the model
puts little mass on L, and local masking is far from the target, so that a sampler that only masks can't pass.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

TOKENS = [b"0", b"1", b"00", b"11", b"01", b"<eos>"]
EOS = 5
PATTERN = re.compile(rb"00000|1[01]{4}")
STRINGS = [b"00000"] + [b"1" + format(i, "04b").encode() for i in range(16)]


class TableModel:
    """A model whose distribution after a prefix is a softmax of seeded normal logits; each prefix has a row
    of its own.
    """

    def __init__(
        self, seed: int, vocab_size: int = 6, eos: Sequence[int] = (EOS,), scale: float = 1.5
    ) -> None:
        self.seed, self.vocab_size, self.eos, self.scale = seed, vocab_size, tuple(eos), scale
        self.forwards = self.rows = 0
        self.largest_batch = 0
        self.fingerprint = f"table({seed}, {vocab_size}, {scale})"
        self.table: dict[tuple[int, ...], np.ndarray] = {}

    def row(self, prefix: tuple[int, ...]) -> np.ndarray:
        if prefix not in self.table:
            digest = hashlib.sha256(repr((self.seed, prefix)).encode()).digest()
            logits = self.scale * np.random.default_rng(int.from_bytes(digest[:8], "little")).normal(
                size=self.vocab_size
            )
            self.table[prefix] = logits - np.logaddexp.reduce(logits)
        return self.table[prefix]

    def logprobs(self, prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        self.forwards += 1
        self.rows += len(prefixes)
        self.largest_batch = max(self.largest_batch, len(prefixes))
        return np.stack([self.row(tuple(prefix)) for prefix in prefixes])


class StringsAutomaton:
    """The token automaton of a finite set of byte strings: a test double of the engine's, with the same
    methods.

    States are prefixes of the strings (interned as numbers); the finished state is -1.
    """

    class _Vocabulary:
        def __init__(self, tokens: Sequence[bytes], eos: Sequence[int]) -> None:
            self.tokens, self.eos, self.size = list(tokens), list(eos), len(tokens)

    def __init__(
        self, strings: Sequence[bytes], tokens: Sequence[bytes] = TOKENS, eos: Sequence[int] = (EOS,)
    ) -> None:
        self.vocabulary = self._Vocabulary(tokens, eos)
        self.strings = set(strings)
        self._prefixes = sorted({s[:i] for s in strings for i in range(len(s) + 1)})
        self._number = {prefix: i for i, prefix in enumerate(self._prefixes)}
        self._live = self._reachable()
        self.start = self._number[b""]

    def _reachable(self) -> dict[bytes, int]:
        """Least number of tokens to an accepted end, for each prefix that has one."""
        content = [t for i, t in enumerate(self.vocabulary.tokens) if i not in self.vocabulary.eos and t]
        live = {s: 0 for s in self.strings}
        for prefix in sorted(self._prefixes, key=len, reverse=True):
            ends = [live[prefix + t] + 1 for t in content if prefix + t in live]
            if ends and prefix not in live:
                live[prefix] = min(ends)
        return live

    def advance(self, state: int, token: int) -> int:
        if token in self.vocabulary.eos:
            assert self.is_accepting(state)
            return -1
        return self._number[self._prefixes[state] + self.vocabulary.tokens[token]]

    def allows(self, state: int, token: int) -> bool:
        if token in self.vocabulary.eos:
            return self.is_accepting(state)
        return (
            len(self.vocabulary.tokens[token]) > 0
            and self._prefixes[state] + self.vocabulary.tokens[token] in self._live
        )

    def allowed_tokens(self, state: int) -> np.ndarray:
        return np.array([t for t in range(self.vocabulary.size) if self.allows(state, t)], dtype=np.int32)

    def is_accepting(self, state: int) -> bool:
        return state >= 0 and self._prefixes[state] in self.strings

    def is_finished(self, state: int) -> bool:
        return state == -1

    def distance(self, state: int, within: int | None = None) -> int:
        return self._live[self._prefixes[state]]


def toy_automaton() -> StringsAutomaton:
    return StringsAutomaton(STRINGS)


def toy_prefix(data: bytes) -> bool:
    """May these bytes begin a string of L?"""
    return any(string.startswith(data) for string in STRINGS)


def toy_complete(data: bytes) -> bool:
    return PATTERN.fullmatch(data) is not None


def local_distribution(problem) -> dict[tuple[int, ...], float]:  # type: ignore[no-untyped-def]
    """The distribution of local masking by brute force, independent of the samplers' code."""
    distribution: dict[tuple[int, ...], float] = {}
    stack = [(problem.root(), 0.0)]
    while stack:
        prefix, above = stack.pop()
        logf = problem.log_measure([prefix])[0]
        allowed = [t for t in range(len(logf)) if problem.check([prefix], [t])[0]]
        mass = np.logaddexp.reduce(logf[allowed])
        for token in allowed:
            value = above + logf[token] - mass
            if token == problem.eos:
                distribution[prefix.tokens] = float(np.exp(value))
            else:
                stack.append((problem.extend(prefix, token), value))
    return distribution


def trie_distribution(problem, trie) -> dict[tuple[int, ...], float]:  # type: ignore[no-untyped-def]
    """The exact distribution of ASAp's next draw: a ∝ f·θ where the trie knows the prefix, a ∝ f on the mask
    where not.
    """
    distribution: dict[tuple[int, ...], float] = {}
    stack = [(problem.root(), 0.0)]
    while stack:
        prefix, above = stack.pop()
        node = trie.find(prefix.tokens)
        if node is None:
            step = problem.distributions([prefix])[0]
            ids, weights = step.ids, step.logf
        else:
            ids, weights = node.ids, node.log_weights()
        total = np.logaddexp.reduce(weights)
        for token, weight in zip(ids.tolist(), weights.tolist(), strict=True):
            if weight == -np.inf:
                continue
            value = above + weight - total
            if token == problem.eos:
                distribution[prefix.tokens] = float(np.exp(value))
            else:
                stack.append((problem.extend(prefix, token), value))
    return distribution
