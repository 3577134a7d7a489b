"""String-level targets: only the tokenisation that the tokenizer itself would write.

π over token sequences gives a text the sum over its tokenisations.  With this constraint in a product, each
text keeps one sequence, and the target is P(canonical tokens of x) over texts.  Another target, not a better
one.

Invariant: a finished sequence is accepted iff encode(bytes) gives it back.  Prefixes: a tokenizer that merges
by adjacent pairs (BPE) has prefix-closed canonical sequences, except where a pre-tokenizer looks ahead
(GPT-2's `\\s+(?!\\S)`), so a prefix is refused only if it isn't canonical *and* isn't beside such an edge:
the last `margin` tokens are not held against it.  Source: Geh et al. 2024; Vieira et al. 2025 ("Canonical
language models").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.protocols import Tokens

Encode = Callable[[bytes], Sequence[int]]


class Canonical(Predicate):
    """`Constraint` that accepts canonical token sequences alone.

    Args:
        token_bytes, eos, excluded: as for `Predicate`.
        encode: bytes of a text to its token ids, without special tokens.
        margin: how many last tokens of a prefix are not judged yet.
    """

    canonical = True

    def __init__(
        self,
        token_bytes: Sequence[bytes],
        eos: Sequence[int],
        encode: Encode,
        *,
        margin: int = 2,
        excluded: Sequence[int] = (),
    ) -> None:
        def spelled(tokens: Tokens) -> Tokens:
            return tuple(encode(b"".join(token_bytes[token] for token in tokens)))

        def prefix(tokens: Tokens) -> bool:
            checked_length = len(tokens) - margin
            return checked_length <= 0 or spelled(tokens)[:checked_length] == tokens[:checked_length]

        def complete(tokens: Tokens) -> bool:
            return spelled(tokens) == tokens

        super().__init__(
            token_bytes,
            eos,
            prefix,
            complete,
            on="tokens",
            excluded=excluded,
            name=f"canonical(margin={margin})",
        )
