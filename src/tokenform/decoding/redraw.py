"""Texts that a type's own validators accept, drawn again without repeating the model's passes.

Distribution: with a temperature, exactly that of `Local` given that the validators accept. The first text of
a row is a draw of `Local`, kept if it is valid; else one is drawn from `Local`'s distribution given that it
is valid, by rejection that learns (`aligned.cars` over the masked distribution): a refused prefix is never
entered again, and the mass that it had is taken from every prefix of it.
Greedy: at each step the token with the most mass left, of equals the smallest id.  The masses are those of
the masked distribution at temperature 1, without the refused texts.  A row that is valid at once has the
greedy text.
Invariant: draws depend only on the row's seed and on the rows of its prompt before it; a time limit decides
whether there is a text, never which.
Complexity: a pass of the model for each new prefix; a walk through known ones needs none.
Rejected: drawing the refused field alone again: texts then come too often whose beginnings rarely lead to a
valid field. Closing the way of a refused value token by token, as a mask would: a beginning that can hardly
be completed keeps all its mass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch

from tokenform.decoding.aligned.cars import CARS, ExactWalks
from tokenform.decoding.aligned.checked import Checked
from tokenform.decoding.aligned.descent import Descent
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import Float, LanguageModel, Tokens
from tokenform.decoding.aligned.results import LogZ, sharper
from tokenform.decoding.aligned.walks import EVERY, explore
from tokenform.decoding.aligned.wrapped import WrappedModel
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.keyed_random import stream_seed, uniform
from tokenform.decoding.progress import Progress
from tokenform.decoding.recent import Recent
from tokenform.decoding.results import Estimates, Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.node import Node
from tokenform.decoding.speculative.request import UNKNOWN, Cut, Output
from tokenform.engine import Grammar, State, Vocabulary
from tokenform.errors import InvalidType

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator


EXPLORED = 8  # prefixes that are visited beside each walk
_ADVICE = (
    " Say the rule in the prompt or in the schema; show the model what is wrong (feedback=True); "
    'raise max_tries; or take the text as it is (on_invalid="return").'
)
_STATES = 1 << 14  # states of prefixes that are kept


@dataclass(frozen=True)
class Tries:
    """How often refused texts are written again.

    Attributes:
        most: attempts beside the first.
        until: `time.monotonic()` at which attempts end.
        bar: shows each attempt.
    """

    most: int
    until: float
    bar: Progress

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.until

    def begin(self, number: int) -> None:
        """An attempt begins."""
        self.bar.trying(number, self.most)


class Redraw:
    """Valid texts for the rows of one prompt and one grammar, in their order.

    Args:
        chosen: draws the rows.
        first: the first of the rows.
        written: the texts drawn so far, valid and refused ones.
    """

    def __init__(
        self,
        generator: Generator,
        model: LanguageModel,
        grammar: Grammar,
        chosen: Local,
        first: Row,
        tries: Tries,
        written: Sequence[Result],
    ) -> None:
        self._grammar, self._model, self._tries = grammar, model, tries
        self.rows, self.valid = len(written), sum(one.error is None for one in written)
        self._greedy = chosen.temperature == 0
        sampler = MaskedSampler(
            Local() if self._greedy else chosen,
            generator.vocabulary.size,
            sorted(generator.vocabulary.eos),
            generator.transforms,
            penalties=generator.mixing.penalties,
        )
        self._local = LocalDistribution(model, sampler, first)
        self._checked = Checked(grammar, cast(Vocabulary, first.automaton.vocabulary))
        problem = Problem(self._local, self._checked, tuple(first.prompt))
        seed = (stream_seed(first.seed, first.prompt) << 64) | first.number
        self._walks = ExactWalks(CARS(explore=EXPLORED, lookahead=1), problem, seed)

    def draw(self, row: Row) -> InvalidType | None:
        """Replaces the row's text by a valid one; an error where none was found."""
        walks, number, tokens = self._walks, 0, None
        forwards, began = walks.problem.counts().forwards, time.monotonic()
        while number < self._tries.most and not self._tries.late:
            self._tries.begin(number := number + 1)
            tokens = self._greedy_walk(number) if self._greedy else self._walk()
            if tokens is not None or walks.no_mass_left:
                break
        passes = walks.problem.counts().forwards - forwards
        row.output.report.forwards += passes
        if tokens is None:
            return self._failure(number, passes, time.monotonic() - began)
        self._take(row, tokens)
        return None

    def _walk(self) -> Tokens | None:
        draw = self._walks.walk()
        return None if draw is None else draw.tokens

    def _greedy_walk(self, number: int) -> Tokens | None:
        if number % EVERY == 0:  # the first walks go where greedy decoding goes
            explore(self._walks.problem, self._walks.trie, EXPLORED * EVERY)
        return Descent(self._walks.problem, self._walks.trie, reject=True).walk(None).tokens

    def _take(self, row: Row, tokens: Tokens) -> None:
        prompt = tuple(row.prompt)
        scored = tokens if row.logprobs else ()
        prefixes = [prompt + tokens[:place] for place in range(len(scored))]
        distributions = self._model.logprobs(prefixes) if prefixes else ()
        logprobs = [
            float(distribution[token]) for distribution, token in zip(distributions, scored, strict=True)
        ]
        cut = self._cut(row, tokens)
        row.output = Output(
            list(tokens),
            logprob=math.fsum(logprobs) if row.logprobs else math.nan,
            token_logprobs=logprobs,
            guessed=[False] * len(tokens),
            cut=cut,
            done=True,
            reason="end" if cut is None else "length",
            report=row.output.report,
        )

    def _cut(self, row: Row, tokens: Tokens) -> Cut | None:
        """Where the budget cut in: at a token with the probability that it refuses there (greedy: at least
        half)."""
        prompt, key = tuple(row.prompt), stream_seed(row.seed, row.prompt)
        for position in range(len(tokens) + 1):
            mass = self._local.refused.get(prompt + tokens[:position], 0.0)
            coin = uniform(key, row.number, len(prompt) + position, stream=1)
            if mass >= 0.5 if self._greedy else coin < mass:
                return Cut(position, UNKNOWN)
        return None

    def _failure(self, tries: int, passes: int, seconds: float) -> InvalidType:
        text, cause = self._checked.refused or ("", None)
        if self._walks.no_mass_left:
            result = "no text that the masks allow is left"
        elif self._tries.late and tries < self._tries.most:
            result = f"none of {tries} tries passed within max_seconds"
        else:
            result = f"none of {tries} tries passed"
        advice = "" if self._walks.no_mass_left else _ADVICE
        error = InvalidType(
            f"the validators of {self._grammar.shapes.label} refuse what was tried: {result}"
            f"{self._share_text}"
            f" ({passes} forward passes, {seconds:.1f} s). The last text: {text[:200]!r}."
            f" The last refusal: {'none of them is known' if cause is None else cause}{advice}",
            pointer=None if cause is None else cause.pointer,
        )
        error.text, error.partial = text, None if cause is None else cause.partial
        return error

    @property
    def _share_text(self) -> str:
        """What is known of the share of valid texts."""
        if self._walks.no_mass_left:
            return ""
        most, hits = math.exp(self._walks.log_upper), self.valid + self._walks.hits
        if self._greedy:
            return f"; at most {most:.2g} of the model's mass is not refused yet"
        if hits:
            return f"; about {math.exp(self.share.value):.1g} of all texts are valid"
        share = min(most, 3 / self._independent_draws)
        return f"; at most {share:.2g} of all texts are valid, with 95 % confidence"

    @property
    def _independent_draws(self) -> float:
        """How many independent draws of `Local` show as much.  A walk that can't enter refused texts counts
        for all the draws that it saves."""
        return self.rows + math.fsum(math.exp(-upper) for upper in self._walks.uppers if upper > -math.inf)

    @property
    def share(self) -> LogZ:
        """Estimated share of valid texts among those that the masks allow; its bound where no valid text is
        known."""
        uppers, hits = self._walks.uppers, self.valid + self._walks.hits
        if self._greedy:
            bounds = self._walks.trie.certificate()
            return sharper(LogZ(bounds.log_upper, math.inf, 1), bounds)
        if not hits:
            return LogZ(self._walks.log_upper, math.inf, self.rows)
        value = math.log(hits / self._independent_draws)
        chances = [min(math.exp(value - upper), 1.0) for upper in [0.0] * self.rows + uppers]
        error = math.sqrt(sum(c * (1 - c) for c in chances)) / hits
        return LogZ(value, max(error, 1 / (len(chances) + 1)), len(chances))

    def estimates(self) -> Estimates | None:
        """What is known about the distribution of the rows."""
        if self._greedy and self._walks.trie.root is None:
            return None
        share, counts = self.share, self._walks.problem.counts()
        return Estimates(
            target="the greedy text that validators leave"
            if self._greedy
            else "Local's distribution given that validators accept",
            exact=not self._greedy,
            log_z=share.value,
            log_z_error=share.error,
            distance=None if self._greedy else 0.0,
            ess=float(self.rows),
            forwards=counts.forwards,
            evaluations=counts.evaluations,
            attempts=self.rows + self._walks.attempt,
        )


class LocalDistribution(WrappedModel):
    """`LanguageModel` whose distribution is `Local`'s: masked, within the budget, truncated.

    Args:
        model: the distributions of the model itself.
        sampler: draws from them.
        row: prompt, constraint and budget.

    `refused` has, for each evaluated prefix, the part of the distribution that the budget refuses.
    """

    def __init__(self, model: LanguageModel, sampler: MaskedSampler, row: Row) -> None:
        super().__init__(model)
        self._sampler, self._row = sampler, row
        self.fingerprint = f"local {sampler.local}"
        self._states: Recent[Tokens, State] = Recent(_STATES)
        self.refused: Recent[Tokens, float] = Recent(_STATES)

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        model_logprobs, row = torch.from_numpy(super().logprobs(prefixes)), self._row
        masked = torch.empty_like(model_logprobs, dtype=torch.float64)
        for place, prefix in enumerate(prefixes):
            written = tuple(prefix[len(row.prompt) :])
            state, remaining = self._state(written), row.max_tokens - len(written)
            shortest = row.automaton.distance(state, remaining)
            if shortest is None or shortest > remaining:  # asked for ahead of its turn, and never reached
                masked[place] = 0.0
                continue
            node = Node(prefix, (), len(row.prompt), row.automaton, state, remaining)
            masked[place], refused = self._sampler.distribution([model_logprobs[place]], node)
            if refused > 0:
                self.refused[tuple(prefix)] = refused
        return masked.log_().numpy()

    def _state(self, written: Tokens) -> State:
        length = len(written)
        while length and written[:length] not in self._states:
            length -= 1
        state = self._states[written[:length]] if length else self._row.automaton.start
        for end in range(length, len(written)):
            state = self._states[written[: end + 1]] = self._row.automaton.advance(state, written[end])
        return state
