"""Random grammars in llguidance's dialect of Lark's language, against llguidance itself on short texts.

    python -m benchmarks.suites.llguidance --count 2000 --seed 1

Purpose: a grammar that is read otherwise than by its own library.
Invariant: a verdict is llguidance's, or the grammar is refused with an error of this library.
Complexity: a grammar costs two automata and some forty texts.
Needs llguidance, which is no dependency of anything else here.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from llguidance import LLMatcher, LLTokenizer

import tokenform as tf
from tokenform.errors import TokenformError, UnsatisfiableGrammar

from .maskcheck import byte_vocabulary

BYTES = byte_vocabulary()
_PATTERNS = [
    "[ab]+",
    "[a-c]*",
    "a{1,3}",
    "(ab|c)+",
    "b?c",
    "[^b]",
    r"\d+",
    "(?i:ab)",
    "(.|\\n)*c",
    "[a-c]{2}",
    "a|ab",
]
_LITERALS = ['"a"', '"b"', '"ab"', '"abc"', '"c"', '""', '"A"i', '"."', '"a".."c"']


@dataclass
class Disagreement:
    """A text on which the two differ."""

    grammar: str
    text: str
    ours: bool
    theirs: bool


class Writer:
    """Writes random grammars."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def grammar(self) -> str:
        """A grammar of a few rules and terminals."""
        rng = self._rng
        lines = [f"start: {self._rule(2)}", f"x: {self._rule(1)}", f"y: {self._rule(1)}"]
        lines += [f"{name}: {self._terminal(2)}" for name in "AB"]
        attribute = rng.choice(["[lazy]", '[suffix="c"]', "[suffix=/b+/, capture]", "[capture]"])
        lines.append(f"z{attribute}: {rng.choice(['/[ab]+/', '/(.|b)*b/', 'A', '/[a-c]*/'])}")
        if rng.random() < 0.3:
            lines.append(rng.choice(["%ignore / +/", '%ignore " "', "%ignore /[ .]/"]))
        return "%llguidance {}\n" + "\n".join(lines)

    def _rule(self, depth: int) -> str:
        parts = [" ".join(self._item(depth) for _ in range(self._rng.choice([1, 1, 2, 3])))]
        while self._rng.random() < 0.35:
            parts.append(self._item(depth))
        return " | ".join(parts)

    def _item(self, depth: int) -> str:
        rng = self._rng
        kind = rng.random()
        if kind < 0.25:
            item = rng.choice(_LITERALS)
        elif kind < 0.4:
            item = f"/{rng.choice(_PATTERNS)}/"
        elif kind < 0.6 or depth == 0:
            item = rng.choice("AB")
        elif kind < 0.8:
            item = rng.choice("xyz" if depth > 1 else "zz")
        elif kind < 0.85:
            item = '%regex {"substring_chunks": ["ab", "c", "a"]}'
        else:
            item = f"({self._rule(depth - 1)})"
        if rng.random() < 0.3 and item != '""':
            item += rng.choice(["?", "*", "+", "{1,2}", "{2}", "{,2}", "~1..2"])
        return item

    def _terminal(self, depth: int) -> str:
        rng = self._rng
        atoms = [rng.choice([rng.choice(_LITERALS[:5]), f"/{rng.choice(_PATTERNS)}/"]) for _ in range(3)]
        match rng.randrange(6 if depth else 3):
            case 0 | 1:
                return atoms[0]
            case 2:
                return " ".join(atoms[: rng.choice([1, 2])])
            case 3:
                return f"{atoms[0]} & ~{atoms[1]}"
            case 4:
                return f"({self._terminal(0)} | {atoms[1]})" + rng.choice(["", "+", "{1,2}"])
        return f"{atoms[0]} & {atoms[1]} | {atoms[2]}"


def texts_for(rng: random.Random, automaton: Any) -> list[str]:
    """Short texts: some of the automaton's, their neighbours, and others."""
    texts = {""}
    for _ in range(12):
        state, text = automaton.start, ""
        for _ in range(rng.choice([2, 4, 6])):
            allowed = [token for token in automaton.allowed_tokens(state).tolist() if 32 <= token < 127]
            if not allowed:
                break
            liked = [token for token in allowed if chr(token) in "abcA. 1"]
            token = rng.choice(liked or allowed)
            state, text = automaton.advance(state, token), text + chr(token)
        texts |= {text, text[:-1], text + rng.choice("abc")}
    texts |= {"".join(rng.choices("aabbcc. A1", k=rng.choice([1, 2, 3, 4]))) for _ in range(16)}
    return sorted(texts)


def by_llguidance(tokenizer: Any, grammar: str, texts: list[str]) -> list[bool] | None:
    """Its verdicts; None where it takes no such grammar."""
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(grammar))
    if matcher.is_error():
        return None
    out = []
    for text in texts:
        matcher.reset()
        taken = matcher.try_consume_tokens(list(text.encode())) == len(text.encode())
        out.append(taken and matcher.is_accepting())
        if matcher.is_error():
            matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(grammar))
    return out


def run(count: int, seed: int) -> tuple[list[Disagreement], Counter[str]]:
    """The disagreements on so many grammars, and how many were read by whom."""
    rng, tokenizer = random.Random(seed), LLTokenizer("byte")
    writer, found = Writer(rng), []
    read: Counter[str] = Counter()
    for _ in range(count):
        grammar = writer.grammar()
        read["grammars"] += 1
        try:
            automaton = tf.lark(grammar).compile(BYTES)
            texts = texts_for(rng, automaton)
            ours = [automaton.matches(text.encode()) for text in texts]
        except UnsatisfiableGrammar:
            read["no text"] += 1
            continue
        except TokenformError as error:
            read[f"refused: {type(error).__name__}"] += 1
            continue
        theirs = by_llguidance(tokenizer, grammar, texts)
        if theirs is None:
            read["refused by llguidance"] += 1
            continue
        read["texts"] += len(texts)
        rows = zip(texts, ours, theirs, strict=True)
        differ = [Disagreement(grammar, *row) for row in rows if row[1] != row[2]]
        found += differ
        read["differ"] += bool(differ)
    return found, read


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suites.llguidance")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=10, help="grammars that are printed")
    options = parser.parse_args()
    found, read = run(options.count, options.seed)
    shown: set[str] = set()
    for one in found:
        if one.grammar not in shown and len(shown) < options.show:
            shown.add(one.grammar)
            print(f"{one.grammar}\n  {one.text!r}: {one.ours}, llguidance: {one.theirs}\n")
    print(f"{len(found)} texts of {read['differ']} grammars differ; {dict(read)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
