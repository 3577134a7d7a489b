"""A thought before the answer: the fields of a request.

Invariant: an answer's form binds the answer alone.  Without any field, the rendered prompt and the model
decide about the thought.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.thinking import Thinking
from tokenform.server.faults import Refused

EFFORTS = {"minimal": 1 / 8, "low": 1 / 4, "medium": 1 / 2, "high": 3 / 4, "xhigh": 7 / 8, "max": 1.0}
"""The largest share of a text's tokens for its thought."""


@dataclass(frozen=True)
class RequestedThought:
    """The thought that a request asks for.

    Attributes:
        place: of its field.
        thinking: its options.
    """

    place: str = "/chat_template_kwargs"
    thinking: Thinking = field(default_factory=Thinking)


def read_thinking(
    effort: Any, tokens: int | None, place: str, tokens_place: str = "/thinking_token_budget"
) -> RequestedThought:
    """The thought of a request.

    Args:
        effort: one of `EFFORTS`, "none" or None.
        tokens: most tokens of the thought, by itself or beside an effort; 0: no thought.
        place, tokens_place: of the two in the request.
    """
    if effort is not None and (not isinstance(effort, str) or effort not in ("none", *EFFORTS)):
        names = ", ".join(["none", *EFFORTS])
        raise Refused(f"{place} {effort!r} is not known; choose one of {names}.", param=place)
    if effort == "none" and tokens:
        raise Refused(f"{place} asks for no thought, {tokens_place} for {tokens} tokens.", param=tokens_place)
    if effort is None and tokens is None:
        return RequestedThought()
    if effort == "none" or tokens == 0:
        return RequestedThought(place if effort == "none" else tokens_place, Thinking(False))
    share = EFFORTS.get(effort or "", 1.0)
    return RequestedThought(place if tokens is None else tokens_place, Thinking(True, tokens, share, effort))


def template_options(options: Mapping[str, Any] | None, render: Callable[..., Any] | None) -> dict[str, Any]:
    """`chat_template_kwargs`: arguments of the template, except those that control its rendering.

    Args:
        render: the tokenizer's `apply_chat_template`.
    """
    if not options:
        return {}
    reserved = (
        set() if render is None else set(inspect.signature(render).parameters) - {"documents", "kwargs"}
    )
    for name in options:
        if name in reserved or name in ("messages", "add_generation_prompt", "tools"):
            place = f"/chat_template_kwargs/{name}"
            raise Refused(f"{place} is not for requests: it says how a prompt is made.", param=place)
    return dict(options)
