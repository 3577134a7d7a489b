"""Drafting with a model of another vocabulary.

Purpose: `shared`: its distribution is restricted to the tokens that both have and renormalised (TLI);
`retokenise`: its text is written in the target's tokens (SLEM), for exact match alone.
Invariant: a token is shared if both vocabularies spell it with the same, non-empty bytes.
Complexity: O(1) a token to translate a shared one; longest match for the others.
Source: Timor et al. 2025 (Lossless speculative decoding for heterogeneous vocabularies),
algorithms 2 (SLEM) and 4 (TLI).
Rejected: token-level alignment tables learnt from text (they need data and go stale).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from tokenform.errors import DrafterError


class VocabularyMap:
    """How a draft model's tokens relate to the target's.

    Args:
        target, draft: bytes of every token id; empty bytes for special tokens.
        retokenise: draft text instead of shared tokens.
        encode_target, encode_draft: bytes -> token ids, as the tokenizers write them; None is
            longest match from the left.
    Raises:
        DrafterError: the vocabularies share nothing, or lack the bytes to spell a token.
    """

    def __init__(
        self,
        target: Sequence[bytes],
        draft: Sequence[bytes],
        retokenise: bool = False,
        encode_target: Callable[[bytes], list[int]] | None = None,
        encode_draft: Callable[[bytes], list[int]] | None = None,
    ) -> None:
        self.target, self.draft, self.retokenise = list(target), list(draft), retokenise
        own = {b: i for i, b in reversed(list(enumerate(self.target))) if b}
        other = {b: i for i, b in reversed(list(enumerate(self.draft))) if b}
        self.draft_of = {i: other[b] for b, i in own.items() if b in other}
        if not self.draft_of:
            raise DrafterError("the two vocabularies have no token in common")
        self.ends = frozenset(i for i, b in enumerate(self.draft) if not b)  # tokens that are no text
        self._targets = torch.tensor([*self.draft_of])
        self._drafts = torch.tensor([*self.draft_of.values()])
        self.encode_target = encode_target or LongestMatch(own)
        self._encode_draft = encode_draft or LongestMatch(other)

    @property
    def draft_size(self) -> int:
        """Tokens of the draft model's vocabulary."""
        return len(self.draft)

    def to_draft(self, tokens: Sequence[int]) -> list[int]:
        """The text of the target's tokens in the draft model's; special tokens are left out."""
        if self.retokenise:
            return self._encode_draft(b"".join(self.target[t] for t in tokens))
        out: list[int] = []
        for token in tokens:
            shared = self.draft_of.get(token)
            out.extend([shared] if shared is not None else self._encode_draft(self.target[token]))
        return out

    def to_target(self, rows: torch.Tensor, size: int) -> torch.Tensor:
        """Logits [n, V of the draft] -> [n, size] in the target's ids, -inf where nothing is shared."""
        out = rows.new_full((len(rows), size), float("-inf"))
        out[:, self._targets.to(rows.device)] = rows[:, self._drafts.to(rows.device)]
        return out


class LongestMatch:
    """Writes bytes as tokens, each as long as possible from the left.

    Args:
        ids: bytes -> token id.
    """

    def __init__(self, ids: dict[bytes, int]) -> None:
        self._ids = ids
        self._longest = [0] * 256
        for piece in ids:
            if piece:
                self._longest[piece[0]] = max(self._longest[piece[0]], len(piece))

    def __call__(self, text: bytes) -> list[int]:
        """Token ids that spell `text`; stops where nothing fits."""
        out, at, ids = [], 0, self._ids
        while at < len(text):
            most = min(self._longest[text[at]], len(text) - at)
            size = next((n for n in range(most, 0, -1) if text[at : at + n] in ids), 0)
            if not size:
                break
            out.append(ids[text[at : at + size]])
            at += size
        return out
