"""A request to the speculator, its output, and a report on speculation.

Invariant: the counts of a report add up over sequences, so reports can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenform.engine import State
from tokenform.errors import TokenformError

if TYPE_CHECKING:
    from .backbone import Backbone
    from .deciding import Decision
    from .drafters.hints import Hints


from typing import TypeVar

from .tree import UNGUESSED, DraftTree

_Key = TypeVar("_Key")
_SECONDS = ("seconds_draft", "seconds_model", "seconds_mask")
_SUMMED = ("forwards", "tokens", "drafted", "accepted", "evaluations", *_SECONDS)


@dataclass
class Stats:
    """The work behind one result.

    Attributes:
        forwards: forward passes of the model that this sequence took part in, the prompt's included.
        tokens: tokens of the text, the end-of-text token excluded.
        drafted: draft tokens that were scored.
        accepted: draft tokens that were accepted.
        evaluations: masks that were computed or looked up.
        seconds_model: wall time of the model's passes, on a GPU by its own events; the time of a batch is
            shared equally by its sequences.
        seconds_mask: wall time in masks and their application, shared likewise; on a GPU it includes the
            wait for draws, and so for the model.
        seconds_draft: wall time in drafters, of their passes on a GPU by its events.
    """

    forwards: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    evaluations: int = 0
    seconds_model: float = 0.0
    seconds_mask: float = 0.0
    seconds_draft: float = 0.0

    @classmethod
    def of(cls, output: Output) -> Stats:
        """Those of a text that a speculator wrote."""
        return cls(
            **{name: getattr(output.report, name) for name in _SUMMED} | {"tokens": len(output.tokens)}
        )


@dataclass
class Report(Stats):
    """Counts of one sequence, or of a run.

    Attributes:
        tokens: committed tokens, the one that ends the text included.
        drafted, accepted: nodes, without the paths of values that are decided as wholes.
        depths: depth -> [times that the tree was so deep, times that so much was accepted].
        sources: source -> [nodes scored, nodes committed].
        notes: features that were switched off or could not be used.
        The others are those of `Stats`.
    """

    depths: dict[int, list[int]] = field(default_factory=dict)
    sources: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def tokens_per_forward(self) -> float:
        """Committed tokens per target pass; 1 for plain decoding."""
        return self.tokens / self.forwards if self.forwards else 0.0

    def count(self, tree: DraftTree, visited: list[int], committed: int) -> None:
        """One step: `committed` tokens, of which the tree had the `visited` nodes."""
        self.tokens += committed
        for nodes, place in ((range(len(tree.tokens)), 0), (visited, 1)):
            guessed = 0
            for node in nodes:
                source = tree.sources[node]
                if source not in UNGUESSED:
                    self.sources.setdefault(source, [0, 0])[place] += 1
                    guessed += 1
            if place:
                self.accepted += guessed
            else:
                self.drafted += guessed
        reached = len(visited) + (1 if tree.kids.get(visited[-1] if visited else -1) else 0)
        for depth in range(1, reached + 1):
            cell = self.depths.setdefault(depth, [0, 0])
            cell[0] += 1
            cell[1] += depth <= len(visited)

    def add(self, other: Report) -> None:
        """Merges another report into this one."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        _add_cells(self.depths, other.depths)
        _add_cells(self.sources, other.sources)
        self.notes.extend(n for n in other.notes if n not in self.notes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON files and plots; keys as the attributes, and `tokens_per_forward`."""
        return {**self.__dict__, "tokens_per_forward": self.tokens_per_forward}


def _add_cells(own: dict[_Key, list[int]], more: dict[_Key, list[int]]) -> None:
    for key, (trials, hits) in more.items():
        cell = own.setdefault(key, [0, 0])
        cell[0] += trials
        cell[1] += hits


@dataclass
class Request:
    """One text to be written.

    Attributes:
        prompt: token ids, at least one.
        sampler: a `MaskedSampler`, which draws its tokens; None: the decoder's.
        automaton: the constraint, or None.
        max_tokens: most tokens of the output, the end-of-text token excluded.
        eos: tokens that end the text.
        seed, number: key of the randomness.
        drafter: in place of the speculator's own.
        hints: the constraint's suggestions for drafters (see `drafters/hints.py`).
        encode: bytes -> token ids as the model's tokenizer writes them, for drafters that know text.
        companions: (backbone, prompt) of each second model or prompt that the sampler mixes in.
        alternatives: how many of the model's likeliest tokens to report at each token of the text.
        logprobs: whether to report the tokens' log-probabilities; without them, where the mask allows few
            tokens, only these tokens' logits are computed.
        keep_sequences: leave its sequences open when the text has ended, for `Speculator.pop_sequences`.
        passages: of the prompt, in which values of the text may stand (`prompt_spans.py`); empty: in none.
        bare: whether the whole text is such a value.
        sequences: (backbone, sequence) of the model and of each companion, to go on with in place of new
            ones; the part of the prompt that they have is not run again.
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
    keep_sequences: bool = False
    passages: Sequence[str] = ()
    bare: bool = False
    sequences: Sequence[tuple[Backbone, int]] = ()


UNKNOWN = -1
"""Stands for a token that the budget refused where it is not known which."""


class Cut(NamedTuple):
    """Where the budget first cut in.

    Attributes:
        place: how many tokens were written before.
        refused: the next token without the budget; or `UNKNOWN`.
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
            not requested.
        token_logprobs: the same for each token; empty if not requested.
        guessed: whether each token is an accepted draft.
        likeliest: at each token (id, log-probability) of the model's likeliest ones, best first.
        decided: the values that were decided as wholes, in order.
        done: whether it has ended.
        cut: where the budget first refused the drawn token; None: nowhere.
        reason: "end" (an EOS token, or the constraint allows nothing more), "length" (the budget cut in, or
            no token is left), "cancelled" or "error".
        error: why it ended, for the reason "error".
        report: on speculation.
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

    def shorten(self, count: int) -> None:
        """Takes back all tokens but the first `count`."""
        if count >= len(self.tokens):
            return
        self.logprob -= sum(self.token_logprobs[count:])
        for each in (self.tokens, self.token_logprobs, self.guessed, self.likeliest):
            del each[count:]
        self.decided = [one for one in self.decided if one.place < count]
        self.state, self.cut = None, None if self.cut is None or self.cut.place >= count else self.cut
