"""A language model behind another one: all the same, but for what a subclass changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.errors import SamplingError


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


REPORT_EVERY = 500  # forward passes after which `report` hears again


class Metered(WrappedModel):
    """A language model that may be asked so many times, and says how often it was.

    Raises, in `logprobs`:
        SamplingError: it was asked more often.
    """

    def __init__(
        self, model: LanguageModel, name: str, most: int | None, report: Callable[[str], None]
    ) -> None:
        super().__init__(model)
        self._name, self._most, self._report = name, most, report
        self._start, self._last_report = model.forwards, 0

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """See `LanguageModel`."""
        spent = self.forwards - self._start
        if self._most is not None and spent >= self._most:
            raise SamplingError(
                f"it has made {spent} forward passes; raise max_forwards, or draw fewer texts"
            )
        if spent >= self._last_report + REPORT_EVERY:
            self._last_report = spent
            self._report(f"{self._name}: {spent} forward passes")
        return super().logprobs(prefixes)
