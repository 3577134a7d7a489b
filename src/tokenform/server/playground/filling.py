"""A diffusion model fills a canvas under the constraint: the positions that each pass commits.

Invariant: one request has at most `LENGTH` positions; it ends when its reader is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from tokenform.decoding.diffusion import (
    Blocks,
    Confidence,
    EntropyBound,
    FillPolicy,
    LeftToRight,
    SelfDraft,
    Threshold,
)
from tokenform.decoding.diffusion.generator import DiffusionGenerator
from tokenform.engine.opening import opened_once
from tokenform.integrations import diffusion
from tokenform.server.playground.inspecting import shown_token
from tokenform.server.playground.queries import Query, Seed, Temperature
from tokenform.server.playground.running import Channel
from tokenform.server.playground.writing import finite

LENGTH = 256
POLICIES: dict[str, Callable[[], FillPolicy]] = {
    "threshold": Threshold,
    "confidence": Confidence,
    "entropy": EntropyBound,
    "blocks": lambda: Blocks(16),
    "left": LeftToRight,
    "draft": SelfDraft,
}


class FillQuery(Query):
    """How to fill."""

    policy: Literal["threshold", "confidence", "entropy", "blocks", "left", "draft"] = "threshold"
    temperature: Temperature = 0.0
    seed: Seed = 0
    length: Annotated[int, Field(ge=1, le=LENGTH)] | None = None


@opened_once(1)
def builtin() -> DiffusionGenerator:
    """The built-in model that fills canvases."""
    return diffusion.DiffusionGenerator()


def fill(query: FillQuery, generator: Any, channel: Channel) -> None:
    """Sends `canvas`, a `pass` for each pass with [position, text or None for an end] of what it commits, and
    `done`.

    Args:
        generator: the server's own; where it writes from left to right, the built-in model fills.
    """
    writer = generator if isinstance(generator, DiffusionGenerator) else builtin()
    length = query.length or min(64, writer.length)
    filled_positions: set[int] = set()

    def watch(_: int, tokens: Sequence[int | None]) -> None:
        new = [
            (at, token) for at, token in enumerate(tokens) if token is not None and at not in filled_positions
        ]
        filled_positions.update(at for at, _ in new)
        ends = writer.vocabulary.eos
        filled = [
            [at, None if token in ends else shown_token(writer.vocabulary.token(token))] for at, token in new
        ]
        channel.send("pass", {"filled": filled, "known": len(filled_positions)})

    channel.send("canvas", {"length": length})
    result = writer.generate(
        query.model_prompt,
        query.constraint.grammar,
        length=length,
        temperature=query.temperature,
        policy=POLICIES[query.policy](),
        seed=query.seed,
        watch=watch,
    )
    stats = result.stats
    summary = {"text": result.text, "logprob": finite(result.logprob), "tokens": stats.tokens}
    seconds = {"model": stats.seconds_model, "mask": stats.seconds_mask}
    channel.send("done", {**summary, "forwards": stats.forwards, "seconds": seconds})
