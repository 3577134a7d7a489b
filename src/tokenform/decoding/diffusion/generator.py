"""Writing with a diffusion language model under a constraint, in any order.

Purpose: each pass of the model gives logits for all open positions of a canvas.  A whole filling that the
constraint accepts is drawn from them (greedy: the likeliest), a policy says at which positions its tokens are
committed, and the next pass sees these.
Invariant: what is committed is part of one accepted filling, so the canvas can always be filled and every
text is valid, at every temperature and under every policy.
Law of a pass: the product of the positions' distributions given that the filling is accepted, exactly
(`tf.Canvas.sample`).  Texts are not draws from one distribution of the model, which has none for whole texts.
Complexity: a pass of the model and a draw over the canvas for each step.
Rejected: masks for each position by itself (each of two tokens may be possible and both not).
"""

from __future__ import annotations

import copy
import math
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokenform.decoding.diffusion.denoisers import Denoiser, MaskedDenoiser
from tokenform.decoding.diffusion.policies import FillPolicy, FillStep, Threshold
from tokenform.decoding.prompts import PromptFormat, PromptOptions, PromptReader
from tokenform.decoding.results import Result, Stats, read_value
from tokenform.engine import Canvas, Filling, Grammar, Vocabulary
from tokenform.engine.packed import mask_bits
from tokenform.errors import BudgetTooSmall, InvalidType, ModelError, OptionError, TokenformError
from tokenform.frontends import forms, to_constraint


class DiffusionGenerator:
    """Writes texts with a diffusion language model.

    Args:
        model: of the masked kind: tokens int64 [B, T] -> logits [B, T, V] (or an object that has them as
            `.logits`), such as LLaDA; or a `decoding.diffusion.Denoiser`.
        tokenizer: its tokenizer, or a `Vocabulary` where prompts are token ids.
        mask: the id of the mask token; None: the model's or tokenizer's own.
        policy: which positions are committed after a pass; one of `tokenform.decoding.diffusion`: `Threshold`
            (the default), `Confidence`, `EntropyBound`, `Blocks`, `LeftToRight`, `EarlyAnswer`, `Credit`,
            `LocalDeterminism`.
        temperature: of the draws; 0 takes the likeliest accepted filling of each pass.
        length: positions of a canvas where a call says nothing.
        raw, system, show_schema: how prompts are shown, as for `Generator`.
        format_prompt: the text that the model reads, of a prompt and a grammar, where it has its own format.
    Without a model and a tokenizer it is the built-in one.  Numbers are written as `json.dumps` writes them:
    how many digits of other spellings stand in an open run would be part of the canvas's states.
    Raises:
        ModelError, VocabularyError: the model or its tokenizer can't be used.

    >>> import tokenform as tf
    >>> import torch
    >>> vocab = tf.Vocabulary([bytes([b]) for b in range(256)] + [b"", b""], eos=[256], special=[256, 257])
    >>> writer = tf.DiffusionGenerator(lambda tokens: torch.zeros(*tokens.shape, 258), vocab, mask=257)
    >>> writer.generate([1], tf.choice(["new", "paid"]), length=4).text
    'new'
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        mask: int | None = None,
        policy: FillPolicy | None = None,
        temperature: float = 0.0,
        length: int = 64,
        raw: bool = False,
        system: str | None = None,
        show_schema: Any = "auto",
        format_prompt: PromptFormat | None = None,
    ) -> None:
        if isinstance(tokenizer, Vocabulary):
            self.tokenizer, self.vocabulary = None, tokenizer
        else:
            size = getattr(getattr(model, "config", None), "vocab_size", None)
            self.tokenizer = tokenizer
            self.vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size)
        self.denoiser: Denoiser = (
            model if hasattr(model, "begin") else MaskedDenoiser(model, self._mask(model, mask))
        )
        self.policy = Threshold() if policy is None else policy
        self.temperature, self.length = temperature, length
        self._prompts = PromptReader(
            self.tokenizer,
            self.vocabulary,
            None,
            format_prompt,
            options=PromptOptions(raw, system, show_schema),
        )
        self._written: weakref.WeakKeyDictionary[Grammar, Grammar] = weakref.WeakKeyDictionary()

    def _mask(self, model: Any, given: int | None) -> int:
        for where in (getattr(model, "config", None), self.tokenizer):
            given = getattr(where, "mask_token_id", None) if given is None else given
        if given is None:
            raise ModelError("which token stands at open positions is not known; pass mask=, its id.")
        return given

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {type(self.denoiser).__name__}, {self.vocabulary.size:,} tokens>"

    def generate(
        self,
        prompt: Any,
        schema: Any = None,
        *,
        n: int = 1,
        length: int | None = None,
        temperature: float | None = None,
        policy: FillPolicy | None = None,
        seed: int | None = None,
    ) -> Any:
        """Writes texts that a constraint accepts.

        Args:
            prompt: text, chat messages or token ids.
            schema: a type, JSON Schema, grammar or tools, as for `Generator.generate`; None: any text.
            n: texts; they share the model's passes.
            length: positions of the canvas: tokens of the longest text.
            temperature, policy: those of the generator where nothing is said.
            seed: of the draws.
        Returns:
            A `Result`, of which `logprob` is the sum over the committed tokens of the logarithm of their
            probability in the pass that they were committed in, and `stats.forwards` the number of passes; a
            list of n for n > 1.
        Raises:
            BudgetTooSmall: no text of the constraint fits into the canvas.
            LimitExceeded: see `tf.Canvas`.
        """
        if n < 1:
            raise OptionError(f"n={n} is not possible; give a whole number of at least 1.")
        grammar = to_constraint(schema)
        if not isinstance(grammar, Grammar):
            raise OptionError("conditions that look at whole texts are not for canvases; give a grammar.")
        width = self.length if length is None else length
        empty = Canvas(self._writing(grammar).compile(self.vocabulary), width)
        if not empty.feasible():
            raise BudgetTooSmall(f"no text of the constraint fits into {width} tokens; raise length=.")
        ids = self._prompts.read(prompt, grammar)
        heat = self.temperature if temperature is None else temperature
        run = _Run(self.denoiser, heat, self.policy if policy is None else policy, seed)
        texts = run.write(ids, [empty.fork() for _ in range(n)])
        results = [self._result(grammar, text, ids) for text in texts]
        return results if n > 1 else results[0]

    def _writing(self, grammar: Grammar) -> Grammar:
        """What is written of a grammar."""
        written = self._written.get(grammar)
        if written is None:
            written = grammar.for_writing
            try:
                form = forms.narrowed(written.form, {"numbers": "shortest"})
                if form is not None:
                    narrower = Grammar(forms.compiled(form, "what is written"), form=form)
                    narrower.compile(self.vocabulary)
                    written = narrower
            except TokenformError:  # no number is spelled so
                pass
            self._written[grammar] = written
        return written

    def _result(self, grammar: Grammar, text: _Text, prompt: Sequence[int]) -> Result:
        ends = set(self.vocabulary.eos)
        filled = [token for token in text.canvas.tokens if token is not None]
        tokens = filled[: next((at for at, token in enumerate(filled) if token in ends), len(filled))]
        written = b"".join(self.vocabulary.token(token) for token in tokens).decode("utf-8", "replace")
        value, error = read_value(grammar, written)
        if isinstance(error, InvalidType):
            raise error
        text.stats.tokens = len(tokens)
        return Result(
            written,
            tokens,
            value,
            text.logprob,
            stats=text.stats,
            automaton=text.canvas.automaton,
            prompt=self._prompts.shown(prompt),
        )


class _Text:
    """A canvas that is being filled."""

    def __init__(self, canvas: Canvas, seed: Any, policy: FillPolicy) -> None:
        self.canvas, self.random, self.policy = canvas, np.random.default_rng(seed), copy.deepcopy(policy)
        self.logprob, self.stats = 0.0, Stats()

    def commit(self, logits: NDArray[np.float32], temperature: float) -> None:
        """Tokens of one accepted filling become known at the positions that the policy chooses."""
        begin = time.perf_counter()
        open_ = self.canvas.open
        filling = self.canvas.sample(logits, temperature=temperature, seed=self.random)
        step, chances = _seen(self.canvas, logits, filling, open_)
        chosen = set(self.policy.choose(step)) & set(open_)
        if not chosen:
            chosen = {open_[int(np.argmax(step.confidence))]}
        self.canvas.update({at: int(filling.tokens[at]) for at in sorted(chosen)})
        self.logprob += math.fsum(chances[place] for place, at in enumerate(open_) if at in chosen)
        self.stats.forwards += 1
        self.stats.evaluations += len(open_)
        self.stats.seconds_mask += time.perf_counter() - begin


class _Run:
    """Texts of one prompt, whose passes are shared."""

    def __init__(self, denoiser: Denoiser, temperature: float, policy: FillPolicy, seed: int | None) -> None:
        self.denoiser, self.temperature, self.policy, self.seed = denoiser, temperature, policy, seed

    def write(self, prompt: Sequence[int], canvases: Sequence[Canvas]) -> list[_Text]:
        session = self.denoiser.begin(prompt, self.seed)
        seeds = np.random.SeedSequence(self.seed).spawn(len(canvases))
        texts = [_Text(canvas, seed, self.policy) for canvas, seed in zip(canvases, seeds, strict=True)]
        while going := [number for number, text in enumerate(texts) if text.canvas.open]:
            begin = time.perf_counter()
            found = session.logits(going, [texts[number].canvas.tokens for number in going])
            rows = found.to("cpu", torch.float32).numpy()
            for number, logits in zip(going, rows, strict=True):
                text = texts[number]
                text.stats.seconds_model += (time.perf_counter() - begin) / len(going)
                text.commit(logits, self.temperature)
        return texts


def _seen(
    canvas: Canvas, logits: NDArray[np.float32], filling: Filling, open_: Sequence[int]
) -> tuple[FillStep, NDArray[np.float64]]:
    """What a policy sees, and the logarithm of each token's probability in its row."""
    size, count = logits.shape[1], len(open_)
    confidence, entropy, margin, chances = np.zeros((4, count))
    for place, (at, mask) in enumerate(zip(open_, canvas.masks(open_), strict=True)):
        row = logits[at].astype(np.float64)
        token = filling.tokens[at]
        most = row.max()
        chances[place] = row[token] - most - math.log(np.exp(row - most).sum())
        kept = row[mask_bits(mask, size)]
        shares = np.exp(kept - kept.max())
        shares /= shares.sum()
        confidence[place] = math.exp(row[token] - kept.max()) / np.exp(kept - kept.max()).sum()
        entropy[place] = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
        top = np.partition(shares, -2)[-2:] if len(shares) > 1 else np.array([0.0, 1.0])
        margin[place] = top[1] - top[0]
    return FillStep(list(open_), filling.tokens[open_], confidence, entropy, margin, len(canvas)), chances
