"""Texts that a type's own validators accept, drawn without asking the model for everything again.

Purpose: `Local` writes a batch as always; what validators refuse is drawn again here.
Distribution: with a temperature, exactly that of `Local` given that the validators accept. The first text of
a row is a draw of `Local`, kept if it is valid; else one is drawn from `Local`'s distribution given that it
is valid, by rejection that learns (`aligned.cars` over the masked distribution): a refused prefix is never
entered again, and the mass that it had is taken from every prefix of it. Both together are that distribution.
Greedy: the text that is written by taking the token of most mass left, of equals the smallest id, the masses
being the masked distribution's at temperature 1 without what was refused; for a row that is valid at once it
is the greedy text.
Invariant: draws depend on the row's seed and on the rows of its prompt before it, nothing else.
Complexity: a pass of the model for each prefix that was not met before; a walk through known ones asks
nothing.
Rejected: drawing the refused field alone again: texts then come too often whose beginnings rarely lead to a
valid field. Closing the way of a refused value token by token, as a mask would: a beginning that can hardly
be completed keeps all its mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from tokenform.decoding.aligned.cars import CARS, ExactWalks
from tokenform.decoding.aligned.checked import Checked, has_validators
from tokenform.decoding.aligned.descent import descend
from tokenform.decoding.aligned.explore import EVERY, explore
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import LanguageModel, Tokens
from tokenform.decoding.aligned.results import LogZ, sharper
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.keyed_random import stream_seed
from tokenform.decoding.local_distribution import LocalDistribution
from tokenform.decoding.results import Estimates, Result
from tokenform.decoding.row import Row
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.request import Output
from tokenform.engine import Grammar, TokenAutomaton, Vocabulary
from tokenform.errors import InvalidType, TokenformError
from tokenform.frontends import Condition

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator

TRIES = 1000
EXPLORED = 8  # prefixes that are visited beside each walk


class Redraw:
    """Valid texts for the rows of one prompt and one grammar, in their order.

    Args:
        grammar: stands for the type.
        model: the model's own distributions.
        sampler: how rows are drawn.
        automaton: the grammar over the model's tokens.
        tries: most walks for a text.
    """

    def __init__(
        self,
        grammar: Grammar,
        model: LanguageModel,
        sampler: MaskedSampler,
        automaton: TokenAutomaton,
        tries: int,
    ) -> None:
        self._grammar, self._model, self._tries = grammar, model, tries
        self._greedy = sampler.local.temperature == 0
        local = Local() if self._greedy else sampler.local
        self._sampler = MaskedSampler(
            local, sampler.size, sorted(sampler.eos), sampler.transforms, sampler.mixture, sampler.penalties
        )
        self._checked = Checked(grammar, cast(Vocabulary, automaton.vocabulary))
        self._walks: ExactWalks | None = None
        self.rows = self.valid = 0  # texts of the batch itself

    def draw(self, row: Row) -> InvalidType | None:
        """Puts a valid text in the place of the row's; the last refusal where none was found."""
        walks = self._walks
        if walks is None:
            model = LocalDistribution(self._model, self._sampler, row)
            problem = Problem(model, self._checked, tuple(row.prompt))
            seed = (stream_seed(row.seed, row.prompt) << 64) | row.number
            walks = self._walks = ExactWalks(CARS(explore=EXPLORED, lookahead=1), problem, seed)
        forwards = walks.problem.counts().forwards
        tokens = None
        for number in range(self._tries):
            if self._greedy and number % EVERY == EVERY - 1:  # the first walks go where greedy decoding goes
                explore(walks.problem, walks.trie, EXPLORED * EVERY)
            if self._greedy:
                tokens = descend(walks.problem, walks.trie, None, reject=True).tokens
            else:
                draw = walks.walk()
                tokens = None if draw is None else draw.tokens
            if tokens is not None or walks.hopeless:
                break
        if tokens is not None:
            self._take(row, tokens)
        row.output.report.forwards += walks.problem.counts().forwards - forwards
        return None if tokens is not None else self._failure(walks)

    def _take(self, row: Row, tokens: Tokens) -> None:
        prompt = tuple(row.prompt)
        told = tokens if row.logprobs else ()
        prefixes = [prompt + tokens[:place] for place in range(len(told))]
        distributions = self._model.logprobs(prefixes) if prefixes else ()
        logprobs = [
            float(distribution[token]) for distribution, token in zip(distributions, told, strict=True)
        ]
        row.output = Output(
            list(tokens),
            logprob=math.fsum(logprobs) if row.logprobs else math.nan,
            token_logprobs=logprobs,
            guessed=[False] * len(tokens),
            done=True,
            reason="end",
            report=row.output.report,
        )

    def _failure(self, walks: ExactWalks) -> InvalidType:
        text, cause = self._checked.refused or ("", None)
        why = (
            "no text that the masks allow is left"
            if walks.hopeless
            else f"none of {self._tries} tries passed"
        )
        share = self.share
        likely = (
            ""
            if share is None or walks.hopeless
            else f" (about {math.exp(share.value):.1g} of all are valid)"
        )
        error = InvalidType(
            f"the validators of {self._grammar.shapes.label} refuse what was tried: {why}{likely}. "
            "The last refusal: " + ("none of them is known" if cause is None else str(cause)),
            pointer=None if cause is None else cause.pointer,
        )
        error.text, error.partial = text, None if cause is None else cause.partial
        return error

    @property
    def share(self) -> LogZ | None:
        """Estimate of the share of valid texts among those that the masks allow."""
        uppers = [] if self._walks is None else self._walks.uppers
        if self._greedy:
            if self._walks is None or self._walks.trie.root is None:
                return None
            bounds = self._walks.trie.certificate()
            return sharper(LogZ(bounds.log_upper, math.inf, 1), bounds)
        hits = self.valid + (0 if self._walks is None else self._walks.hits)
        if not self.rows or not hits:
            return None if self._walks is None else LogZ(self._walks.log_upper, math.inf, self.rows)
        tried = self.rows + math.fsum(math.exp(-upper) for upper in uppers if upper > -math.inf)
        value = math.log(hits / tried)
        chances = [min(math.exp(value - upper), 1.0) for upper in [0.0] * self.rows + uppers]
        error = math.sqrt(sum(c * (1 - c) for c in chances)) / hits
        return LogZ(value, max(error, 1 / (len(chances) + 1)), len(chances))

    def estimates(self) -> Estimates | None:
        """What is known about the distribution of the rows."""
        share = self.share
        if share is None:
            return None
        counts = None if self._walks is None else self._walks.problem.counts()
        what = (
            "the greedy text that validators leave"
            if self._greedy
            else "Local's distribution given that validators accept"
        )
        return Estimates(
            target=what,
            exact=not self._greedy,
            log_z=share.value,
            log_z_error=share.error,
            distance=None if self._greedy else 0.0,
            ess=float(self.rows),
            forwards=0 if counts is None else counts.forwards,
            evaluations=0 if counts is None else counts.evaluations,
            attempts=self.rows + (0 if self._walks is None else self._walks.attempt),
        )


def settled(
    generator: Generator,
    groups: Sequence[Sequence[Row | TokenformError]],
    grammars: Sequence[Grammar | Condition],
    chosen: Local,
    stop: str | Sequence[str],
    on_invalid: str,
    max_tries: int,
) -> list[list[Result | TokenformError]]:
    """Results or errors of all rows, those of a prompt together; the arguments are those of `sample`."""
    every: list[list[Result | TokenformError]] = []
    model: LanguageModel | None = None
    for group, grammar in zip(groups, grammars, strict=True):
        written = [_read(generator, row, grammar, stop) for row in group]
        first = next((row for row in group if isinstance(row, Row)), None)
        mixed = generator.mixing.mixture is not None  # its second model is not at hand here
        if on_invalid == "resample" and first is not None and not mixed and has_validators(grammar):
            assert isinstance(grammar, Grammar)
            model = model or generator.language_model()
            sampler = MaskedSampler(
                chosen,
                generator.vocabulary.size,
                generator.vocabulary.eos,
                generator.transforms,
                penalties=generator.mixing.penalties,
            )
            redraw = Redraw(grammar, model, sampler, first.automaton, max_tries)
            _redrawn(group, written, redraw, partial(generator.result, grammar=grammar))
        if on_invalid != "return":
            written = [(one.error or one) if isinstance(one, Result) else one for one in written]
        every.append(written)
    return every


def _read(
    generator: Generator, row: Row | TokenformError, grammar: Grammar | Condition, stop: str | Sequence[str]
) -> Result | TokenformError:
    if not isinstance(row, Row):
        return row
    if row.output.error is not None:
        return row.output.error
    try:
        return generator.result(row, grammar, stop, refused=True)
    except TokenformError as error:  # of this text alone
        return error


def _redrawn(
    group: Sequence[Row | TokenformError],
    results: list[Result | TokenformError],
    redraw: Redraw,
    read: Callable[[Row], Result],
) -> None:
    """Puts valid results in the place of refused ones, and what is known about their distribution into
    all."""
    written = [one for one in results if isinstance(one, Result)]
    redraw.rows, redraw.valid = len(written), sum(one.error is None for one in written)
    for place, row in enumerate(group):
        one = results[place]
        if isinstance(row, Row) and isinstance(one, Result) and one.error is not None:
            results[place] = redraw.draw(row) or read(row)
    estimates = redraw.estimates()
    for one in results:
        if isinstance(one, Result):
            one.estimates = estimates
