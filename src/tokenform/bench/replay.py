"""Replaying a known text: what a drafter would have saved, without a model.

Purpose: tokens per target forward of drafters that look things up, on real documents and large
vocabularies, in milliseconds.
Invariant: counts are those of a run whose model writes exactly the given tokens.
Complexity: the drafters' own.
Rejected: a stub model (its passes would be most of the time and prove nothing more).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tokenform.decoding.speculative.drafters.base import Context, Seen
from tokenform.decoding.speculative.drafters.hints import Hints
from tokenform.decoding.speculative.drafters.merge import Merge
from tokenform.decoding.speculative.policies import Fixed, Policy
from tokenform.decoding.speculative.report import Report
from tokenform.decoding.speculative.tree import DraftTree


def replay(
    tokens: Sequence[int],
    drafter: Any,
    vocabulary_size: int,
    automaton: Any = None,
    prompt: Sequence[int] = (0,),
    policy: Policy | None = None,
    eos: frozenset[int] = frozenset(),
    hints: Hints | None = None,
    encode: Callable[[bytes], list[int]] | None = None,
) -> Report:
    """The report of writing `tokens` after `prompt`.

    Args:
        tokens: token ids of the text, end-of-text excluded; the automaton must accept them.
        drafter: one that needs no logits.
        policy: None is 32 nodes.
        hints, encode: as in `Request`.
    Raises:
        TokenRejected: the automaton refuses a token.
    """
    policy = policy if policy is not None else Fixed(32)
    text = list(prompt)
    state = automaton.start if automaton is not None else None
    context = Context(
        tokens=text,
        prompt_length=len(text),
        automaton=automaton,
        state=state,
        vocabulary_size=vocabulary_size,
        eos=eos,
        hints=hints,
        encode=encode,
    )
    session = (drafter if isinstance(drafter, Merge) else Merge(drafter)).session(context)
    report, at, no_logits = Report(), 0, torch.zeros(0, 0)
    while at < len(tokens):
        began = time.perf_counter()
        context.state, context.remaining = state, len(tokens) - at + 1
        budget = policy.budget(1)
        tree = session.propose(context, budget) if budget.nodes else DraftTree()
        tree = session.shape(tree, policy.shape([tree])[0])
        visited = tree.walk(tokens[at:])
        new = list(tokens[at : at + len(visited) + 1])
        report.forwards += 1
        report.count(tree, visited, len(new))
        for token in new if automaton is not None else ():
            state = automaton.advance(state, token)
        text.extend(new)
        at += len(new)
        session.observe(context, Seen(new, tree, no_logits))
        report.seconds_draft += time.perf_counter() - began
    session.close()
    report.notes = list(session.faults)
    return report
