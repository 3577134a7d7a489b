"""Plain decoding: one full forward pass a token, no cache, no drafts."""

from __future__ import annotations

from typing import Any

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
        rows = tuple(
            replay(one, [*prompt, *output]).numpy()
            for one, prompt in zip((net, *others), prompts, strict=True)
        )
        node = Node(
            rows, [*prompts[0], *output], (), len(prompts[0]), auto, state, request.max_tokens - len(output),
            request.seed, request.number,
        )  # fmt: skip
        token = request.sampler.draw(node)
        if token in request.eos:
            break
        output.append(token)
        if auto is not None:
            state = auto.advance(state, token)
    return output
