"""Terminals that look past the ends of what they match, and lazy ones: texts are those of Lark's parser."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import lark
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lark.indenter import PythonIndenter

import tokenform as tf
from tokenform.errors import TokenformError, UnsatisfiableGrammar, UnsupportedRegex

LETTERS = 'abé "'
TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", "bé".encode(), b"a b", b"\xa9a", b'""', b" a"]
VOCABULARY = tf.Vocabulary([*TOKENS, b"</s>"], eos=[len(TOKENS)], special=[len(TOKENS)])
TEXTS = ["".join(letters) for n in range(1, 5) for letters in itertools.product(LETTERS, repeat=n)]

# of one character, so that the longest match is Lark's own
LOOKING = [
    r"a(?!b)",
    r"a(?=[b ])",
    r"b\b",
    r"\bb",
    r"\bé\b",
    r"(?<!a)b",
    r"(?<=[ab])é",
    r"é(?!é)",
    r"\Ba",
    r"[ab](?![ab])",
    r"^a",
    r"b(?= |\Z)",
]
PLAIN = ["a", "b", "é", "[ab]", '"']
LAZY = [r'"[^"]*?"', '".*?"', "a.*?b", r'"[ab]*?(?<!a)"', "a{1,3}?b?", "b+?é", r'"(?:aa)*?"', "a(?:b.*?é)?"]


@cache
def judge(grammar: str) -> lark.Lark:
    return lark.Lark(grammar, parser="lalr")


def accepts(grammar: str, text: str) -> bool:
    try:
        judge(grammar).parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def reads(automaton: tf.TokenAutomaton, text: str) -> bool:
    state = automaton.start
    for byte in text.encode():
        if not automaton.allows(state, byte):
            return False
        state = automaton.advance(state, byte)
    return automaton.is_accepting(state)


def grammar_of(patterns: list[str], ignored: str = "") -> str:
    names = [f"T{i}" for i in range(len(patterns))]
    lines = [f"start: ({'|'.join(names)})+"]
    # each has a priority of its own: Lark's order among equals is that of widths
    lines += [
        f"{name}.{9 - i}: /{pattern}/" for i, (name, pattern) in enumerate(zip(names, patterns, strict=True))
    ]
    return "\n".join([*lines, f"%ignore {ignored}" if ignored else "", ""])


def check(grammar: str, texts: list[str]) -> None:
    try:
        automaton = tf.lark(grammar).compile(VOCABULARY)
    except UnsatisfiableGrammar:
        assert not any(accepts(grammar, text) for text in texts), grammar
        return
    for text in texts:
        assert reads(automaton, text) == accepts(grammar, text), (grammar, text)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(LOOKING), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(PLAIN), max_size=2, unique=True),
    st.sampled_from(["", '" "']),
)
def test_assertions_see_the_text_around_a_terminal(
    looking: list[str], plain: list[str], ignored: str
) -> None:
    check(grammar_of([*looking, *plain], ignored), TEXTS[::3])


@pytest.mark.parametrize("pattern", LAZY)
@pytest.mark.parametrize("ignored", ["", '" "'])
def test_a_lazy_terminal_ends_where_it_can(pattern: str, ignored: str) -> None:
    check(f"start: T+\nT: /{pattern}/\n" + (f"%ignore {ignored}\n" if ignored else ""), TEXTS)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(LOOKING), min_size=1, max_size=2, unique=True), st.integers(0, 2**32 - 1))
def test_masks_are_those_of_the_bytes(looking: list[str], seed: int) -> None:
    try:
        automaton = tf.lark(grammar_of([*looking, "b", "é"])).compile(VOCABULARY)
    except TokenformError:
        return
    rng, state = np.random.default_rng(seed), automaton.start
    for _ in range(12):
        allowed = set(automaton.allowed_tokens(state))
        for token, text in enumerate(TOKENS):
            there = state
            for byte in text:
                if not automaton.allows(there, byte):
                    break
                there = automaton.advance(there, byte)
            else:
                assert token in allowed, text
                continue
            assert token not in allowed, text
        assert allowed
        ways = sorted(allowed - {len(TOKENS)})
        if not ways:
            break
        state = automaton.advance(state, int(rng.choice(ways)))


JSON = r"""
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
start: value
%ignore WS
"""


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": ["c", "d"]}',
        '["a\\"b", "\\\\"]',
        '["a" "b"]',
        '{"a" "b": 1}',
        '["a", "b"',
        '"\\"',
        "[1, true]",
    ],
)
def test_the_grammar_of_larks_tutorial(text: str) -> None:
    assert reads(tf.lark(JSON).compile(VOCABULARY), text) == accepts(JSON, text)


PYTHON = (Path(lark.__file__).parent / "grammars" / "python.lark").read_text()
INDENTER = (
    "// tokenform: indenter newline=_NEWLINE indent=_INDENT dedent=_DEDENT"
    " open=LPAR,LSQB,LBRACE close=RPAR,RSQB,RBRACE tab=8\n"
)
PROGRAM = """import os
def f(x: int = 3, *args) -> str:
    \"\"\"Doc "string".\"\"\"
    if x >= 3 and not args:
        return f"{x!r}" + 'abc' * 0
    try:
        y = ["", '', r"\\d", 0x1F, 1.5e3, 00, 0]
    except (ValueError, TypeError) as e:
        raise RuntimeError("bad") from e
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("00,", "007,"),
        ('""', '"""'),
        ("''", "'"),
        ("0x1F", "00x1"),
        ('"bad"', '"b\\"'),
        ("0]", "09]"),
    ],
)
def test_larks_own_grammar_of_python(old: str, new: str) -> None:
    """Numbers and strings of it look past their ends."""
    text = PROGRAM.replace(old, new)
    judge = lark.Lark(PYTHON, parser="lalr", start="file_input", postlex=PythonIndenter())
    try:
        judge.parse(text)
        right = True
    except lark.exceptions.LarkError:
        right = False
    assert right or old
    automaton = tf.lark(INDENTER + PYTHON, start="file_input").compile(VOCABULARY)
    assert reads(automaton, text) == right


def test_what_follows_decides_which_terminal_it_is() -> None:
    grammar = 'start: IF NAME | NAME+\nIF.2: /if\\b/\nNAME: /[a-z]+/\n%ignore " "\n'
    texts = ["iffy", "if fy", "if", "fy if", "if if", "i f"]
    automaton = tf.lark(grammar).compile(VOCABULARY)
    assert [reads(automaton, text) for text in texts] == [accepts(grammar, text) for text in texts]
    assert automaton.distance(automaton.start) == 1


@pytest.mark.parametrize("pattern", [r"a(?!bb)", r"a$"])
def test_more_than_a_character_past_the_end_is_refused(pattern: str) -> None:
    with pytest.raises(
        UnsupportedRegex, match="The terminal A looks further than one character past the end"
    ):
        tf.lark(f"start: (A|B)+\nA: /{pattern}/\nB: /[b\\n]/\n").compile(VOCABULARY)


def test_a_longer_lookbehind_past_the_beginning_is_refused() -> None:
    with pytest.raises(UnsupportedRegex, match="more than one character before the match"):
        tf.lark("start: (A|B)+\nA: /(?<!bb)a/\nB: /b/\n").compile(VOCABULARY)


def test_a_host_of_other_constraints_refuses_it() -> None:
    with pytest.raises(UnsupportedRegex, match="looks past the ends of what it matches"):
        tf.lark('start: IF %json {"type": "integer"}\nIF: /if\\b/\n').compile(VOCABULARY)


@pytest.mark.parametrize("grammar", ["start: T+\nT: /\\w\\B/\n", 'start: T+\nT: /\\w(?=\\w)/\n%ignore " "\n'])
def test_texts_that_could_never_end_are_refused(grammar: str) -> None:
    with pytest.raises(UnsatisfiableGrammar):
        tf.lark(grammar).compile(VOCABULARY)


def test_a_word_that_asks_for_what_no_text_brings_is_not_begun() -> None:
    automaton = tf.lark("start: (T|S)+\nT: /[^a]ab(?=\\d)/\nS: / /\n").compile(VOCABULARY)
    spaces = [token for token, text in enumerate(TOKENS) if text.strip(b" ") == b""]
    assert automaton.allowed_tokens(automaton.start).tolist() == spaces
