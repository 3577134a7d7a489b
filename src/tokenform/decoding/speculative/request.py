"""What is asked of the speculator, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenform.engine import State
from tokenform.errors import TokenformError

from .report import Report

if TYPE_CHECKING:
    from .backbone import Backbone
    from .deciding import Decision
    from .drafters.hints import Hints


@dataclass
class Request:
    """One text to be written.

    Attributes:
        prompt: token ids, at least one.
        sampler: a `MaskedSampler`, by which its tokens are drawn; None: the decoder's.
        automaton: the constraint, or None.
        max_tokens: most tokens of the output, the end-of-text token excluded.
        eos: tokens that end the text.
        seed, number: key of the randomness.
        drafter: in place of the speculator's own.
        hints: what the constraint suggests to drafters (see `drafters/hints.py`).
        encode: bytes -> token ids as the model's tokenizer writes them, for drafters that know text.
        companions: (backbone, prompt) of each second model or prompt that the sampler mixes in.
        alternatives: how many of the model's likeliest tokens to tell at each token of the text.
        logprobs: whether the tokens' log-probabilities are told; without them, where the mask allows few
            tokens, only these tokens' logits are computed.
        kept: when the text has ended its sequences stay open, for whoever asks `Speculator.left` for them.
        sequences: (backbone, sequence) of the model and of each companion, to go on with in place of new
            ones: what they hold of the prompt is not run again.
    """

    prompt: list[int]
    sampler: Any = None
    automaton: Any = None
    max_tokens: int = 256
    eos: frozenset[int] = frozenset()
    seed: int = 0
    number: int = 0
    drafter: Any = None
    companions: Sequence[tuple[Backbone, Sequence[int]]] = ()
    hints: Hints | None = None
    encode: Callable[[bytes], list[int]] | None = None
    alternatives: int = 0
    logprobs: bool = True
    kept: bool = False
    sequences: Sequence[tuple[Backbone, int]] = ()


UNKNOWN = -1
"""In the place of a token that the budget refused: it is not known which."""


class Cut(NamedTuple):
    """Where the budget first cut in.

    Attributes:
        place: how many tokens were written before.
        refused: what would have been drawn next without the budget; or `UNKNOWN`.
    """

    place: int
    refused: int


@dataclass
class Output:
    """One text that was written, or is being written.

    Attributes:
        tokens: the output so far, end-of-text excluded.
        state: the automaton's state after `tokens`, or None.
        logprob: natural logarithm of the probability of `tokens` under the model's own distribution; NaN if
            it was not asked for.
        token_logprobs: the same for each token; empty if they were not asked for.
        guessed: whether each token is an accepted draft.
        likeliest: at each token (id, log-probability) of the model's likeliest ones, best first.
        decided: the values that were decided as wholes, in order.
        done: whether it has ended.
        cut: where the budget first refused what would have been drawn; None: nowhere.
        reason: "end" (an EOS token, or the constraint allows nothing more), "length" (the same, but the
            budget cut in; or nothing more may be written), "cancelled" or "error".
        error: why it ended, for the reason "error".
        report: what speculation did.
    """

    tokens: list[int] = field(default_factory=list)
    state: State | None = None
    logprob: float = 0.0
    token_logprobs: list[float] = field(default_factory=list)
    guessed: list[bool] = field(default_factory=list)
    likeliest: list[list[tuple[int, float]]] = field(default_factory=list)
    decided: list[Decision] = field(default_factory=list)
    cut: Cut | None = None
    done: bool = False
    reason: str = ""
    error: TokenformError | None = None
    report: Report = field(default_factory=Report)
