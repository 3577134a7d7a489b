"""The decoding loop: masks, draws and states of a batch of sequences with constraints of their own.

Purpose: `Decoder(...).run(rows, batch_size)` runs all rows to their ends and tells each token as it is taken.
Invariant: a row ends in an accepting state and has at most `budget` tokens.  A row's draws are keyed on its
seed, its number and the token's position, so they do not depend on the rows beside it.
Budget: a token is drawn from the masked law; where no accepted end is left within the budget after it, it is
drawn again from the law over the tokens after which one is (`mask_within`).  That is the conditional
law, and looks at no more than one state a step while the budget is ample.
Shortcut: where a row can only end, it ends without a forward pass.
Rejected: checking every allowed token against the budget at every step (as many states as the mask has bits).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from tokenform.decoding.loop import Loop
from tokenform.decoding.results import Stats
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.randomness import uniform
from tokenform.engine import TokenAutomaton
from tokenform.errors import BudgetTooSmall, ModelError
from tokenform.masking import apply_mask_

Transform = Callable[[Sequence[int], torch.Tensor], torch.Tensor]
"""(tokens so far, prompt included; logits float64 [V]) -> logits [V], before the mask."""

_REDRAW = 1 << 16  # stream of the second draw of a position; 0 is the first


@dataclass
class Row:
    """One sequence.

    Attributes:
        prompt: its ids, at least one.
        automaton: its constraint.
        budget: most tokens that it may have.
        seed, number: key of its draws.
        state: state of the automaton after `tokens`.
        tokens: what was written so far, end-of-text excluded.
        hints: texts that the constraint suggests to drafters.
        logprob: log-probability of `tokens` under the model's own law.
    """

    prompt: list[int]
    automaton: TokenAutomaton
    budget: int
    seed: int
    number: int = 0
    hints: Sequence[bytes] = ()
    state: int = field(init=False)
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    stats: Stats = field(default_factory=Stats)

    def __post_init__(self) -> None:
        self.state = self.automaton.start
        shortest = self.automaton.distance(self.state)
        if shortest is None:
            raise BudgetTooSmall("no complete text is known to be within reach; simplify the constraint.")
        check_room(shortest, self.budget)

    def uniform(self, stream: int = 0) -> float:
        """The number that decides the next token."""
        return uniform(self.seed, self.number, len(self.prompt) + len(self.tokens), stream)

    @property
    def left(self) -> int:
        """Tokens that it may still have."""
        return self.budget - len(self.tokens)


def check_room(shortest: int, budget: int) -> None:
    """Refuses a budget that is less than the tokens of the shortest text."""
    if shortest > budget:
        raise BudgetTooSmall(
            f"no complete text fits into {budget} tokens: the shortest has {shortest}; "
            "raise max_tokens, or shorten the prompt if the model's context is full."
        )


class Decoder:
    """A batch on its way.

    Args:
        loop: runs the model.
        sampler: draws.
        size: V, ids of the vocabulary; wider logits are cut to it before drawing.
        eos: ids that end a text.
        transforms: applied to each row's logits before the mask, in order.
    """

    def __init__(
        self, loop: Loop, sampler: Local, size: int, eos: Sequence[int], transforms: Sequence[Transform] = ()
    ) -> None:
        self._loop = loop
        self._sampler = sampler
        self._size = size
        self._eos = frozenset(eos)
        self._transforms = tuple(transforms)
        bits = np.full((size + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)  # every token but the EOS ids
        for token in self._eos:
            bits[token // 32] &= ~np.uint32(1 << token % 32)
        self._text_bits = bits.view(np.int32)

    def run(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, int | None]]:
        """Run the rows to their ends, `batch_size` at a time.

        Yields:
            (row, token) for each token of a text that is taken, (row, None) when the row is complete.
        """
        for start in range(0, len(rows), batch_size):
            for place, token in self._together(rows[start : start + batch_size]):
                yield start + place, token

    def _together(self, rows: Sequence[Row]) -> Iterator[tuple[int, int | None]]:
        """One batch, from its prompts to the end of its longest text."""
        alive = list(range(len(rows)))
        places: dict[int, int] = {}  # row -> its number in the loop's last batch
        while alive:
            masks, going = self._masks([rows[i] for i in alive])
            batch = [alive[place] for place in going]
            for i in alive:
                if i not in batch:
                    yield i, None
            if not batch:
                return
            logits = self._forward([rows[i] for i in batch], [places[i] for i in batch if places])
            places = {i: place for place, i in enumerate(batch)}
            tokens = self._take([rows[i] for i in batch], logits, masks[going])
            alive = [i for i, token in zip(batch, tokens, strict=True) if token is not None]
            yield from zip(batch, tokens, strict=True)

    def _masks(self, batch: Sequence[Row]) -> tuple[np.ndarray, list[int]]:
        """Masks int32 [B, ceil(V/32)], and the rows that have a token to write."""
        began = time.perf_counter()
        masks = np.zeros((len(batch), len(self._text_bits)), dtype=np.int32)
        place = 0
        for _, run in itertools.groupby(batch, key=lambda row: id(row.automaton)):
            same = list(run)
            same[0].automaton.fill_masks([row.state for row in same], masks[place : place + len(same)])
            place += len(same)
        texts = np.any(masks & self._text_bits, axis=1).tolist()
        going = [place for place, row in enumerate(batch) if texts[place] and row.left > 0]
        self._charge(batch, mask=time.perf_counter() - began)
        for row in batch:
            row.stats.evaluations += 1
        return masks, going

    def _forward(self, batch: Sequence[Row], kept: Sequence[int]) -> torch.Tensor:
        """Logits [B, V of the model] of each row's next token."""
        began = time.perf_counter()
        if kept:
            logits = self._loop.step(kept, [row.tokens[-1] for row in batch])
        else:
            logits = self._loop.prefill([row.prompt for row in batch])
        if logits.shape[-1] < self._size:
            raise ModelError(
                f"the model gives {logits.shape[-1]} logits, but the vocabulary has {self._size} ids; "
                "build it with size= the model's own."
            )
        for row in batch:
            row.stats.forwards += 1
        self._charge(batch, model=time.perf_counter() - began)
        return logits

    @torch.inference_mode()
    def _take(self, batch: Sequence[Row], logits: torch.Tensor, masks: np.ndarray) -> list[int | None]:
        """Draw a token for each row and move the row on; None where the row took an EOS id."""
        own = logits.double()
        free = own[:, : self._size].clone()
        for transform in self._transforms:
            free = torch.stack(
                [transform([*row.prompt, *row.tokens], one) for row, one in zip(batch, free, strict=True)]
            )
        began = time.perf_counter()
        masked = apply_mask_(free.clone(), torch.from_numpy(masks).to(free.device))
        self._charge(batch, mask=time.perf_counter() - began)
        drawn = self._sampler.draw(masked, [row.uniform() for row in batch])
        normal = own.logsumexp(-1)
        taken: list[int | None] = []
        for place, (row, token) in enumerate(zip(batch, drawn, strict=True)):
            if token in self._eos:
                taken.append(None)
                continue
            state = row.automaton.advance(row.state, token)
            shortest = row.automaton.distance(state)
            if shortest is None or shortest >= row.left:
                token = self._within_budget(row, free[place : place + 1])
                if token in self._eos:
                    taken.append(None)
                    continue
                state = row.automaton.advance(row.state, token)
            row.logprob += float(own[place, token] - normal[place])
            row.tokens.append(token)
            row.state = state
            row.stats.tokens += 1
            taken.append(token)
        return taken

    def _within_budget(self, row: Row, free: torch.Tensor) -> int:
        """Draw again, from the tokens after which the text can still end within the budget.

        Args:
            free: float64 [1, V], transformed and not masked.
        """
        bits = np.asarray(row.automaton.mask_within(row.state, row.left)).view(np.int32)
        row.stats.evaluations += 1
        masked = apply_mask_(free.clone(), torch.from_numpy(bits.copy()).unsqueeze(0).to(free.device))
        return self._sampler.draw(masked, [row.uniform(_REDRAW)])[0]

    @staticmethod
    def _charge(batch: Sequence[Row], *, mask: float = 0.0, model: float = 0.0) -> None:
        """Share wall time equally among the rows."""
        for row in batch:
            row.stats.seconds_mask += mask / len(batch)
            row.stats.seconds_model += model / len(batch)
