"""Thinking aloud: what a model without a block of thoughts writes before a text that a constraint binds.

Purpose: `Reason` says how; `Readiness` measures, where a sentence of the thought ends, how much of the
model's probability the constraint would leave if the text began there (its feasible mass).
Law: the thought is drawn as free text, and the text from the constrained law given prompt, thought and
bridge.  Where the thought ends depends on what stands there alone, so seeds keep their texts.
Complexity: a measured place costs no pass: the pass of the next token is made wider by the bridge and by what
the constraint forces after it.
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

_OPENING = 64  # most bytes of what a text begins with in any case that are measured


@dataclass(frozen=True)
class Reason:
    """How a model thinks aloud before its answer; a model with thoughts of its own has those instead.

    Attributes:
        max_tokens: most tokens of the thought; None: three quarters of what the shortest text leaves.
        draft: the model first writes the answer freely, and no steps.
        mass: the feasible mass, a probability, at which a sentence's end ends the thought; None: it ends
            where the model ends its turn, or with its budget.
        words: what the prompt says; None: words of the library's.
        bridge: what stands between thought and text.

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

    def told(self, form: str) -> str:
        """What the prompt says before the user's own words; `form`: what it says of the answer's form."""
        if self.words is not None:
            return self.words
        return form if self.draft else "Think first, step by step, then answer."


def ends_sentence(token: bytes) -> bool:
    """Whether a token ends a sentence or a line."""
    return token.rstrip(b" ").endswith((b".", b"!", b"?", b"\n"))


class Readiness:
    """The feasible mass of a text at the first place where its constraint leaves a choice.

    Layout is no choice: a document's opening is written as far as its names are forced.

    Args:
        bridge: ids between a thought and the text.
        automaton: of the text.
        spell: bytes as the model's tokenizer writes them.
    Attributes:
        chain: ids whose logits are asked: the bridge, and what the constraint forces after it.
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
    """What a text begins with in any case but for layout, at most `_OPENING` bytes, and the state there."""
    opening, state = b"", automaton.start
    while len(opening) < _OPENING:
        forced = bytes(automaton.forced_bytes(state)) or _only(automaton, state)
        if not forced:
            break
        opening, state = opening + forced, automaton.step_bytes(state, forced)
    return opening, state


def _only(automaton: TokenAutomaton, state: State) -> bytes:
    """The one byte that may follow beside whitespace; none where there are several, or the text may end."""
    found = b""
    for byte in () if automaton.is_accepting(state) else range(256):
        one = bytes([byte])
        if one.isspace() or len(found) > 1:
            continue
        with contextlib.suppress(TokenformError):
            automaton.step_bytes(state, one)
            found += one
    return found if len(found) == 1 else b""
