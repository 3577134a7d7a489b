"""Random walks and re-spellings: the language that masks really allow, judged from both sides.

Purpose: a walk draws random tokens of the 131k vocabulary from the masks and must end as a valid document
(nothing too loose, no dead end, no budget overrun); a re-spelling writes a valid document in other ways, cut
into other tokens, and must be accepted token by token (nothing too tight).
Invariant: every violation is reported with the seed that repeats it.
Complexity: one mask and a few distances a token.
Rejected: sampling by a language model (it stays on the path of likely tokens; here each token of the
vocabulary counts alike).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenform.errors import TokenformError
from tokenform_bench.data import Case
from tokenform_bench.documents import has_lone_surrogate, respelled
from tokenform_bench.judges import Judges
from tokenform_bench.vocabulary import tekken

LOOSE: dict[str, Any] = {"order": "any", "whitespace": "any", "numbers": "any", "strings": "any"}
_TRIES = 48


@dataclass
class Report:
    """What the walks or re-spellings of one schema showed.

    Attributes:
        done: walks that ended, or spellings that were accepted.
        violations: (kind, detail); kinds are "invalid", "disputed", "dead end", "over budget",
        "inconsistent", "rejected".
        refused: the error where the schema doesn't compile.
    """

    id: str
    done: int = 0
    tokens: int = 0
    violations: list[tuple[str, str]] = field(default_factory=list)
    refused: str = ""


def bits(mask: Any) -> Any:
    """Sorted token ids of a mask uint32[W]."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(mask).view(np.uint8), bitorder="little"))


def random_walk(automaton: Any, rng: random.Random, budget: int, eos: int) -> tuple[list[int], str]:
    """Tokens of a random walk of at most `budget` tokens and what went wrong ("" for nothing)."""
    state, taken = automaton.start, list[int]()
    while True:
        remaining = budget - len(taken)
        allowed = bits(automaton.mask(state))
        accepting = automaton.is_accepting(state)
        if accepting != bool((allowed == eos).any()):
            return taken, "inconsistent: EOS in the mask, but not accepting, or the reverse"
        allowed = allowed[allowed != eos]
        if accepting and (remaining == 0 or allowed.size == 0 or rng.random() < 0.1):
            return taken, ""
        if allowed.size == 0:
            return taken, "dead end: no token is allowed, and the text is not complete"
        if remaining <= 0:
            return taken, f"over budget: {automaton.distance(state)} more tokens are needed"
        step = _step(automaton, state, allowed, remaining, rng)
        if step is None:
            if accepting:
                return taken, ""
            least = automaton.distance(state)
            return taken, f"over budget: distance is {least}, {remaining} left, no token leads there"
        token, state = step
        taken.append(token)


def _step(
    automaton: Any, state: int, allowed: Any, remaining: int, rng: random.Random
) -> tuple[int, int] | None:
    """A random allowed token after which the text can still be completed in time; None if there is none."""
    for _ in range(min(_TRIES, allowed.size * 2)):
        token = int(allowed[rng.randrange(allowed.size)])
        after = automaton.advance(state, token)
        left = automaton.distance(after)
        if left is not None and left < remaining:
            return token, after
    within = bits(automaton.mask_within(state, remaining))
    within = within[np.isin(within, allowed)]
    if within.size == 0:
        return None
    token = int(within[rng.randrange(within.size)])
    return token, automaton.advance(state, token)


def walker(walks: int, longest: int, options: dict[str, Any]) -> Callable[[Case], Report]:
    """Build, in a worker, the function that walks one schema `walks` times."""
    import tokenform as tf

    shared = tekken()
    vocabulary = tf.Vocabulary(shared.tokens, eos=[shared.eos], special=shared.special)

    def run(case: Case) -> Report:
        report = Report(case.id)
        try:
            automaton = tf.json_schema(case.schema, **options).compile(vocabulary)
        except TokenformError as error:
            report.refused = f"{type(error).__name__}: {error}"
            return report
        judges = Judges(case.schema)
        for seed in range(walks):
            rng = random.Random(f"{case.id}:{seed}")
            try:
                least = automaton.distance(automaton.start)
            except TokenformError as error:
                report.refused = f"{type(error).__name__}: {error}"
                return report
            if least is None:
                report.refused = "no end is known within the search's bounds"
                return report
            budget = least + rng.choice((0, 1, 5, longest // 4, longest))
            try:
                tokens, wrong = random_walk(automaton, rng, budget, shared.eos)
            except TokenformError as error:
                tokens, wrong = [], f"inconsistent: {type(error).__name__}: {error}"
            report.tokens += len(tokens)
            raw = b"".join(shared.tokens[t] for t in tokens)
            text = raw.decode("utf-8", "replace")
            if wrong:
                kind, _, detail = wrong.partition(": ")
                report.violations.append((kind, f"walk {seed}, budget {budget}: {detail}: {text[-200:]!r}"))
                continue
            report.done += 1
            judgement = judges.judge(text)
            if not judgement.parses or (judgement.verdicts and not judgement.valid):
                kind = "disputed" if judgement.disputed else "invalid"
                report.violations.append((kind, f"walk {seed}: {judgement.describe()}: {text[:300]!r}"))
        return report

    return run


def random_cut(text: bytes, by_bytes: dict[bytes, int], longest: int, rng: random.Random) -> list[int]:
    """A random tokenisation: at each place any token that matches, short and long ones alike."""
    at, tokens = 0, []
    while at < len(text):
        lengths = [n for n in range(1, min(longest, len(text) - at) + 1) if text[at : at + n] in by_bytes]
        length = rng.choice(lengths)
        tokens.append(by_bytes[text[at : at + length]])
        at += length
    return tokens


def respeller(spellings: int) -> Callable[[Case], Report]:
    """Build, in a worker, the function that re-spells the valid documents of one schema.

    A spelling that the validators refuse (in draft 4, `1.0` is no integer) gives way to one with plain
    numbers.
    """
    import tokenform as tf

    shared = tekken()
    vocabulary = tf.Vocabulary(shared.tokens, eos=[shared.eos], special=shared.special)
    ordinary = range(len(shared.special), len(shared.tokens))
    by_bytes = {shared.tokens[i]: i for i in ordinary}
    longest = max(map(len, by_bytes))

    def run(case: Case) -> Report:
        report = Report(case.id)
        try:
            automaton = tf.json_schema(case.schema, **LOOSE).compile(vocabulary)
        except TokenformError as error:
            report.refused = f"{type(error).__name__}: {error}"
            return report
        judges = Judges(case.schema)
        for index, document in enumerate(case.documents):
            if not document.valid or has_lone_surrogate(document.data):
                continue
            for seed in range(spellings):
                rng = random.Random(f"{case.id}:{index}:{seed}")
                spelled = respelled(document.data, rng)
                if not judges.judge(spelled).valid:
                    spelled = respelled(document.data, rng, numbers=False)
                text = spelled.encode("utf-8")
                tokens = random_cut(text, by_bytes, longest, rng)
                at = accepted_upto(automaton, tokens)
                report.tokens += len(tokens)
                if at is None:
                    report.done += 1
                    continue
                before = b"".join(shared.tokens[t] for t in tokens[:at])[-80:]
                after = b"".join(shared.tokens[t] for t in tokens[at:])[:60]
                report.violations.append(
                    ("rejected", f"document {index}, spelling {seed}: {before!r} <<HERE>> {after!r}")
                )
                break
        return report

    return run


def accepted_upto(automaton: Any, tokens: list[int]) -> int | None:
    """None where all tokens are in the masks before them and the text may end; else the place of the first
    that isn't."""
    state = automaton.start
    for index, token in enumerate(tokens):
        mask = automaton.mask(state)
        if not int(mask[token >> 5]) >> (token & 31) & 1:
            return index
        state = automaton.advance(state, token)
    return None if automaton.is_accepting(state) else len(tokens)
