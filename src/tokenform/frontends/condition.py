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
from typing import Any

from tokenform.errors import OptionError
from tokenform.frontends.grammar import Condition, Seen, Test


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
