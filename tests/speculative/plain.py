"""Plain decoding: one full forward pass a token, no cache, no drafts."""

from __future__ import annotations

from typing import Any

from tokenform.decoding.draws import LazyDrawer
from tokenform.decoding.speculative.node import Node
from tokenform.decoding.speculative.request import Request

from .models import replay


def plain(net: Any, request: Request, others: tuple[Any, ...] = ()) -> list[int]:
    """The output that the request's sampler gives by itself."""
    prompts = [list(request.prompt), *(list(p) for _, p in request.companions)]
    output: list[int] = []
    auto = request.automaton
    state = auto.start if auto is not None else None
    while len(output) < request.max_tokens:
        rows = [
            replay(one, [*prompt, *output])[None] for one, prompt in zip((net, *others), prompts, strict=True)
        ]
        node = Node(
            [*prompts[0], *output], (), len(prompts[0]), auto, state, request.max_tokens - len(output),
            request.seed, request.number,
        )  # fmt: skip
        (drawn,) = LazyDrawer().draw(request.sampler, rows, [node])
        if drawn.error is not None:
            raise drawn.error
        if drawn.token in request.eos:
            break
        output.append(drawn.token)
        if auto is not None:
            state = auto.advance(state, drawn.token)
    return output
