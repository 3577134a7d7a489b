"""The passes of a call: the logits of canvases, and the tokens that are committed after each pass.

Purpose: each pass of the model gives logits for all open positions of a canvas.  A whole filling that the
constraint accepts is drawn from them (greedy: the likeliest), a policy chooses the positions at which its
tokens are committed, and the next pass sees these.
Invariant: the committed tokens are part of one accepted filling, so the canvas can always be filled and every
text is valid, at every temperature and under every policy.
Law of a pass: the product of the positions' distributions given that the filling is accepted, exactly
(`tf.Canvas.sample`).
Weights: where a policy's choice does not depend on the tokens drawn (`FillPolicy.blind`), each text has one
order in which it can be written, and without the constraint the model writes it with the probability P, the
product of its tokens' probabilities in the passes that committed them.  A pass commits tokens with their
probability given that the filling is accepted, so the weight of a text towards P given acceptance is the
product over the passes of the mass of accepted fillings before the commit over that after it; its mean is the
probability that the model alone writes an accepted text.
Drafts: pass k draws with random numbers of its own, so a canvas that was guessed right (`FillPolicy.drafts`)
gives what the pass would have given.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from tokenform.decoding.aligned.results import LogZ, effective_size
from tokenform.decoding.diffusion.denoisers import Denoiser, Known
from tokenform.decoding.diffusion.policies import FillPolicy, FillStep
from tokenform.decoding.diffusion.prefix import PrefixText
from tokenform.decoding.results import Estimates, Stats
from tokenform.decoding.samplers.local import no_token_error
from tokenform.engine import Canvas, Filling, TokenAutomaton
from tokenform.engine.packed import mask_bits

_WEIGHED = "what the model writes alone in this order, given that the constraint accepts it"

Watch = Callable[[int, Known], None]
Logits = NDArray[np.float32]


class CanvasText:
    """A canvas that is being filled.

    Attributes:
        logprob: of the committed tokens, each in the pass that it was committed in.
        log_weight: of the text, if requested.
        drafts: canvases of the next passes, if these commit what the last one would.
    """

    def __init__(
        self, canvas: Canvas, seed: np.random.SeedSequence, policy: FillPolicy, weigh: bool = False
    ) -> None:
        self.canvas, self.policy, self._seed, self._weigh = canvas, copy.deepcopy(policy), seed, weigh
        self.logprob, self.log_weight, self.stats, self._passes = 0.0, 0.0, Stats(), 0
        self.drafts: list[Canvas] = []

    @property
    def automaton(self) -> TokenAutomaton:
        """Of the constraint."""
        return self.canvas.automaton

    @property
    def known(self) -> Known:
        """The tokens; None where a position is open."""
        return self.canvas.tokens

    @property
    def open(self) -> bool:
        """Whether some position is."""
        return bool(self.canvas.open)

    @property
    def canvases(self) -> list[Known]:
        """The canvases of which the next pass gives logits."""
        return [self.known, *(canvas.tokens for canvas in self.drafts)]

    def take(self, rows: Sequence[Logits], temperature: float, prompt: Sequence[int]) -> None:
        """Commits tokens by the logits of `canvases`, as far as the drafts were right."""
        begin, canvases = time.perf_counter(), self.canvases
        self.stats.forwards += 1
        self.stats.evaluations += sum(canvas.count(None) for canvas in canvases)
        self.stats.drafted += len(self.drafts)
        for place, logits in enumerate(rows):
            if place and canvases[place] != self.known:
                break
            self.stats.accepted += place > 0
            logits_here = logits
            move = _Move(self.canvas, logits, temperature, self._random(), self.policy, prompt)
            if self._weigh:
                self.log_weight += move.log_mass - move.log_mass_after(temperature)
            self.canvas, self.logprob = move.after, self.logprob + move.logprob
            self._passes += 1
        self.drafts = self._next_canvases(logits_here, temperature, prompt)
        self.stats.seconds_mask += time.perf_counter() - begin

    def _random(self, ahead: int = 0) -> np.random.Generator:
        """The random numbers of a pass."""
        key = (*self._seed.spawn_key, self._passes + ahead)
        return np.random.default_rng(np.random.SeedSequence(self._seed.entropy, spawn_key=key))

    def _next_canvases(self, logits: Logits, temperature: float, prompt: Sequence[int]) -> list[Canvas]:
        """The canvases of the next passes, if the model's logits stay the same."""
        found: list[Canvas] = []
        canvas, policy = self.canvas, copy.deepcopy(self.policy)
        for ahead in range(getattr(self.policy, "drafts", 0)):
            if not canvas.open:
                break
            canvas = _Move(canvas, logits, temperature, self._random(ahead), policy, prompt).after
            found.append(canvas)
        return [canvas for canvas in found if canvas.open]


class _Move:
    """What a pass commits to a canvas."""

    def __init__(
        self,
        canvas: Canvas,
        logits: Logits,
        temperature: float,
        random: np.random.Generator,
        policy: FillPolicy,
        prompt: Sequence[int],
    ) -> None:
        open_ = canvas.open
        if not (logits[open_] < np.inf).all():  # NaN is not below
            raise no_token_error()
        self._logits = logits
        self._filling = canvas.sample(logits, temperature=temperature, seed=random)
        step, chances = _fill_step(canvas, logits, self._filling, open_, prompt)
        chosen = set(policy.choose(step)) & set(open_)
        if not chosen:
            chosen = {open_[int(np.argmax(step.confidence))]}
        self.after = canvas.fork()
        self.after.update({at: int(self._filling.tokens[at]) for at in sorted(chosen)})
        self.logprob = math.fsum(chances[place] for place, at in enumerate(open_) if at in chosen)

    @property
    def log_mass(self) -> float:
        """Of the accepted fillings before the commit."""
        return self._filling.score - self._filling.logprob

    def log_mass_after(self, temperature: float) -> float:
        """Of the accepted fillings after the commit."""
        return self.after.marginals(self._logits, [], temperature=temperature).mass


Text = CanvasText | PrefixText


class CanvasRun:
    """Texts of one prompt, whose passes are shared.

    Attributes:
        committed: whether any token was committed.

    Args:
        watch: called with each text's number and tokens after each pass; an exception ends the run.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        temperature: float,
        seed: int | None,
        watch: Watch | None = None,
    ) -> None:
        self._denoiser, self._temperature, self._seed, self._watch = denoiser, temperature, seed, watch
        self.committed = False

    def write(
        self, prompt: Sequence[int], n: int, make: Callable[[np.random.SeedSequence], Text]
    ) -> list[Text]:
        """The texts.

        Args:
            make: a text with the seed of its draws.
        """
        session = self._denoiser.begin(prompt, self._seed)
        texts = [make(seed) for seed in np.random.SeedSequence(self._seed).spawn(n)]
        while going := [number for number, text in enumerate(texts) if text.open]:
            begin = time.perf_counter()
            requests = [(number, canvas) for number in going for canvas in texts[number].canvases]
            found = session.logits([number for number, _ in requests], [tokens for _, tokens in requests])
            rows: NDArray[np.float32] = found.to("cpu", torch.float32).numpy()
            spent = (time.perf_counter() - begin) / len(going)
            for number in going:
                text = texts[number]
                text.stats.seconds_model += spent
                own = [row for (of, _), row in zip(requests, rows, strict=True) if of == number]
                text.take(own, self._temperature, prompt)
                self.committed = True
                if self._watch is not None:
                    self._watch(number, text.known)
        return texts


def _fill_step(
    canvas: Canvas, logits: Logits, filling: Filling, open_: Sequence[int], prompt: Sequence[int]
) -> tuple[FillStep, NDArray[np.float64]]:
    """The policy's view, and the logarithm of each token's probability in its row."""
    size, count = canvas.vocabulary.size, len(open_)
    confidence, entropy, margin, chances = np.zeros((4, count))
    masks = canvas.masks(open_)
    for place, (at, mask) in enumerate(zip(open_, masks, strict=True)):
        row = logits[at].astype(np.float64)
        token = filling.tokens[at]
        most = row.max()
        chances[place] = row[token] - most - math.log(np.exp(row - most).sum())
        kept = row[:size][mask_bits(mask, size)]
        shares = np.exp(kept - kept.max())
        confidence[place] = math.exp(row[token] - kept.max()) / shares.sum()
        shares /= shares.sum()
        entropy[place] = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
        top = np.partition(shares, -2)[-2:] if len(shares) > 1 else np.array([0.0, 1.0])
        margin[place] = top[1] - top[0]
    step = FillStep(
        list(open_),
        filling.tokens[open_],
        confidence,
        entropy,
        margin,
        len(canvas),
        masks=masks,
        logits=logits,
        filling=filling.tokens,
        prompt=prompt,
    )
    return step, chances


def estimates_of(texts: Sequence[Text]) -> Estimates:
    """The estimates from the weights of a call's texts."""
    weights = np.array([text.log_weight for text in texts])
    one_pass = all(text.stats.forwards <= 1 for text in texts)  # then each weight is the mass itself
    mass = LogZ.mean(weights)
    return Estimates(
        target=_WEIGHED,
        exact=one_pass,
        log_z=mass.value,
        log_z_error=0.0 if one_pass else mass.error,
        distance=0.0 if one_pass else None,
        ess=effective_size(weights),
        forwards=max(text.stats.forwards for text in texts),
        evaluations=sum(text.stats.evaluations for text in texts),
        attempts=len(texts),
    )
