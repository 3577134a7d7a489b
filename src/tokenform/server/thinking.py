"""A thought before the answer: how much of it a request asks for.

Invariant: an answer's form binds the answer alone.  Where no field says anything, the thought is as the
rendered prompt and the model have it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.thinking import Thinking
from tokenform.server.faults import Refused

EFFORTS = {"minimal": 1 / 8, "low": 1 / 4, "medium": 1 / 2, "high": 3 / 4, "xhigh": 7 / 8, "max": 1.0}
"""The share of a text's tokens that its thought may take."""


@dataclass(frozen=True)
class AskedThought:
    """The thought that a request asks for.

    Attributes:
        place: of the field that says so.
        thinking: how much of it.
    """

    place: str = "/chat_template_kwargs"
    thinking: Thinking = field(default_factory=Thinking)


def read_thinking(
    effort: Any, tokens: int | None, place: str, tokens_place: str = "/thinking_token_budget"
) -> AskedThought:
    """How much thought a request asks for.

    Args:
        effort: one of `EFFORTS`, "none" or None.
        tokens: most tokens of the thought, by itself or beside an effort; 0: none.
        place, tokens_place: of the two in the request.
    """
    if effort is not None and (not isinstance(effort, str) or effort not in ("none", *EFFORTS)):
        known = ", ".join(["none", *EFFORTS])
        raise Refused(f"{place} {effort!r} is not known; choose one of {known}.", param=place)
    if effort == "none" and tokens:
        raise Refused(f"{place} asks for no thought, {tokens_place} for {tokens} tokens.", param=tokens_place)
    if effort is None and tokens is None:
        return AskedThought()
    if effort == "none" or tokens == 0:
        return AskedThought(place if effort == "none" else tokens_place, Thinking(False))
    share = EFFORTS.get(effort or "", 1.0)
    return AskedThought(place if tokens is None else tokens_place, Thinking(True, tokens, share, effort))


def template_options(given: Mapping[str, Any] | None, render: Callable[..., Any] | None) -> dict[str, Any]:
    """`chat_template_kwargs`: what the template is told, but nothing of how it is rendered.

    Args:
        render: the tokenizer's `apply_chat_template`.
    """
    own = set() if render is None else set(inspect.signature(render).parameters) - {"documents", "kwargs"}
    for name in given or ():
        if name in own or name in ("messages", "add_generation_prompt", "tools"):
            place = f"/chat_template_kwargs/{name}"
            raise Refused(f"{place} is not for requests: it says how a prompt is made.", param=place)
    return dict(given or {})
