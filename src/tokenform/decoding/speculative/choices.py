"""The few options at a place of a text, as one tree of tokens with shared prefixes.

Distribution: `choosing.py` decides an option.  It is written in the tokens of the model's own tokenizer;
other ways to cut it count nothing, and are not written.  The tokens that complete it after its path count.
Invariant: the automaton allows every path; an option that it allows is never left out.
Complexity: one spelling a text, once a state; states and ends on demand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tokenform.engine import State
from tokenform.errors import VocabularyError

from .drafters.spelling import Spelling
from .tree import ROOT, DraftTree

SPACE = b" \t\r\n"


class Ends(NamedTuple):
    """Tokens that complete an option at a node.

    Attributes:
        option: which.
        tokens: their ids, int64.
    """

    option: int
    tokens: np.ndarray


class Choices(ABC):
    """The base class; a subclass has the options.

    Args:
        automaton, state: the constraint, and the place.
        options: the choices, as bytes.
        spelling: of the model's tokenizer.
        eos: tokens that end the text.

    Attributes:
        tree: the paths, without the tokens that complete an option.
        leaves: the nodes at which each option is completed; empty where no path is allowed.
    """

    def __init__(
        self, automaton: Any, state: State, options: Sequence[bytes], spelling: Spelling, eos: frozenset[int]
    ) -> None:
        self._automaton, self._spelling, self._eos = automaton, spelling, eos
        self.options = options
        self._states: dict[int, State | None] = {ROOT: state}
        self._rests: dict[tuple[int, int], bytes] = {}
        self._ends: dict[int, list[Ends]] = {}
        self.tree = DraftTree()
        self.leaves: list[list[int]] = []
        self._at: dict[int, list[int]] = {}

    @abstractmethod
    def begins(self, token: int) -> bool:
        """Whether a token at the root begins an option; other tokens may be allowed there, too."""

    @abstractmethod
    def _completing(self, option: int, node: int, allowed: Sequence[int]) -> Sequence[int]:
        """Those of the allowed tokens at a node that complete an option."""

    def state(self, node: int) -> State | None:
        """The automaton's state at a node; None where it refuses the path."""
        if node not in self._states:
            above, token = self.state(self.tree.parents[node]), self.tree.tokens[node]
            allowed = above is not None and self._automaton.allows(above, token)
            self._states[node] = self._automaton.advance(above, token) if allowed else None
        return self._states[node]

    def fits(self, option: int, node: int, budget: int) -> bool:
        """Whether a text with an option can end within `budget` tokens after its leaf."""
        return budget > 0 and bool(self._automaton.fits(self.state(node), budget))

    def ends(self, node: int) -> list[Ends]:
        """The tokens that complete options at a node, for those whose leaf it is."""
        if node not in self._ends:
            state = self.state(node)
            assert state is not None
            allowed = self._automaton.allowed_tokens(state).tolist()
            self._ends[node] = [
                Ends(one, np.array(self._completing(one, node, allowed), np.int64))
                for one in self._at.get(node, ())
            ]
        return self._ends[node]

    def _add_option(self, option: int, nodes: Sequence[int | None]) -> None:
        """Adds the next option, with the nodes at which its paths end."""
        self.leaves.append(list(dict.fromkeys(node for node in nodes if node is not None)))
        for node in self.leaves[-1]:
            self._at.setdefault(node, []).append(option)

    def _tokens(self, text: bytes) -> list[int]:
        """A text as the tokenizer writes it.

        Raises:
            VocabularyError: it can't.
        """
        tokens, data = self._spelling.encode(text), self._spelling.tokens
        if b"".join(map(data.__getitem__, tokens)) != text:
            raise VocabularyError("a value can't be spelled")  # the text goes on token by token
        return list(tokens)

    def _path(self, option: int, tokens: Sequence[int], shared: bool) -> int | None:
        """Adds a path of an option; its leaf, or None where the automaton refuses it.

        Args:
            shared: whether the last token may go on after the option's rest.
        """
        rest = b""
        if shared:
            rest = self._spelling.tokens[tokens[-1]]
            tokens = tokens[:-1]
        node = self.tree.add_path(ROOT, tokens)
        self._rests[option, node] = rest
        return node if self.state(node) is not None else None
