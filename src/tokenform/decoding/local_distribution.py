"""What `Local` draws from, as the samplers of whole texts ask a model.

Complexity: a mask a prefix, and a step of the automaton for each token that was not met before.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.recent import Recent
from tokenform.decoding.row import Row
from tokenform.decoding.speculative.node import Node
from tokenform.engine import State

_STATES = 1 << 14  # states of prefixes that are kept


class LocalDistribution(WrappedModel):
    """`LanguageModel` whose distribution is `Local`'s: masked, within the budget, truncated.

    Args:
        model: the distributions of the model itself.
        sampler: draws from them.
        row: prompt, constraint and budget.

    `refused` says, of prefixes that were asked for, which part of the distribution the budget refuses.
    """

    def __init__(self, model: LanguageModel, sampler: MaskedSampler, row: Row) -> None:
        super().__init__(model)
        self._sampler, self._row = sampler, row
        self.fingerprint = f"local {sampler.local}"
        self._states: Recent[Tokens, State] = Recent(_STATES)
        self.refused: Recent[Tokens, float] = Recent(_STATES)

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        own, row = torch.from_numpy(super().logprobs(prefixes)), self._row
        found = torch.empty_like(own, dtype=torch.float64)
        for place, prefix in enumerate(prefixes):
            written = tuple(prefix[len(row.prompt) :])
            state, remaining = self._state(written), row.max_tokens - len(written)
            node = Node(prefix, (), len(row.prompt), row.automaton, state, remaining)
            found[place], refused = self._sampler.distribution([own[place]], node)
            if refused > 0:
                self.refused[tuple(prefix)] = refused
        return found.log_().numpy()

    def _state(self, written: Tokens) -> State:
        length = len(written)
        while length and written[:length] not in self._states:
            length -= 1
        state = self._states[written[:length]] if length else self._row.automaton.start
        for end in range(length, len(written)):
            state = self._states[written[: end + 1]] = self._row.automaton.advance(state, written[end])
        return state
