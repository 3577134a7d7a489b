"""A language model behind another one, which is what it is but for what a subclass changes."""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens


class WrappedModel:
    """`LanguageModel`; see there.  `widest` and `fingerprint` are the inner model's too.

    Args:
        model: the inner one.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.eos, self.vocab_size = model.eos, model.vocab_size
        self.fingerprint: str = getattr(model, "fingerprint", type(model).__name__)
        self.widest: int | None = getattr(model, "widest", None)

    @property
    def forwards(self) -> int:
        """Forward passes so far."""
        return self.model.forwards

    @property
    def rows(self) -> int:
        """Distributions so far."""
        return self.model.rows

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """See `LanguageModel`."""
        return self.model.logprobs(prefixes)
