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

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tokenform.engine import TokenAutomaton
from tokenform.engine.packed import mask_bits
from tokenform.errors import OptionError

_OPENING = 16  # most tokens of what the constraint forces that are measured


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
    """The feasible mass of a text after its bridge, and after what the constraint forces there.

    Args:
        bridge: ids between a thought and the text.
        automaton: of the text.
    Attributes:
        chain: ids whose logits are asked.
    """

    def __init__(self, bridge: Sequence[int], automaton: TokenAutomaton) -> None:
        states = [automaton.start]
        forced = [*automaton.forced(automaton.start)][:_OPENING]
        for token in forced:
            states.append(automaton.advance(states[-1], token))
        self.chain, self._skipped = [*bridge, *forced], len(bridge)
        self._masks = [np.asarray(automaton.mask(state)) for state in states]

    def log_mass(self, logits: torch.Tensor) -> float:
        """Logarithm of the probability of what is allowed, over the forced tokens and the first free one.

        Args:
            logits: [len(chain) + 1, V], at the end of the thought and after each token of `chain`.
        """
        rows = logits[self._skipped :].float()
        kept = np.stack([mask_bits(mask, rows.shape[-1]) for mask in self._masks])
        inside = rows.masked_fill(~torch.from_numpy(kept).to(rows.device), -math.inf)
        return float((inside.logsumexp(-1) - rows.logsumexp(-1)).sum())
