"""Whether a model may be given rows of unequal lengths: it is tried.

Purpose: rows that are run together are padded, and a mask tells the model where.  A recurrent state may run
over padding as over text, and an attention kernel of one's own may look at no mask.
Invariant: rows are padded only where the model's answers are those of rows that are not.
Complexity: a few passes of at most four tokens, once a model, and only where rows of unequal lengths meet.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from ..tree import DraftTree
from .facts import FAILURES

if TYPE_CHECKING:
    from .rows import RowBackbone

_tried: weakref.WeakKeyDictionary[Any, dict[str, bool]] = weakref.WeakKeyDictionary()


def takes_padding(backbone: RowBackbone) -> bool:
    """Whether padded rows have the answers of rows alone, in the backbone's mode.

    Raises:
        OutOfMemoryError, MemoryError: there was none left to try.
    """
    try:
        known = _tried.setdefault(backbone.model, {})
    except TypeError:  # something that can't be referred to weakly
        known = {}
    if backbone.mode not in known:
        try:
            answers = [_answers(backbone, padded) for padded in (True, False)]
            known[backbone.mode] = all(not differ(got, want) for got, want in zip(*answers, strict=True))
        except torch.OutOfMemoryError:
            raise
        except FAILURES:
            known[backbone.mode] = False
    return known[backbone.mode]


def _answers(backbone: RowBackbone, padded: bool) -> list[torch.Tensor]:
    """Logits of two texts over three steps; where drafts are possible, with some that are rejected."""
    made = type(backbone).untried(backbone.model, backbone.mode, size=backbone.vocabulary_size)
    made.padded = padded
    size = backbone.vocabulary_size
    seqs = [made.open([token % size for token in text]) for text in ([1, 3, 2], [5])]
    drafts: list[list[int]] = (
        [[4 % size], [6 % size, 1 % size, 2 % size]] if backbone.mode == "chain" else [[], []]
    )
    out: list[torch.Tensor] = []
    rounds: list[list[list[int]]] = [drafts, drafts[::-1], [[], []]]
    for draft in rounds:
        out += made.score({seq: DraftTree.chain(own) for seq, own in zip(seqs, draft, strict=True)}).values()
        for seq in seqs:
            made.commit(seq, [6 % size])
    return out


def differ(got: torch.Tensor, want: torch.Tensor) -> str:
    """By how much answers differ, or "".

    A wrong mask moves logits by a good part of their spread, rounding does not.
    Eager attention takes its softmax in float32 whatever the model's type, hence one bound.
    """
    error = float((got.double() - want.double()).abs().max())
    spread = float(want.double().std()) + 1e-30
    bound = 1e-3 if got.dtype in (torch.float32, torch.float64) else 0.1
    return "" if error <= bound * max(spread, 1e-3) else f"{error:.1e}"
