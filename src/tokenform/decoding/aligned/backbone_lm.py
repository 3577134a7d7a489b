"""The speculative backbone as a `LanguageModel`: prefixes are forks of one sequence and share its cache.

Particles, walks and chains ask for prefixes that share most of their tokens.  Each prefix that was run is a
sequence of the backbone; a new one is a path of a draft tree below its longest known beginning.  All trees
of a call are scored in one forward pass over one row of slots, so the prompt's keys and values (and those
of every common beginning) are there once, and a token costs one slot whoever continues it.  What is drafted
beyond the prefixes that were asked for (see `drafts`) rides in the same trees.
Where the model scores chains alone, each path is the chain of a fork: a row of the model's own cache.  Where
that can't be cut back, texts are run as a whole, and nothing is kept.

Invariant: a distribution depends on the prefix alone, up to the rounding of the model's kernels.
Memory: `cache_bytes` for keys, values and the last logits of known prefixes; least recently used first.
Every token of a tree's pass attends to every slot of the row, so beyond `SLOTS` what the call did not touch
is forgotten.
Complexity: one forward pass a call, of rows of similar lengths; bookkeeping O(length) a new prefix.
Rejected: rows for each prefix where trees are possible: a step of 16 particles after a prompt of 1,000 tokens
then moves 16,000 keys and values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tokenform.decoding.aligned.protocols import Float, Tokens
from tokenform.decoding.speculative.backbone import Backbone, PromptCache
from tokenform.decoding.speculative.backbone.prompt_cache import common
from tokenform.decoding.speculative.tree import ROOT, DraftTree
from tokenform.errors import ModelError

_EVERYBODY = 1 << 30  # all prefixes share one row of slots
_FEW = 16  # tokens behind a sequence's own that are run as a path of its tree, where nothing is known yet
SLOTS = 4096  # keys and values that are kept for later; a call may hold more


class BackboneLM:
    """See the module's header.

    Args:
        model: a Hugging Face causal language model, or anything that is called like one.
        eos: ids that end a text.
        size: V; wider logits are cut to it before the distribution is formed.  None takes the config's.
        cache_bytes: bound on what is kept of known prefixes.
        fingerprint: names the model's weights for saved tries; None takes its name or class.
        prompts: what earlier calls have left of their prompts; None for nothing.
    Raises:
        ModelError: the model can't be run, or there is no end of a text.
    """

    def __init__(
        self,
        model: Any,
        *,
        eos: Sequence[int],
        size: int | None = None,
        cache_bytes: int = 512 << 20,
        fingerprint: str | None = None,
        prompts: PromptCache | None = None,
    ) -> None:
        self.eos = tuple(int(token) for token in eos)
        if not self.eos:
            raise ModelError("no EOS id is given, so no text can end; give one by eos=[...]")
        self._backbone = Backbone(model, None, _EVERYBODY, prompts, size)
        self.vocab_size = self._backbone.vocabulary_size if size is None else size
        name = getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__
        self.fingerprint = fingerprint if fingerprint is not None else str(name)
        self.rows = 0
        self._limit = cache_bytes
        self._known: OrderedDict[Tokens, int] = OrderedDict()

    @property
    def widest(self) -> int | None:
        """Prefixes of one call that are still cheaper in one row of slots than apart; None for any number."""
        return 64 if self._backbone.mode == "tree" else None

    @property
    def forwards(self) -> int:
        """Forward passes made so far."""
        return self._backbone.counters.forwards

    def logprobs(self, prefixes: Sequence[Tokens]) -> Float:
        """See `LanguageModel`.  An empty prefix is refused: give a prompt of at least one token."""
        distinct = list(dict.fromkeys(tuple(prefix) for prefix in prefixes))
        if any(len(prefix) == 0 for prefix in distinct):
            raise ModelError(
                "the model needs a token before the first one it writes; give a prompt (a BOS token will do)"
            )
        rows = self._rows(distinct)
        if rows.shape[1] < self.vocab_size:
            raise ModelError(
                f"the model gives {rows.shape[1]} logits, but the vocabulary has {self.vocab_size} ids;"
                " build it with size= the model's own"
            )
        distributions = torch.log_softmax(rows[:, : self.vocab_size].double(), -1).cpu().numpy()
        self.rows += len(distinct)
        if len(distinct) == len(prefixes):
            return np.asarray(distributions)
        number = {prefix: i for i, prefix in enumerate(distinct)}
        return np.asarray(distributions[[number[tuple(prefix)] for prefix in prefixes]])

    def _rows(self, prefixes: list[Tokens]) -> torch.Tensor:
        """Logits [n, V] after the prefixes."""
        kept, forks = self._backbone.forks, list[int]()
        try:
            trees: dict[int, DraftTree] = {}
            places = self._continue_known(prefixes, forks) if kept else self._open_new(prefixes, forks)
            ends = [(seq, trees.setdefault(seq, DraftTree()).add_path(ROOT, rest)) for seq, rest in places]
            scored = self._backbone.score(trees)
            rows = torch.stack([scored[seq][node + 1] for seq, node in ends])
            if kept:
                self._keep(prefixes, ends, trees)
        finally:
            for seq in forks:
                self._backbone.drop(seq)
        return rows

    def _continue_known(self, wanted: list[Tokens], forks: list[int]) -> list[tuple[int, Tokens]]:
        """For each prefix the sequence of its longest known beginning, and what follows that.

        Where a sequence has but one chain, each further one is a fork's; these are added to `forks`.
        """
        strangers = [prefix for prefix in wanted if self._beginning(prefix) is None]
        for stem in _stems(strangers):
            self._known[stem] = self._backbone.open(stem)
        rests, groups = dict[Tokens, tuple[int, Tokens]](), dict[int, list[Tokens]]()
        for prefix in wanted:
            found = self._beginning(prefix)
            assert found is not None
            self._known.move_to_end(found)
            rests[prefix] = self._known[found], prefix[len(found) :]
            groups.setdefault(self._known[found], []).append(prefix)
        for seq, prefixes in groups.items() if self._backbone.mode != "tree" else ():
            for chain in _chains(prefixes)[1:]:
                forks.append(self._backbone.fork(seq))
                rests |= {prefix: (forks[-1], rests[prefix][1]) for prefix in chain}
        return [rests[prefix] for prefix in wanted]

    def _open_new(self, prefixes: list[Tokens], seqs: list[int]) -> list[tuple[int, Tokens]]:
        """The same by a backbone that keeps nothing: prefixes of one text are a chain of a new sequence."""
        while self._known:
            self._backbone.drop(self._known.popitem()[1])
        rests: dict[Tokens, tuple[int, Tokens]] = {}
        for chain in _chains(prefixes):
            seqs.append(self._backbone.open(chain[0]))
            rests |= {prefix: (seqs[-1], prefix[len(chain[0]) :]) for prefix in chain}
        return [rests[prefix] for prefix in prefixes]

    def _beginning(self, prefix: Tokens) -> Tokens | None:
        """The longest known beginning."""
        for length in range(len(prefix), 0, -1):
            if prefix[:length] in self._known:
                return prefix[:length]
        return None

    def _keep(self, prefixes: list[Tokens], ends: list[tuple[int, int]], trees: dict[int, DraftTree]) -> None:
        """Prefixes that were asked for become sequences of their own."""
        for prefix, (seq, node) in zip(prefixes, ends, strict=True):
            tree = trees[seq]
            if node == ROOT:
                continue
            fork = self._backbone.fork(seq)
            self._backbone.commit(fork, tree.path(node))
            self._backbone.detach(fork)
            self._known[prefix] = fork
        for seq in trees:
            self._backbone.detach(seq)
        touched = len(trees) + len(prefixes)  # at the end of the order
        while len(self._known) > 1 and (
            self._bytes() > self._limit or (len(self._known) > touched and self._backbone.held_slots > SLOTS)
        ):
            self._backbone.drop(self._known.popitem(last=False)[1])

    def _bytes(self) -> int:
        logits = len(self._known) * self._backbone.vocabulary_size * self._backbone.dtype.itemsize
        return self._backbone.held_bytes + logits


def _chains(prefixes: list[Tokens]) -> list[list[Tokens]]:
    """The prefixes in lists of which each one is the beginning of the next."""
    chains: list[list[Tokens]] = []
    for prefix in sorted(prefixes):
        if chains and prefix[: len(chains[-1][-1])] == chains[-1][-1]:
            chains[-1].append(prefix)
        else:
            chains.append([prefix])
    return chains


def _stems(prefixes: list[Tokens]) -> list[Tokens]:
    """What is run as sequences for prefixes of which nothing is known: each goes on from one of these by a
    few tokens.  Prompts that only begin alike stay apart, so that each is kept as a prompt."""
    stems, groups = list[Tokens](), [prefixes] if prefixes else []
    while groups:
        group = groups.pop()
        stem = _common(group)
        if stem and max(map(len, group)) - len(stem) <= _FEW:
            stems.append(stem)
            continue
        stems += [stem] if stem in group else []
        parts: dict[int, list[Tokens]] = {}
        for prefix in group:
            if len(prefix) > len(stem):
                parts.setdefault(prefix[len(stem)], []).append(prefix)
        groups += parts.values()
    return stems


def _common(prefixes: list[Tokens]) -> Tokens:
    """The longest beginning that all share."""
    first = min(prefixes)
    return first[: common(first, max(prefixes))]
