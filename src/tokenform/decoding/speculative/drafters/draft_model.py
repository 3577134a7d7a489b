"""A smaller model drafts.

Purpose: the second model writes with the *same sampler* as the first: same mask, same
temperature, same counter-based numbers.  So where the two models agree on the distribution their draws agree
too, and are accepted often although nothing about its distribution is kept.
Invariant: the second model's sequence is cut to what it shares with the text before it drafts.
Complexity: at most one pass of the small model a drafted token (see `matched.py`), shared by all sequences of
a step.
Source: Leviathan et al. 2023; coupling by shared randomness: Daliri et al. 2024 (Drafter-invariant
speculative decoding).
Rejected: independent draws (they accept sum p q, not nearly 1 - TV), and rules of acceptance for them.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from typing import Any

import torch

from tokenform.decoding import removed
from tokenform.decoding.draws import DEFAULT_OUTPUTS, MaskedSampler, RequestedOutputs
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.node import Node
from tokenform.errors import DrafterError

from ..backbone import Backbone, PromptCache
from ..drafting import Ask, Drafting, Scored
from ..tree import DraftTree
from .base import Asking, Budget, Context, PassCost, Session
from .matched import Foresight, draw_matched
from .other_vocabulary import VocabularyMap

_KEPT = 64 << 20  # bytes of keys and values of prompts that are kept for later runs


class DraftModel:
    """Drafts with a smaller model, of the same vocabulary or another.

    Args:
        model: a Hugging Face causal language model, which each run gives a cache of its own; the pair (model,
            tokenizer) that `load_draft()` gives; or a `Backbone` that holds a model, for one run at a time.
        tokens: longest draft.
        siblings: runners-up that are added beside each drafted token.
        shape: is gone, and refused.
        vocabulary: how the model's tokens relate to the target's, if they are not the same
            (see `other_vocabulary.py`).
    """

    name, costly = "model", True

    def __init__(
        self,
        model: Any,
        tokens: int = 6,
        siblings: int = 1,
        shape: None = None,
        vocabulary: VocabularyMap | None = None,
    ) -> None:
        removed.check(shape=shape)
        if isinstance(model, tuple) and len(model) == 2:
            model = model[0]
        self._alone = model if isinstance(model, Backbone) else Backbone(model)
        self._given = isinstance(model, Backbone)
        self._of_run: weakref.WeakKeyDictionary[Backbone, Backbone] = weakref.WeakKeyDictionary()
        self._lock, self._prompts = threading.Lock(), PromptCache(_KEPT)
        self.tokens, self.siblings, self.vocabulary = tokens, siblings, vocabulary
        self.cost = PassCost()

    @property
    def forwards(self) -> int:
        """Passes of the second model so far; one that sequences share is one."""
        return self._alone.counters.forwards

    @property
    def sequences(self) -> int:
        """Sequences that the second model holds keys and values of, over all runs."""
        with self._lock:
            return sum(len(one.sequences) for one in (self._alone, *self._of_run.values()))

    def backbone(self, target: Any) -> Backbone:
        """What runs the second model beside a target's backbone (None: beside none); all count together."""
        if self._given or target is None:
            return self._alone
        with self._lock:
            own = self._of_run.get(target)
            if own is None:
                own = self._of_run[target] = Backbone(
                    self._alone.model, self._alone.mode, prompts=self._prompts
                )
                own.counters = self._alone.counters
            return own

    def session(self, context: Context) -> Session:
        size = self.vocabulary.draft_size if self.vocabulary is not None else self._alone.vocabulary_size
        if self.vocabulary is None and abs(size - context.vocabulary_size) > 1024:
            raise DrafterError(
                f"the draft model has {size} tokens and the model {context.vocabulary_size};"
                " give vocabulary= a VocabularyMap"
            )
        return _DraftModelSession(self, context)


class _DraftModelSession(Asking):
    def __init__(self, drafter: DraftModel, context: Context) -> None:
        self.drafter = drafter
        self.backbone = drafter.backbone(context.backbone)
        self.seq: int | None = None
        matched = drafter.vocabulary is None and self.backbone.mode != "plain"
        self.foresight = Foresight(context, self.backbone.vocabulary_size) if matched else None

    def drafting(self, context: Context, budget: Budget) -> Drafting[DraftTree]:
        d = self.drafter
        most = min(d.tokens, budget.depth, budget.nodes)
        if most <= 0:
            return DraftTree()
        seq = self._follow(context)
        if seq is None:
            return DraftTree()
        if d.vocabulary is not None and d.vocabulary.retokenise:
            return (yield from self._retokenised(seq, d.vocabulary, most, budget))
        return (yield from self._matched(seq, context, most, budget))

    def _follow(self, context: Context) -> int | None:
        """Brings the second model's sequence to the text; None if there is no text for it."""
        d, backbone = self.drafter, self.backbone
        text = [*context.tokens, *context.path]
        if d.vocabulary is not None:
            text = d.vocabulary.to_draft(text)
        if not text or (backbone.max_length is not None and len(text) + d.tokens > backbone.max_length):
            return None
        if self.seq is not None and backbone.tokens(self.seq)[0] == text[0]:
            backbone.go_on(self.seq, text)
        else:
            self.close()
            self.seq = backbone.open(text)
        return self.seq

    def _rows(self, rows: torch.Tensor, size: int) -> torch.Tensor:
        """Logits [n, size] in the target's ids; -inf for tokens that the second model does not have."""
        if self.drafter.vocabulary is not None:
            return self.drafter.vocabulary.to_target(rows, size)
        if rows.shape[1] < size:
            return torch.nn.functional.pad(rows, (0, size - rows.shape[1]), value=float("-inf"))
        return rows[:, :size]

    def _matched(self, seq: int, context: Context, most: int, budget: Budget) -> Drafting[DraftTree]:
        """A chain of the sampler's draws from the second model, with runners-up."""
        d = self.drafter
        outputs = RequestedOutputs(d.siblings + 1, chances=True) if d.siblings else DEFAULT_OUTPUTS

        def passing(drawn: list[int], guessed: list[int], places: list[Node]) -> Drafting[Scored]:
            self.backbone.commit(seq, drawn if d.vocabulary is None else d.vocabulary.to_draft(drawn))
            return (
                yield Ask(
                    self.backbone,
                    seq,
                    DraftTree.chain(guessed),
                    nodes=list(enumerate(places)),
                    sampler=context.sampler,
                    copies=1 + context.companions,
                    convert=functools.partial(self._rows, size=context.vocabulary_size),
                    outputs=outputs,
                )
            )

        return (
            yield from draw_matched(
                passing, context, most, budget, d.cost, self.foresight, d.siblings, d.name
            )
        )

    def _retokenised(
        self, seq: int, vocabulary: VocabularyMap, most: int, budget: Budget
    ) -> Drafting[DraftTree]:
        """The second model's best text, in the target's tokens."""
        d, backbone = self.drafter, self.backbone
        own = Context(backbone.tokens(seq), 0, backbone=backbone, eos=vocabulary.ends)

        def passing(drawn: list[int], guessed: list[int], places: list[Node]) -> Drafting[Scored]:
            backbone.commit(seq, drawn)
            greedy = _greedy(vocabulary.draft_size)
            return (yield Ask(backbone, seq, DraftTree(), nodes=list(enumerate(places)), sampler=greedy))

        chain = yield from draw_matched(passing, own, most, budget, d.cost)
        tokens = vocabulary.encode_target(b"".join(vocabulary.draft[token] for token in chain.tokens))
        share = math.prod(chain.confidences) ** (1 / max(len(tokens), 1))
        return DraftTree.chain(tokens[: min(budget.depth, budget.nodes)], d.name, min(share, 0.95))

    def close(self) -> None:
        if self.seq is not None:
            self.backbone.drop(self.seq)
            self.seq = None


@functools.cache
def _greedy(size: int) -> MaskedSampler:
    return MaskedSampler(Local(temperature=0.0), size, ())
