"""The engine against two independent validators, on random schemas and documents.

    python -m benchmarks.suites differential --seconds 600 --seed 1

Purpose: find any document on which the engine and the validators differ, and any walk that does not end.
Invariant: with every option at "any" a document is accepted exactly if it is valid; a schema that is refused
as unsatisfiable has no valid document among those tried; a walk along the masks reaches an accepted end.
Complexity: a schema costs a few dozen documents, each one pass of each judge.
Rejected: one validator: where the two differ (float `multipleOf`, `re` against ECMA-262) nothing is proven,
so such documents are left out.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tokenform.errors import InvalidSchema, TokenformError, UnsatisfiableSchema
from tokenform_bench.documents import write
from tokenform_bench.judges import Judges
from tokenform_bench.random_schemas import URIS, SchemaMaker, changed, documents

from .maskcheck import byte_vocabulary
from .walks import LOOSE

EOS = 256


@dataclass
class Findings:
    """What one schema showed: (kind, document or detail); kinds are "accepts invalid", "rejects valid",
    "unsatisfiable, but valid", "dead end", "refused", "slow"."""

    schema: Any
    compared: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)
    refused: str = ""


def finished_walk(automaton: Any, rng: random.Random, longest: int = 60) -> bytes:
    """A random text along the masks, brought to an end by the known distances.

    Raises:
        ValueError: no token is allowed in a state that is not accepting, or none comes nearer to the end.
    """
    state, out = automaton.start, bytearray()
    for step in range(longest * 20):
        if automaton.is_accepting(state) and (step >= longest or rng.random() < 0.2):
            return bytes(out)
        allowed = [int(t) for t in automaton.allowed_tokens(state) if t != EOS]
        if not allowed:
            if automaton.is_accepting(state):
                return bytes(out)
            raise ValueError(f"dead end after {bytes(out)!r}")
        if step < longest:
            # printable bytes and structure first: whitespace would fill the text
            token = rng.choice([t for t in allowed if t > 32] or allowed)
            state = automaton.advance(state, token)
        else:
            token, state = _nearer(automaton, state, allowed, bytes(out))
        out.append(token)
    raise ValueError(f"no end within {longest * 20} bytes: {bytes(out)!r}")


def _nearer(automaton: Any, state: int, allowed: list[int], before: bytes) -> tuple[int, int]:
    now = automaton.distance(state)
    for token in allowed:
        after = automaton.advance(state, token)
        left = automaton.distance(after)
        if left is not None and (now is None or left < now):
            return token, after
    raise ValueError(f"distance {now}, no byte comes nearer to the end after {before!r}")


def beyond_floats(text: bytes) -> bool:
    """Whether a number of the text has a value or digits that the validators' floats do not keep."""
    found: list[Decimal] = []

    def read(digits: str) -> None:
        found.append(Decimal(digits))

    json.loads(text, parse_float=read, parse_int=read)
    return any(x and (not -6 < x.adjusted() < 15 or len(x.normalize().as_tuple().digits) > 12) for x in found)


def _dot_differs(schema: Any, text: str) -> bool:
    """Whether a pattern's `.` may meet a separator: ECMA-262 excludes four, the validators' engines one."""
    separators = any(
        c in json.dumps(json.loads(text), ensure_ascii=False) for c in ("\\r", "\u2028", "\u2029")
    )
    return separators and "attern" in json.dumps(schema)


class Differ:
    """Compares on one schema at a time; the vocabulary of single bytes is made once."""

    def __init__(self) -> None:
        import tokenform as tf

        self._compile = tf.json_schema
        self._vocabulary = byte_vocabulary()

    def compare(
        self,
        schema: Any,
        rng: random.Random,
        draft: int,
        count: int = 24,
        walks: int = 4,
        given: Iterable[Any] = (),
        judged: Any = None,
    ) -> Findings:
        """Judge given and random documents and the ends of random walks.

        Args:
            judged: the schema as the validators read it, where that is another.
        """
        found = Findings(schema)
        maker = SchemaMaker(rng, draft)
        judges = Judges(schema if judged is None else judged)
        tried = [*given, *documents(maker, schema, count)]
        automaton = None
        try:
            automaton = self._compile(schema, **LOOSE).compile(self._vocabulary)
        except UnsatisfiableSchema:
            pass
        except TokenformError as error:
            found.refused = f"{type(error).__name__}: {error}"
            circular = "refers to itself" in str(error) or "form a circle" in str(error)
            if isinstance(error, InvalidSchema) and not circular:
                found.wrong.append(("refused", found.refused))
            return found
        for document in tried:
            self._document(found, judges, automaton, document)
        if automaton is None:
            return found
        for _ in range(walks):
            try:
                text = finished_walk(automaton, rng)
            except TokenformError as error:
                found.refused = f"{type(error).__name__}: {error}"
                return found
            except ValueError as error:
                found.wrong.append(("dead end", str(error)))
                continue
            if beyond_floats(text):
                continue
            found.compared += 1
            judgement = judges.judge(text.decode("utf-8"))
            if not judgement.parses or (
                judgement.verdicts
                and not judgement.valid
                and not judgement.disputed
                and not _dot_differs(schema, text.decode("utf-8"))
            ):
                found.wrong.append(("accepts invalid", f"{text!r}: {judgement.describe()}"))
            elif judgement.parses:
                self._document(found, judges, automaton, changed(maker, json.loads(text)))
        return found

    def _document(self, found: Findings, judges: Judges, automaton: Any, document: Any) -> None:
        text = write(document)
        judgement = judges.judge(text)
        if judgement.disputed or len(judgement.verdicts) < 2 or _dot_differs(found.schema, text):
            return
        found.compared += 1
        if automaton is None:
            if judgement.valid:
                found.wrong.append(("unsatisfiable, but valid", text))
            return
        try:
            accepted = bool(automaton.matches(text.encode("utf-8")))
        except TokenformError as error:
            found.refused = f"{type(error).__name__}: {error}"
            return
        if accepted and not judgement.valid:
            found.wrong.append(("accepts invalid", f"{text}: {judgement.describe()}"))
        elif judgement.valid and not accepted:
            found.wrong.append(("rejects valid", text))


def run(seconds: float, seed: int, drafts: list[int] | None = None) -> Iterator[Findings]:
    """Findings of one random schema after the other, until the time is up."""
    differ = Differ()
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        rng = random.Random(f"{seed}:{number}")
        draft = rng.choice(drafts or sorted(URIS))
        schema = SchemaMaker(rng, draft).schema()
        begun = time.monotonic()
        found = differ.compare(schema, rng, draft)
        if time.monotonic() - begun > 20.0:
            found.wrong.append(("slow", f"{time.monotonic() - begun:.1f} s"))
        yield found
        number += 1


def report(findings: Iterator[Findings], width: int = 300) -> tuple[str, int]:
    """Prints what is wrong as it comes; a summary, and the number of violations."""
    kinds: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    schemas = compared = 0
    for found in findings:
        schemas, compared = schemas + 1, compared + found.compared
        if found.refused:
            refusals[found.refused[:80]] += 1
        for kind, detail in found.wrong:
            kinds[kind] += 1
            print(f"{kind}  {detail[:width]}\n    {json.dumps(found.schema, ensure_ascii=False)}", flush=True)
    lines = [f"{schemas} schemas, {compared:,} documents, violations: {dict(kinds) or 'none'}"]
    lines += [f"  refused {count}: {text}" for text, count in refusals.most_common(12)]
    return "\n".join(lines), sum(kinds.values())
