"""Beam search under a constraint: the likeliest texts, not draws.

  plain        the `width` best prefixes are extended side by side; ends when `patience`·width texts are
               finished, or when no open prefix can beat them (Kasai et al. 2022 for patience)
  best-first   the prefix with the highest upper bound of its texts' scores is extended next, at most `width`
               of each length (Meister et al. 2020); it stops as soon as the n best are certain, and so opens
               fewer prefixes. `width=None` drops the limit: then the result is the likeliest text of all,
               provably
  diverse      `groups` of width/groups beams; a token that earlier groups took at this step costs
               `diversity` in the choice, not in the score (Vijayakumar et al. 2016)
  phrases      `include=[...]`: texts must contain these; the beam's places are shared among banks of
               prefixes that have equally many bytes of phrases in place (dynamic beam allocation, Post &
               Vilar 2018)

Score: log f(x) / ((5 + T)/6)^length_penalty, T tokens, EOS included (Wu et al. 2016); 0 is the plain
log-probability.  A potential adds log Φ: of an unfinished text its `prefix` score, which `complete` replaces
at the end (Khalifa et al. 2023, steps that a discriminator scores).
Invariants: every result is accepted by the constraint and its logprob is the model's own; ties go to the
prefix that was found first; deterministic, no seed.
Complexity: one row a live prefix a step.  Rejected: pruning by a fixed threshold of score, which depends on
the model's temperature and returns nothing at all when it is wrong.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from typing_extensions import Unpack

from tokenform.decoding.aligned.best_first import Hypothesis, Queue
from tokenform.decoding.aligned.phrases import Phrases
from tokenform.decoding.aligned.problem import Problem, StepDistribution
from tokenform.decoding.aligned.results import Sample
from tokenform.decoding.aligned.sampler import AlignedSampler, Common
from tokenform.errors import OptionError, SamplingError

JUDGED = 4  # times the share of places: next tokens of a prefix that a potential is asked about
FRONTIER = 16  # prefixes that best-first search extends in one batch


class Beam(AlignedSampler):
    """Beam search: the likeliest texts under the constraint, no draws.

    `n` texts, best first.  With `best_first=True` and `width=None` they are the likeliest of all, provably.

    Example:
        >>> tf.generate("The order has been paid.", choices=["new", "paid"], sampler=tf.Beam(4)).text
        'paid'

    Args:
        width: beams; None (best-first only) for an exact search.
        best_first, groups, diversity, patience, length_penalty, include: as above.
        max_width: a search that ends with too few texts (phrases or predicates that no longer fit) is
            repeated with twice the width, up to this one.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    empty = True  # whether the empty text is an answer

    def __init__(
        self,
        width: int | None = 4,
        *,
        best_first: bool = False,
        groups: int = 1,
        diversity: float = 0.5,
        patience: float = 1.0,
        length_penalty: float = 0.0,
        include: tuple[str, ...] | list[str] = (),
        max_width: int = 1024,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        if width is None and not best_first:
            raise OptionError("width=None needs best_first=True; give a width")
        if width is not None and (width < 1 or groups < 1 or width % groups):
            raise OptionError(
                f"width is {width} and groups {groups}; the width must be a positive multiple of the groups"
            )
        if patience <= 0 or diversity < 0 or length_penalty < 0:
            raise OptionError("patience must be above 0, diversity and length_penalty at least 0")
        if best_first and (groups > 1 or include):
            raise OptionError("best-first search takes no groups and no include; leave one of them out")
        if best_first and self.potential is not None and self.potential.log_bound is None:
            raise OptionError("best-first search needs a potential's upper bound; give one by log_bound=")
        self.width, self.best_first, self.groups = width, best_first, groups
        self.diversity, self.patience, self.length_penalty = diversity, patience, length_penalty
        self.phrases, self.max_width = Phrases(include), max_width

    def sample(self, problem: Problem, n: int = 1, *, seed: int | None = None) -> Sample:
        """The n best texts found, best first; `seed` plays no part."""
        before = problem.counts()
        hypotheses = (
            self._by_score(problem, n) if self.best_first else self._by_step(problem, n, self.width or 1)
        )
        wider = (self.width or 1) * 2
        while len(hypotheses) < n and not self.best_first and wider <= self.max_width:
            # every place went to prefixes after which the phrases, or a predicate, no longer fit
            hypotheses = self._by_step(problem, n, wider)
            wider *= 2
        if len(hypotheses) < n:
            raise SamplingError(
                f"the search found {len(hypotheses)} texts, {n} were asked for; "
                "use a larger width or max_tokens"
            )
        hypotheses.sort(key=lambda h: -self.score(h))
        draws = [problem.draw(h.prefix.tokens, h.logf) for h in hypotheses[:n]]
        sample = Sample(
            draws,
            f"the likeliest texts: beam search of {self.width or 'unbounded'} width over {problem.target}",
        )
        sample.exact = self.width is None
        sample.counts = problem.counts() - before
        sample.counts.tokens = sum(h.length for h in hypotheses)
        return sample

    def score(self, hypothesis: Hypothesis) -> float:
        """What hypotheses are ranked by."""
        penalty = ((5 + max(hypothesis.length, 1)) / 6) ** self.length_penalty
        return float(hypothesis.logf / penalty) + hypothesis.score

    # ---- side by side ----------------------------------------------------------------------------

    def _by_step(self, problem: Problem, n: int, width: int) -> list[Hypothesis]:
        share = width // self.groups
        beams = [[Hypothesis(problem.root(), 0.0, self.phrases.start)] for _ in range(self.groups)]
        finished: list[list[Hypothesis]] = [[] for _ in range(self.groups)]
        while any(beams):
            prefixes = [h.prefix for beam in beams for h in beam]
            distributions = iter(problem.distributions(prefixes))
            banks: dict[int, int] = {}
            for g, beam in enumerate(beams):
                fresh = [
                    c for h in beam for c in self._successors(problem, h, next(distributions), share, banks)
                ]
                kept = self._allocate(_judged(problem, fresh), share)
                for _, last in kept:
                    banks[last] = banks.get(last, 0) + 1
                finished[g] += [h for h, _ in kept if h.done]
                beams[g] = [h for h, _ in kept if not h.done]
                if self._is_decided(finished[g], beams[g], share, -(-n // self.groups)):
                    beams[g] = []
        return [h for group in finished for h in group]

    def _is_decided(
        self, finished: list[Hypothesis], live: list[Hypothesis], share: int, needed: int
    ) -> bool:
        """Whether a group may stop: enough texts by its patience, or none of the open prefixes can still beat
        the best.
        """
        if len(finished) < needed:
            return False
        if len(finished) >= self.patience * share:
            return True
        if self.length_penalty or self.potential is not None:  # an open prefix may still rise
            return False
        worst = sorted((self.score(h) for h in finished), reverse=True)[needed - 1]
        return all(self.score(h) <= worst for h in live)

    def _successors(
        self,
        problem: Problem,
        hypothesis: Hypothesis,
        distribution: StepDistribution,
        share: int,
        taken: dict[int, int],
    ) -> list[tuple[float, Hypothesis, int]]:
        """Candidates (rank, hypothesis, its last token): the best few, and those that advance a phrase."""
        fines = (
            np.array([self.diversity * taken.get(int(token), 0) for token in distribution.ids])
            if taken and self.groups > 1
            else 0.0
        )
        ranks = distribution.logf - fines
        # EOS and phrase tokens may be refused or pushed out, so a few more than the share are looked at
        looked_at = share if problem.potential is None else share * JUDGED
        best = np.argsort(-ranks, kind="stable")[: looked_at + 1]
        chosen = dict.fromkeys(best.tolist())
        if self.phrases.phrases:
            chosen.update(dict.fromkeys(self._advancing(problem, hypothesis, distribution)))
        out = []
        for i in chosen:
            token, logf = int(distribution.ids[i]), hypothesis.logf + float(distribution.logf[i])
            if token == problem.eos:
                if not self.phrases.complete(hypothesis.progress):
                    continue
                child = Hypothesis(hypothesis.prefix, logf, hypothesis.progress, True)
            else:
                progress = self.phrases.feed(hypothesis.progress, problem.constraint.token_bytes[token])
                child = Hypothesis(problem.extend(hypothesis.prefix, token), logf, progress)
            fine = float(distribution.logf[i] - ranks[i])
            out.append((self.score(child) - fine, child, token))
        return out

    def _advancing(
        self, problem: Problem, hypothesis: Hypothesis, distribution: StepDistribution
    ) -> list[int]:
        """For each open phrase the likeliest token that begins what it wants, or holds it whole."""
        out = []
        for rest in self.phrases.missing_bytes(hypothesis.progress):
            best, best_logf = -1, -math.inf
            for i, token in enumerate(distribution.ids.tolist()):
                spelled = problem.constraint.token_bytes[token] if token != problem.eos else b""
                if (
                    spelled
                    and distribution.logf[i] > best_logf
                    and (rest.startswith(spelled) or rest in spelled)
                ):
                    best, best_logf = i, float(distribution.logf[i])
            if best >= 0:
                out.append(best)
        return out

    def _allocate(
        self, candidates: list[tuple[float, Hypothesis, int]], share: int
    ) -> list[tuple[Hypothesis, int]]:
        """The candidates that stay: best first within each bank, the places spread over the banks."""
        banks: dict[int, list[tuple[float, Hypothesis, int]]] = {}
        for candidate in sorted(candidates, key=lambda c: -c[0]):
            banks.setdefault(self.phrases.bank(candidate[1].progress), []).append(candidate)
        allocated: list[tuple[Hypothesis, int]] = []
        queues = [banks[number] for number in sorted(banks, reverse=True)]
        while len(allocated) < share and any(queues):
            for queue in queues:
                if queue and len(allocated) < share:
                    _, hypothesis, token = queue.pop(0)
                    allocated.append((hypothesis, token))
        return allocated

    # ---- by score --------------------------------------------------------------------------------

    def _bound(self, problem: Problem, hypothesis: Hypothesis) -> float:
        """An upper bound of the score of every text that continues the hypothesis; its score if it is
        finished.
        """
        if hypothesis.done:
            return self.score(hypothesis)
        above = 0.0 if problem.potential is None else problem.potential.log_bound or 0.0
        if not self.length_penalty:
            return hypothesis.logf + above
        assert problem.max_tokens is not None
        return float(hypothesis.logf / ((5 + problem.max_tokens + 1) / 6) ** self.length_penalty) + above

    def _by_score(self, problem: Problem, n: int) -> list[Hypothesis]:
        """Opens the prefix of highest bound first, so finished texts come off the queue in their final order.

        A queue entry is the best child not yet taken of an opened prefix; taking it puts the next one in its
        place.
        """
        if self.length_penalty and problem.max_tokens is None:
            raise OptionError(
                "an exact search with a length_penalty needs max_tokens, which bounds the longer texts"
            )
        queue = Queue(problem, partial(self._bound, problem), self.empty)
        opened_at: dict[int, int] = {}
        finished: list[Hypothesis] = []
        while len(finished) < n:
            batch: list[Hypothesis] = []
            # with a width, a prefix's rank among its length counts, and only one at a time keeps the order
            while (
                len(batch) < (FRONTIER if self.width is None else 1)
                and (best := queue.pop(only_open=bool(batch))) is not None
            ):
                if best.done:
                    finished.append(best)
                    if len(finished) == n:
                        return finished
                    continue
                opened_at[best.length] = opened_at.get(best.length, 0) + 1
                if self.width is None or opened_at[best.length] <= self.width:
                    batch.append(best)
            if not batch:
                return finished
            for hypothesis, distribution in zip(
                batch, problem.distributions([h.prefix for h in batch]), strict=True
            ):
                queue.open(hypothesis, distribution)
        return finished


def _judged(
    problem: Problem, candidates: list[tuple[float, Hypothesis, int]]
) -> list[tuple[float, Hypothesis, int]]:
    """The candidates with log Φ, provisional where a text goes on; those that it rules out are left out."""
    if problem.potential is None:
        return candidates
    out = []
    for done, judge in ((False, problem.potential.prefix), (True, problem.potential.complete)):
        some = [candidate for candidate in candidates if candidate[1].done is done]
        scores = judge([problem.bytes_of(h.prefix.tokens) for _, h, _ in some])
        for (rank, hypothesis, token), score in zip(some, scores.tolist(), strict=True):
            if score > -math.inf:
                out.append((rank + score, hypothesis._replace(score=score), token))
    return out
