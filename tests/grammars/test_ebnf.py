"""XGrammar's EBNF: macros, attributes and names of its own, beside XGrammar where it is there."""

from __future__ import annotations

import random
from itertools import product

import pytest

import tokenform as tf
from tokenform.errors import (
    InvalidGrammar,
    InvalidRegex,
    LimitExceeded,
    OptionError,
    TokenformError,
    UnsupportedRegex,
)
from tokenform.frontends.ebnf_reader import is_ebnf

BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
CALLS = 'root ::= TagDispatch(("<a>", one), ("<ab>", two), ("b>", three))\none ::= "1"\n'
CALLS += 'two ::= [0-9]{2}\nthree ::= "3" | "4"'

CASES = [
    ('root ::= Regex("a{2,3}b?")', ["aa", "aaab"], ["a", "aabb"]),
    ('root ::= "x" Regex("\\\\d+|-") "y"', ["x12y", "x-y"], ["xy", "x1"]),
    ('root ::= Regex("^a.c$") | "z"', ["abc", "a\nc", "aéc", "z"], ["ac", "az"]),
    (r'root ::= Regex("\\S+", json_string=true)', ["ab", "é"], ['a"', "a\\", "a b", ""]),
    ('root ::= Substring("ab", "c", "d")', ["", "ab", "abc", "cd"], ["b", "abd"]),
    ('root ::= "<" Substring("é", "b")? ">"', ["<>", "<éb>"], ["<bé>"]),
    (CALLS, ["", "it <a", "it <a>1", "<a>1<ab>12", "xb>3 b", "bb>4"], ["<a>2", "<ab>1", "<ab>3", "b>"]),
    (
        'root ::= TagDispatch(("ab", x), loop_after_dispatch=false)\nx ::= "!"',
        ["c", "ab!", "aab!"],
        ["ab!c", "abab!"],
    ),
    (
        'root ::= body "</r>"\nbody ::= TagDispatch(("ab", x), excludes=("</r>",))\nx ::= "!"',
        ["</r>", "ab!</r>", "<</r>"],
        ["", "x", "</r></r>"],
    ),
    ('root ::= Token(97) Token(98, 99)* "!"', ["a!", "abcb!"], ["!", "aa!"]),
    ("root ::= ExcludeToken(97, 98) Token(97)", ["ca", "aa"[1:] + "x"][:1], ["aa", "ba", "a"]),
    (
        'root ::= TokenTagDispatch((97, x), excludes=(98,))\nx ::= "!"',
        ["", "c", "ca!", "a!a!c"],
        ["b", "ab", "a!b", "a"],
    ),
    ('root ::= r "z"\nr[lazy] ::= [a-y]+', ["az"], ["aaz", "z"]),
    ('root ::= r "z"\nr[lazy] ::= part* "b"\npart ::= "a" | "c"', ["bz", "acbz"], ["bbz", "az"]),
    ('root ::= r "z"\nr[max_chars=2] ::= [a-c]*', ["z", "abz"], ["abcz"]),
    # a budget that is spent where the rule can't end goes on to where it can
    ('root ::= r "z"?\nr[max_chars=2] ::= "abcd" | "ab"', ["ab", "abz"], ["abcd", "abc"]),
    ('root ::= r "z"?\nr[max_chars=2] ::= "abcd" "e"*', ["abcd", "abcdz"], ["abcde"]),
    ('root[temperature=0.5] ::= "a" x.y (="c")\nx.y ::= [^] ( )', ["ab", "a\n"], ["a"]),
    ('root ::= "\\x41\\e\\/" | [\\x1F600é-ü\\-^]', ["A\x1b/", "😀", "é", "-", "^"], ["a"]),
    ("root ::= root ExcludeToken(98) | Token(98)", ["b", "bacc"], ["a", "bb"]),
]


@pytest.mark.parametrize(("grammar", "accept", "refuse"), CASES, ids=[grammar for grammar, *_ in CASES])
def test_texts(grammar: str, accept: list[str], refuse: list[str]) -> None:
    made = tf.gbnf(grammar, dialect="xgrammar")
    automaton = made.compile(BYTES)
    again = tf.Grammar.from_bytes(made.to_bytes()).compile(BYTES)
    for text in accept:
        assert automaton.matches(text.encode()) and again.matches(text.encode()), text
    for text in refuse:
        assert not automaton.matches(text.encode()), text


@pytest.mark.parametrize(("grammar", "accept", "refuse"), CASES, ids=[grammar for grammar, *_ in CASES])
def test_texts_are_those_of_xgrammar(grammar: str, accept: list[str], refuse: list[str]) -> None:
    judge = _Judge()
    assert [text for text in accept if not judge.accepts(grammar, text)] == []
    assert [text for text in refuse if judge.accepts(grammar, text)] == []


class _Judge:
    """XGrammar over bytes."""

    def __init__(self) -> None:
        self.xgrammar = pytest.importorskip("xgrammar")
        spelled = [bytes([b]) for b in range(256)] + [b"</s>"]
        info = self.xgrammar.TokenizerInfo(spelled, stop_token_ids=[256])
        self._compiler = self.xgrammar.GrammarCompiler(info)

    def refuses(self, grammar: str) -> bool:
        """Whether it takes no such grammar: a lazy rule of several parts, for one."""
        try:
            self._compiler.compile_grammar(grammar)
        except RuntimeError:
            return True
        return False

    def accepts(self, grammar: str, text: str) -> bool:
        compiled = self._compiler.compile_grammar(grammar)
        matcher = self.xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(byte) for byte in text.encode()) and bool(matcher.accept_token(256))


def random_grammar(rng: random.Random) -> str:
    """A few rules; `root` and `x` may hold macros, `y` has attributes."""

    def item(depth: int) -> str:
        kinds = ['"a"', '"ab"', "[bc]", "[^a]", '""', "y", 'Substring("a", "bc")']
        kinds += ['Regex("a|b+")', 'Regex("(ab|c)*")', "x" if depth > 1 else "y"]
        if depth and rng.random() < 0.3:
            made = "(" + " | ".join(item(depth - 1) for _ in range(rng.choice([1, 2]))) + ")"
        else:
            made = rng.choice(kinds)
        return made + (rng.choice(["?", "*", "+", "{2}", "{0,2}"]) if rng.random() < 0.3 else "")

    def body(depth: int) -> str:
        parts = [" ".join(item(depth) for _ in range(rng.choice([1, 2]))) for _ in range(rng.choice([1, 2]))]
        return " | ".join(parts)

    triggers = rng.sample(["ab", "cb", "aba", "abc", "b."], 2)
    free = f'TagDispatch(("{triggers[0]}", y), ("{triggers[1]}", w)'
    free += rng.choice([")", ", loop_after_dispatch=false)", ', excludes=("cc",))'])
    root = rng.choice([body(2), body(2), f"{free} x", free])
    attribute = rng.choice(["", "", "[lazy]", "[max_chars=2]", "[temperature=0.5]"])
    if root.endswith(") x"):  # beside free text XGrammar's lazy rules end other readings, too
        attribute = ""
    plain = ['"a" | "cb"', '[a-b]+ "c"?', '"b" [ac]*', 'Regex("a+b?")']
    return f'root ::= {root}\nx ::= {body(1)}\ny{attribute} ::= {rng.choice(plain)}\nw ::= "." | "c" (="a")'


def test_a_trigger_within_another_counts() -> None:
    """XGrammar passes over one within what may become a longer one; its documentation has none in free
    text."""
    automaton = tf.gbnf('root ::= TagDispatch(("aba", x), ("b", x))\nx ::= "!"').compile(BYTES)
    assert [automaton.matches(text) for text in (b"ab", b"ab!", b"aba!", b"a")] == [False, True, False, True]


def test_random_grammars_have_xgrammars_texts() -> None:
    judge, rng = _Judge(), random.Random(7)
    texts = ["".join(letters) for length in range(5) for letters in product("abc.", repeat=length)]
    differ = []
    for _ in range(120):
        grammar = random_grammar(rng)
        try:
            automaton = tf.gbnf(grammar, dialect="xgrammar").compile(BYTES)
        except TokenformError as error:
            differ.append((grammar, str(error)))
            continue
        if judge.refuses(grammar):
            continue
        for text in rng.sample(texts, 60):
            if automaton.matches(text.encode()) != judge.accepts(grammar, text):
                differ.append((grammar, text))
                break
    assert differ == []


def test_the_dialect_is_told_from_the_text() -> None:
    assert tf.gbnf('root ::= Regex("a+")').compile(BYTES).matches(b"aa")
    assert tf.gbnf('root ::= x\nx[lazy] ::= "a"+').compile(BYTES).matches(b"a")
    for text in (
        'root ::= "Regex(" # Token(1)',
        'root ::= [Regex(=a.b]+ "x[a] ::="',
        "root ::= a-b\na-b ::= .",
    ):
        assert not is_ebnf(text), text
    # llama.cpp's, since both read it, and differently
    assert tf.gbnf('root ::= "\\x414"').compile(BYTES).matches(b"A4")
    with pytest.raises(OptionError):
        tf.gbnf('root ::= "a"', dialect="ebnf")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("grammar", "line", "column"),
    [
        ("root ::= Regex()", 1, 10),
        ('root ::= Regex("a", "b")', 1, 10),
        ("root ::= Regex(abc)", 1, 10),
        ('root ::= "a"\nb ::= Regex("[")', 2, 13),
        ('root ::= Regex("(a)\\\\1")', 1, 16),
        ('root ::= Regex("a", foo=true)', 1, 10),
        ('root ::= Regex("a", json_string=1)', 1, 10),
        ('root ::= Substring("a", 1)', 1, 10),
        ("root ::= Token()", 1, 10),
        ('root ::= Token("a")', 1, 10),
        ('root ::= TagDispatch(("a", "b"))', 1, 10),
        ('root ::= TagDispatch(("", x))\nx ::= "a"', 1, 10),
        ('root ::= TagDispatch(("a", x))', 1, 28),
        ('root ::= TagDispatch(("a", x), excludes=(1,))\nx ::= "a"', 1, 10),
        ('root ::= "a" (="c") "d"', 1, 21),
        ('root ::= x.y\nx.y[foo=1] ::= "a"', 2, 4),
        ('root[max_tokens=3] ::= "(" root ")" | "a"', 1, 28),
        ("root[lazy] ::= [\\d]", 1, 17),
        ('root[lazy] ::= "a" root | "b"', 1, 20),
        ('root ::= "a\\q" [^]', 1, 12),
        ('root ::= [^] "a"{,2}', 1, 17),
        ('root ::= [^] "a"{3,2}', 1, 17),
        ("root ::= [^] []", 1, 14),
        ("root ::= [^] (", 1, 15),
        ('root ::= ("a" (="c"))', 1, 15),
        ('root ::= [^]\nroot ::= "a"', 2, 1),
    ],
)
def test_mistakes_are_told_where_they_stand(grammar: str, line: int, column: int) -> None:
    with pytest.raises((InvalidGrammar, InvalidRegex, UnsupportedRegex)) as caught:
        tf.gbnf(grammar, dialect="xgrammar")
    assert (caught.value.line, caught.value.column) == (line, column)


def test_limits() -> None:
    with pytest.raises(LimitExceeded):
        tf.gbnf("root ::= [^] " + "(" * 10_000, dialect="xgrammar")
    with pytest.raises(LimitExceeded):
        tf.gbnf('root ::= [^] "a"{30000}', dialect="xgrammar")
    doubled = "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(40))
    with pytest.raises(LimitExceeded):
        tf.gbnf(f'root[lazy] ::= r0\n{doubled}\nr40 ::= "a"')
