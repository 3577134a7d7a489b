"""Free-text reasoning before a constrained text, for models without a reasoning block of their own.

Purpose: `Reason` has the options.  `Readiness` measures, at the end of a sentence, the probability that the
constraint would leave if the text began there (its feasible mass).
Law: the thought is drawn as free text, and the text from the constrained law given prompt, thought and
bridge.  Where the thought ends depends only on what was written, so seeds keep their texts.
Complexity: a measurement costs no pass: the pass of the next token also scores the bridge and what the
constraint forces after it.
Rejected: one grammar of both, `until(bridge, then=text)`: a model that ends its turn without the bridge would
be held in its thought to the end of the budget.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tokenform.engine import State, TokenAutomaton
from tokenform.engine.packed import mask_bits
from tokenform.errors import OptionError, TokenformError

_OPENING = 64  # most bytes of the forced beginning of a text


@dataclass(frozen=True)
class Reason:
    """How a model reasons in free text before its answer; a model with a reasoning block uses that instead.

    Attributes:
        max_tokens: most tokens of the thought; None: three quarters of what the shortest text leaves.
        draft: the model first writes the answer freely, and no steps.
        mass: the feasible mass, a probability, at which a sentence's end ends the thought; None: it ends
            where the model ends its turn, or with its budget.
        words: the instruction in the prompt; None: the library's.
        bridge: the text between thought and answer.

    >>> import tokenform as tf
    >>> tf.Reason(max_tokens=200, draft=True).bridge
    '\\n\\nAnswer:\\n'
    """

    max_tokens: int | None = None
    draft: bool = False
    mass: float | None = None
    words: str | None = None
    bridge: str = "\n\nAnswer:\n"

    def __post_init__(self) -> None:
        most, mass = self.max_tokens, self.mass
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise OptionError(f"max_tokens={most!r} of a thought is not possible; give a number from 1 on.")
        if mass is not None and not (isinstance(mass, int | float) and 0 < mass <= 1):
            raise OptionError(f"mass={mass!r} is not possible; give a probability above 0, or None.")
        if not isinstance(self.bridge, str) or not isinstance(self.words, str | None):
            raise OptionError("words and bridge are texts.")

    def instruction(self, form: str) -> str:
        """The instruction before the user's own words; `form`: the one about the answer's form."""
        if self.words is not None:
            return self.words
        return form if self.draft else "Think first, step by step, then answer."


def ends_sentence(token: bytes) -> bool:
    """Whether a token ends a sentence or a line."""
    return token.rstrip(b" ").endswith((b".", b"!", b"?", b"\n"))


class Readiness:
    """The feasible mass of a text at the first place where its constraint leaves a choice.

    Whitespace is no choice: a document's opening is written as far as its names are forced.

    Args:
        bridge: ids between a thought and the text.
        automaton: of the text.
        spell: bytes as the model's tokenizer writes them.
    Attributes:
        chain: ids to score: the bridge, and what the constraint forces after it.
    """

    def __init__(
        self, bridge: Sequence[int], automaton: TokenAutomaton, spell: Callable[[bytes], list[int]]
    ) -> None:
        opening, state = _opening(automaton)
        self.chain = [*bridge, *spell(opening)]
        self._mask = np.asarray(automaton.mask(state))

    def log_mass(self, logits: torch.Tensor) -> float:
        """Logarithm of the probability of what is allowed behind the opening.

        Args:
            logits: [n, V], the last of them after the last token of `chain`.
        """
        row = logits[-1].float()
        kept = torch.from_numpy(mask_bits(self._mask, len(row))).to(row.device)
        return float(row.masked_fill(~kept, -math.inf).logsumexp(-1) - row.logsumexp(-1))


def _opening(automaton: TokenAutomaton) -> tuple[bytes, State]:
    """The forced beginning of a text but for whitespace, at most `_OPENING` bytes, and the state after it."""
    opening, state = b"", automaton.start
    while len(opening) < _OPENING:
        forced = bytes(automaton.forced_bytes(state)) or _only(automaton, state)
        if not forced:
            break
        opening, state = opening + forced, automaton.step_bytes(state, forced)
    return opening, state


def _only(automaton: TokenAutomaton, state: State) -> bytes:
    """The one byte beside whitespace that may follow; empty if there are several, or the text may end."""

    found = b""
    for byte in () if automaton.is_accepting(state) else range(256):
        one = bytes([byte])
        if one.isspace() or len(found) > 1:
            continue
        with contextlib.suppress(TokenformError):
            automaton.step_bytes(state, one)
            found += one
    return found if len(found) == 1 else b""
