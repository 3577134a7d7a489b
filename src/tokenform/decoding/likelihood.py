"""How likely given texts are, under a model and under a model with a constraint; differentiable.

Purpose: `tf.logprob` and `tf.feasible_mass`, for trainers that replay texts written under masks.
Distribution: the free law is the model's own; the masked one draws each token from it given that the mask
allows the token, as `Local(values="token")` does: log p(token) - log Z, where Z is the mass of all allowed
tokens there.  Budgets, truncation and transforms are no part of either.
Invariant: gradients flow through every number; the model is run as it is, its mode and weights untouched.
Complexity: one forward pass over all texts, padded to the longest; a mask a token.
Memory: the logits of all texts, as in training; masks of one text at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from tokenform.decoding.configuration import context_length, read_vocabulary
from tokenform.decoding.decoder import bytes_encoder
from tokenform.decoding.generator import Generator
from tokenform.decoding.prompts import PromptReader, is_batch
from tokenform.decoding.speculative.backbone import device_of
from tokenform.engine import TokenAutomaton, Vocabulary
from tokenform.engine.packed import mask_bits
from tokenform.errors import ModelError, OptionError
from tokenform.frontends import Condition, to_constraint


@dataclass(frozen=True)
class Likelihood:
    """Of B texts of at most L tokens; tensors on the model's device, padded with 0.

    Attributes:
        tokens: ids of each text, with the end of text if requested.
        free: [B, L], log-probability of each token under the model.
        log_mass: [B, L], logarithm of the allowed tokens' probability before each token; -inf after a token
            that the constraint refuses; 0 without a constraint.
        inside: bool [B, L], where texts have tokens.
        allowed: bool [B, L], whether the constraint takes each token.
    """

    tokens: list[list[int]]
    free: torch.Tensor
    log_mass: torch.Tensor
    inside: torch.Tensor
    allowed: torch.Tensor

    @property
    def masked(self) -> torch.Tensor:
        """[B, L], log-probability of each token given that it is allowed; -inf where it is not."""
        conditional = self.free - self.log_mass.masked_fill(~self.allowed, 0.0)
        return conditional.masked_fill(self.inside & ~self.allowed, -math.inf)

    @property
    def total(self) -> torch.Tensor:
        """[B], log-probability of each text under model and constraint."""
        return self.masked.sum(-1)

    @property
    def free_total(self) -> torch.Tensor:
        """[B], log-probability of each text under the model alone."""
        return self.free.sum(-1)


def logprob(
    model: Any,
    texts: str | Sequence[Any],
    grammar: Any = None,
    *,
    prompt: Any = None,
    tokenizer: Any = None,
    end: bool = True,
) -> Likelihood:
    """The log-probabilities of given texts under a model and a constraint; differentiable in torch.

    Args:
        model: a `Generator`, or a causal language model with `tokenizer`; its train or eval mode is kept.
        texts: a text, or a list of them; each a string, spelled as the tokenizer writes it, or token ids.
        grammar: a grammar, schema or type; None for any text.
        prompt: of all texts, or a list with one for each: text, messages or token ids.
        tokenizer: of a bare model; or a `Vocabulary`, where prompts are token ids.
        end: count the end of the text, too.
    Raises:
        OptionError: as many prompts as texts are needed; a text can't be spelled, or is empty and has no end.
        ModelError, VocabularyError, PromptTooLong.

    >>> import tokenform as tf
    >>> colors = ["red", "blue"]
    >>> found = tf.logprob(tf.Generator(), colors, tf.choice(colors), prompt="It is red.")
    >>> bool(found.total[0] > found.total[1])
    True
    """
    reader = _Reader(model, tokenizer)
    items: list[Any] = [texts] if isinstance(texts, str) or _is_ids(texts) else list(texts)
    prompts = list(prompt) if prompt is not None and is_batch(prompt) else [prompt or ""] * len(items)
    if len(prompts) != len(items):
        raise OptionError(f"{len(prompts)} prompts can't be paired with {len(items)} texts.")
    constraint = to_constraint(grammar)
    if isinstance(constraint, Condition):
        raise OptionError("a predicate, or a grammar & a language, has no masks; give a grammar or type.")
    automaton = None if grammar is None else constraint.compile(reader.vocabulary)
    prompt_ids = [reader.prompt(one, constraint) for one in prompts]
    tokens = [reader.tokens(one, end) for one in items]
    logits = _logits(reader.model, prompt_ids, tokens)
    width = max(map(len, tokens))
    rows = [_row(logits[i], len(prompt_ids[i]), ids, automaton) for i, ids in enumerate(tokens)]
    free = pad_sequence([one for one, _, _ in rows], batch_first=True)
    mass = pad_sequence([one for _, one, _ in rows], batch_first=True)
    inside = torch.tensor([[at < len(ids) for at in range(width)] for ids in tokens], device=free.device)
    allowed = torch.tensor([[*one, *[True] * (width - len(one))] for _, _, one in rows], device=free.device)
    return Likelihood(tokens, free, mass, inside, allowed)


def feasible_mass(
    model: Any, texts: str | Sequence[Any], grammar: Any, *, prompt: Any = None, tokenizer: Any = None
) -> list[torch.Tensor]:
    """Logarithm of the model's probability of all allowed tokens, at each point of given texts: before each
    token, and after the last one; -inf after a token that is refused.

    Arguments and errors are those of `logprob`.

    Returns:
        a tensor [tokens + 1] for each text; differentiable.

    >>> import tokenform as tf
    >>> grammar = tf.choice(["red", "blue"])
    >>> (mass,) = tf.feasible_mass(tf.Generator(), "red", grammar, prompt="It is red.")
    >>> bool((mass <= 1e-6).all())
    True
    """
    found = logprob(model, texts, grammar, prompt=prompt, tokenizer=tokenizer)
    return [row[: len(ids)] for row, ids in zip(found.log_mass, found.tokens, strict=True)]


class _Reader:
    """Tokens of prompts and texts, of a generator or a bare model."""

    _spell: Callable[[bytes], list[int]]
    prompt: Callable[[Any, Any], list[int]]

    def __init__(self, model: Any, tokenizer: Any) -> None:
        if isinstance(model, Generator):
            self.model, self.vocabulary = model.model, model.vocabulary
            self._spell, self.prompt = model.spell, model.prompt_ids
            return
        if tokenizer is None:
            raise ModelError("a model needs its tokenizer; pass tokenizer=, or a Vocabulary for bare ids.")
        bare_ids = isinstance(tokenizer, Vocabulary)
        self.model = model
        self.vocabulary = tokenizer if bare_ids else read_vocabulary(model, tokenizer)
        prompt_tokenizer = None if bare_ids else tokenizer
        encode = bytes_encoder(prompt_tokenizer, self.vocabulary)
        self._spell = encode if encode is not None else lambda text: self.vocabulary.greedy(text) or []
        self.prompt = PromptReader(prompt_tokenizer, self.vocabulary, context_length(model), None, None).read

    def tokens(self, text: Any, end: bool) -> list[int]:
        """A text's ids."""
        if isinstance(text, str):
            ids = self._spell(text.encode())
            if b"".join(self.vocabulary.token(one) for one in ids) != text.encode():
                raise OptionError(f"the vocabulary can't spell {text[:40]!r}; give token ids.")
        else:
            ids = [int(one) for one in text]
        ended = bool(ids) and ids[-1] in self.vocabulary.eos
        ids = [*ids, self.vocabulary.eos[0]] if end and not ended else list(ids)
        if not ids:
            raise OptionError("an empty text without its end has no token; leave end=True.")
        return ids


def _is_ids(texts: Any) -> bool:
    return bool(len(texts)) and all(isinstance(one, int | np.integer) for one in texts)


def _logits(model: Any, prompts: Sequence[list[int]], tokens: Sequence[list[int]]) -> torch.Tensor:
    """[B, L, V] of all rows, padded on the right, where no earlier token sees the padding."""
    device = device_of(model)
    rows = [[*one, *ids] for one, ids in zip(prompts, tokens, strict=True)]
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[row[-1]] * (width - len(row))] for row in rows], device=device)
    attention_mask = torch.tensor(
        [[int(at < len(row)) for at in range(width)] for row in rows], device=device
    )
    positions = torch.arange(width, device=device).expand(len(rows), -1)
    logits: torch.Tensor = model(input_ids=ids, attention_mask=attention_mask, position_ids=positions).logits
    return logits


def _row(
    logits: torch.Tensor, start: int, tokens: Sequence[int], automaton: TokenAutomaton | None
) -> tuple[torch.Tensor, torch.Tensor, list[bool]]:
    """(log-probability of each token, log of the allowed mass before it, whether it is allowed)."""
    row_logits = logits[start - 1 : start - 1 + len(tokens)]
    row_logits = row_logits if row_logits.dtype == torch.float64 else row_logits.float()
    total = row_logits.logsumexp(-1)
    free = row_logits.gather(-1, torch.tensor(tokens, device=row_logits.device)[:, None])[:, 0] - total
    if automaton is None:
        return free, torch.zeros_like(free), [True] * len(tokens)
    state, bits, allowed = automaton.start, list[np.ndarray](), list[bool]()
    for token in tokens:
        if (allowed and not allowed[-1]) or automaton.is_finished(state):
            bits.append(np.zeros(row_logits.shape[-1], bool))
            allowed.append(False)
            continue
        bits.append(mask_bits(np.asarray(automaton.mask(state)), row_logits.shape[-1]))
        allowed.append(automaton.allows(state, token))
        if allowed[-1]:
            state = automaton.advance(state, token)
    allowed_tokens = torch.from_numpy(np.stack(bits)).to(row_logits.device)
    has_mask = allowed_tokens.any(-1)
    # rows without an allowed token stay unmasked, so that no gradient is NaN
    inner = row_logits.masked_fill(~allowed_tokens & has_mask[:, None], -math.inf)
    mass = (inner.logsumexp(-1) - total).masked_fill(~has_mask, -math.inf)
    return free, mass, allowed
