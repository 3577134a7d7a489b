"""Conditions: constraints stated as Python functions, alone or together with a grammar.

Purpose: what has no mask (a type checker, a regex with backreferences, a simulator, a parser of molecules)
as a constraint that `generate(schema=...)` takes like any other.  This module only holds what was asked
for; `decoding.aligned` compiles it for a vocabulary and runs it.
Invariant: a condition never changes; `a & b` accepts what both accept.
Rejected: taking a bare function for a condition (functions already stand for their arguments, `from_type`);
`|` and `~` of conditions (a prefix test accepts too much by design, so its negation is no prefix test).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tokenform.errors import OptionError
from tokenform.frontends.grammar import Grammar

Seen = Literal["text", "bytes", "tokens"]


@dataclass(frozen=True)
class Test:
    """One pair of functions; the fields are the arguments of `predicate`."""

    __test__ = False  # not a test case, whatever its name says to pytest

    prefix: Callable[[Any], Any] | None
    complete: Callable[[Any], Any] | None
    on: Seen = "text"
    batch: bool = False
    cache: int = 1 << 16
    name: str | None = None


@dataclass(frozen=True)
class Condition:
    """Texts that pass every test and are accepted by the grammar, where there is one, and by the languages.

    Attributes:
        tests: of Python.
        grammar: gives exact masks, so that tests are asked only about tokens that it lets through; or None.
        languages: regular ones beside a grammar that is not regular.  Their masks meet, which may end in a
            place from which nothing is accepted by both.
    """

    tests: tuple[Test, ...]
    grammar: Grammar | None = None
    languages: tuple[Grammar, ...] = ()

    @property
    def schema(self) -> Any:
        """The grammar's schema, for prompts; or None."""
        return None if self.grammar is None else self.grammar.schema

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The definitions of the grammar's tools, for prompts."""
        return () if self.grammar is None else self.grammar.tools

    def parse(self, text: str) -> Any:
        """The value of an accepted text: what the grammar reads, else the text."""
        return text if self.grammar is None else self.grammar.parse(text)

    def __and__(self, other: Any) -> Condition:
        if isinstance(other, Grammar):
            joined = other if self.grammar is None else self.grammar & other
            if isinstance(joined, Condition):
                return Condition(self.tests, joined.grammar, (*self.languages, *joined.languages))
            return Condition(self.tests, joined, self.languages)
        if not isinstance(other, Condition):
            return NotImplemented
        both = self if other.grammar is None else self & other.grammar
        return Condition((*both.tests, *other.tests), both.grammar, (*both.languages, *other.languages))

    __rand__ = __and__


def predicate(
    prefix: Callable[[Any], Any] | None = None,
    complete: Callable[[Any], Any] | None = None,
    *,
    on: Seen = "text",
    batch: bool = False,
    cache: int = 1 << 16,
    name: str | None = None,
) -> Condition:
    """A constraint from Python functions; joins grammars and other predicates by `&`.

    It needs a sampler that can do without whole masks: `AWRS`, `SMC`, `CARS`, `ASAp`, `MCMC` or `Beam`.

    Args:
        prefix: may this be the beginning of an accepted text?  It may accept too much, never too little.
            None accepts every beginning.
        complete: is this an accepted text?  None accepts whatever `prefix` accepts.
        on: what the functions get: "text" (str of whole characters, never half of one), "bytes", or "tokens"
            (tuple of ids).
        batch: the functions get a list and return a list of bools of the same length.
        cache: verdicts that are kept, for each function.
        name: names the content for saved tries; None takes the functions' names.
    The functions return bool; they may be `async`, and those of one batch then run side by side.
    Raises:
        OptionError: no function is given, or `on` is unknown.
    """
    if prefix is None and complete is None:
        raise OptionError("a predicate needs a prefix function, a complete function, or both.")
    if on not in ("text", "bytes", "tokens"):
        raise OptionError(f"on={on!r} is not known; choose 'text', 'bytes' or 'tokens'.")
    return Condition((Test(prefix, complete, on, batch, cache, name),))
