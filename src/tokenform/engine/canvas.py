"""Canvases: sequences whose positions are known tokens or open, filled in any order.

Purpose: constraints for models that do not write from left to right (masked diffusion): the allowed tokens at
an open position, the likeliest accepted filling, fillings drawn by their probability.
Invariant: exact.  A token is allowed if some accepted filling has it; beyond a limit there is LimitExceeded.
Complexity: an edge for each state of the automaton before each position (`rust/core/src/canvas`); a known
position costs a step a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenform import _core
from tokenform.engine.vocabulary import Vocabulary
from tokenform.errors import OptionError, SamplingError, TokenRejected

Seed = int | np.random.Generator | None


@dataclass(frozen=True)
class Filling:
    """A filling of a canvas that the constraint accepts.

    Attributes:
        tokens: int32 [L]: the token at each position, known ones included.
        score: natural logarithm of its probability under the positions' own distributions (softmax of each
            row), known positions counting as certain.
        logprob: the same given that the filling is accepted.
    """

    tokens: NDArray[np.int32]
    score: float
    logprob: float


@dataclass(frozen=True)
class Marginals:
    """The distributions of single positions, given that the whole filling is accepted.

    Attributes:
        probabilities: float64 [P, V], a row for each requested position.
        mass: natural logarithm of the probability that a filling drawn position by position is accepted.
    """

    probabilities: NDArray[np.float64]
    mass: float


class Canvas:
    """Positions that are known tokens or open, under a constraint.

    A filling of the open positions is accepted if the tokens before the first end-of-text token spell a text
    of the constraint, and all after it are end-of-text tokens too (any of the vocabulary's); without such a
    token the text takes the whole canvas.

    Forks share their caches of the automaton.  Threads may share a canvas.

    Args:
        automaton: of a grammar and a vocabulary, `grammar.compile(vocabulary)`.
        length: positions, all open at first; or the tokens, with None where a position is open.
    Raises:
        LimitExceeded: by every method about fillings: too many states are possible before some position
            (`Limits.work`, 224 MiB), as in open runs where each text is a state of its own: keys that no
            schema names, distinct items.  The canvas stays as it is.

    >>> import numpy as np
    >>> import tokenform as tf
    >>> vocab = tf.Vocabulary([b"a", b"b", b"ab", b"</s>"], eos=[3], special=[3])
    >>> canvas = tf.Canvas(tf.regex("(ab)+").compile(vocab), 3)
    >>> canvas.allowed(1).tolist()
    [0, 1, 2, 3]
    >>> canvas.fill(2, 3)
    >>> canvas.allowed(0).tolist(), canvas.allowed(1).tolist()
    ([0, 2], [1, 2, 3])
    >>> logits = np.zeros((3, 4), np.float32)
    >>> canvas.best(logits).tokens.tolist()  # of equally likely ones the first
    [0, 1, 3]
    >>> round(float(np.exp(canvas.sample(logits, seed=0).logprob)), 3)  # "ab" in one token or two, "abab"
    0.333
    """

    def __init__(self, automaton: _core.TokenAutomaton, length: int | Sequence[int | None]) -> None:
        if not isinstance(automaton, _core.TokenAutomaton):
            raise OptionError(
                f"a canvas is of an automaton, not a {type(automaton).__name__}; compile the grammar first: "
                "tf.Canvas(grammar.compile(vocabulary), length)."
            )
        tokens: Sequence[int | None] = () if isinstance(length, int) else list(length)
        self._core = _core.Canvas(automaton, length if isinstance(length, int) else len(tokens))
        if tokens:
            self._core.set(list(enumerate(tokens)))

    @property
    def automaton(self) -> _core.TokenAutomaton:
        return self._core.automaton

    @property
    def vocabulary(self) -> Vocabulary:
        vocabulary: Vocabulary = self._core.automaton.vocabulary  # type: ignore[assignment]
        return vocabulary

    @property
    def tokens(self) -> list[int | None]:
        """The token at each position; None: it is open."""
        return self._core.tokens

    @property
    def open(self) -> list[int]:
        """The open positions, ascending."""
        return [at for at, token in enumerate(self.tokens) if token is None]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"<Canvas of {len(self)} positions, {len(self.open)} open>"

    def fill(self, position: int, token: int) -> None:
        """Makes a token known at a position; `feasible` tells whether a filling remains.

        Raises:
            OptionError: there is no such position or token.
        """
        self._core.set([(position, token)])

    def erase(self, position: int) -> None:
        """Opens a position."""
        self._core.set([(position, None)])

    def update(self, tokens: Mapping[int, int | None]) -> None:
        """Fills and opens several positions."""
        self._core.set(list(tokens.items()))

    def fork(self) -> Canvas:
        """An independent copy."""
        copy = object.__new__(Canvas)
        copy._core = self._core.fork()
        return copy

    def feasible(self) -> bool:
        """Whether some filling of the open positions is accepted."""
        return self._core.feasible()

    def allowed(self, position: int) -> NDArray[np.int32]:
        """Sorted ids of the tokens that some accepted filling has at a position, int32.

        Of a known position: the tokens that it could have with the others as they are.
        """
        words = self._core.masks([position])[0]
        return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).astype(np.int32)

    def masks(self, positions: Sequence[int] | None = None) -> NDArray[np.uint32]:
        """The same for several positions as masks, uint32 [P, ceil(V/32)]; default: every position."""
        return self._core.masks(list(range(len(self)) if positions is None else positions))

    def best(self, logits: Any) -> Filling:
        """The likeliest accepted filling under the product of the positions' distributions.

        Args:
            logits: [L, V], an array or a tensor on the CPU; rows of known positions are not read.
        Of equally likely fillings it is the first in the order of their tokens.
        Raises:
            TokenRejected: no filling is accepted.
            SamplingError: no accepted filling has a probability above zero.
        """
        rows = self._rows(logits)
        found = self._core.best(rows, 1.0)
        drawn = self._core.draw(rows, 1.0, np.zeros(0))
        if found is None or drawn is None:
            raise self._refusal()
        (tokens, weight), (_, total, everything) = found, drawn
        return Filling(tokens, weight - everything, weight - total)

    def sample(self, logits: Any, *, temperature: float = 1.0, seed: Seed = None) -> Filling:
        """An accepted filling, drawn from the product of the positions' distributions given acceptance.

        Args:
            logits: [L, V], as for `best`.
            temperature: the logits are divided by it; 0 is `best`.
            seed: of the draw; or a numpy generator.
        Raises:
            TokenRejected, SamplingError: as `best` does.
        """
        if temperature == 0:
            return self.best(logits)
        return self.samples(logits, 1, temperature=temperature, seed=seed)[0]

    def samples(self, logits: Any, n: int, *, temperature: float = 1.0, seed: Seed = None) -> list[Filling]:
        """Several independent draws of `sample`, at little more than the cost of one."""
        if not temperature > 0:
            raise OptionError(f"temperature must be above 0, not {temperature}; 0 is best()")
        numbers = np.random.default_rng(seed).random(n * len(self))
        drawn = self._core.draw(self._rows(logits), float(temperature), numbers)
        if drawn is None:
            raise self._refusal()
        fillings, total, everything = drawn
        if not len(self):
            fillings = [(np.zeros(0, np.int32), 0.0)] * n
        return [Filling(tokens, weight - everything, weight - total) for tokens, weight in fillings]

    def marginals(
        self, logits: Any, positions: Sequence[int] | None = None, *, temperature: float = 1.0
    ) -> Marginals:
        """The distribution of each position under the law of `sample`.

        Args:
            logits: [L, V], as for `best`.
            positions: which; default: every position.
        Raises:
            TokenRejected, SamplingError: as `best` does.
        """
        if not temperature > 0:
            raise OptionError(f"temperature must be above 0, not {temperature}")
        positions_wanted = list(range(len(self)) if positions is None else positions)
        found = self._core.marginals(self._rows(logits), float(temperature), positions_wanted)
        if found is None:
            raise self._refusal()
        probabilities, total, everything = found
        return Marginals(probabilities, total - everything)

    def _refusal(self) -> Exception:
        if self.feasible():
            return SamplingError(
                "no accepted filling has a probability above zero: each has a token whose logit is -inf."
            )
        return TokenRejected(
            f"no filling of the {len(self.open)} open positions is accepted: the tokens that are known can't "
            "stand together, or no text of the constraint fits into the canvas; open positions with erase()."
        )

    def _rows(self, logits: Any) -> NDArray[np.float32]:
        """float32 [L, V], C-contiguous, without NaN or +inf at open positions."""
        if hasattr(logits, "detach"):
            logits = logits.detach().to("cpu").float().numpy()
        rows = np.ascontiguousarray(logits, np.float32)
        shape = (len(self), self.vocabulary.size)
        if rows.ndim != 2 or rows.shape[0] != shape[0] or rows.shape[1] < shape[1]:
            raise OptionError(f"logits must have the shape {shape}; these have {tuple(rows.shape)}")
        open_rows = rows[self.open]
        if np.isnan(open_rows).any() or np.isposinf(open_rows).any():
            raise OptionError("logits of open positions must be numbers or -inf")
        return rows
