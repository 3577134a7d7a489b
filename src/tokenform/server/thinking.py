"""A thought before the answer: how much of it a request asks for, and how this model writes it.

Invariant: an answer's form binds the answer alone; the thought is any text between the model's markers, and
leaves room for the shortest answer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tokenform.decoding.generator import Generator
from tokenform.decoding.scheduler import Thinking
from tokenform.errors import TokenformError
from tokenform.frontends import Grammar
from tokenform.frontends.tools import Format, thought
from tokenform.server.faults import Refused
from tokenform.server.wanted import Thoughts, Wanted

EFFORTS = {"minimal": 1 / 8, "low": 1 / 4, "medium": 1 / 2, "high": 3 / 4, "xhigh": 7 / 8, "max": 1.0}
"""The share of a text's tokens that its thought may take."""
_TAIL = 32  # tokens at the end of a prompt that tell whether it has opened the block


def read_thinking(
    effort: Any, tokens: int | None, place: str, tokens_place: str = "/thinking_token_budget"
) -> Thoughts | None:
    """How much thought a request asks for; None: none.

    Args:
        effort: one of `EFFORTS`, "none" or None.
        tokens: most tokens of the thought, by itself or beside an effort.
        place, tokens_place: of the two in the request.
    """
    if effort is not None and (not isinstance(effort, str) or effort not in ("none", *EFFORTS)):
        known = ", ".join(["none", *EFFORTS])
        raise Refused(f"{place} {effort!r} is not known; choose one of {known}.", param=place)
    if effort == "none" and tokens:
        raise Refused(f"{place} asks for no thought, {tokens_place} for {tokens} tokens.", param=tokens_place)
    if effort == "none" or (effort is None and not tokens):
        return None
    return Thoughts(place if tokens is None else tokens_place, tokens, EFFORTS.get(effort or "", 1.0))


def thinking_of(format: Any, generator: Generator, wanted: Wanted) -> Thinking | None:
    """How the thought of a request is written.

    Args:
        format: the model's layout of turns, or the error of finding it.
    """
    asked = wanted.thoughts
    if asked is None:
        return None
    if isinstance(format, TokenformError):
        raise Refused(f"this model has no known block of thought: {format}", param=asked.place)
    opener, closer = format.reasoning
    ids = generator.prompt_ids(wanted.prompt, wanted.grammar)[-_TAIL:]
    tail = b"".join(generator.vocabulary.token(token) for token in ids).decode("utf-8", "replace").rstrip()
    if tail.endswith(closer):
        message = "the model's template has closed the thought already; serve it with thinking enabled."
        raise Refused(message, param=asked.place)
    opened = tail.endswith(opener)
    try:
        grammar = _grammar(format, opened)
    except TokenformError as error:
        raise Refused(str(error), param=asked.place, code="unsupported_parameter") from None
    return Thinking(grammar, "" if opened else opener, closer, asked.tokens, asked.share)


@lru_cache(maxsize=16)
def _grammar(format: Format, opened: bool) -> Grammar:
    return thought(format, opened=opened)
