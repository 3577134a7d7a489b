"""Which texts are derived: every kind of recursion, both lexers, GBNF, layout, and the errors."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Literal

import pytest
from lark import Lark
from tests.grammars.judge import accepts, text_of
from tests.grammars.test_real_texts import _python_text, _standard_library

from tokenform import Grammar, TokenAutomaton, Vocabulary, regex
from tokenform.errors import UnsatisfiableGrammar
from tokenform.frontends.gbnf import gbnf
from tokenform.frontends.lark import lark

BYTES = Vocabulary([*(bytes([i]) for i in range(256)), b""], eos=[256])


def accepted(grammar: Grammar, text: str) -> bool:
    return grammar.compile(BYTES).check(text.encode()) is None


def texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(t) for n in range(longest + 1) for t in itertools.product(alphabet, repeat=n)]


AMBIGUOUS = {
    "binary": 'start: start start | "a" | "b"',
    "nested": 'start: "a" start "b" | start start | ',
    "hidden left recursion": 'start: empty start "a" | "b"\nempty: | "c"',
    "right recursion": 'start: "a" start | "b"',
    "hidden right recursion": 'start: "a" start empty | "b"\nempty: | "c"',
    "mutual": 'start: x | "a"\nx: y "b" | start "c"\ny: x | start',
    "palindromes": 'start: "a" start "a" | "b" start "b" | "a" | "b" | ',
    "cycle": 'start: x | "a"\nx: start | "b" x?',
    "words": 'start: (A | B | C)*\nA: "a"\nB: "ab"\nC: "bc"',
}


@pytest.mark.parametrize("source", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_every_segmentation_is_what_lark_s_earley_parser_takes(source: str) -> None:
    judge = Lark(source, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    grammar = lark(source, lexer="dynamic")
    for text in texts("abc", 5):
        assert accepted(grammar, text) == accepts(judge, text), text


def test_longest_match_among_the_terminals_that_can_come() -> None:
    source = 'start: "if" NAME | NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "'
    judge = Lark(source, parser="lalr", lexer="contextual")
    grammar = lark(source)
    for text in ["if x", "ifx", "if=x", "x=if", "iff=y", "x = y", "if", "a=", " if  q "]:
        assert accepted(grammar, text) == accepts(judge, text), text


# what is ignored is named by rules, too
IGNORED = {
    "literal": 'start: "a" (" " "b" | "c")\n%ignore " "',
    "pattern of the same text": 'start: "a" (" " "b" | "c")\n%ignore / +/',
    "name": 'start: WS? "b" | "a" WS WS "c"?\nWS: / +/\n%ignore WS',
    "pattern before another": 'start: "a" (X "b" | "c")\nX: / /\n%ignore /[ ]/',
    "pattern behind another": 'start: "a" (X "b" | "c")\nX: /[ ]/\n%ignore / /',
    "priority": 'start: "a" (X "b" | "c")\nX.2: " "\n%ignore / /',
    "one of the two cases": 'start: "a" ("B"i "b" | "c")\n%ignore /[Bx]/',
}


@pytest.mark.parametrize("source", IGNORED.values(), ids=IGNORED.keys())
def test_what_is_ignored_and_named_by_rules(source: str) -> None:
    every = Lark(source, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    longest = Lark(source, parser="lalr", lexer="contextual")
    for text in texts("ab cB", 5):
        assert accepted(lark(source, lexer="dynamic"), text) == accepts(every, text), text
        assert accepted(lark(source), text) == accepts(longest, text), text


@pytest.mark.parametrize(
    "source",
    [
        'start: "a" " " "b"\n%ignore " "',
        'start: "a" " " "b"\nWS: /\\s+/\n%ignore WS',
        'start: "a" X "b"\nX: / /\n%ignore /[ ]+/',
    ],
)
def test_a_rule_that_waits_for_what_is_ignored_has_no_text(source: str) -> None:
    assert accepts(Lark(source, parser="earley", lexer="dynamic_complete"), "a b")
    assert accepted(lark(source, lexer="dynamic"), "a b")
    assert not accepts(Lark(source, parser="lalr", lexer="contextual"), "a b")
    with pytest.raises(UnsatisfiableGrammar, match="ignored"):
        lark(source)


def test_what_is_ignored_and_named_beside_a_grammar_inside() -> None:
    for inside in ("DIGITS", "%json {}"):
        source = f'start: "a" (WS "b" | "c") | "d" {inside}\nWS: / +/\n%ignore WS'
        digits = {"DIGITS": regex("[0-9]+")} if inside == "DIGITS" else {}
        every = lark(source, lexer="dynamic", definitions=digits)
        for text in ("a b", "a  b", " a b ", "a c", "ac", "d 1", "d1 "):
            assert accepted(every, text), (inside, text)
        for text in ("ab", "d", " "):
            assert not accepted(every, text), (inside, text)


GBNF = r"""
root ::= item ("," ws item)*
item ::= "\"" [^"\\\n]* "\"" | [0-9]{1,3} | "(" root? ")"
ws ::= " "?
"""


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
def test_thousands_of_words_in_a_loop(lexer: Literal["contextual", "dynamic"]) -> None:
    """All of them may come at one place: neither pairs of words nor a set for each word are made."""
    words = [f"{name}{i};" for i in range(3_000) for name in ("w", "wx")]
    grammar = lark("start: (" + " | ".join(f'"{word}"' for word in words) + ")*", lexer=lexer).compile(BYTES)
    ebnf = gbnf("root ::= (" + " | ".join(f'"{word}"' for word in words) + ")*").compile(BYTES)
    good = ["", "w7;", "wx2999;w0;", "".join(words[::100])]
    bad = ["w", "w3000;", "w07;", "w7;;", "wxx1;", "w7;wx", "x7;", good[-1] + "w"]
    for text in good + bad:
        for automaton in (grammar, ebnf):
            assert (automaton.check(text.encode()) is None) == (text in good), text[:20]


def test_gbnf_character_by_character() -> None:
    grammar = gbnf(GBNF)
    for text in ['1, 22,"é"', "((1),())", '"", 7']:
        assert accepted(grammar, text), text
    for text in ["", "1,,2", "1234", "(1", '"\n"', "1,  2"]:
        assert not accepted(grammar, text), text


def count_states(source: str, piece: str, times: int) -> tuple[int, int]:
    """States after `times` and after twice as many repetitions of a piece."""
    auto: TokenAutomaton = lark(source).compile(BYTES)
    state, seen = auto.start, set()
    sizes = []
    for byte in (piece * times * 2).encode():
        state = auto.advance(state, byte)
        seen.add(state)
        sizes.append(len(seen))
    return sizes[len(sizes) // 2], sizes[-1]


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ('start: "x" "," start | "x"', "x,"),
        ('start: (start ",")? "x" ","', "x,,"),
        ('start: atom "^" start | "-" start | atom\natom: NAME | "(" start ")"\nNAME: /[a-z]+/', "a^-b^"),
        ('start: pair*\npair: "(" pair* ")"', "(())()"),
    ],
)
def test_nothing_grows_with_the_text(source: str, piece: str) -> None:
    middle, end = count_states(source, piece, 500)
    assert middle == end < 40


def test_the_standard_library_parses() -> None:
    small = [path for path in _standard_library() if path.stat().st_size < 20_000]
    auto = lark(text_of("python")).compile(BYTES)
    sample: list[Path] = random.Random(0).sample(small, 25)
    refused = [p.name for p in sample if (t := _python_text(p)) is not None and auto.check(t.encode())]
    assert refused == []


def test_layout() -> None:
    grammar = lark(text_of("python"))
    assert accepted(grammar, "if x:\n  y\nelse:\n\tz\n")
    assert accepted(grammar, "def f(a,\nb):\n    # remark\n\n    return (\n1)\n")
    assert not accepted(grammar, "if x:\n    y\n  z\n")
    assert accepted(grammar, "from .. import a\nfrom ..b import c\nd = ...\nfrom .... import e\n")
    assert not accepted(grammar, "if x:\ny\n")
    assert not accepted(grammar, "y\n  x\n")


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ('start: "a" B\nB: /(?=b)c/', "B"),
        ("start: A\n%declare A", "A"),
        ("start: A\nA: /(a)\\1/", "A"),
    ],
)
def test_mistakes_are_named(source: str, named: str) -> None:
    with pytest.raises(Exception, match=rf"\b{named}\b") as caught:
        lark(source)
    assert type(caught.value).__module__ == "tokenform.errors"
