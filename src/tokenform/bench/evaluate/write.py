"""Writing one text with a model under an engine's masks, and timing it.

Purpose: one decoding loop for all engines, so that what differs between them is the engine alone.
Invariant: a token is drawn from the model's logits under the engine's mask; the text ends at an EOS token, or
is cut at `max_tokens` where the engine keeps no budget. An engine whose mask is empty, or that refuses a
token of its own mask, has failed.
Complexity: one forward pass a token, through the key-value cache.
Rejected: each engine's own generation loop (their overheads beside the masks would be compared instead).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from tokenform.bench.engines import Session
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.masking import apply_mask_

_EVERYTHING = 0xFFFFFFFF  # a word of the mask of no constraint: at the limit such a text is cut


class EngineFailed(RuntimeError):
    """The engine broke off a text: an empty mask, or a token refused that its mask had."""


@dataclass
class Written:
    """A text and its times.

    Attributes:
        first_token_s: seconds from the beginning of `write` to the first token.
        model_s: seconds in forward passes.
        step_ns: nanoseconds of mask + advance for each token.
        finished: ended by an EOS token.
    """

    tokens: list[int] = field(default_factory=list)
    first_token_s: float = 0.0
    model_s: float = 0.0
    step_ns: list[int] = field(default_factory=list)
    forwards: int = 0
    finished: bool = False


@torch.inference_mode()
def write(
    backbone: Backbone,
    prompt: Sequence[int],
    session: Session,
    eos: int,
    size: int,
    *,
    max_tokens: int,
    temperature: float,
    seed: int,
) -> Written:
    """Write a text of at most `max_tokens` tokens after the prompt.

    Raises:
        EngineFailed: the engine got stuck.
    """
    seq = backbone.open(prompt)
    try:
        draw = torch.Generator().manual_seed(seed)
        return _write(backbone, seq, session, eos, size, max_tokens, temperature, draw)
    finally:
        backbone.drop(seq)


def _write(
    backbone: Backbone,
    seq: int,
    session: Session,
    eos: int,
    size: int,
    max_tokens: int,
    temperature: float,
    draw: torch.Generator,
) -> Written:
    written, begun = Written(), time.perf_counter()
    clock = time.perf_counter_ns
    mask = torch.from_numpy(session.row.view("int32"))
    budgeted = _fits_at_all(session, max_tokens)
    logits = backbone.score({seq: DraftTree()})[seq]
    written.model_s, written.forwards = time.perf_counter() - begun, 1
    for left in range(max_tokens, -1, -1):
        started = clock()
        session.fill()
        spent = clock() - started
        if left == 0:
            written.step_ns.append(spent)
            written.finished = session.allows(eos) and bool((session.row != _EVERYTHING).any())
            return written
        token = _draw(logits[:, :size], mask, temperature, draw)
        if token != eos and budgeted:
            started = clock()
            fits = session.fits(token, left)  # type: ignore[misc]
            if not fits:
                session.fill_within(left)  # type: ignore[misc]
            spent += clock() - started
            if not fits:
                token = _draw(logits[:, :size], mask, temperature, draw)
        if not written.tokens:
            written.first_token_s = time.perf_counter() - begun
        if token == eos:
            written.step_ns.append(spent)
            written.finished = True
            return written
        started = clock()
        if session.advance(token) is False:
            raise EngineFailed(
                f"advance refuses token {token}, which the mask has, after {len(written.tokens)} tokens"
            )
        written.step_ns.append(spent + clock() - started)
        written.tokens.append(token)
        if left > 1:  # the last token's successor is not asked for
            before = time.perf_counter()
            backbone.commit(seq, [token])
            logits = backbone.score({seq: DraftTree()})[seq]
            written.model_s += time.perf_counter() - before
            written.forwards += 1
    return written


def _fits_at_all(session: Session, max_tokens: int) -> bool:
    """Whether the engine keeps a budget and some complete text is within it; else a text may be cut."""
    if session.fits is None or session.fill_within is None:
        return False
    session.fill_within(max_tokens)
    return bool(session.row.any())


def _draw(logits: torch.Tensor, mask: torch.Tensor, temperature: float, draw: torch.Generator) -> int:
    """A token of the masked distribution at the temperature; greedy at 0."""
    masked = apply_mask_(logits.double().cpu(), mask.unsqueeze(0))
    best = masked.max()
    if best == -torch.inf:
        raise EngineFailed("the mask is empty")
    if temperature == 0:
        return int(masked.argmax())
    return int(torch.multinomial(torch.softmax(masked[0] / temperature, -1), 1, generator=draw))
