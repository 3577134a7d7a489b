"""The constraints of requests to servers: a kind and its text, compiled to an automaton.

Purpose: the one place where a request's "json", "regex", "choice", "grammar" or "structural_tag" becomes an
automaton; engines differ in their classes, not in these.
Invariant: a text is not compiled twice; every error of a constraint is a `TokenformError`.  Any thread may
call.
Memory: the last `KEPT` constraints and `ENDINGS` sets of end-of-text ids, each of which has a vocabulary.
Rejected: one vocabulary for all ids that end texts (an id of one request's `stop_token_ids` may be an
ordinary token for the next).

    compiler = GrammarCompiler(tokenizer, size=model_config.vocab_size)
    automaton = compiler.automaton("json", '{"type": "integer"}')
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from tokenform.engine import Grammar, TokenAutomaton, Vocabulary
from tokenform.errors import BudgetTooSmall, EngineError, TokenformError
from tokenform.frontends.grammar_text import grammar_of_text, spelling_of
from tokenform.frontends.structural_tag import structural_tag
from tokenform.frontends.tools import find_marks
from tokenform.frontends.tools.cache import LruCache
from tokenform.frontends.tools.thoughts import TAIL, after_thought

KEPT = 512
ENDINGS = 16
AHEAD = 128
"""States of a new automaton whose masks are made while a scheduler waits for the grammar: a millisecond."""
AHEAD_OF_TAGS = 1
"""The same of a structural tag.  To find the states next to the first takes a walk over all tokens of its
free text, 12 ms with 49,152, and their masks are mostly known from other tags."""
_Made = TypeVar("_Made")


class GrammarCompiler:
    """The automata of one model's requests.

    Args:
        tokenizer: the model's tokenizer, in any form that `Vocabulary.from_tokenizer` reads.
        size: width of the model's logits; further ids are padding.
        eos: the default ids that end texts; None: the tokenizer's.
        ahead: states whose masks are made with an automaton, for the first texts that it constrains.
    Raises:
        VocabularyError: the tokenizer can't be read.
    """

    def __init__(
        self, tokenizer: Any, *, size: int, eos: Iterable[int] | None = None, ahead: int = 0
    ) -> None:
        self.vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size, eos=eos)
        self._ahead = ahead
        self._marks = find_marks(tokenizer)
        self._grammars: LruCache[Grammar] = LruCache(KEPT)
        self._vocabularies: LruCache[Vocabulary] = LruCache(ENDINGS)

    def automaton(
        self,
        kind: str,
        text: str,
        *,
        stop_token_ids: Iterable[int] | None = None,
        prompt: Sequence[int] | None = None,
        **options: Any,
    ) -> TokenAutomaton:
        """The automaton of a constraint.

        Args:
            kind: "json", "json_object", "regex", "choice", "grammar" or "structural_tag".
            text: the constraint as the request's text; of a choice the JSON list.
            stop_token_ids: every id that may end this text; None or none: the model's own.
            prompt: ids of the prompt; where it has left a thought open, the constraint begins after it.
                None: the host handles thoughts itself.
            options: those of `json_schema`, for "json" and "json_object".
        Raises:
            TokenformError: the constraint is wrong; `EngineError` for a fault of the engine.
        """
        try:
            grammar = self.grammar(kind, text, **options).for_writing
            if prompt is not None and kind != "structural_tag":  # tags handle thoughts themselves
                grammar = after_thought(self._marks, text_of(self.vocabulary, prompt[-TAIL:]), grammar)
            automaton = grammar.compile(self.ending(stop_token_ids))
            self._prepare(automaton, AHEAD_OF_TAGS if kind == "structural_tag" else self._ahead)
            return automaton
        except TokenformError:
            raise
        except BaseException as error:
            if not is_fault(error):
                raise
            raise EngineError(f"the engine failed at this {kind}: {type(error).__name__}: {error}") from error

    def _prepare(self, automaton: TokenAutomaton, states: int) -> None:
        """Makes masks ahead, unless texts have made some; an error is raised again where it matters."""
        if self._ahead and automaton.state_count < 2:
            with contextlib.suppress(TokenformError):
                automaton.prepare(min(states, self._ahead))

    def grammar(self, kind: str, text: str, **options: Any) -> Grammar:
        """The grammar of a constraint, without a vocabulary."""
        key = kind, text, *sorted(options.items())
        make = self._tag if kind == "structural_tag" else grammar_of_text
        return _cached(self._grammars, key, lambda: make(kind, text, **options))

    def _tag(self, kind: str, text: str, **options: Any) -> Grammar:
        """A structural tag, whose literals may hold this vocabulary's control tokens."""
        return structural_tag(
            text, special=self._controls, token_text=self._token_text, json_options=spelling_of(options)
        )

    @cached_property
    def _controls(self) -> tuple[str, ...]:
        named = (self._token_text(token) for token in self.vocabulary.special)
        return tuple(text for text in named if text)

    def _token_text(self, token: int) -> str | None:
        in_vocabulary = 0 <= token < self.vocabulary.size
        return self.vocabulary.token(token).decode("utf-8", "ignore") if in_vocabulary else None

    def ending(self, stop_token_ids: Iterable[int] | None) -> Vocabulary:
        """The vocabulary whose texts end with these ids; those beyond its size are left out."""
        size = self.vocabulary.size
        ends = tuple(sorted({int(one) for one in stop_token_ids or () if 0 <= one < size}))
        if not ends or ends == tuple(sorted(self.vocabulary.eos)):
            return self.vocabulary
        return _cached(self._vocabularies, ends, lambda: self._with_ends(ends))

    def _with_ends(self, ends: tuple[int, ...]) -> Vocabulary:
        vocabulary = self.vocabulary
        special = {
            *vocabulary.special,
            *vocabulary.eos,
            *ends,
        }  # an id that ends other texts is no text here either
        return Vocabulary(vocabulary.tokens, list(ends), sorted(special))


def text_of(vocabulary: Vocabulary, ids: Iterable[int]) -> str:
    """The text of ids; those beyond the vocabulary have none."""
    known = (one for one in ids if 0 <= one < vocabulary.size)
    return b"".join(vocabulary.token(one) for one in known).decode("utf-8", "replace")


def is_fault(error: BaseException) -> bool:
    """Whether this is a fault of a call, a panic of the compiled part included; not what ends a process."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def error_text(error: TokenformError) -> str:
    """The error as one text for a client, with its place."""
    place = []
    if error.pointer is not None and error.pointer not in str(error):
        place.append(f"at {error.pointer!r} of the schema")
    if error.line is not None and f"line {error.line}" not in str(error):
        place.append(f"line {error.line}, column {error.column}")
    kind = type(error).__name__
    return f"{kind}: {error}" + (f" ({', '.join(place)})" if place else "")


def token_budget(automaton: TokenAutomaton, max_tokens: int) -> int:
    """Tokens of a text where `max_tokens` counts its end-of-text token too: one less, unless only all of them
    are enough.

    Raises:
        BudgetTooSmall: no complete text is so short.
    """
    for budget in (max_tokens - 1, max_tokens):
        if budget >= 0 and automaton.fits(automaton.start, budget):
            return budget
    shortest = automaton.distance(automaton.start)
    shortest_note = "" if shortest is None else f": the shortest that is known has {shortest} tokens"
    raise BudgetTooSmall(
        f"no complete text fits into max_tokens={max_tokens}{shortest_note}; raise max_tokens."
    )


def _cached(values: LruCache[_Made], key: Hashable, make: Callable[[], _Made]) -> _Made:
    """The value of a key; two threads that miss at once make it twice, and get one of the two."""
    found = values.get(key)
    return values.setdefault(key, make()) if found is None else found
