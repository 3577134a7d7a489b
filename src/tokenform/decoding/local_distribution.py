"""What `Local` draws from, as the samplers of whole texts ask a model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.recent import Recent
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import hopeless
from tokenform.decoding.speculative.node import Node
from tokenform.decoding.speculative.node_draws import NodeDraws
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
        self._sampler, self._row, self._draws = sampler, row, NodeDraws(torch.device("cpu"))
        self.fingerprint = f"local {sampler.local}"
        self._states: Recent[Tokens, State] = Recent(_STATES)
        self.refused: Recent[Tokens, float] = Recent(_STATES)

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        own, row, nodes = super().logprobs(prefixes), self._row, []
        for prefix in prefixes:
            written = tuple(prefix[len(row.prompt) :])
            state, remaining = self._state(written), row.budget - len(written)
            nodes.append(Node(prefix, (), len(row.prompt), row.automaton, state, remaining))
        found, there, refused = self._draws.distributions(self._sampler, [torch.from_numpy(own)], nodes)
        if not bool(there.all()):
            raise hopeless()
        for prefix, mass in zip(prefixes, refused.tolist(), strict=True):
            if mass > 0:
                self.refused[tuple(prefix)] = mass
        return found.log().numpy()

    def _state(self, written: Tokens) -> State:
        length = len(written)
        while length and written[:length] not in self._states:
            length -= 1
        state = self._states[written[:length]] if length else self._row.automaton.start
        for end in range(length, len(written)):
            state = self._states[written[: end + 1]] = self._row.automaton.advance(state, written[end])
        return state
