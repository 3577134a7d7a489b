"""One sampling problem: a model, a prompt, transforms, a constraint and a budget, as the samplers see it.

Purpose: the common work of all samplers: the measure f(a|u) of a step, folded EOS ids, the budget, caching
and chunking of model calls, fast-forwarding over forced tokens.

The target is  π(x) ∝ f(x)·Φ(x)·1[x ∈ L, |x| ≤ T]  over *token sequences* x:
  f(x) = Π p(a|u)^α (α = `power`, 1 unless asked) with p the distribution after temperature and truncation;
  all EOS ids count as one ending, so p(EOS|u) is their sum; Φ = `potential`; T = `max_tokens`, EOS excluded.
String-level targets (one, canonical tokenisation a text) are the same with `Canonical` among the constraints.

Invariants: a distribution depends on (prefix tokens) alone, never on batch, chunk or order; the ids that the
distance bound removes are ones that no accepted text of at most T tokens can go through, so the target is
untouched.

Rejected: letting forced tokens skip the model.  They must still multiply f, or weights are wrong;
fast-forward only asks for their distributions in the call that computes the distribution before them.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tokenform.decoding.aligned.protocols import (
    Bools,
    Constraint,
    Float,
    Ids,
    LanguageModel,
    Potential,
    State,
    Tokens,
)
from tokenform.decoding.aligned.results import Counts, Draw, log_sum
from tokenform.decoding.recent import Recent
from tokenform.decoding.samplers.local import Local
from tokenform.errors import ModelError, OptionError

FORCED_CHAIN = 64  # longest run of forced tokens asked for in one model call
NEAR = 256  # masks up to this size are filtered by distance when the budget is this near
MASKS_KEPT = 1024  # states whose ids are kept


class Prefix(NamedTuple):
    """A prefix of generated tokens (no prompt, no EOS) and the constraint's state after it."""

    tokens: Tokens
    state: State


class StepDistribution(NamedTuple):
    """The measure of one step on the tokens that may follow: sorted ids int64 `[k]`, log f float64 `[k]`."""

    ids: Ids
    logf: Float

    @property
    def log_mass(self) -> float:
        """log Σ f."""
        return log_sum(self.logf)


@dataclass
class Problem:
    """See the module's header.

    Args:
        model: next-token distributions; the prefix it gets is `prompt` + generated tokens.
        constraint: the set L.
        prompt: token ids before the first generated one.
        max_tokens: T, or None for no budget.
        transforms: temperature and truncation, which act before the constraint.
        power: α > 0.
        potential: Φ, or None.
        batch_size: most prefixes a model call is given; None for no bound.
        fast_forward: ask in one call for the distributions along the bytes that must follow, as mostly
            written.
        cache_bytes: bound on the memory of kept distributions.
    """

    model: LanguageModel
    constraint: Constraint
    prompt: Tokens = ()
    max_tokens: int | None = None
    transforms: Local = field(default_factory=Local)
    power: float = 1.0
    potential: Potential | None = None
    batch_size: int | None = None
    fast_forward: bool = True
    cache_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        self.prompt = tuple(int(token) for token in self.prompt)
        if self.max_tokens is not None and self.max_tokens < 0:
            raise OptionError(
                f"max_tokens is {self.max_tokens}; it must be at least 0, or None for no budget"
            )
        if not self.power > 0:
            raise OptionError(f"power is {self.power}; it must be above 0")
        if not self.model.eos:
            raise ModelError("the model has no EOS id, so no text can end; give one by eos=[...]")
        self.eos: int = self.model.eos[0]
        self._distributions: OrderedDict[Tokens, Float] = OrderedDict()
        self._distribution_bytes = 0
        self._masks: Recent[State, Ids] = Recent(MASKS_KEPT)
        self._near: Recent[tuple[State, int], Ids] = Recent(MASKS_KEPT)
        self._everything: tuple[Ids, Ids] | None = None

    # ---- prefixes --------------------------------------------------------------------------------

    def root(self) -> Prefix:
        """The empty prefix."""
        return Prefix((), self.constraint.start)

    def extend(self, prefix: Prefix, token: int) -> Prefix:
        """The prefix with one more token, which must be allowed and not EOS."""
        return Prefix((*prefix.tokens, int(token)), self.constraint.advance(prefix.state, int(token)))

    @property
    def widest(self) -> int | None:
        """Most prefixes that the model is best asked for at once, where it says so."""
        return getattr(self.model, "widest", None)

    # ---- the model's side ------------------------------------------------------------------------

    def log_measure(self, prefixes: Sequence[Prefix]) -> list[Float]:
        """log f(·|u) for each prefix: float64 `[V]` each; EOS ids other than `self.eos` are -inf."""
        missing_prefixes: dict[Tokens, None] = {}
        for prefix in prefixes:
            if prefix.tokens in self._distributions or prefix.tokens in missing_prefixes:
                continue
            missing_prefixes[prefix.tokens] = None
            if self.fast_forward:
                for tokens in self._forced_chain(prefix):
                    missing_prefixes.setdefault(tokens, None)
        fresh: dict[Tokens, Float] = {}
        missing = [tokens for tokens in missing_prefixes if tokens not in self._distributions]
        chunk = self.batch_size or self.widest or max(len(missing), 1)
        for first in range(0, len(missing), chunk):
            part = missing[first : first + chunk]
            logp = self._fold(
                np.asarray(self.model.logprobs([self.prompt + tokens for tokens in part]), dtype=np.float64)
            )
            fresh.update(zip(part, self.power * logp if self.power != 1.0 else logp, strict=True))
        out = []
        for prefix in prefixes:
            if prefix.tokens in self._distributions:
                self._distributions.move_to_end(prefix.tokens)
            out.append(fresh[prefix.tokens] if prefix.tokens in fresh else self._distributions[prefix.tokens])
        for tokens, distribution in fresh.items():
            distribution.setflags(write=False)
            self._distributions[tokens] = distribution
            self._distribution_bytes += distribution.nbytes
        while self._distribution_bytes > self.cache_bytes and len(self._distributions) > 1:
            self._distribution_bytes -= self._distributions.popitem(last=False)[1].nbytes
        return out

    def _fold(self, logp: Float) -> Float:
        logp = self.transforms.before_masks(logp)
        others = [token for token in self.model.eos[1:] if token != self.eos]
        if others:
            logp[:, self.eos] = np.logaddexp.reduce(logp[:, [self.eos, *others]], axis=1)
            logp[:, others] = -np.inf
        return logp

    def _forced_chain(self, prefix: Prefix) -> list[Tokens]:
        """Prefixes below this one that are likely to be asked for next: along the bytes that must follow."""
        chain: list[Tokens] = []
        longest = FORCED_CHAIN
        if self.max_tokens is not None:
            longest = min(longest, self.max_tokens - len(prefix.tokens))
        tells = self.constraint.exact or hasattr(self.constraint, "forced")
        while tells and len(chain) < longest:
            forced = self._forced(prefix)[: longest - len(chain)]
            if not forced:
                break
            for token in forced:
                prefix = self.extend(prefix, token)
                chain.append(prefix.tokens)
        return chain

    def _forced(self, prefix: Prefix) -> list[int]:
        tell = getattr(self.constraint, "forced", None)
        if tell is not None and (spelled := tell(prefix.state)) is not None:
            return list(spelled)
        ids = self.candidates([prefix])[0]
        return [int(ids[0])] if len(ids) == 1 and ids[0] != self.eos else []

    # ---- the constraint's side -------------------------------------------------------------------

    def masks(self, prefixes: Sequence[Prefix]) -> list[Ids]:
        """Sorted ids that may follow, EOS included; a predicate is asked about every candidate."""
        everything = self.candidates(prefixes)
        if self.constraint.exact:
            return everything
        return [
            ids[self.check([prefix] * len(ids), ids)]
            for prefix, ids in zip(prefixes, everything, strict=True)
        ]

    def check(self, prefixes: Sequence[Prefix], tokens: Sequence[int] | Ids) -> Bools:
        """Whether each token, EOS included, may follow its prefix within the budget."""
        ids = np.asarray(tokens, dtype=np.int64)
        ending = ids == self.eos
        out = np.zeros(len(ids), dtype=np.bool_)
        if ending.any():
            out[ending] = self.constraint.accepts([prefixes[i].state for i in np.flatnonzero(ending)])
        within = [
            i
            for i in np.flatnonzero(~ending)
            if self.max_tokens is None or len(prefixes[i].tokens) < self.max_tokens
        ]
        if within:
            out[within] = self.constraint.check(
                [prefixes[i].state for i in within], [int(ids[i]) for i in within]
            )
        return out

    def distributions(self, prefixes: Sequence[Prefix], *, masked: bool = True) -> list[StepDistribution]:
        """f restricted to the masks (`masked`) or to the candidates; tokens of measure 0 are left out."""
        sets = self.masks(prefixes) if masked else self.candidates(prefixes)
        measures = self.log_measure(prefixes)
        return [self.distribution_of(ids, logf) for ids, logf in zip(sets, measures, strict=True)]

    def full_distributions(self, prefixes: Sequence[Prefix]) -> list[StepDistribution]:
        """f over every token of measure above 0, forbidden ones included."""
        everything = np.arange(self.model.vocab_size, dtype=np.int64)
        return [self.distribution_of(everything, logf) for logf in self.log_measure(prefixes)]

    @staticmethod
    def distribution_of(ids: Ids, logf: Float) -> StepDistribution:
        """f, given on the whole vocabulary, restricted to these ids; tokens of measure 0 are left out."""
        part = logf.take(ids)
        if len(part) == 0 or part.min() > -np.inf:
            return StepDistribution(ids, part)
        alive = part > -np.inf
        return StepDistribution(ids[alive], part[alive])

    def candidates(self, prefixes: Sequence[Prefix]) -> list[Ids]:
        """Sorted ids, EOS included, outside of which nothing is allowed; exact if the constraint is."""
        sets: dict[State, Ids] = {}
        missing: dict[State, None] = {}
        for prefix in prefixes:
            if (known := self._masks.get(prefix.state)) is not None:
                sets[prefix.state] = known
            else:
                missing[prefix.state] = None
        if missing:
            states = list(missing)
            # a predicate's verdict on ending costs a call, so there EOS stays a candidate until it is checked
            ends = (
                self.constraint.accepts(states) if self.constraint.exact else np.ones(len(states), np.bool_)
            )
            for state, ids, end in zip(states, self.constraint.candidates(states), ends, strict=True):
                sets[state] = self._masks[state] = (
                    self._with_eos(ids) if end else np.asarray(ids, dtype=np.int64)
                )
        return [self._within_budget(prefix, sets[prefix.state]) for prefix in prefixes]

    def _with_eos(self, ids: Ids) -> Ids:
        # predicates hand out one and the same array for every state: copy it once
        if self._everything is None or self._everything[0] is not ids:
            widened = np.insert(
                np.asarray(ids, dtype=np.int64), int(np.searchsorted(ids, self.eos)), self.eos
            )
            if self.constraint.exact:
                return widened
            self._everything = (ids, widened)
        return self._everything[1]

    def _within_budget(self, prefix: Prefix, ids: Ids) -> Ids:
        """The ids through which a text of at most T tokens may still be reached (all of those, perhaps
        more).
        """
        if self.max_tokens is None:
            return ids
        remaining = self.max_tokens - len(prefix.tokens)
        least = self.constraint.distance(prefix.state, max(remaining, 0))
        if remaining <= 0 or least > remaining:
            return ids[ids == self.eos] if least == 0 and remaining == 0 else ids[:0]
        # a large mask costs a walk of the vocabulary: only where nothing but the shortest ends are left
        if not self.constraint.exact or remaining > least + (NEAR if len(ids) <= NEAR else 0):
            return ids
        reachable = self._near.get((prefix.state, remaining))
        if reachable is None:
            ending = ids == self.eos
            reachable = self.constraint.within(prefix.state, ids[~ending], remaining)
            reachable = self._near[prefix.state, remaining] = (
                self._with_eos(reachable) if ending.any() else reachable
            )
        return reachable

    # ---- finished texts --------------------------------------------------------------------------

    def bytes_of(self, tokens: Tokens) -> bytes:
        """The bytes of a token sequence."""
        return b"".join(self.constraint.token_bytes[token] for token in tokens)

    def draw(self, tokens: Tokens, logf: float, log_weight: float = 0.0) -> Draw:
        """A finished text as a result; `logf` is the log measure of tokens and EOS."""
        text = self.bytes_of(tokens).decode("utf-8", errors="replace")
        return Draw(text, tokens, logf / self.power, log_weight)

    def log_potential(self, finished: Sequence[Tokens]) -> Float:
        """log Φ of finished texts, zeros without a potential."""
        if self.potential is None:
            return np.zeros(len(finished))
        return np.asarray(
            self.potential.complete([self.bytes_of(tokens) for tokens in finished]), dtype=np.float64
        )

    def counts(self) -> Counts:
        """The present readings of the model's and the constraint's counters."""
        return Counts(self.model.forwards, self.model.rows, self.constraint.evaluations)

    @property
    def target(self) -> str:
        """The distribution aimed at, in words."""
        measure = "P(x)" if self.power == 1.0 else f"P(x)^{self.power:g}"
        factor = "" if self.potential is None else "·Φ(x)"
        budget = "" if self.max_tokens is None else f", |x| ≤ {self.max_tokens} tokens"
        over = (
            "texts (canonical tokens)" if getattr(self.constraint, "canonical", False) else "token sequences"
        )
        return f"{measure}{factor} given x ∈ L{budget}, over {over}"

    @cached_property
    def fingerprint(self) -> str:
        """Names (model, prompt, transforms, grammar, budget, power): what learned tries depend on."""
        t = self.transforms
        parts = [
            getattr(self.model, "fingerprint", type(self.model).__name__),
            self.model.vocab_size,
            list(self.model.eos),
            list(self.prompt),
            self.max_tokens,
            self.power,
            [t.temperature, t.top_k, t.top_p, t.min_p],
            self.constraint.fingerprint,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
