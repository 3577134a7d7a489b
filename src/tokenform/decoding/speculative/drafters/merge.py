"""Several sources in one tree.

Purpose: each source is asked in turn at the root, then where the likeliest path ends (so
that a copied span follows a forced one and the other way round), until the budget is spent.
Every answer is pruned by the grammar at once, so what the grammar refuses costs no budget.
Invariant: every node of the tree is allowed; a source that raises or proposes nonsense is
not asked again for this sequence; one that does not pay rests.
Complexity: at most `rounds` proposals a source and step.  The passes that sources ask for are passed on.
Rejected: fixed shares of the budget (a source with nothing to say would waste its own).
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Sequence

from tokenform.decoding.draws import Wish
from tokenform.engine import State
from tokenform.errors import DrafterError

from ..drafting import Drafting
from ..grammar import allowed_states
from ..tree import ROOT, VALUES, DraftTree
from .base import Asking, Budget, Context, Drafter, Seen, Session
from .tally import Rates, Tally

_SURE = 0.6  # probability of a path beside which no drafter is asked that pays for its tokens
_UNSURE = 0.5  # confidence of a node that nobody guessed
_WORTH = 0.15  # probability of a path below which it is not made longer


class Merge:
    """Args:
    drafters: in order of trust; the first to propose a node is its source.
    rounds: how often the sources may go on where the tree ends.
    """

    name = "merge"

    def __init__(self, *drafters: Drafter, rounds: int = 4) -> None:
        if not drafters:
            raise DrafterError("Merge needs at least one drafter")
        self.drafters, self.rounds = drafters, rounds
        self.rates: Rates = {}
        names = [d.name for d in drafters]
        if len(set(names)) < len(names):
            raise DrafterError(f"two drafters of a Merge have one name: {names}; give each another")

    def session(self, context: Context) -> MergeSession:
        return MergeSession(self, context)


class MergeSession(Asking):
    """Also what a single drafter is wrapped in: the pruning and the faults are handled here.

    Attributes:
        faults: what went wrong, in sentences.
        states: the automaton's state at each node of the last tree.
    """

    def __init__(self, merge: Merge, context: Context) -> None:
        self.rounds = merge.rounds
        self.faults: list[str] = []
        self.tally = Tally(merge.rates)
        self.stated: list[float] = []
        self.states: dict[int, State | None] = {}
        self._live: list[tuple[Drafter, Session]] = []
        for drafter in merge.drafters:
            try:
                self._live.append((drafter, drafter.session(context)))
            except Exception as error:
                self._fault(drafter, error)

    def drafting(self, context: Context, budget: Budget) -> Drafting[DraftTree]:
        tree = DraftTree()
        self.states = {ROOT: context.state}
        asked = [(d, s) for d, s in self._live if self.tally.pays(d.name)]
        asked.sort(key=lambda one: _costly(one[0]))
        leaf, chance = ROOT, 1.0
        for round_ in range(self.rounds):
            before = len(tree)
            asked = [one for one in asked if one in self._live]
            path = tuple(tree.path(leaf))
            depth = min(budget.depth, context.remaining) - len(path)
            if depth <= 0 or (path and path[-1] in context.eos):
                break
            below = context.below(path, self.states[leaf])
            for drafter, session in asked:
                room = budget.nodes - len(tree)
                if room <= 0 or (
                    _costly(drafter) and not round_ and len(tree) and self._front(tree)[1] >= _SURE
                ):
                    break  # its passes are better spent where the likely path ends
                yield from self._ask(drafter, session, below, budget.after(chance, room, depth), tree, leaf)
                if round_ and len(tree) > before:
                    break
            leaf, chance = self._front(tree)
            if len(tree) == before or chance < _WORTH:
                break
        self.stated = list(tree.confidences)
        self.tally.calibrate(tree)
        return tree

    def shape(self, tree: DraftTree, keep: Sequence[bool]) -> DraftTree:
        """The kept part of the tree that was just proposed; `states` and `stated` follow it."""
        if all(keep):
            return tree
        shaped = DraftTree()
        new = shaped.graft(tree, len(tree), kept={node for node, stays in enumerate(keep) if stays})
        self.states = {place: self.states[node] for node, place in new.items()}
        self.stated = [self.stated[node] for node in new if node != ROOT]
        return shaped

    def add(self, tree: DraftTree, parent: int, token: int, state: State) -> int:
        """Adds a node that nobody guessed to the last tree; returns its number."""
        node = tree.add(parent, token, VALUES, _UNSURE)
        if node not in self.states:
            self.states[node] = state
            self.stated.append(_UNSURE)
        return node

    def reset(self, state: State | None) -> None:
        """Nothing is drafted in this step."""
        self.states, self.stated = {ROOT: state}, []

    @property
    def wish(self) -> Wish:
        """What the drafters want to be told of every row."""
        wishes = [session.wish for _, session in self._live if hasattr(session, "wish")]
        return Wish(max((w.best for w in wishes), default=0))

    def _ask(
        self, drafter: Drafter, session: Session, context: Context, budget: Budget, tree: DraftTree, at: int
    ) -> Drafting[None]:
        try:
            if isinstance(session, Asking):
                part = yield from session.drafting(context, budget)
            else:
                part = session.propose(context, budget)
            _check(part, context.vocabulary_size)
            states = allowed_states(part, context.automaton, context.state, context.eos, budget.depth)
        except Exception as error:
            self._fault(drafter, error)
            return
        for i, source in enumerate(part.sources):
            part.sources[i] = source or drafter.name
        for i, node in tree.graft(part, budget.nodes, at, states).items():
            if i != ROOT:
                self.states[node] = states[i]

    def _front(self, tree: DraftTree) -> tuple[int, float]:
        """Where the likeliest path ends, and its probability."""
        node, chance = ROOT, 1.0
        while kids := tree.children(node):
            node, best = kids[0], -math.inf
            for kid in kids:
                rate = self.tally.rate(tree.sources[kid], tree.confidences[kid])
                if rate > best:
                    node, best = kid, rate
            chance *= best
        return node, chance

    def _fault(self, drafter: Drafter, error: Exception) -> None:
        self.faults.append(f"drafter {drafter.name} is switched off: {type(error).__name__}: {error}")
        warnings.warn(self.faults[-1], stacklevel=3)
        for other, session in self._live:
            if other is drafter:
                with contextlib.suppress(Exception):  # what it holds in a second model's cache is freed
                    session.close()
        self._live = [(d, s) for d, s in self._live if d is not drafter]

    def observe(self, context: Context, seen: Seen) -> None:
        if len(self.stated) == len(seen.tree):
            self.tally.observe(seen.tree, self.stated, seen.visited)
        for drafter, session in list(self._live):
            try:
                session.observe(context, seen)
            except Exception as error:
                self._fault(drafter, error)

    def close(self) -> None:
        for drafter, session in list(self._live):
            try:
                session.close()
            except Exception as error:
                self._fault(drafter, error)


def _costly(drafter: Drafter) -> bool:
    """Whether each of its tokens costs a forward pass."""
    return bool(getattr(drafter, "costly", False))


def _check(tree: DraftTree, vocabulary_size: int) -> None:
    """Raises DrafterError for what is not a tree of the model's tokens."""
    if not isinstance(tree, DraftTree):
        raise DrafterError(f"it proposed a {type(tree).__name__}, not a DraftTree")
    n = len(tree.tokens)
    if not (len(tree.parents) == len(tree.depths) == len(tree.sources) == len(tree.confidences) == n):
        raise DrafterError("its tree has lists of different lengths")
    for i, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
        if not isinstance(token, int) or not 0 <= token < vocabulary_size:
            raise DrafterError(f"it proposed token {token!r}, which the model does not have")
        if not -1 <= parent < i:
            raise DrafterError(f"node {i} of its tree has the parent {parent}")
