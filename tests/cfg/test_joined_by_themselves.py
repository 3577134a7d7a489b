"""Rules that join themselves (`e: e "+" e | x`) are read in one way, and accept the same texts."""

from __future__ import annotations

import itertools
import re

import pytest
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf

BYTES = byte_vocabulary()
CASES = [
    ('root ::= "a" | root root', "a+"),
    ('root ::= "" | "a" root root | "b"', None),
    ('root ::= root root root | "a"', "a(aa)*"),
    ('root ::= root "+" root | root "*" root | [ab]', "[ab]([+*][ab])*"),
    ('root ::= x "b"\nx ::= x "a" x | "a" | root', None),
    ('root ::= root root | root | "" | "a" "b"', "(ab)*"),
    ('root ::= root root | "(" root ")" | "a"', None),
]


def derived(rules: str, longest: int) -> set[str]:
    """The texts of a grammar by Kleene's iteration: what rules derive of what they derived before."""
    read: dict[str, list[list[str]]] = {}
    for line in rules.splitlines():
        name, _, body = line.partition(" ::= ")
        read[name] = [re.findall(r'"[^"]*"|\[ab\]|\w+', part) for part in body.split(" | ")]
    found: dict[str, set[str]] = {name: set() for name in read}
    while True:
        before = {name: set(texts) for name, texts in found.items()}
        for name, bodies in read.items():
            for body in bodies:
                parts = [
                    before[s] if s in read else {"a", "b"} if s == "[ab]" else {s.strip('"')} for s in body
                ]
                texts = {""}
                for part in parts:
                    texts = {x + y for x in texts for y in part if len(x + y) <= longest}
                found[name] |= texts
        if found == before:
            return found["root"]


@pytest.mark.parametrize(("rules", "pattern"), CASES)
def test_the_texts_are_those_of_the_rules(rules: str, pattern: str | None) -> None:
    automaton, longest = tf.gbnf(rules).compile(BYTES), 5
    words = derived(rules, longest)
    letters = sorted(set("".join(words)))
    for length in range(longest + 1):
        for letter in itertools.product(letters, repeat=length):
            text = "".join(letter)
            assert automaton.matches(text.encode()) == (text in words), text
            assert pattern is None or bool(re.fullmatch(pattern, text)) == (text in words)


def test_a_text_of_a_thousand_parts_is_quickly_read() -> None:
    parts = tf.lark('start: e\ne: e "+" e | e e | NAME\nNAME: "a"').compile(BYTES)
    assert parts.matches(b"a+" * 2000 + b"a")  # within the limits of work of one call
