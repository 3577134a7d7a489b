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
from tokenform.decoding.speculative.live import fewest_tokens
from tokenform.decoding.speculative.policies import Account, Fixed, Policy
from tokenform.decoding.speculative.request import Report
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
    price: Callable[[int], float] | None = None,
    fresh: bool = True,
) -> Report:
    """The report of writing `tokens` after `prompt`.

    Args:
        tokens: token ids of the text, end-of-text excluded; the automaton must accept them.
        drafter: one that needs no logits.
        policy: None is 32 nodes.
        hints, encode: as in `Request`.
        price: seconds of a pass over so many tokens; then the text has an account, the policy is told what
            passes take, and the report's `seconds_model` is their sum, that of the prompt left out.
        fresh: whether the prompt's keys and values are unknown: then its pass has the first draft with it.
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
    account = None if price is None else Account(fewest_tokens(automaton, len(tokens)))
    while at < len(tokens):
        began = time.thread_time()
        context.state, context.remaining = state, len(tokens) - at + 1
        beside = len(prompt) - 1 if fresh and not at and price is not None else 0
        if account is not None:
            account.begins(beside)
        budget = policy.budget(1, account)
        tree = session.propose(context, budget) if budget.nodes else DraftTree()
        drafting = time.thread_time() - began
        if not len(tree):
            session.reset(state)
        kept = policy.shape([tree], 1.0, [] if account is None else [account])[0]
        tree = session.shape(tree, kept)
        visited = tree.walk(tokens[at:])
        new = list(tokens[at : at + len(visited) + 1])
        report.forwards += 1
        if price is not None and account is not None:
            took = price(beside + 1 + len(tree))
            report.seconds_model += price(1) + took - price(beside + 1)
            policy.observe(beside + 1 + len(tree), took, drafting)
            account.wrote(new)
        report.count(tree, visited, len(new))
        for token in new if automaton is not None else ():
            state = automaton.advance(state, token)
        text.extend(new)
        at += len(new)
        session.observe(context, Seen(new, tree, no_logits))
        report.seconds_draft += time.thread_time() - began
    session.close()
    report.notes = list(session.faults)
    return report
