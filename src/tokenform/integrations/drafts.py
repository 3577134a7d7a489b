"""Guesses of a request's next tokens, for hosts that verify drafts themselves.

Purpose: the default drafter (what the constraint forces, names of its schema, what stood in the text before)
as one chain of tokens, since hosts score chains.  The host's own test of drafts decides.
Invariant: nothing raises into the host's loop; a drafter that fails is asked no more for this request.
Complexity: 0.2 ms of Python a proposal, 3 µs a token of the prompt at the first one.
Memory: 450 bytes a token of the text and of the prompt's last `TAIL` tokens, while the request runs.
Rejected: the engine's `forced_tokens` alone (with free whitespace and names in any order next to nothing is
forced, though nearly every text is written in one manner); remembering the texts of other requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch

from tokenform.decoding.speculative.drafters.base import Budget, Context, Seen
from tokenform.decoding.speculative.drafters.forced import Forced
from tokenform.decoding.speculative.drafters.hints import Hints
from tokenform.decoding.speculative.drafters.merge import Merge, MergeSession
from tokenform.decoding.speculative.drafters.names import Names
from tokenform.decoding.speculative.drafters.suffix import Suffix
from tokenform.decoding.speculative.tree import ROOT, DraftTree
from tokenform.engine import Grammar, Matcher, Vocabulary
from tokenform.integrations.grammar_compiler import is_fault

logger = logging.getLogger("tokenform")

TAIL = 4096
"""Tokens of the prompt in which a text's beginning is looked up."""
LIKELY = 0.3
"""Probability of a chain below which it ends: a pass of one token more is not free."""
_UNREAD = torch.empty(0, 0)  # these drafters read no scores


class Drafts:
    """The drafter that an engine's requests share.

    Args:
        vocabulary: of the model; as wide as its logits.
        encode: bytes -> token ids as the model's tokenizer writes them, or None.
    """

    def __init__(self, vocabulary: Vocabulary, encode: Callable[[bytes], list[int]] | None) -> None:
        self.vocabulary, self.encode = vocabulary, encode
        self.drafter = Merge(Forced(), Names(), Suffix(remember=False))

    def request(self, grammar: Grammar) -> RequestDrafts:
        """Drafts of one request's text."""
        return RequestDrafts(self, grammar)


class RequestDrafts:
    """The drafts of one request.

    Args:
        shared: what all requests of the engine share.
        grammar: the request's constraint; its names and its writers' manners are guesses.
    """

    def __init__(self, shared: Drafts, grammar: Grammar) -> None:
        self._shared, self._grammar = shared, grammar
        self._session: MergeSession | None = None
        self._context = Context([], 0)
        self._tree, self._read, self._failed = DraftTree(), 0, False

    def read_ahead(self, matcher: Matcher, before: Sequence[int]) -> None:
        """Begins where no step waits for it."""
        try:
            self._begin(matcher, before)
        except BaseException as error:
            self._give_up(error)

    def _begin(self, matcher: Matcher, before: Sequence[int]) -> None:
        """Reads what stands before the text: ids of the prompt, and of a thought."""
        automaton, shared = matcher.automaton, self._shared
        tokens = list(before[-TAIL:])
        hints = Hints(self._grammar, shared.vocabulary)
        self._context = Context(
            tokens,
            len(tokens),
            automaton=automaton,
            state=automaton.start,
            vocabulary_size=shared.vocabulary.size,
            eos=frozenset(automaton.vocabulary.eos),
            hints=hints,
            encode=shared.encode,
        )
        hints.prepare()
        self._session = shared.drafter.session(self._context)

    def propose(self, matcher: Matcher, tokens: Sequence[int], most: int) -> list[int]:
        """At most `most` tokens that are likely next; none where nothing is.

        Args:
            matcher: of the text.
            tokens: the request's: its prompt, then all that it has written.
        """
        if self._failed:
            return []
        try:
            written = matcher.tokens
            if self._session is None:
                self._begin(matcher, tokens[: len(tokens) - len(written)])
            self._learn(written[self._read :])
            return self._likely(matcher, most)
        except BaseException as error:
            self._give_up(error)
            return []

    def _give_up(self, error: BaseException) -> None:
        if not is_fault(error):
            raise error
        self._failed, self._session = True, None
        logger.warning("no drafts for a request any more: %s: %s", type(error).__name__, error)

    def _learn(self, committed: list[int]) -> None:
        """Tells the drafter what was written since its last proposal."""
        session, context = self._session, self._context
        if committed and session is not None:
            context.tokens.extend(committed)
            self._read += len(committed)
            session.observe(context, Seen(committed, self._tree, _UNREAD))

    def _likely(self, matcher: Matcher, most: int) -> list[int]:
        """The likeliest chain of the session's tree; what it holds is kept for the next `_learn`."""
        session, context = self._session, self._context
        assert session is not None
        context.state = matcher.state
        tree = session.propose(context, Budget(4 * most, most))
        node, chance, chain = ROOT, 1.0, list[int]()
        while (below := tree.children(node)) and len(chain) < most:
            node = max(below, key=tree.confidences.__getitem__)
            chance *= tree.confidences[node]
            if chance < LIKELY:
                break
            chain.append(node)
        on = set(chain)
        self._tree = session.shape(tree, [one in on for one in range(len(tree))])
        return [tree.tokens[one] for one in chain]
