"""What the grammar forces: the bytes that every accepted continuation shares, and small choices after them.

Purpose: drafts of the continuations that `continuations.py` finds, each written as the model's tokenizer
writes it; texts that part give siblings at the span's end by themselves.  Where the grammar leaves too much
open, the last token's siblings are longer tokens that were taken there before, and the next shorter one.
Invariant: every drafted token is allowed; all its bytes are forced or belong to a small choice,
but for the learnt longer tokens.
Source: jump-forward decoding (Zheng et al. 2024, SGLang) made lossless as a draft; healing of the
span's end as in token healing (Lundberg 2023).
Rejected: appending forced tokens without a forward pass (it changes the distribution: the model may prefer
another tokenisation).
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, OrderedDict, defaultdict
from typing import Any

from tokenform.errors import LimitExceeded

from ..tree import FORCED, ROOT, DraftTree
from .base import Budget, Context, Seen, Session, Silent
from .continuations import Continuations, PlannedText, Plans
from .following import following
from .hints import LAYOUTS
from .spelling import Spelling, spelling_of

_PLANS = 4096  # states whose continuations are kept: a state that is held holds its mask
_AUTOMATA = 64  # automata that these are of
_GAP = re.compile(rb'(?:"(:)|(,)|([\[{]))([ \n\r\t]{0,32})(?=[^ \n\r\t])')
_TAIL = 64  # bytes of a text that may hold the beginning of a gap


class Forced:
    """Drafts what the constraint forces, and the likely delimiters of open places.

    Args:
        choices: most bytes that may be possible at a place that is followed.
        rounds: how many such places are followed on one path.
        siblings: most learnt or shorter tokens beside the last token of a span.
    """

    name = FORCED

    def __init__(self, choices: int = 3, rounds: int = 3, siblings: int = 2) -> None:
        self.choices, self.rounds, self.siblings = choices, rounds, siblings
        self._plans: OrderedDict[Any, tuple[Any, Plans]] = OrderedDict()
        self.seen: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
        self.layout = LAYOUTS[0]  # of the text that was last followed
        self.gaps = {b":": b" ", b",": b" "}  # byte -> the white space that was last written after it

    def plans_of(self, automaton: Any, spelling: Spelling) -> Plans:
        """What follows the states of an automaton.

        Sequences share it, and so do later calls whose grammar was made anew of the same text: the engine
        gives these an automaton of the same states.  Those asked last are kept, `_PLANS` states in all.
        """
        key = automaton.start
        known = self._plans.get(key)
        if known is None or known[0] is not spelling.encode or len(known[1]) > _PLANS:
            known = self._plans[key] = spelling.encode, Plans()
        with contextlib.suppress(KeyError):  # another thread's call may have just dropped it
            self._plans.move_to_end(key)
            while len(self._plans) > _AUTOMATA or (len(self._plans) > 1 and self._states() > _PLANS):
                self._plans.popitem(last=False)
        return known[1]

    def _states(self) -> int:
        return sum(len(plans) for _, plans in list(self._plans.values()))

    def session(self, context: Context) -> Session:
        spelling = spelling_of(context)
        return Silent() if spelling is None else _ForcedSession(self, spelling, context)


class _ForcedSession(Silent):
    def __init__(self, drafter: Forced, spelling: Spelling, context: Context) -> None:
        self.drafter, self.spelling = drafter, spelling
        self.followed = following(context, drafter)
        self.ends: dict[tuple[int, ...], bytes] = {}
        self.gaps, self.tail = dict(drafter.gaps), b""
        self.continuations = Continuations(spelling, drafter.choices, drafter.rounds, self.gaps)
        self.plans: dict[Any, Plans] = {}

    def propose(self, context: Context, budget: Budget) -> DraftTree:
        tree = DraftTree()
        if context.automaton.is_finished(context.state):
            return tree
        texts = [] if self.followed is None else self._follow(context)
        for text in texts or self._known(context, context.automaton, context.state):
            if len(tree.tokens) >= budget.nodes:  # the likeliest come first
                break
            self._add(tree, context, text, budget)
        return tree

    def _follow(self, context: Context) -> list[PlannedText]:
        """What may follow in the manner of the text; nothing where it has none."""
        assert self.followed is not None
        place = self.followed.after(context.tokens, context.path)
        try:
            return [] if place is None else self._known(context, *place)
        except LimitExceeded:
            self.followed.give_up()
            return []

    def _known(self, context: Context, auto: Any, state: Any) -> list[PlannedText]:
        """The plan of a state, made if it is new."""
        written = context.path[-1] if context.path else context.tokens[-1]
        before = self.spelling.tokens[written][-1:] if written < len(self.spelling.tokens) else b""
        key = state, before, *sorted(self.gaps.items())
        plans = self.plans.get(auto)
        if plans is None or key not in plans.texts:
            plans = self.plans[auto] = self.drafter.plans_of(auto, self.spelling)
        found = plans.texts.get(key)
        if found is None:
            found = plans.texts[key] = self.continuations.plan(auto, state, before, plans.ways)
        return found

    def _add(self, tree: DraftTree, context: Context, text: PlannedText, budget: Budget) -> None:
        """Adds a text, and other tokens for its end: longer ones seen there, then the next shorter one."""
        d, (*path, token) = self.drafter, text.tokens
        above = tree.add_path(ROOT, path[: budget.depth], d.name, text.confidences, budget.nodes)
        if len(tree.tokens) >= budget.nodes or len(path) >= budget.depth:
            return
        key = (*context.path, *path)
        self.ends[key] = text.last
        tree.add_path(above, (token,), d.name, text.confidences[-1])
        others = list[int]()
        for one, _ in d.seen[text.last].most_common(d.siblings) if text.last in d.seen else ():
            if one != token:
                others.append(one)
        if text.shorter is not None:
            others.append(text.shorter)
        for other in others[: min(d.siblings, budget.nodes - len(tree.tokens))]:
            tree.add_path(above, (other,), d.name, 0.1)

    def observe(self, context: Context, seen: Seen) -> None:
        """Counts which longer token was taken where a text was about to end."""
        d, committed = self.drafter, seen.committed
        for i, token in enumerate(committed if self.ends else ()):
            last = self.ends.get(tuple(committed[:i]))
            taken = self.spelling.tokens[token]
            if last and taken.startswith(last) and len(taken) > len(last):
                d.seen[last][token] += 1
        self.ends = {}
        tokens = self.spelling.tokens
        text = self.tail + b"".join([tokens[token] for token in committed if token < len(tokens)])
        for found in _GAP.finditer(text):
            byte = found[1] or found[2] or found[3]
            self.gaps[byte] = d.gaps[byte] = found[4]
        self.tail = text[-_TAIL:]
