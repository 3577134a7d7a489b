"""The runner of plain decoding: rows that began together go on together, one token a step, in the model's
own cache.

Purpose: what decodes without drafts (`drafter=None`, recurrent models, anything that is only called like a
model) looks like a backbone to the driver, which thus has one loop.
Invariant: a row's logits depend on its own tokens alone.  Whatever a pass leaves behind when it fails, the
rows that were in it are run again from their first token.
Complexity: one pass a step for rows that began together; a row that is left out of a step is run again later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tokenform.decoding.loop import PlainLoop
from tokenform.errors import InvalidState

from ..tree import DraftTree
from .base import Counters


@dataclass
class _Group:
    """Rows that began together: the loop that runs them, and their order in its batch."""

    loop: PlainLoop
    order: list[int]


class PlainRunner:
    """Runs a model a token at a time.

    Args:
        model: a Hugging Face causal language model, or anything that is called like one.
        size: V of the vocabulary.
    Raises:
        ModelError: it can't be called.
    """

    mode, deepest, max_length, sliced, padding = "plain", 0, None, False, 1.0

    def __init__(self, model: Any, size: int) -> None:
        PlainLoop(model)  # refuses what can't be run
        self.model, self.vocabulary_size = model, size
        self.notes: list[str] = []
        self.counters = Counters()
        self._texts: dict[int, list[int]] = {}
        self._groups: list[_Group] = []
        self._next = 0

    @property
    def sequences(self) -> list[int]:
        """The live sequences."""
        return list(self._texts)

    def open(self, prompt_ids: Sequence[int]) -> int:
        """A new sequence; its prompt is run at the first `score`."""
        number, self._next = self._next, self._next + 1
        self._texts[number] = list(prompt_ids)
        return number

    def commit(self, seq: int, tokens: Sequence[int]) -> None:
        """Appends tokens."""
        if seq not in self._texts:
            raise InvalidState(f"sequence {seq} is not open in this runner")
        self._texts[seq].extend(tokens)

    def drop(self, seq: int) -> None:
        """Ends a sequence."""
        self._texts.pop(seq, None)

    def score(self, trees: Mapping[int, DraftTree]) -> dict[int, torch.Tensor]:
        """Logits [1, V] of the next token of each sequence; the trees are empty."""
        found: dict[int, torch.Tensor] = {}
        groups, self._groups = self._groups, []
        for group in groups:
            members = [i for i, seq in enumerate(group.order) if seq in trees]
            if members:
                order = [group.order[i] for i in members]
                logits = group.loop.step(members, [self._texts[seq][-1] for seq in order])
                self._groups.append(_Group(group.loop, order))
                found.update(zip(order, logits[:, None], strict=True))
        fresh = [seq for seq in trees if seq not in found]
        if fresh:
            loop = PlainLoop(self.model)
            logits = loop.prefill([self._texts[seq] for seq in fresh])
            self._groups.append(_Group(loop, fresh))
            found.update(zip(fresh, logits[:, None], strict=True))
        self.counters.positions += len(trees)
        self.counters.scored += len(trees)
        return found
