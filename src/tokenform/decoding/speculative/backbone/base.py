"""What every backbone keeps: sequences, their committed tokens, and the last scored tree.

Purpose: one object runs the model for everybody.  `score` runs the tokens that have no
keys and values yet, and a draft tree, for each sequence; `commit` moves a sequence on.
Invariant: the logits that `score` returns depend on the committed tokens and the node's
path alone, however the sequence was forked, drafted, committed or truncated before.
Complexity: `fork` O(length) bookkeeping, no forward pass beyond the prompt's; `commit`,
`truncate`, `drop` O(tokens concerned).
Rejected: handing out the cache (every sampler would have to keep it consistent).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch
from typing_extensions import Self

from tokenform.errors import InvalidState, ModelError, OptionError, PromptTooLong

from ..scores import Columns, Scores, root_of
from ..tree import DraftTree
from .facts import device_of, first_parameter, max_length, padding_cost, text_config
from .prompt_cache import PromptCache, common
from .threads import threads_of

if TYPE_CHECKING:
    from .static_passes import Compiled


Logits = torch.Tensor | Scores
"""Of one sequence, [n + 1, V]."""


@dataclass
class Track:
    """One sequence.

    Attributes:
        tokens: committed tokens.
        computed: how many of them have keys and values in the cache.
        tree, logits: the last scored tree and its logits [n + 1, V]; None after `commit`.
        root: logits [V] after all committed tokens, if all of them are known.
        follows: whether somebody asks for hidden states.
        states: hidden states [n + 1, d] that came with `logits`; None: unknown.
        hidden: [d], the one that the last committed token was drawn at; None: unknown.
        place: where the subclass keeps its keys and values.
        prompt: how many first tokens are the prompt, until those are kept for later calls; then 0.
    """

    tokens: list[int]
    computed: int = 0
    tree: DraftTree | None = None
    logits: Logits | None = None
    root: torch.Tensor | None = None
    follows: bool = False
    states: torch.Tensor | None = None
    hidden: torch.Tensor | None = None
    place: Any = None
    prompt: int = 0


class _Tracks(dict[int, Track]):
    """The open sequences by number."""

    def __missing__(self, seq: int) -> Track:
        raise InvalidState(f"sequence {seq} is not open in this backbone")


@dataclass
class Counters:
    """What a backbone has done so far: forward passes, positions with padding, tokens run through them, and
    passes whose time says nothing of others (something was captured before, or the model ran as it is where
    steps are replayed)."""

    forwards: int = 0
    positions: int = 0
    prefilled: int = 0
    scored: int = 0
    unusual: int = 0
    notes: list[str] = field(default_factory=list)


class Backbone:
    """Runs a causal language model for a ragged batch of sequences.

    `Backbone(model)` picks what serves the model exactly: trees, chains or plain decoding
    (`mode` says which, `notes` why).

    Args:
        model: a Hugging Face causal language model, or anything with the same call.
        mode: "tree", "chain" or "plain"; None picks the best that is exact.
        share: most sequences that share the cache row of one prompt; more are copied.
        prompts: what earlier backbones of the model have left of their prompts; None for nothing.  Only
            mode "tree" has a use for it.
        size: V of a model whose config does not say it.
        compiled: the model's passes of fixed shapes, for steps of decoding; None runs it as it is.  Only mode
            "tree" can use them.
    Raises:
        ModelError: an encoder-decoder model, or no model at all.
    """

    mode: str = "tree"
    _chosen: Any = None

    def __new__(cls, model: Any, mode: str | None = None, *rest: Any, **named: Any) -> Backbone:
        if cls is Backbone:
            from .choice import backbone_class  # the subclasses import this module

            cls, *chosen = backbone_class(model, mode)
            made = super().__new__(cls)
            made._chosen = chosen  # for `__init__`
            return made
        return super().__new__(cls)

    @property
    def sliced(self) -> bool:
        """Whether `score_listed` pays."""
        return False

    @property
    def forks(self) -> bool:
        """Whether a fork goes on from what its sequence has run; else it is run again."""
        return True

    @property
    def held_slots(self) -> int:
        """Keys and values that every token of a pass attends over, whoever's they are."""
        return 0

    @property
    def held_bytes(self) -> int:
        """Memory of the keys and values that some sequence holds."""
        return 0

    def __init__(
        self,
        model: Any,
        mode: str | None = None,
        share: int = 8,
        prompts: PromptCache | None = None,
        size: int | None = None,
        compiled: Compiled | None = None,
    ) -> None:
        from .choice import backbone_class

        mode, notes = self._chosen or backbone_class(model, mode)[1:]
        self._set(model, mode, share, notes, size)
        self._prompts = prompts
        if compiled is not None:
            self._compile(compiled)

    @classmethod
    def untried(cls, model: Any, mode: str, share: int = 8, size: int | None = None) -> Self:
        """A backbone of this class, although nobody knows yet whether it serves the model exactly."""
        backbone = object.__new__(cls)
        backbone._set(model, mode, share, (), size)
        return backbone

    def _set(self, model: Any, mode: str, share: int, notes: Sequence[str], size: int | None) -> None:
        if share < 1:
            raise OptionError(f"share is the number of sequences of a cache row, at least 1, not {share}")
        self.mode, self.model, self.config = mode, model, text_config(model)
        self.share, self._prompts = share, None
        size = getattr(self.config, "vocab_size", size)
        if size is None:
            raise OptionError(f"{type(model).__name__} has no config that says its vocabulary; give size=")
        self.vocabulary_size = int(size)
        self.max_length = max_length(self.config)
        self.counters = Counters(notes=list(notes))
        self.padding, self._threads = padding_cost(model), threads_of(model)
        self.device, self.dtype = device_of(model), getattr(first_parameter(model), "dtype", torch.float32)
        self._tracks = _Tracks()
        self._ids = itertools.count()

    def _compile(self, compiled: Compiled) -> None:
        """Steps of decoding are run as these passes, where they can be."""
        self.notes.append(f"{compiled.option}: the model's own cache has no fixed shape, so it runs as it is")

    @property
    def notes(self) -> list[str]:
        """What the model could not be given, in sentences."""
        return self.counters.notes

    def open(self, prompt_ids: Sequence[int]) -> int:
        """A new sequence; its prompt is run at the first `score`.

        Raises:
            OptionError: the prompt is empty, or has ids that the model does not know.
            PromptTooLong: the prompt does not fit the model's positions.
        """
        tokens = [int(t) for t in prompt_ids]
        if not tokens:
            raise OptionError("the prompt is empty; give at least the token that begins a text")
        bad = next((t for t in tokens if not 0 <= t < self.vocabulary_size), None)
        if bad is not None:
            raise OptionError(f"token {bad} is not in the model's vocabulary of {self.vocabulary_size}")
        self._check_length(len(tokens))
        seq = next(self._ids)
        self._tracks[seq] = self._start(tokens)
        return seq

    def fork(self, seq: int) -> int:
        """A copy of a sequence, its scored tree included; its keys and values are shared."""
        track = self._tracks[seq]
        if len(track.tokens) - track.computed > 1:
            self.score({seq: DraftTree()})
        new = next(self._ids)
        copy = Track(list(track.tokens), track.computed, track.tree, track.logits, track.root)
        self._share(track, copy)
        self._tracks[new] = copy
        return new

    def drop(self, seq: int) -> None:
        """Ends a sequence and frees what only it holds."""
        track = self._tracks[seq]
        self._forget_tree(track)
        self._release(track, 0)
        self._close(track)
        del self._tracks[seq]

    def commit(self, seq: int, tokens: Sequence[int]) -> None:
        """Appends tokens.  Those that the last scored tree has keep their keys and values.

        Raises:
            PromptTooLong: the text outgrows the model's positions.
        """
        track = self._tracks[seq]
        if not tokens:
            return
        if self.max_length is not None:
            self._check_length(len(track.tokens) + len(tokens))
        nodes = track.tree.walk(tokens) if track.tree is not None and track.tree.tokens else []
        logits = track.logits
        if track.computed == len(track.tokens):
            if nodes:
                self._keep(track, nodes)
            track.computed += len(nodes)
        track.tokens.extend(map(int, tokens))
        known = nodes and len(nodes) == len(tokens) and logits is not None
        root = root_of(logits, nodes[-1] + 1) if known and logits is not None else None
        at = len(tokens) - 1  # row of the pass, on a path, at which the last token was drawn
        states = track.states if len(nodes) >= at else None
        track.hidden = None if states is None else states[nodes[at - 1] + 1 if at else 0].clone()
        self._free_tree(track)
        track.tree, track.logits, track.root, track.states = None, None, root, None

    def go_on(self, seq: int, prompt_ids: Sequence[int]) -> None:
        """Makes these the tokens of a sequence, which keeps what it has run of their beginning.

        Raises:
            OptionError: they begin with another token.
            PromptTooLong: they outgrow the model's positions.
        """
        tokens = [int(t) for t in prompt_ids]
        shared = common(tokens, self._tracks[seq].tokens, len(tokens))
        self.truncate(seq, shared)
        self.commit(seq, tokens[shared:])

    def truncate(self, seq: int, length: int) -> None:
        """Forgets the committed tokens from `length` on; at least one must be left."""
        track = self._tracks[seq]
        if not 1 <= length <= len(track.tokens):
            raise OptionError(f"can't cut a sequence of {len(track.tokens)} tokens to {length}")
        if length == len(track.tokens):
            return
        self._forget_tree(track)
        del track.tokens[length:]
        track.root = track.hidden = None
        self._release(track, min(track.computed, length - 1))

    def score(self, trees: Mapping[int, DraftTree]) -> dict[int, torch.Tensor]:
        """Logits at the root and at every node of each sequence's tree, in one forward pass.

        Args:
            trees: sequence -> draft tree, which may be empty.  Chains alone where the mode is not "tree"; in
                mode "plain" a text with one is run as a whole, and nothing is kept of it.
        Returns:
            sequence -> float [n + 1, V]: row 0 after the committed tokens, row i + 1 after
            node i.  If the pass raises, every sequence is as it was, without its last tree.
        """
        return cast("dict[int, torch.Tensor]", self.score_listed(trees, {}))

    def score_listed(
        self, trees: Mapping[int, DraftTree], columns: Mapping[int, Columns]
    ) -> dict[int, Logits]:
        """As `score`, of some sequences' rows at listed tokens alone where that takes less time.

        Args:
            columns: of these sequences the tokens that are wanted at each row, as many as nodes and one.
        """
        out: dict[int, Logits] = {}
        todo: dict[int, DraftTree] = {}
        for seq, tree in trees.items():
            track = self._tracks[seq]
            if self.max_length is not None:
                self._check_length(len(track.tokens) + max(tree.depths, default=0))
            if track.tree is not None:
                self._forget_tree(track)
            if track.root is None and track.computed == len(track.tokens):  # only a part of it is known
                self._release(track, track.computed - 1)
            if tree.tokens or track.root is None or track.computed < len(track.tokens):
                todo[seq] = tree
            else:
                track.tree, track.logits = tree, track.root[None]
                out[seq] = track.logits
        if todo:
            with self._threads.run(self.counters):
                scored = self._run(todo, columns)
            for seq, logits in scored.items():
                track = self._tracks[seq]
                root = logits[0]
                track.root = root if isinstance(root, torch.Tensor) else None
                track.tree, track.logits = todo[seq], logits
                out[seq] = logits
        return out

    def tokens(self, seq: int) -> list[int]:
        """The committed tokens (a copy)."""
        return list(self._tracks[seq].tokens)

    def pending(self, seq: int) -> int:
        """Tokens that the next pass over a sequence alone runs whatever is drafted: one, or those of a prompt
        whose pass has the first draft with it."""
        return 1

    def detach(self, seq: int) -> None:
        """Forgets the scored tree, and copies the sequence's last logits, so that those of the pass that they
        came from may go."""
        track = self._tracks[seq]
        self._forget_tree(track)
        track.root = None if track.root is None else track.root.clone()

    def follow(self, seq: int) -> None:
        """Keeps the sequence's hidden states from now on: what comes into the model's output layer.

        Raises:
            ModelError: they can't be reached.
        """
        if not self._reaches():
            raise ModelError(
                f"{type(self.model).__name__}: its last hidden state can't be reached, for no module is its"
                " output layer (`get_output_embeddings`) or its `forward` is its own; take another drafter"
            )
        self._tracks[seq].follows = True

    def hidden(self, seq: int) -> torch.Tensor | None:
        """The hidden state [d], on the model's device, at which the last committed token was drawn.

        None where it is not known: before the first pass, after `truncate`, and in a sequence that nobody
        follows.
        """
        return self._tracks[seq].hidden

    def last_logits(self, seq: int) -> torch.Tensor | None:
        """Logits [V] after the committed tokens, if no forward pass is needed to know them."""
        return self._tracks[seq].root

    @property
    def sequences(self) -> list[int]:
        """The live sequences."""
        return list(self._tracks)

    def _check_length(self, length: int) -> None:
        if self.max_length is not None and length > self.max_length:
            raise PromptTooLong(
                f"{length} tokens don't fit the model's {self.max_length} positions;"
                " shorten the prompt or max_tokens"
            )

    def _forget_tree(self, track: Track) -> None:
        self._free_tree(track)
        track.tree = track.logits = track.states = None

    def _booked(
        self, track: Track, pending: int, wanted: int, logits: Logits, states: torch.Tensor | None
    ) -> Logits:
        """Counts what was run of a sequence: pending tokens, and those whose logits were wanted.

        Args:
            states: hidden states of the latter; not kept where the root is none of them.
        Returns:
            the logits at the root and the nodes of its tree; the root's are known where nothing was pending.
        """
        track.computed += pending
        self.counters.prefilled += max(pending - 1, 0)
        self.counters.scored += wanted
        if pending:
            track.states = states
            return logits
        assert track.root is not None
        rows = logits.whole() if isinstance(logits, Scores) else logits
        return torch.cat([track.root[None].to(rows.dtype), rows])

    def _reaches(self) -> bool:
        """Whether hidden states can be had."""
        return False

    def _start(self, tokens: list[int]) -> Track:
        """A track for a new prompt, with whatever of it is already computed elsewhere."""
        raise NotImplementedError

    def _share(self, track: Track, copy: Track) -> None:
        """Gives `copy` the keys and values of `track`."""
        raise NotImplementedError

    def _run(self, trees: Mapping[int, DraftTree], columns: Mapping[int, Columns]) -> Mapping[int, Logits]:
        """Runs pending tokens and trees; sets `computed` and the tree's place."""
        raise NotImplementedError

    def _keep(self, track: Track, nodes: Sequence[int]) -> None:
        """The scored nodes on the committed path become part of the text."""
        raise NotImplementedError

    def _release(self, track: Track, computed: int) -> None:
        """Frees the keys and values from `computed` on and sets `track.computed`."""
        raise NotImplementedError

    def _free_tree(self, track: Track) -> None:
        """Frees the keys and values of the last tree."""
        raise NotImplementedError

    def _close(self, track: Track) -> None:
        """The sequence is gone."""
        raise NotImplementedError
