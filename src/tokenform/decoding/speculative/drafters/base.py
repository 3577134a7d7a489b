"""The protocol of drafters.

Purpose: a drafter guesses what follows; it never decides anything.  `session` starts it on
one sequence; the drafter itself holds what sequences share (a datastore, a second model).
Sessions that look things up have `propose` alone; those that need passes of a model are `Asking`.
Invariant: a draft may be anything: the grammar prunes it, and the draws decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from tokenform.decoding.clock import Elapsed
from tokenform.decoding.draws import Drawn
from tokenform.decoding.speculative.node import Node
from tokenform.engine import State

from ..drafting import Drafting, alone
from ..scores import Scores
from ..tree import DraftTree
from .hints import Hints

_FORGET = 0.998  # a drafter that does not pay is tried too seldom to cost more than some percent


@dataclass
class Context:
    """What a drafter may look at.

    Attributes:
        tokens: prompt and committed output (the live list: not to be changed).
        prompt_length: tokens of the prompt at its head.
        path: drafted tokens after `tokens` below which the draft is to grow.
        automaton, state: the constraint after `path`, or None.
        vocabulary_size: V of the model.
        backbone, seq: the model's backbone and the sequence in it.
        sampler: how the sequence's tokens are drawn.
        seed, sequence: the key of the randomness.
        remaining: tokens that may still be written after `path`.
        eos: tokens that end the text.
        companions: second models or prompts that the sampler mixes in.
        hints: what the constraint suggests (see `hints.py`).
        encode: bytes -> token ids as the model's tokenizer writes them, or None.
    """

    tokens: list[int]
    prompt_length: int
    path: tuple[int, ...] = ()
    automaton: Any = None
    state: State | None = None
    vocabulary_size: int = 0
    backbone: Any = None
    seq: int = -1
    sampler: Any = None
    seed: int = 0
    sequence: int = 0
    remaining: int = 1 << 30
    eos: frozenset[int] = frozenset()
    companions: int = 0
    hints: Hints | None = None
    encode: Callable[[bytes], list[int]] | None = None

    def below(self, path: tuple[int, ...], state: State | None) -> Context:
        """The same context after a longer drafted path."""
        below = Context.__new__(Context)  # `dataclasses.replace` takes longer than many a drafter's look-up
        remaining = self.remaining - len(path) + len(self.path)
        below.__dict__.update(self.__dict__, path=path, state=state, remaining=remaining)
        return below

    def node(self, path: Sequence[int], state: State | None) -> Node:
        """A place `path` tokens further on, as the sampler sees it."""
        return Node(
            self.tokens,
            (*self.path, *path),
            self.prompt_length,
            self.automaton,
            state,
            self.remaining - len(path),
            self.seed,
            self.sequence,
        )

    def tail(self, n: int) -> list[int]:
        """The last n tokens, `path` included; fewer if there are not so many."""
        if len(self.path) >= n:
            return list(self.path[len(self.path) - n :])
        return [*self.tokens[max(0, len(self.tokens) - n + len(self.path)) :], *self.path]


@dataclass
class Budget:
    """How much may be drafted.

    Attributes:
        nodes: most nodes of the tree.
        depth: most levels.
        stop: (confidence of the last node, product on its path, seconds that the next one takes) -> stop
            here; for drafters whose every token costs a forward pass.
    """

    nodes: int
    depth: int = 1 << 30
    stop: Callable[[float, float, float], bool] = field(default=lambda confidence, cumulative, seconds: False)

    def after(self, chance: float, nodes: int, depth: int) -> Budget:
        """What is left below a path of such probability."""

        def stop(confidence: float, cumulative: float, seconds: float) -> bool:
            return self.stop(confidence, chance * cumulative, seconds)

        return Budget(nodes, depth, stop)


class PassCost:
    """What a drafted token costs a drafter whose every token is a pass.

    A pass that several sequences share costs each its share, so the price falls where the batch
    grows.  It is measured where tokens are drafted alone: where it keeps all from being drafted it
    is forgotten little by little, so that neither a busy machine nor a small batch ends drafting.

    Attributes:
        seconds: mean of the last ones, for one sequence; 0 until measured.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def observe(self, *parts: Elapsed | None) -> None:
        """What a token took, in parts; one whose time is not known yet tells nothing."""
        if None in parts:
            return
        seconds = sum(part.work for part in parts if part is not None)
        self.seconds += (seconds - self.seconds) * (0.1 if self.seconds else 1.0)

    def spared(self) -> None:
        """Nothing was drafted, because of the price."""
        self.seconds *= _FORGET


class Seen:
    """What a step has shown: what was committed, and what the model said at the rows of the tree that was
    scored; row 0 is the root, node i is row i + 1.

    Args:
        scores: of the rows.
    Attributes:
        committed: the step's tokens.
        tree: what was scored.
        visited: nodes of the tree on the committed path.
        drawn: the draws at each row with what was wished for (None where none was made); None where the
            logits are on the host, and asking them costs no transfer.
    """

    def __init__(
        self,
        committed: Sequence[int],
        tree: DraftTree,
        scores: torch.Tensor | Scores,
        drawn: Sequence[Drawn | None] | None = None,
    ) -> None:
        self.committed, self.tree, self.visited = committed, tree, tree.walk(committed)
        self._scores, self.drawn = scores, drawn

    @property
    def logits(self) -> torch.Tensor:
        """[n + 1, V] of the model, where they are; computed here if the step did without."""
        scores = self._scores
        return scores.whole() if isinstance(scores, Scores) else scores

    def ranked(self, count: int) -> np.ndarray:
        """The likeliest tokens of each row, best first, int [n + 1, count]; -1 where none is known."""
        count = min(count, self.logits.shape[-1])
        if self.drawn is None:
            best: np.ndarray = self.logits.topk(count).indices.cpu().numpy()
            return best
        unknown = [-1] * count
        return np.array([unknown if d is None or not len(d.best) else d.best[:count] for d in self.drawn])


class Session(Protocol):
    """A drafter at work on one sequence.

    An attribute `wish`, if it has one, requests further outputs of every row.
    """

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        """A tree of at most `budget.nodes` nodes; empty if there is nothing to guess."""
        ...

    def observe(self, context: Context, seen: Seen) -> None:
        """Told after each step; `context.tokens` ends with what it committed."""
        ...

    def close(self) -> None:
        """The sequence has ended."""
        ...


class Drafter(Protocol):
    """Makes sessions.

    Attributes:
        name: stands in reports as the source of its nodes.
    """

    name: str

    def session(self, context: Context) -> Session:
        """Starts on a sequence whose prompt is `context.tokens`."""
        ...


class Silent:
    """Base of sessions that learn nothing; also what `drafter=None` means."""

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        return DraftTree()

    def observe(self, context: Context, seen: Seen) -> None:
        return None

    def close(self) -> None:
        return None


class Asking(Silent):
    """Base of sessions that need passes of a model: they ask for them, so that a batch shares them."""

    def drafting(self, context: Context, budget: Budget) -> Drafting[DraftTree]:
        """What `propose` returns, in the making."""
        raise NotImplementedError

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        return alone(self.drafting(context, budget))


class Nothing:
    """No drafts: plain decoding."""

    name = "nothing"

    def session(self, context: Context) -> Session:
        return Silent()


def after(automaton: Any, state: State | None, tokens: Iterable[int]) -> State | None:
    """The state after some tokens; None where the automaton refuses one of them."""
    for token in tokens:
        if state is None or automaton.is_finished(state) or not automaton.allows(state, token):
            return None
        state = automaton.advance(state, token)
    return state
