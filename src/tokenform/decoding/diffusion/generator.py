"""Writing with a diffusion language model under a constraint, in any order.

Purpose: `DiffusionGenerator` reads prompts and constraints and makes results; `run.py` has the passes.
Invariant: every text is valid, at every temperature and under every policy.
Law: that of the passes (`run.py`).  Texts are draws from one distribution where the policy is blind to the
tokens drawn, and then `weigh=True` gives their importance weights.
Rejected: masks for each position by itself (each of two tokens may be possible and both not).
Complexity: a pass of the model and a draw over the canvas for each step.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from tokenform.decoding.calls import check_counts
from tokenform.decoding.configuration import context_length
from tokenform.decoding.diffusion.denoisers import Denoiser, MaskedDenoiser
from tokenform.decoding.diffusion.policies import FillPolicy, Threshold
from tokenform.decoding.diffusion.prefix import PrefixText
from tokenform.decoding.diffusion.run import CanvasRun, CanvasText, Text, Watch, estimates_of
from tokenform.decoding.prompts import Prompted, PromptFormat, PromptOptions, PromptReader
from tokenform.decoding.results import Result, read_value
from tokenform.decoding.row import check_budget
from tokenform.engine import Canvas, Grammar, Limits, TokenAutomaton, Vocabulary
from tokenform.errors import (
    BudgetTooSmall,
    InvalidType,
    LimitExceeded,
    ModelError,
    OptionError,
    PromptTooLong,
    TokenformError,
)
from tokenform.frontends import forms, to_constraint


class DiffusionGenerator(Prompted):
    """Writes texts with a diffusion language model.

    Args:
        model: of the masked kind: tokens int64 [B, T] -> logits [B, T, V] (or an object that has them as
            `.logits`), such as LLaDA; or a `decoding.diffusion.Denoiser`.
        tokenizer: its tokenizer, or a `Vocabulary` where prompts are token ids.
        mask: the id of the mask token; None: the model's or tokenizer's own.
        policy: which positions are committed after a pass; one of `tokenform.decoding.diffusion`: `Threshold`
            (the default), `Confidence`, `EntropyBound`, `Blocks`, `LeftToRight`, `EarlyAnswer`, `Credit`,
            `LocalDeterminism`, `SelfDraft`, `AdaptiveParallel`.
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
        self.model: Any = getattr(self.denoiser, "model", model)
        self.policy = Threshold() if policy is None else policy
        self.temperature, self.length = temperature, length
        self._context = context_length(model)
        self._prompts = PromptReader(
            self.tokenizer,
            self.vocabulary,
            self._context,
            format_prompt,
            options=PromptOptions(raw, system, show_schema),
        )
        self._written: weakref.WeakKeyDictionary[Grammar, Grammar] = weakref.WeakKeyDictionary()
        self._over: weakref.WeakKeyDictionary[Grammar, int] = weakref.WeakKeyDictionary()  # lengths, too long

    def _mask(self, model: Any, mask: int | None) -> int:
        for where in (getattr(model, "config", None), self.tokenizer):
            mask = getattr(where, "mask_token_id", None) if mask is None else mask
        if mask is None:
            raise ModelError("which token stands at open positions is not known; pass mask=, its id.")
        return mask

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {type(self.denoiser).__name__}, {self.vocabulary.size:,} tokens>"

    def prompt_ids(
        self, prompt: Any, grammar: Any = None, *, chat_options: Mapping[str, Any] | None = None
    ) -> list[int]:
        """The ids that the model reads for a prompt, its prompt format included."""
        return self._prompts.read(prompt, _grammar_of(grammar), chat_options)

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
        weigh: bool = False,
        watch: Watch | None = None,
        chat_options: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
    ) -> Any:
        """Writes texts that a constraint accepts.

        Args:
            prompt: text, chat messages or token ids.
            schema: a type, JSON Schema, grammar or tools, as for `Generator.generate`; None: any text.
            n: texts; they share the model's passes.
            length: positions of the canvas: tokens of the longest text.
            temperature, policy: those of the generator where nothing is said.
            seed: of the draws.
            weigh: give `log_weight` and `estimates`: the weights of the texts towards what the model writes
                alone in the policy's order, given that the constraint accepts it.
            watch: is called after each pass with the number and the tokens (None: open) of each canvas; what
                it raises ends the call.
            chat_options: arguments of the chat template.
            limits: of the grammar's automaton.
        Returns:
            A `Result`, of which `logprob` is the sum over the committed tokens of the logarithm of their
            probability in the pass that they were committed in, and `stats.forwards` the number of passes; a
            list of n for n > 1.
        Raises:
            BudgetTooSmall: no text of the constraint fits into the canvas; `least` positions would do.
            PromptTooLong: prompt and canvas don't fit into the model's context.
            SamplingError: the model's logits are not numbers, or give no accepted text a probability.
            LimitExceeded: the automaton's own; or, with `weigh`, the canvas's (`tf.Canvas`).  Without, a text
                of a constraint that no canvas holds is written from left to right (`prefix.py`).
        """
        check_counts(n=n)
        grammar, heat = _grammar_of(schema), self.temperature if temperature is None else temperature
        chosen = self.policy if policy is None else policy
        self._check(chosen, heat, weigh)
        width = self.length if length is None else length
        automaton = self._writing(grammar).compile(self.vocabulary, limits=limits)
        ids = self._prompts.read(prompt, grammar, chat_options)
        if self._context is not None and len(ids) + width > self._context:
            raise PromptTooLong(
                f"the prompt has {len(ids)} tokens and the canvas {width}, but the model reads "
                f"{self._context} at most; shorten the prompt, or give a smaller length=."
            )
        run = CanvasRun(self.denoiser, heat, seed, watch)
        texts = None
        if weigh or width < self._over.get(grammar, width + 1):
            try:
                empty = Canvas(automaton, width)
                if not empty.feasible():
                    raise _too_small(automaton, width)
                texts = run.write(ids, n, lambda own: CanvasText(empty.fork(), own, chosen, weigh))
            except LimitExceeded:
                if weigh or run.committed:
                    raise
                self._over[grammar] = width
        if texts is None:
            check_budget(automaton, width)
            texts = run.write(ids, n, lambda own: PrefixText(automaton, width, own))
        results = [self._result(grammar, text, ids) for text in texts]
        if weigh:
            estimates = estimates_of(texts)
            for result, text in zip(results, texts, strict=True):
                result.log_weight, result.estimates = text.log_weight, estimates
        return results if n > 1 else results[0]

    def _check(self, policy: FillPolicy, temperature: float, weigh: bool) -> None:
        if weigh and not (temperature > 0 and getattr(policy, "blind", False)):
            raise OptionError(
                "weigh=True needs a temperature above 0 and a policy whose choice does not depend on the "
                "tokens drawn: LeftToRight, EntropyBound, or Blocks and EarlyAnswer around one of them."
            )
        if getattr(policy, "drafts", 0) and getattr(self.denoiser, "remembers", False):
            raise OptionError(
                f"{type(self.denoiser).__name__} is told what it said in the pass before, so passes can't be "
                "drafted; take another policy."
            )

    def _writing(self, grammar: Grammar) -> Grammar:
        if grammar not in self._written:
            try:
                written = written_on_canvases(grammar)
                written.compile(self.vocabulary)
            except TokenformError:  # no number is spelled so
                written = grammar.for_writing
            self._written[grammar] = written
        return self._written[grammar]

    def _result(self, grammar: Grammar, text: Text, prompt: Sequence[int]) -> Result:
        ends = set(self.vocabulary.eos)
        filled = [token for token in text.known if token is not None]
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
            automaton=text.automaton,
            prompt=self.shown(prompt),
        )


def written_on_canvases(grammar: Grammar) -> Grammar:
    """What is written of a grammar, with its numbers as `json.dumps` writes them: how many digits of other
    spellings stand in an open run would be part of a canvas's states.
    """
    written = grammar.for_writing
    form = forms.narrowed(written.form, {"numbers": "shortest"})
    return written if form is None else Grammar(forms.compiled(form, "what is written"), form=form)


def _grammar_of(schema: Any) -> Grammar:
    grammar = to_constraint(schema)
    if not isinstance(grammar, Grammar):
        raise OptionError("conditions that look at whole texts are not for canvases; give a grammar.")
    return grammar


def _too_small(automaton: TokenAutomaton, width: int) -> BudgetTooSmall:
    least = None
    with contextlib.suppress(LimitExceeded):  # then the error names no length
        least = automaton.distance(automaton.start)
    known = "" if least is None or least <= width else f": the shortest that is known has {least}"
    error = BudgetTooSmall(f"no text of the constraint fits into {width} tokens{known}; raise length=.")
    error.least = least if known else None
    return error
