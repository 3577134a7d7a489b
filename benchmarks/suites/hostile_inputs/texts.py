"""Patterns, grammars and combinations that hurt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def patterns() -> dict[str, str]:
    """Name -> pattern in Python's dialect."""
    return {
        "30,000 letters anywhere": ".*a{30000}.*",
        "three counts anywhere": ".*a{10000}b{10000}c{10000}.*",
        "the 500th letter from the end": "(a|b)*a(a|b){500}",
        "counts of counts": "((((a{1,50}){1,50}){1,50}){1,50})b",
        "alternatives of every length": "(" + "|".join("a" * i + "b" for i in range(1, 400)) + ")*",
        "lookaheads that agree nowhere": "(?=a{1000}b)(?=a{999}b)a*b",
        "lookbehinds": "(?:(?<=a)b|a){200}(?<!ab)",
        "nested stars": "(" * 200 + "a" + ")*" * 200,
        "100,000 letters": "x" * 100_000,
        "empty in a loop": "(a?){500}(a?){500}",
        "two halves of one count": "(?=(a{7})*$)(?=(a{11})*$)(?=(a{13})*$)(?=(a{17})*$)a+",
        "optional letters, then as many": "a?" * 2000 + "a" * 2000,
        "counted sets in lookaheads": "(?=(.*[a-e]){20})(?=(.*[d-k]){20})(?=(.*[i-z]){20}).{10,200}",
        "unicode classes": r"(\w{1,40}\s{1,40}\d{1,40}){1,40}",
    }


def grammar_texts() -> dict[str, tuple[str, str]]:
    """Name -> reader and text."""
    doubling = "\n".join(f"a{i}: a{i + 1} a{i + 1}" for i in range(16))
    deep = "\n".join(f"r{i} ::= r{i + 1} | r{i + 1} r{i + 1}" for i in range(40))
    return {
        "doubling rules": ("lark", f'start: a0\n{doubling}\na16: "x"\n'),
        "ambiguous sums": ("lark", 'start: e\ne: e "+" e | e "-" e | e e | "x"\n'),
        "everything may be empty": ("lark", 'start: a*\na: b* c?\nb: c? c?\nc: "x"?\n'),
        "terminals that overlap": (
            "lark",
            "start: (A|B|C|D)+\n"
            + "".join(f"{c}: /[a-z]{{1,{n}}}/\n" for c, n in zip("ABCD", (5, 9, 17, 33), strict=True)),
        ),
        "left and right": ("lark", 'start: l\nl: l r | r\nr: r "a" l | "b"\n'),
        "a terminal of 20,000 letters": ("lark", f'start: "{"a" * 20_000}"\n'),
        "9,999 optional loops": ("gbnf", "root ::= ([^x]*){0,9999}"),
        "3,000 optional letters thrice": ("gbnf", 'root ::= ("a"? "b"? "c"?){0,3000}'),
        "2,000 optional words": ("gbnf", 'root ::= ("ab" | "a" "b"?){0,2000}'),
        "repeats in repeats": ("gbnf", 'root ::= ((("a"{1,9}){1,9}){1,9}){1,9}'),
        "doubling alternatives": ("gbnf", f'root ::= r0\n{deep}\nr40 ::= "x"'),
        "undefined, unfinished": ("gbnf", "root ::= ( a | "),
        "10,000 brackets": ("gbnf", "root ::= " + "(" * 10_000 + '"a"' + ")" * 10_000),
    }


def combinators() -> dict[str, Callable[[], Any]]:
    """Name -> what makes the grammar."""
    import tokenform as tf

    def either(depth: int) -> Any:
        grammar = tf.regex("a+")
        for i in range(depth):
            grammar = (grammar | tf.regex(f"b{{{i}}}c")) + tf.regex("d?")
        return grammar

    return {
        "until 2,000 letters and another": lambda: tf.until("a" * 2000 + "b"),
        "until one of 300 words": lambda: tf.until("|".join("ab" * i + "c" for i in range(300))),
        "texts of 20,000 characters": lambda: tf.substring("abcab" * 4000),
        "choices of 20,000 words": lambda: tf.choice([f"word{i}" for i in range(20_000)]),
        "60 alternatives, one in another": lambda: either(60),
    }
