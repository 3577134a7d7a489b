"""The decoding loop: masks, draws and states of a batch of sequences with constraints of their own.

Purpose: `Decoder(...).run(rows, batch_size)` runs all rows to their ends and tells each token as it is taken.
Invariant: a row ends in an accepting state and has at most `budget` tokens.  A row's draws are keyed on its
seed, its number and the token's position, so they do not depend on the rows beside it.
Budget: a token is drawn from the masked law; where no accepted end is left within the budget after it, it is
drawn again from the law over the tokens after which one is (`mask_within`).  That is the conditional
law, and looks at no more than one state a step while the budget is ample.
Shortcut: where a row can only end, it ends without a forward pass.
Overlap: a forward pass is launched first; the masks are made ready while the device runs it.
Rejected: checking every allowed token against the budget at every step (as many states as the mask has bits).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from tokenform.decoding.loop import Loop
from tokenform.decoding.results import Stats
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.randomness import uniform
from tokenform.decoding.speculative.report import Report
from tokenform.engine import State, TokenAutomaton
from tokenform.errors import BudgetTooSmall, ModelError
from tokenform.masking import CAPACITY, MaskTable, apply_mask_

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
        companion: ids of the second prompt of a mixture; the same as `prompt` where it is left out.
        logprob: log-probability of `tokens` under the model's own law.
        report: what speculation did; None without.
    """

    prompt: list[int]
    automaton: TokenAutomaton
    budget: int
    seed: int
    number: int = 0
    hints: Sequence[bytes] = ()
    companion: Sequence[int] = ()
    state: State = field(init=False)
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    stats: Stats = field(default_factory=Stats)
    report: Report | None = None

    def __post_init__(self) -> None:
        self.state = self.automaton.start
        check_room(self.automaton.distance(self.state, self.budget), self.budget)

    def uniform(self, stream: int = 0) -> float:
        """The number that decides the next token."""
        return uniform(self.seed, self.number, len(self.prompt) + len(self.tokens), stream)

    @property
    def left(self) -> int:
        """Tokens that it may still have."""
        return self.budget - len(self.tokens)


def check_room(shortest: int | None, budget: int) -> None:
    """Refuses a budget that is less than the tokens of the shortest text; None: no text is known to fit."""
    if shortest is None:
        raise BudgetTooSmall(
            f"no complete text is known to fit into {budget} tokens; raise max_tokens, or simplify the constraint."
        )
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
        table: masks that are on the device already, at least as many rows as a batch has; None begins one.
    """

    def __init__(
        self,
        loop: Loop,
        sampler: Local,
        size: int,
        eos: Sequence[int],
        transforms: Sequence[Transform] = (),
        table: MaskTable | None = None,
    ) -> None:
        self._loop = loop
        self._sampler = sampler
        self._size = size
        self._eos = frozenset(eos)
        self._transforms = tuple(transforms)
        self._table = table
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
            batch = []
            for i in alive:
                if self._goes_on(rows[i]):
                    batch.append(i)
                else:
                    yield i, None
            if not batch:
                return
            going = [rows[i] for i in batch]
            logits, masks = self._forward(going, [places[i] for i in batch if places])
            places = {i: place for place, i in enumerate(batch)}
            tokens = self._take(going, logits, masks)
            alive = [i for i, token in zip(batch, tokens, strict=True) if token is not None]
            yield from zip(batch, tokens, strict=True)

    def _goes_on(self, row: Row) -> bool:
        """Whether a token may follow that is no end.  The mask is asked only where the text may end."""
        if row.left == 0:
            return False
        began = time.perf_counter()
        goes_on = not row.automaton.is_accepting(row.state)
        if not goes_on:
            goes_on = bool((row.automaton.mask(row.state).view(np.int32) & self._text_bits).any())
        self._charge([row], mask=time.perf_counter() - began)
        return goes_on

    def _forward(self, batch: Sequence[Row], kept: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, V of the model] of each row's next token, and its mask's row of the table [B]."""
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
        launched = time.perf_counter()
        if self._table is None:
            self._table = MaskTable(self._size, logits.device, capacity=max(CAPACITY, len(batch)))
        masks = self._table.rows([(row.automaton, row.state) for row in batch])
        ready = time.perf_counter()
        if logits.is_cuda:
            torch.cuda.synchronize(logits.device)
        for row in batch:
            row.stats.forwards += 1
            row.stats.evaluations += 1
        self._charge(batch, model=time.perf_counter() - ready + launched - began, mask=ready - launched)
        return logits, masks

    @torch.inference_mode()
    def _take(self, batch: Sequence[Row], logits: torch.Tensor, masks: torch.Tensor) -> list[int | None]:
        """Draw a token for each row and move the row on; None where the row took an EOS id."""
        assert self._table is not None, "made by the forward pass"
        own = logits.double()
        free = own[:, : self._size]
        if self._transforms:
            free = free.clone()
        for transform in self._transforms:
            free = torch.stack(
                [transform([*row.prompt, *row.tokens], one) for row, one in zip(batch, free, strict=True)]
            )
        began = time.perf_counter()
        masked = self._table.apply(free, masks, out=torch.empty_like(free))
        self._charge(batch, mask=time.perf_counter() - began)
        drawn = self._sampler.draw(masked, [row.uniform() for row in batch])
        normal = own.logsumexp(-1)
        taken: list[int | None] = []
        for place, (row, token) in enumerate(zip(batch, drawn, strict=True)):
            if token in self._eos:
                taken.append(None)
                continue
            state = row.automaton.advance(row.state, token)
            shortest = row.automaton.distance(state, row.left)
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
