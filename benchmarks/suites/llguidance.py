"""Random grammars in llguidance's dialect of Lark's language, against llguidance itself on short texts.

    python -m benchmarks.suites.llguidance --count 2000 --seed 1

Purpose: a grammar that is read otherwise than by its own library.
Invariant: a verdict is llguidance's, or its documentation decides otherwise: llguidance is asked again
about the grammar in simpler words, without what the two read differently.
Complexity: a grammar costs two automata and some forty texts.
Needs llguidance, which is no dependency of anything else here.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
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


_SUBSTRINGS = [
    '"substring_chunks": ["ab", "c", "a"]',
    '"substring_words": "ab a.c"',
    '"substring_chars": "abca"',
]
# parts of rules with a parameter: the text, the rule that it names, the function and the condition as the
# dialect writes them, and both in Python
_BRANCH: list[tuple[str, str, str, str, Callable[[int], int], Callable[[int], bool]]] = [
    ('"a" {}', "p", "set_bit(0)", "bit_clear(0)", lambda p: p | 1, lambda p: not p & 1),
    ('"b" {}', "p", "incr([1:3])", "lt([1:3], 2)", lambda p: p + 2, lambda p: p >> 1 & 3 < 2),
    ('"c" {}', "p", "set_bit(3)", "not(bit_set(3))", lambda p: p | 8, lambda p: not p & 8),
    (
        '"A" {} "."',
        "p",
        "bit_or(6)",
        "and(is_zeros([1:3]), ne(_, 8))",
        lambda p: p | 6,
        lambda p: not p & 6 and p != 8,
    ),
    ('"ab" {}', "p", "decr([1:3])", "ge([1:3], 1)", lambda p: p - 2, lambda p: p & 6 > 0),
    (
        '"1" {}',
        "p",
        "clear_bit(3)",
        "or(bit_count_eq(_, 3), not(true))",
        lambda p: p & ~8,
        lambda p: p.bit_count() == 3,
    ),
    ('"b" {}', "q", "_", "bit_count_lt([0:2], 2)", lambda p: p, lambda p: (p & 3).bit_count() < 2),
    ('""', "", "", "bit_count_ge(_, 1)", lambda p: p, lambda p: p > 0),
    ('"."', "", "", "is_ones([0:1])", lambda p: p, lambda p: p & 1 == 1),
    ("x", "", "", "gt([1:3], 0)", lambda p: p, lambda p: p & 6 > 0),
    ('""', "", "", "le(_, 8)", lambda p: p, lambda p: p <= 8),
]
_SECOND = [
    ('"c" r', "", "", "is_zeros([0:2])", lambda p: p, lambda p: not p & 3),
    ('"c" r', "", "", "eq([1:3], 2)", lambda p: p, lambda p: p & 6 == 4),
]
_PLAIN = ('"b"', "", "", "true", lambda p: p, lambda p: True)


def _parametric(rules: dict[str, list[Any]]) -> str:
    """Rules with a parameter, as the dialect writes them."""
    out = []
    for name, parts in rules.items():
        shown = [
            f"{text.format(f'{called}::{passed}')} %if {when}" for text, called, passed, when, *_ in parts
        ]
        out.append(f"{name}::_: " + "\n  | ".join(shown))
    return "\n".join(out)


def written_out(grammar: str, rules: dict[str, list[Any]]) -> str:
    """The grammar without parameters: a rule for each number, as docs/parametric.md explains them, and none
    that leads to rules without an end."""
    out = [grammar.replace(_parametric(rules), 'NONE: "a" & "b"')]
    todo = [("p", int(number, 0)) for number in re.findall(r"p::(0x\d|\d)", out[0])]
    out[0] = re.sub(r"p::(0x\d|\d)", lambda found: f"p-{int(found.group(1), 0)}", out[0])
    ways: dict[tuple[str, int], list[tuple[str, tuple[str, int] | None]]] = {}
    while todo:
        name, number = todo.pop()
        if (name, number) in ways:
            continue
        held = [way for way in rules[name] if way[5](number)]
        ways[name, number] = [
            (text, (called, passed(number)) if called else None) for text, called, _, _, passed, _ in held
        ]
        todo += [called for _, called in ways[name, number] if called]
    ending: set[tuple[str, int] | None] = {None}
    for _ in ways:
        ending |= {rule for rule, its in ways.items() if any(called in ending for _, called in its)}
    for (name, number), its in ways.items():
        parts = [text.format("-".join(map(str, called or ()))) for text, called in its if called in ending]
        out.append(f"{name}-{number}: {' | '.join(parts) or 'NONE'}")
    return "\n".join(out)


_NESTED = ['start: "[" "a"{1,2} "b"?', 'start: x "c"\nx: "a" | "b" x', 'start: /[ab]+/ "."\n%ignore " "']


class Writer:
    """Writes random grammars, with every construct of the dialect that bytes as tokens can show."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.rules: dict[str, list[Any]] = {}

    def grammar(self) -> str:
        """A grammar of a few rules and terminals; `rules`: those of it that have a parameter."""
        rng = self._rng
        self.rules = {"p": rng.sample(_BRANCH, 5), "q": [rng.choice(_SECOND), _PLAIN]}
        if rng.random() < 0.06:
            return self._of_tokens()
        options = rng.choice(["{}", "{}", "{}", '{"no_forcing": true}', '{"allow_initial_skip": true}'])
        lines = [f"start: {self._rule(2)}", f"?x: {self._rule(1)}", f"y: {self._rule(1)} // a comment"]
        lines += [f"{name}: {self._terminal(2)}" for name in "AB"]
        if rng.random() < 0.3:
            lines[-1] = rng.choice(["%import common.INT -> B", "%import common.DIGIT -> B"])
        lines.append(f"z{self._attributes()}: {rng.choice(['/[ab]+/', '/(.|b)*b/', 'A', '/[a-c]*/'])}")
        if any(re.search(r"\bw\b", line) for line in lines):
            lines.append(f"w{rng.choice(['[temperature=0.5]', '[capture]', ''])}: {self._constraint()}")
        elif rng.random() < 0.4:
            lines.append(rng.choice(["%ignore / +/", '%ignore " "', "%ignore /[ .]/"]))
        if any("p::" in line for line in lines):
            lines += [_parametric(self.rules), 'r: "c"?']
        return f"%llguidance {options}\n" + "\n".join(lines)

    def _of_tokens(self) -> str:
        """Tokens by their numbers, in sets without a common one: llguidance takes the first that has it."""
        rng = self._rng
        first, second, third = "<[97]>", "<[46,98]>", rng.choice(["<[99-100]>", "<[^0-98,101-255]>"])
        drawn = [first, first + "*", second, second + "?", '"1"?', "w", "w{1,2}"]
        items = [rng.choice(drawn) for _ in range(4)]
        return f'%llguidance {{}}\nstart: {" ".join(items)}\nw: {third} | {third} "A"'

    def _attributes(self) -> str:
        return self._rng.choice(
            [
                "[lazy]",
                '[suffix="c"]',
                "[suffix=/b+/, capture]",
                '[capture="n"]',
                "[max_tokens=0]",
                '[stop=""]',
            ]
        )

    def _constraint(self) -> str:
        """A constraint of its own."""
        rng = self._rng
        schemas = ['{"type": "integer"}', '{"enum": [1, 12]}', '{"const": "a"}', '{"type": "boolean"}']
        return rng.choice([f"%json {rng.choice(schemas)}", f"%lark {{\n{rng.choice(_NESTED)}\n}}"])

    def _rule(self, depth: int) -> str:
        parts = [" ".join(self._item(depth) for _ in range(self._rng.choice([1, 1, 2, 3])))]
        while self._rng.random() < 0.35:
            parts.append(self._item(depth) + self._rng.choice(["", "", " -> name"]))
        return self._rng.choice([" | ", " | ", "\n  | "] if depth > 1 else [" | "]).join(parts)

    def _item(self, depth: int) -> str:
        rng = self._rng
        kind = rng.random()
        if kind < 0.25:
            item = rng.choice(_LITERALS)
        elif kind < 0.4:
            item = f"/{rng.choice(_PATTERNS)}/"
        elif kind < 0.6 or depth == 0:
            item = rng.choice("AB")
        elif kind < 0.76:
            item = rng.choice(["x", "y", "z", '"<" w ">"'] if depth > 1 else ["z", '("<" w ">")'])
        elif kind < 0.8:
            item = f"p::{rng.choice(['0', '1', '0x8', '2'])}"
        elif kind < 0.85:
            item = f"%regex {{{rng.choice(_SUBSTRINGS)}}}"
        elif kind < 0.88:
            return f"[{self._plain(depth - 1)}]"
        else:
            item = f"({self._plain(depth - 1)})"
        if rng.random() < 0.3 and item != '""':
            item += rng.choice(["?", "*", "+", "{1,2}", "{2}", "{,2}", "~1..2", "{1,}"])
        return item

    def _plain(self, depth: int) -> str:
        return self._rule(depth).replace(" -> name", "")

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


_LAZY = re.compile(r'^z\[(?:lazy|suffix=("c"|/b\+/)[^\]]*)\]: (.*)$', re.MULTILINE)


def as_documented(grammar: str, rules: dict[str, list[Any]]) -> str:
    """The same grammar in simpler words, as the documentation explains them: a rule for each number, and of a
    lazy rule's texts those of which no beginning is one."""

    def shortest(found: re.Match[str]) -> str:
        body = f"({found[2]}) {found[1] or ''}"
        return f"z: ZL\nZL: ({body}) & ~(({body}) /(?s:.)+/)"

    return _LAZY.sub(shortest, written_out(grammar, rules))


def _matches_nothing(terminal: str) -> bool:
    try:
        tf.lark(f"%llguidance {{}}\nstart: {terminal[0]}\n{terminal}")
    except UnsatisfiableGrammar:
        return True
    return False


def decided(tokenizer: Any, one: Disagreement, rules: dict[str, list[Any]]) -> str:
    """Why the documentation decides for this library; nothing where it does not."""
    skips = (
        re.search(r"^%ignore.*[ .]", one.grammar, re.MULTILINE) and "allow_initial_skip" not in one.grammar
    )
    if skips and not one.ours and one.text[:1] in (" ", "."):
        return "what is ignored stands before the first lexeme with allow_initial_skip alone"
    if any(_matches_nothing(found) for found in re.findall(r"^[AB]: .*", one.grammar, re.MULTILINE)):
        return "a terminal without any text, which llguidance goes on to read"
    again = by_llguidance(tokenizer, as_documented(one.grammar, rules), [one.text])
    return "llguidance agrees where the grammar is written in simpler words" if again == [one.ours] else ""


def run(count: int, seed: int) -> tuple[list[Disagreement], Counter[str]]:
    """The disagreements on so many grammars that no documentation decides, and how many were read by whom."""
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
        reasons = {decided(tokenizer, one, writer.rules): one for one in differ}
        found += [one for reason, one in reasons.items() if not reason]
        read["differ"] += "" in reasons
        for reason in sorted(set(reasons) - {""})[: 0 if "" in reasons else None]:
            read[f"decided: {reason}"] += 1
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
    print(f"{read['differ']} grammars differ; {dict(read)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
