"""A model that copies: what comes out where an engine lets it write what it wants.

Purpose: whether defaults bend what a model would have written.  The model holds a document in its own
spelling; it takes the next token of it where the mask allows that, else the allowed token that keeps most of
the wanted text, and goes on from where its text then stands.
Invariant: every text is written under the masks alone; a text that is as wanted differs from it by no byte.
Complexity: one mask a token; where it is masked, a look at the tokens that begin as the wanted rest does.
Rejected: a language model (its own mistakes would be counted as the engine's); a random model (it wants
nothing).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tokenform_bench.data import Case
from tokenform_bench.engines import EngineOptions, EngineRefused, Session, load
from tokenform_bench.judges import Judges
from tokenform_bench.vocabulary import BenchVocabulary, tekken

# Tokens beyond twice the wanted ones after which a text counts as one that does not end.
SPARE = 64


@dataclass(frozen=True)
class Wanted:
    """A document as a model means to write it."""

    style: str
    schema: Any
    text: str
    id: str


@dataclass(frozen=True)
class Copied:
    """What came out.

    Attributes:
        outcome: "copied" byte for byte; "order" where it was not and the keys stand in another order than
            declared; "changed"; "endless"; "stuck" (no token is allowed); "refused" (the engine does not take
            the schema).
        text: what was written.
    """

    outcome: str
    text: str


def _spelled(data: Any, number: Callable[[int | float], str], ascii_only: bool) -> str:
    """Compact JSON with numbers in a spelling of one's own."""
    if isinstance(data, dict):
        keys = (json.dumps(key, ensure_ascii=ascii_only) for key in data)
        values = (_spelled(value, number, ascii_only) for value in data.values())
        return "{" + ",".join(map(":".join, zip(keys, values, strict=True))) + "}"
    if isinstance(data, list):
        return "[" + ",".join(_spelled(item, number, ascii_only) for item in data) + "]"
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        return number(data)
    return json.dumps(data, ensure_ascii=ascii_only)


def _with_two_decimals(value: int | float) -> str:
    return f"{value:.2f}" if isinstance(value, float) and abs(value) < 1e15 else json.dumps(value)


def _scientific(value: int | float) -> str:
    return f"{Decimal(repr(value)):.4E}" if isinstance(value, float) else json.dumps(value)


STYLES: dict[str, Callable[[Any], str]] = {
    "json.dumps": json.dumps,
    "json.dumps, raw": lambda data: json.dumps(data, ensure_ascii=False),
    "JSON.stringify": lambda data: json.dumps(data, ensure_ascii=False, separators=(",", ":")),
    "indent=2": lambda data: json.dumps(data, ensure_ascii=False, indent=2),
    "two decimals": lambda data: _spelled(data, _with_two_decimals, False),
    "scientific": lambda data: _spelled(data, _scientific, True),
}


def priced(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema of an order with prices and measures, and a document of it."""
    price = {"type": "number", "minimum": 0}
    item = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "price": price,
            "quantity": {"type": "integer", "minimum": 1},
            "weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
        },
        "required": ["name", "price", "quantity"],
    }
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "currency": {"enum": ["EUR", "USD", "¥"]},
            "items": {"type": "array", "items": item, "minItems": 1},
            "total": price,
            "rate": {"type": "number"},
            "level": {"enum": [1, 1.5, 2]},
        },
        "required": ["id", "items", "total"],
    }
    names = ("Café crème", "naïve/net", 'a "quoted" name', "日本", "plain", "tab\tline\n", "😀")
    items = []
    for _ in range(rng.randint(1, 4)):
        made: dict[str, Any] = {"name": rng.choice(names), "price": rng.randint(0, 99999) / 100}
        made |= {"quantity": rng.randint(1, 12), "weight": rng.choice([0.5, 2.0, 1e-7, 12.25, 99.0])}
        items.append(made)
    total = round(sum(made["price"] * made["quantity"] for made in items), 2)
    document = {
        "id": rng.randint(1, 10**9),
        "currency": rng.choice(["EUR", "USD", "¥"]),
        "items": items,
        "total": total,
        "rate": rng.choice([rng.random(), 1e-7 * rng.random(), 1e22 * rng.random(), -0.0, 5e-324]),
        "level": rng.choice([1, 1.5, 2]),
    }
    return schema, document


def wanted(cases: list[Case], count: int, rng: random.Random) -> Iterator[Wanted]:
    """Documents in every style in turn, every third one generated; all are valid as they are written."""
    known = ((case, document.data) for case in cases for document in case.documents if document.valid)
    pool = [(case.schema, data, case.id) for case, data in known]
    styles, made = list(STYLES), 0
    while made < count and pool:
        schema, data, name = pool[rng.randrange(len(pool))]
        style = styles[made // 3 % len(styles)]
        if made % 3 == 2:
            (schema, data), name = priced(rng), "priced"
        text = STYLES[style](data)
        if Judges(schema).judge(text).valid:
            made += 1
            yield Wanted(style, schema, text, name)


def in_declared_order(one: Wanted) -> bool:
    """Whether the keys come as the schema declares them (or the schema's own order can't be told)."""
    import tokenform as tf

    from .maskcheck import byte_vocabulary

    loose: dict[str, Any] = {"whitespace": "any", "numbers": "any", "strings": "any"}
    try:
        grammar = tf.json_schema(one.schema, order="declared", **loose).compile(byte_vocabulary())
        return bool(grammar.matches(one.text.encode()))
    except tf.TokenformError:
        return True


def copier(engine: str, options: EngineOptions) -> Callable[[Wanted], Copied]:
    """Make, in a worker, the function that lets a model copy a text under an engine."""
    vocabulary = tekken()
    made, model = load(engine, vocabulary, options), Model(vocabulary)

    def run(one: Wanted) -> Copied:
        try:
            compiled = made.json_schema(one.schema)
        except EngineRefused as error:
            return Copied("refused", str(error))
        copied = model.write(compiled.session(), one.text.encode())
        if copied.outcome != "copied" and not in_declared_order(one):
            return Copied("order", copied.text)
        return copied

    return run


class Model:
    """Takes its own first choice; where that is masked, the likeliest token that is allowed."""

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        special = set(vocabulary.special)
        self.vocabulary = vocabulary
        self.ids = {piece: i for i, piece in enumerate(vocabulary.tokens) if piece and i not in special}
        self.longest = max(map(len, self.ids))
        self.short_first = sorted(self.ids.values(), key=lambda i: (len(vocabulary.tokens[i]), i))

    def write(self, session: Session, text: bytes) -> Copied:
        """What comes out where the model wants this text."""
        eos, out, rest = self.vocabulary.eos, b"", text
        plan = self.vocabulary.encode(text.decode())
        for _ in range(2 * len(plan) + SPARE):
            session.fill()
            wished = plan.pop(0) if plan else eos
            token: int | None = wished
            if not session.allows(wished):
                token = self.likeliest(session, rest)
                plan = []
            if token in (eos, None):
                shown = out.decode("utf-8", "replace")
                return Copied("stuck" if token is None else "copied" if out == text else "changed", shown)
            piece = self.vocabulary.tokens[token]
            session.advance(token)
            out, rest = out + piece, rest[written(rest, piece) :]
            if not plan and rest:
                plan = self.vocabulary.encode(rest.decode("utf-8", "ignore"))
        return Copied("endless", out.decode("utf-8", "replace"))

    def likeliest(self, session: Session, rest: bytes) -> int | None:
        """The allowed token that writes most of the rest; else the end; else the shortest that there is."""
        for length in range(min(self.longest, len(rest)), 0, -1):
            token = self.ids.get(rest[:length])
            if token is not None and session.allows(token):
                return token
        if session.allows(self.vocabulary.eos):
            return self.vocabulary.eos
        return next((i for i in self.short_first if session.allows(i)), None)


def written(rest: bytes, piece: bytes) -> int:
    """How much of the rest a piece has written, be it behind bytes of its own."""
    ends = (len(piece) - start for start in range(len(piece)) if rest.startswith(piece[start:]))
    return next(ends, 0)
