"""All fillings of a small canvas, each tried and judged by `re`, `jsonschema` or `lark`, and what follows
from them: the judge of `tf.Canvas`."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import lark
import numpy as np

import tokenform as tf
from tokenform.errors import TokenformError

Judge = Callable[[str], bool]

LETTERS = (b"a", b"b", b"c", b"ab", b"ba", b"bc", b"abc", b"aa", b"ca")
PIECES = tuple(
    rb"""{ } [ ] , : " "a" "a": {" a": b": "," "b a b ab 1 2 12 1, ,2 true null }} ": "} ], [1 {"a":1 [] {} \"
    """.split()
)


def _pattern(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return rng.choice(["a", "b", "c", "ab", "abc", "[ab]", "ca", "[^a]", "."])
    one, other = _pattern(rng, depth - 1), _pattern(rng, depth - 1)
    if kind < 0.55:
        return one + other
    if kind < 0.75:
        return f"(?:{one}|{other})"
    count = f"{{{rng.randint(0, 2)},{rng.randint(2, 4)}}}" if kind < 0.9 else rng.choice("*?+")
    return f"(?:{one}){count}"


def _regex(rng: random.Random) -> tuple[tf.Grammar, Judge, Sequence[bytes]]:
    pattern = _pattern(rng, 3)
    compiled = re.compile(pattern)
    return tf.regex(pattern), lambda text: compiled.fullmatch(text) is not None, LETTERS


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _schema_of(rng: random.Random, depth: int) -> dict[str, Any] | bool:
    kind = rng.randrange(8 if depth else 4)
    if kind == 0:
        return {"enum": rng.sample([1, 2, 12, "a", "ab", True, None, [1], {"a": 1}], 3)}
    if kind == 1:
        return {"type": "integer", "maximum": rng.choice([1, 2, 20, 120])}
    if kind == 2:
        return {"type": "string", "maxLength": rng.randint(1, 3)}
    if kind == 3:
        return rng.choice([True, {"type": ["null", "boolean"]}, {"type": "string", "pattern": "^a"}])
    if kind in (4, 5):
        more: dict[str, Any] = {"type": "array", "items": _schema_of(rng, depth - 1), "maxItems": 3}
        if rng.random() < 0.4:
            more["uniqueItems"] = True
        return more
    properties = {key: _schema_of(rng, depth - 1) for key in ("a", "b")}
    return {
        "type": "object",
        "properties": properties,
        "required": rng.sample(["a", "b"], rng.randrange(3)),
        "additionalProperties": rng.choice([True, False, {"type": "integer"}]),
    }


def _schema(rng: random.Random) -> tuple[tf.Grammar, Judge, Sequence[bytes]]:
    schema = _schema_of(rng, 2)
    validator = jsonschema.Draft202012Validator(schema)

    def judge(text: str) -> bool:
        try:
            value = json.loads(text, object_pairs_hook=_unique)
        except ValueError:
            return False
        return validator.is_valid(value)

    grammar = tf.json_schema(schema, whitespace="compact", order="any", strings="any", additional="schema")
    return grammar, judge, PIECES


def _cfg(rng: random.Random) -> tuple[tf.Grammar, Judge, Sequence[bytes]]:
    def word() -> str:
        return "".join(rng.choice("abc") for _ in range(rng.randint(1, 3)))

    text = f'start: x\nx: "a" x "b" | "{word()}" x | "c" | "{word()}" | x "b" x'
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")

    def judge(given: str) -> bool:
        try:
            parser.parse(given)
        except lark.exceptions.LarkError:
            return False
        return True

    return tf.lark(text, lexer="dynamic"), judge, LETTERS


def _joined(rng: random.Random) -> tuple[tf.Grammar, Judge, Sequence[bytes]]:
    """A word and a document behind it."""
    schema, judge, pieces = _schema(rng)
    word = rng.choice(["a", "ab", "b?"])
    compiled = re.compile(word)

    def whole(text: str) -> bool:
        return any(compiled.fullmatch(text[:at]) and judge(text[at:]) for at in range(3))

    return tf.regex(word) + schema, whole, pieces


class Case:
    """A constraint with a small vocabulary, and all fillings of a length that it accepts."""

    def __init__(self, rng: random.Random) -> None:
        while True:
            grammar, judge, pieces = rng.choice([_regex, _schema, _cfg, _joined])(rng)
            tokens = list(rng.sample(pieces, min(len(pieces), rng.randint(4, 8))))
            ends = rng.randint(1, 2)
            eos = list(range(len(tokens), len(tokens) + ends))
            try:
                vocabulary = tf.Vocabulary([*tokens, *[b"</s>", b"<pad>"][:ends]], eos=eos, special=eos)
                self.automaton = grammar.compile(vocabulary)
            except TokenformError:
                continue  # no text of these tokens
            break
        self.size, self.length = len(tokens) + ends, rng.randint(1, 5)
        judged = functools.cache(judge)
        self.source = grammar.source
        self.fillings: list[tuple[int, ...]] = []
        texts: list[tuple[tuple[int, ...], bytes]] = [((), b"")]
        for length in range(self.length + 1):
            rest = list(itertools.product(eos, repeat=self.length - length))
            for ids, text in texts:
                if _read(text) is not None and judged(_read(text)):
                    self.fillings += [(*ids, *end) for end in rest]
            texts = [((*ids, i), text + token) for ids, text in texts for i, token in enumerate(tokens)]
            if len(texts) > 5_000:
                self.length = length
                self.fillings = [f[:length] for f in self.fillings if set(f[length:]) <= {eos[0]}]
                break
        self.fillings = sorted(set(self.fillings))

    def canvases(self, rng: random.Random, count: int) -> None:
        """Random canvases, one after the other by filling and opening positions of one; each is compared."""
        canvas = tf.Canvas(self.automaton, self.length)
        for _ in range(count):
            for _ in range(rng.randint(0, 3)):
                at = rng.randrange(self.length)
                if rng.random() < 0.4:
                    canvas.erase(at)
                elif self.fillings and rng.random() < 0.7:
                    canvas.fill(at, rng.choice(self.fillings)[at])
                else:
                    canvas.fill(at, rng.randrange(self.size))
            if rng.random() < 0.2:
                canvas = canvas.fork()
            self.compare(canvas, rng)

    def compare(self, canvas: tf.Canvas, rng: random.Random) -> None:
        known = canvas.tokens
        left = [f for f in self.fillings if all(k is None or k == t for k, t in zip(known, f, strict=True))]
        about = f"{self.source!r} {self.automaton.vocabulary.tokens} {known}"
        assert canvas.feasible() == bool(left), about
        for at in range(self.length):
            others = [
                f
                for f in self.fillings
                if all(k is None or k == t or i == at for i, (k, t) in enumerate(zip(known, f, strict=True)))
            ]
            assert canvas.allowed(at).tolist() == sorted({f[at] for f in others}), (about, at)
        logits = np.array([[rng.randint(-4, 4) / 2 for _ in range(self.size)] for _ in known], np.float32)
        if rng.random() < 0.2:
            logits[rng.randrange(self.length), rng.randrange(self.size)] = -np.inf
        self.compare_weights(canvas, left, logits, rng, about)

    def compare_weights(
        self, canvas: tf.Canvas, left: list[tuple[int, ...]], logits: Any, rng: random.Random, about: str
    ) -> None:
        open_ = canvas.open

        def weight(filling: Sequence[int]) -> float:
            return math.fsum(float(logits[at, filling[at]]) for at in open_)

        heavy = [f for f in left if weight(f) > -math.inf]
        if not heavy:
            error = tf.errors.SamplingError if left else tf.errors.TokenRejected
            for call in (canvas.best, canvas.sample, canvas.marginals):
                try:
                    call(logits)
                except error:
                    continue
                raise AssertionError(f"{about}: {call} answered")
            return
        best = canvas.best(logits)
        assert tuple(best.tokens.tolist()) == min(heavy, key=lambda f: (-weight(f), f)), about
        total = math.log(math.fsum(math.exp(weight(f)) for f in heavy))
        rows = math.fsum(math.log(np.exp(logits[at].astype(float)).sum()) for at in open_)
        assert math.isclose(best.score, weight(best.tokens) - rows, abs_tol=1e-9), about
        for drawn in [best, *canvas.samples(logits, 3, seed=rng.randrange(1 << 30))]:
            assert tuple(drawn.tokens.tolist()) in heavy, about
            assert math.isclose(drawn.logprob, weight(drawn.tokens) - total, abs_tol=1e-9), about
        found = canvas.marginals(logits)
        assert math.isclose(found.mass, total - rows, abs_tol=1e-9), about
        expected = np.zeros_like(logits, float)
        for f in heavy:
            expected[np.arange(self.length), f] += math.exp(weight(f) - total)
        np.testing.assert_allclose(found.probabilities, expected, atol=1e-9, err_msg=about)


def _read(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
