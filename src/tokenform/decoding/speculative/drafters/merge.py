"""Several sources in one tree; the default drafter is one of these.

Purpose: each source is asked in turn at the root, then where the likeliest path ends (so
that a copied span follows a forced one and the other way round), until the budget is spent.
Every answer is pruned by the grammar at once, so what the grammar refuses costs no budget, and takes the
confidences that such nodes have turned out to deserve (`Tally`).
Invariant: every node of the tree is allowed and has a state, and nothing follows the end of the text; a
source that raises or proposes nonsense is not asked again for this sequence; one that does not pay rests.
A node is a trial of its source only if its parent was on the committed path, so the measured rate is the
conditional acceptance that tree shaping needs.
Complexity: at most `rounds` proposals a source and step; one `allows` and one `advance` a proposed node, both
memoised by the automaton.  The passes that sources ask for are passed on.
Source: calibration by bins.  A sequence's own counts come on top of those of all sequences of the drafter,
and these on top of the drafter's confidence, each with weight `_PRIOR`: texts are short.
Rejected: fixed shares of the budget (a source with nothing to say would waste its own); token recycling in
the default (its top-k of every scored row costs more than 5 % of a small model's pass on a CPU).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence

from tokenform.decoding.draws import DEFAULT_OUTPUTS, RequestedOutputs
from tokenform.engine import State
from tokenform.errors import DrafterError

from ..drafting import Drafting
from ..tree import ROOT, VALUES, DraftTree
from .base import Asking, Budget, Context, Drafter, Seen, Session, Silent
from .forced import Forced
from .names import Names
from .suffix import Suffix

_BINS = 6
_PRIOR = 4.0
_KEEP = 0.98  # what a trial still counts for after the next one: the last 50 matter
_REST = 64  # steps for which a source that does not pay is silent, doubled each time
_TRIALS = 24
_LEAST = 0.03  # accepted nodes per drafted node below which a source does not pay
_NONE = [0.0, 0.0]


Rates = dict[tuple[str, int], list[float]]
"""(source, bin of confidence) -> [hits, trials], each trial counting less with every later one."""


class Tally:
    """Acceptance by source and stated confidence.

    Args:
        shared: counts of earlier sequences; they are carried on.
    """

    def __init__(self, shared: Rates | None = None) -> None:
        self._rates: Rates = {}
        self._shared: Rates = {} if shared is None else shared
        self._sources: dict[str, list[float]] = {}
        self.silent: dict[str, list[int]] = {}

    def rated(self, tree: DraftTree) -> list[float]:
        """The measured acceptance of each node of a tree, given its parent's."""
        found = []
        for source, stated in zip(tree.sources, tree.confidences, strict=True):
            key, rate = (source, min(int(stated * _BINS), _BINS - 1)), stated
            hits, trials = self._shared.get(key, _NONE)
            rate = (hits + _PRIOR * rate) / (trials + _PRIOR)
            hits, trials = self._rates.get(key, _NONE)
            found.append((hits + _PRIOR * rate) / (trials + _PRIOR))
        return found

    def observe(self, tree: DraftTree, stated: Sequence[float], visited: Sequence[int]) -> None:
        """Counts the outcome of a scored tree.

        Args:
            stated: the drafters' own confidence of each node.
            visited: nodes on the committed path.
        """
        on = set(visited)
        for parent in (ROOT, *visited):
            for child in tree.kids.get(parent, {}).values():
                key = tree.sources[child], min(int(stated[child] * _BINS), _BINS - 1)
                for counts in (self._shared, self._rates):
                    cell = counts.setdefault(key, [0.0, 0.0])
                    cell[0] = cell[0] * _KEEP + (child in on)
                    cell[1] = cell[1] * _KEEP + 1.0
        shares: dict[str, list[int]] = {}
        for node, source in enumerate(tree.sources):
            count = shares.setdefault(source, [0, 0])
            count[0] += node in on
            count[1] += 1
        for source, (hits, nodes) in shares.items():
            entry = self._sources.setdefault(source, [0.0, 0.0])
            entry[0] = entry[0] * _KEEP + hits / nodes
            entry[1] = entry[1] * _KEEP + 1.0
            if entry[1] > _TRIALS * 0.8 and entry[0] < _LEAST * entry[1]:
                rest = self.silent.setdefault(source, [0, _REST // 2])
                rest[1] = min(rest[1] * 2, 4096)
                rest[0] = rest[1]
                entry[0] = entry[1] = 0.0

    def pays(self, source: str) -> bool:
        """Whether to ask the source now; a silent one is asked again after its rest."""
        rest = self.silent.get(source)
        if rest is None or rest[0] <= 0:
            return True
        rest[0] -= 1
        return False


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


def auto() -> Merge:
    """The default drafter: what the grammar forces and suggests, then what stood in the text before."""
    return Merge(Forced(), Names(), Suffix())


class MergeSession(Asking):
    """Also what a single drafter is wrapped in: the pruning and the faults are handled here.

    Attributes:
        faults: what went wrong, in sentences.
        states: the automaton's state at each node of the last tree.
        wish: the outputs of every row that the drafters request.
    """

    def __init__(self, merge: Merge, context: Context) -> None:
        self.rounds, self.tally = merge.rounds, Tally(merge.rates)
        self.faults: list[str] = []
        self.stated: list[float] = []
        self.states: dict[int, State | None] = {}
        self._asked: list[tuple[Drafter, Session]] = []
        self._costly = set[str]()  # the names of those of whose tokens each costs a forward pass
        for drafter in merge.drafters:
            try:
                session = drafter.session(context)
                if type(session) is not Silent:
                    self._asked.append((drafter, session))
                if getattr(drafter, "costly", False):
                    self._costly.add(drafter.name)
            except Exception as error:
                self._fault(drafter, error)
        self._asked.sort(key=lambda one: one[0].name in self._costly)
        self._set_wish()

    def drafting(self, context: Context, budget: Budget) -> Drafting[DraftTree]:
        tree, self.stated, self.states = DraftTree(), [], {ROOT: context.state}
        if min(budget.nodes, budget.depth) <= 0:
            return tree
        asked = self._asked
        if self.tally.silent:
            asked = [one for one in asked if self.tally.pays(one[0].name)]
        leaf, chance = ROOT, 1.0
        for round_ in range(self.rounds):
            before, path = len(tree.tokens), tree.path(leaf)
            depth = min(budget.depth, context.remaining) - len(path)
            if depth <= 0 or (path and path[-1] in context.eos):
                break
            below = context.below(tuple(path), self.states[leaf]) if path else context
            part_budget = budget.after(chance, 0, depth)
            for drafter, session in asked:
                part_budget.nodes = budget.nodes - len(tree.tokens)
                if part_budget.nodes <= 0:
                    break
                if (
                    drafter.name in self._costly
                    and not round_
                    and tree.tokens
                    and tree.likeliest()[1] >= _SURE
                ):
                    break  # its passes are better spent where the likely path ends
                try:
                    if isinstance(session, Asking):
                        part = yield from session.drafting(below, part_budget)
                    else:
                        part = session.propose(below, part_budget)
                    states = _admitted(part, below, depth)
                except Exception as error:
                    self._fault(drafter, error)
                    asked = [one for one in asked if one[1] is not session]
                    continue
                self._graft(part, drafter, states, tree, leaf, part_budget.nodes)
                if round_ and len(tree.tokens) > before:
                    break
            leaf, chance = tree.likeliest()
            if len(tree.tokens) == before or chance < _WORTH:
                break
        return tree

    def _graft(
        self,
        part: DraftTree,
        drafter: Drafter,
        states: dict[int, State | None],
        tree: DraftTree,
        at: int,
        room: int,
    ) -> None:
        """Adds a source's nodes to the tree, at their measured confidences."""
        if not part.tokens:
            return
        part.sources = [source or drafter.name for source in part.sources]
        stated, part.confidences = part.confidences, self.tally.rated(part)
        for i, node in tree.graft(part, room, at, states).items():
            if i == ROOT:
                continue
            self.states[node] = states[i]
            if node == len(self.stated):
                self.stated.append(stated[i])

    def shape(self, tree: DraftTree, keep: Sequence[bool]) -> DraftTree:
        """The kept part of the tree that was just proposed; `states` and `stated` follow it."""
        if all(keep):
            return tree
        shaped = DraftTree()
        new = shaped.graft(tree, len(tree), kept={node for node, stays in enumerate(keep) if stays})
        self.states = {place: self.states[node] for node, place in new.items()}
        self.stated = [self.stated[node] for node in new if node != ROOT]
        return shaped

    def add(self, tree: DraftTree, parent: int, token: int, state: State, source: str = VALUES) -> int:
        """Adds a node that nobody guessed to the last tree; returns its number."""
        node = tree.add_path(parent, (token,), source, _UNSURE)
        if node not in self.states:
            self.states[node] = state
            self.stated.append(_UNSURE)
        return node

    def reset(self, state: State | None) -> None:
        """Nothing is drafted in this step."""
        self.states, self.stated = {ROOT: state}, []

    def _set_wish(self) -> None:
        requested = [session.wish for _, session in self._asked if hasattr(session, "wish")]
        self.wish = RequestedOutputs(max(one.best for one in requested)) if requested else DEFAULT_OUTPUTS

    def _fault(self, drafter: Drafter, error: Exception) -> None:
        self.faults.append(f"drafter {drafter.name} is switched off: {type(error).__name__}: {error}")
        warnings.warn(self.faults[-1], stacklevel=3)
        for other, session in self._asked:
            if other is drafter:
                with contextlib.suppress(Exception):  # what it holds in a second model's cache is freed
                    session.close()
        self._asked = [(d, s) for d, s in self._asked if d is not drafter]
        self._set_wish()

    def observe(self, context: Context, seen: Seen) -> None:
        if len(self.stated) == len(seen.tree):
            self.tally.observe(seen.tree, self.stated, seen.visited)
        for drafter, session in list(self._asked):
            try:
                session.observe(context, seen)
            except Exception as error:
                self._fault(drafter, error)

    def close(self) -> None:
        for drafter, session in list(self._asked):
            try:
                session.close()
            except Exception as error:
                self._fault(drafter, error)


def _admitted(tree: DraftTree, context: Context, depth: int) -> dict[int, State | None]:
    """The nodes of a proposal that can be accepted, with the automaton's state at each (`ROOT` included).

    Args:
        depth: most levels that are kept.
    Raises:
        DrafterError: it is no tree of the model's tokens.
    """
    if not isinstance(tree, DraftTree):
        raise DrafterError(f"it proposed a {type(tree).__name__}, not a DraftTree")
    tokens, parents, depths = tree.tokens, tree.parents, tree.depths
    if not (len(parents) == len(depths) == len(tree.sources) == len(tree.confidences) == len(tokens)):
        raise DrafterError("its tree has lists of different lengths")
    automaton, eos, size = context.automaton, context.eos, context.vocabulary_size
    states: dict[int, State | None] = {ROOT: context.state}
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        if not isinstance(token, int) or not 0 <= token < size:
            raise DrafterError(f"it proposed token {token!r}, which the model does not have")
        if not -1 <= parent < node:
            raise DrafterError(f"node {node} of its tree has the parent {parent}")
        if depths[node] > depth or parent not in states or token in eos:
            continue
        below = None
        if automaton is not None:
            above = states[parent]
            if automaton.is_finished(above) or not automaton.allows(above, token):
                continue
            below = automaton.advance(above, token)
        states[node] = below
    return states
