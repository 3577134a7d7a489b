"""One running sequence: its request, its text so far, its places in the models' caches.

Invariant: a sequence that can't be started leaves nothing open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenform.decoding.speculative.node import Node
from tokenform.engine import State
from tokenform.engine.packed import mask_of
from tokenform.errors import TokenformError

from .backbone import Backbone
from .canonical import ForcedText
from .choosing import Choosing
from .drafters.base import Budget, Context, Nothing
from .drafters.merge import Merge
from .drafters.spelling import spelling_of
from .drafting import Draft, Drafting
from .policies import Account
from .prompt_spans import prompt_spans
from .request import Output, Request
from .searching import Search
from .tree import DraftTree


def fewest_tokens(automaton: Any, most: int) -> int:
    """Tokens of the shortest known text, at most `most`; 0 without a constraint."""
    if automaton is None:
        return 0
    try:
        found = automaton.distance(automaton.start, most)
    except TokenformError:  # a limit: the first draw raises it
        return 0
    return most if found is None else min(int(found), most)


class Live:
    """Args:
    number: its number in the speculator.
    """

    def __init__(self, number: int, request: Request, backbone: Backbone, drafter: Merge) -> None:
        self.number, self.request, self.output = number, request, Output()
        auto = request.automaton
        self.output.logprob = 0.0 if request.logprobs else math.nan
        self.output.state = None if auto is None else auto.start
        self.text = [int(t) for t in request.prompt]
        self.seqs: list[tuple[Backbone, int]] = list(request.sequences)
        try:
            for place, (part, prompt) in enumerate([(backbone, self.text), *request.companions]):
                if request.sequences:
                    part.go_on(self.seqs[place][1], prompt)
                else:
                    self.seqs.append((part, part.open(prompt)))
        except BaseException:
            self.drop()
            raise
        self.chains = any(part.mode != "tree" for part, _ in self.seqs)
        """Whether some model scores no trees."""
        self.context = Context(
            tokens=self.text,
            prompt_length=len(self.text),
            automaton=auto,
            state=self.output.state,
            vocabulary_size=backbone.vocabulary_size,
            backbone=backbone,
            seq=self.seqs[0][1],
            sampler=request.sampler,
            seed=request.seed,
            sequence=request.number,
            remaining=request.max_tokens,
            eos=request.eos,
            companions=len(request.companions),
            hints=request.hints,
            encode=request.encode,
        )
        self.session = drafter.session(self.context)
        self.drafts = not all(isinstance(one, Nothing) for one in drafter.drafters)
        self.spelling = spelling_of(self.context)
        least = fewest_tokens(auto, request.max_tokens) if self.drafts else 0
        self.tree, self.account = DraftTree(), Account(least)
        self.choosing: Choosing | Search | None = None
        self.forced = self._forced_text()
        self.wholes = auto is not None and request.sampler.local.values == "whole"
        """Whether values are decided as wholes."""
        self.decides_values = False
        """Whether the next pass decides whole values."""
        self.spans = prompt_spans(self) if request.passages else None
        """Spans of the prompt that may be values of the text; None: nothing is weighed."""

    def _forced_text(self) -> ForcedText | None:
        """The forced text, where it is written in the tokenizer's own tokens."""
        request, spelling = self.request, self.spelling
        if spelling is None or request.encode is None or request.sampler.local.forced != "canonical":
            return None
        return ForcedText(request.automaton, spelling)

    def forced_token(self, node: int) -> int | None:
        """The forced token at a node of the tree; None where it is drawn."""
        return None if self.forced is None else self.forced.token(self.tree, self.session.states, node)

    def goes_on(self, node: int) -> bool:
        """Whether a token may follow a node of the tree."""
        automaton, states = self.request.automaton, self.session.states
        return node in states and (automaton is None or not automaton.is_finished(states[node]))

    def node(self, node: int, path: Sequence[int]) -> Node:
        """A place in the tree, and the tokens from the text to there."""
        request, states, forced = self.request, self.session.states, None
        if self.forced is not None and states[node] is not None:
            forced = self.forced.token(self.tree, states, node)
        remaining = request.max_tokens - len(self.output.tokens) - len(path)
        return Node(
            self.text, (*path,), len(request.prompt), request.automaton, states[node], remaining,
            request.seed, request.number, forced,
        )  # fmt: skip

    def drop(self) -> None:
        """Frees its places in the caches."""
        for backbone, seq in self.seqs:
            backbone.drop(seq)
        self.seqs = []

    @property
    def remaining(self) -> int:
        """Tokens that may still be written."""
        return self.request.max_tokens - len(self.output.tokens)

    @property
    def max_depth(self) -> int:
        """Most levels of a tree within the text's and the model's limits."""
        depth, limit = self.remaining - 1, self.seqs[0][0].max_length
        return depth if limit is None else min(depth, limit - len(self.text) - 1)

    def ended(self) -> str:
        """Why nothing more can be written, or ""."""
        auto, state = self.request.automaton, self.output.state
        if (auto is None or not self.request.eos) and len(self.output.tokens) >= self.request.max_tokens:
            return "length"
        if auto is not None:  # without a token left, one more pass decides: the end, or a cut
            if auto.is_finished(state):
                return "end"
            if state is not None and auto.is_accepting(state) and not self._goes_on(state):
                return "end"
        limit = self.seqs[0][0].max_length
        return "length" if limit is not None and len(self.text) >= limit else ""

    def _goes_on(self, state: State) -> bool:
        """Whether a token that does not end the text is allowed."""
        words = np.asarray(self.request.automaton.mask(state)).view(np.uint32)
        return bool((words & ~mask_of(self.request.eos, 32 * len(words))).any())

    def drafting(self, budget: Budget) -> Drafting[DraftTree]:
        """A draft within the text's and the model's limits, as a coroutine."""
        max_depth = 0 if self.seqs[0][0].mode == "plain" else self.max_depth
        budget.depth = min(budget.depth, max_depth)
        self.context.state, self.context.remaining = self.output.state, self.remaining
        return self.session.drafting(self.context, budget)

    def take(self, draft: Draft, keep: Sequence[bool]) -> None:
        """Takes a draft for the next pass.

        Args:
            keep: which of its nodes are scored.
        """
        self.tree = draft.tree
        self.output.report.seconds_draft += draft.seconds
        if not len(self.tree):
            self.draft_nothing()
        if self.chains:
            keep = _first_path(self.tree, keep)
        self.tree = self.session.shape(self.tree, keep)

    def draft_nothing(self) -> None:
        """Makes the next pass one without a draft."""
        if self.tree.tokens:
            self.tree = DraftTree()
        self.session.reset(self.output.state)


def _first_path(tree: DraftTree, keep: Sequence[bool]) -> list[bool]:
    """The likeliest kept path alone, for models that score chains."""
    chain, node = [False] * len(tree), -1
    while kids := [k for k in tree.children(node) if keep[k]]:
        node = max(kids, key=lambda k: tree.confidences[k])
        chain[node] = True
    return chain
