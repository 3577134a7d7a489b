"""A document under a constraint: its accepted part, the reason for a refusal, and the next tokens.

Invariant: all about the next token is about the state after the accepted part of the document.
Complexity: the document's bytes, one mask, `STATES` states of a drawing; `following` runs the model once over
the prompt and the document.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tokenform.decoding.generator import Generator
from tokenform.engine import State, TokenAutomaton, Vocabulary, tokenizers
from tokenform.engine.drawing import explore
from tokenform.errors import TokenformError
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.server.playground.queries import LIMITS, ConstraintQuery, Query, ReachQuery

LISTED = 40
"""Allowed tokens that are listed without a model."""
LIKELIEST = 12
"""Tokens that are listed of each distribution."""


def inspect(query: Query, vocabulary: Vocabulary) -> dict[str, Any]:
    """Everything that needs no model.

    Returns:
        `report`; `refused`: None, or the byte and the reason; `accepted`: bytes of the accepted part;
        `ended`: it is a whole document; facts of the state there, and a drawing of the automaton from it.
    """
    automaton = query.constraint.grammar.compile(vocabulary, limits=LIMITS)
    data = query.text.encode()
    state, accepted = reached(automaton, data)
    verdict = automaton.check(data)
    refused = None
    if verdict is not None and accepted < len(data):
        _, expected, pointer = verdict
        refused = {"offset": accepted, "expected": expected, "pointer": pointer}
        refused["spelling"] = _accepts_respelled(query, data)
    return {
        "report": [str(line) for line in query.constraint.grammar.report],
        "accepted": accepted,
        "refused": refused,
        "ended": verdict is None,
        **_place(automaton, state),
        "drawing": _drawing(query, data[:accepted]),
    }


def reached(automaton: TokenAutomaton, data: bytes) -> tuple[State, int]:
    """The state after the longest accepted beginning, and its length in bytes."""
    try:
        return automaton.step_bytes(automaton.start, data), len(data)
    except TokenformError:
        verdict = automaton.check(data)
        length = len(data) if verdict is None else verdict[0]
        return automaton.step_bytes(automaton.start, data[:length]), length


def reach(query: ReachQuery) -> dict[str, Any]:
    """How many bytes of the document each other source accepts; None for one that is no constraint."""
    data = query.text.encode()
    return {"accepted": [_length(query.of(source), data) for source in query.sources]}


def _length(constraint: ConstraintQuery, data: bytes) -> int | None:
    try:
        return reached(constraint.grammar.compile(byte_vocabulary(), limits=LIMITS), data)[1]
    except TokenformError:
        return None


def _accepts_respelled(query: Query, data: bytes) -> bool:
    """Whether only the order of keys, or the way values are written, is refused."""
    grammar = query.respelled()
    return grammar is not None and grammar.compile(byte_vocabulary(), limits=LIMITS).matches(data)


def _place(automaton: TokenAutomaton, state: State) -> dict[str, Any]:
    times = []
    for _ in range(2):
        began = time.perf_counter()
        automaton.mask(state)
        times.append(1e6 * (time.perf_counter() - began))
    allowed = automaton.allowed_tokens(state)
    expected, pointer = automaton.expected(state)
    tokens, ends = automaton.vocabulary.tokens, set(automaton.vocabulary.eos)
    shown = [int(token) for token in allowed if int(token) not in ends][:LISTED]
    return {
        "place": {"expected": expected, "pointer": pointer},
        "accepting": automaton.is_accepting(state),
        "allowed": len(allowed),
        "vocabulary": automaton.vocabulary.size,
        "distance": automaton.distance(state),
        "forced": automaton.forced_bytes(state).decode("utf-8", "replace"),
        "micros": {"first": round(times[0], 2), "again": round(times[1], 2)},
        "tokens": [shown_token(tokens[token]) for token in shown],
    }


def _drawing(query: Query, accepted: bytes) -> dict[str, Any]:
    """The automaton over bytes from the present state on: states, and the edges between them."""
    automaton = query.constraint.grammar.compile(byte_vocabulary(), limits=LIMITS)
    states, edges = explore(automaton, automaton.step_bytes(automaton.start, accepted))
    return {"accepting": [automaton.is_accepting(state) for state in states], "edges": edges}


def following(query: Query, generator: Generator) -> dict[str, Any]:
    """The likeliest next tokens: by the model alone (`free`), and among those that the mask allows.

    Also `reads`: the prompt of the model, in its own tokens.
    """
    automaton = query.constraint.grammar.compile(generator.vocabulary, limits=LIMITS)
    state, accepted = reached(automaton, query.text.encode())
    text = query.text.encode()[:accepted].decode("utf-8", "ignore")
    tokens = _spelled(generator, text)
    began = time.perf_counter()
    read = generator.prompt_ids(query.model_prompt, query.constraint.grammar)
    prefix = (*read, *tokens)
    distribution = np.exp(generator.language_model().logprobs([prefix])[0])
    micros = 1e6 * (time.perf_counter() - began)
    allowed = np.zeros(len(distribution), dtype=bool)
    allowed[automaton.allowed_tokens(state)] = True
    mass = float(distribution[allowed].sum())
    masked = np.where(allowed, distribution, 0.0) / mass if mass > 0 else np.zeros_like(distribution)
    top = [*np.argsort(-distribution)[:LIKELIEST], *np.argsort(-masked)[:LIKELIEST]]
    ends = set(generator.vocabulary.eos)
    rows: list[dict[str, Any]] = [
        {
            "token": int(token),
            "text": shown_token(generator.vocabulary.token(int(token))),
            "end": int(token) in ends,
            "allowed": bool(allowed[token]),
            "free": float(distribution[token]),
            "masked": float(masked[token]),
        }
        for token in dict.fromkeys(int(t) for t in top)
        if distribution[token] > 0 and (masked[token] > 0 or not allowed[token])
    ]
    rows.sort(key=lambda row: (-row["masked"], -row["free"]))
    words = [generator.vocabulary.token(token) for token in read]
    reads = {"text": b"".join(words).decode("utf-8", "replace"), "tokens": len(read)}
    return {"rows": rows, "mass": mass, "micros": round(micros, 1), "tokens": len(tokens), "reads": reads}


def _spelled(generator: Generator, text: str) -> list[int]:
    """A text in the model's tokens."""
    if generator.tokenizer is None:
        return generator.vocabulary.greedy(text.encode()) or []
    return tokenizers.encode(generator.tokenizer, text, specials=False)


def shown_token(token: bytes) -> str:
    """A token's text; bytes that are no character by themselves are written as \\x.."""
    return token.decode("utf-8", "backslashreplace")
