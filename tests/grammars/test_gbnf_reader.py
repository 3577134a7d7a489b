"""The reader of GBNF: the language, character by character, and mistakes with their place."""

from __future__ import annotations

import json
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import tokenform as tf
from tokenform import Vocabulary
from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends.gbnf import gbnf, read_gbnf

from .judge import accepts, structure_to_lark

MAX_REPETITION, MAX_NESTING = 100_000, 200  # of rust/core/src/gbnf

LANGUAGES = [
    ('root ::= "a" | "bc"', ["a", "bc"], ["", "b", "abc"]),
    ('root ::= ("a" | "b")* "c"+ "d"?', ["c", "abbaccd"], ["", "d", "cdd"]),
    ("root ::= [a-c] [^a-c\\]] [x-]", ["adx", "b--"], ["aax", "a]x", "adz"]),
    ('root ::= "a"{3}', ["aaa"], ["aa", "aaaa"]),
    ('root ::= "ab"{2,}', ["abab", "ababab"], ["ab", "aba"]),
    ('root ::= [0-9]{1,3} ("." [0-9]{0,2})?', ["1", "123.45", "1."], ["", "1234", "1.234"]),
    ('root ::= "a"{0,0} "b"', ["b"], ["ab"]),
    (r'root ::= "\x41\u00e9\U0001F600\n\t\r\\\"\[\]"', ['Aé😀\n\t\r\\"[]'], ["A"]),
    (r"root ::= [\x41-\x43\n\]\\-]", ["A", "B", "\n", "]", "\\", "-"], ["D", "n"]),
    ("root ::= . .", ["ab", "\n😀"], ["a", "abc"]),
    ('root ::= x # comment "y"\nx ::= (\n  "a" # one\n  | "b"\n)\n', ["a", "b"], ["y", ""]),
    ('root ::= first |\n  rest-2\nfirst ::= "1"\nrest-2 ::= "2"', ["1", "2"], ["12"]),
    ('root::= a_b\na_b ::= "" | "x" a_b', ["", "xxx"], ["y"]),
    ('root ::= root "+" t | t\nt ::= [0-9]+', ["1", "1+22+3"], ["+1", "1+"]),
    ('root ::= "a"?* "b"+{2}', ["bb", "aabbb"], ["b", "aa"]),
    ('root ::= ("a" | ) "b"', ["ab", "b"], ["a"]),
    ("root ::= [aé-ü]+", ["aéö"], ["x"]),
]


@pytest.mark.parametrize(
    ("grammar", "accepted", "refused"), LANGUAGES, ids=[grammar for grammar, _, _ in LANGUAGES]
)
def test_language(grammar: str, accepted: list[str], refused: list[str]) -> None:
    structure = read_gbnf(grammar)
    assert json.loads(json.dumps(structure)) == structure
    assert structure["lexer"] == "dynamic" and structure["ignore"] == []
    parser = structure_to_lark(structure)
    assert [text for text in accepted if not accepts(parser, text)] == []
    assert [text for text in refused if accepts(parser, text)] == []


def test_repetition_has_one_derivation_for_each_count() -> None:
    structure = read_gbnf('root ::= "a"{2,4}')
    assert [rule["expansion"] for rule in structure["rules"] if rule["origin"] == "root"] == [
        ['"a"', '"a"', "root.2"]
    ]
    assert len(structure["rules"]) == 5


def test_unused_rules_are_left_out() -> None:
    structure = read_gbnf('root ::= "a"\nunused ::= unused "b"')
    assert {rule["origin"] for rule in structure["rules"]} == {"root"}
    assert [entry["literal"] for entry in structure["terminals"]] == ["a"]


def test_other_start() -> None:
    assert read_gbnf('root ::= "a"\nx ::= "b"', start="x")["start"] == "x"


MISTAKES = [
    ("root ::= a", 1, 10, "'a' is used but not defined"),
    ("root ::= (", 1, 10, "the grammar ends here"),
    ('root := "a"', 1, 1, "expected a rule"),
    ('root ::= "a', 1, 10, "no closing '\"'"),
    ("root ::= [a-z", 1, 10, r"no closing '\]'"),
    (r'root ::= "a\q"', 1, 12, "unknown escape"),
    (r'root ::= "\x4"', 1, 11, "unknown escape"),
    (r'root ::= "\uD800"', 1, 11, "not a Unicode character"),
    ('root ::= "a"\nx ::= [b-a]', 2, 7, "wrong way round"),
    ("root ::= []", 1, 10, "class is empty"),
    ('root ::= "a"{3,2}', 1, 13, "wrong way round"),
    ('root ::= "a"{}', 1, 13, r"{m}, {m,} or {m,n}"),
    ("root ::= *", 1, 10, "unexpected"),
    ('root ::= "a"\n\n ) ', 3, 2, "unexpected '\\)'"),
    ('root ::= "a" b ::= "c"', 1, 14, "line of its own"),
    ('root ::= "a"\nroot ::= "b"', 2, 1, "more than once"),
    ('root ::= "a" x\nx ::= x "b"', 2, 1, "rule 'x' derives nothing"),
    ("", 1, 1, "expected a rule"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), MISTAKES, ids=lambda v: v if isinstance(v, str) else None
)
def test_mistakes(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(InvalidGrammar, match=message) as caught:
        read_gbnf(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    if text:
        assert text.splitlines()[line - 1] in str(caught.value)


def test_no_root() -> None:
    with pytest.raises(InvalidGrammar, match="start rule 'root' is not defined; rules of the grammar: x"):
        read_gbnf('x ::= "a"')


def test_what_others_write_is_read() -> None:
    for text, accepted, refused in [
        ("\ufeffroot ::= [a-z\\-]+ # a byte order mark", ["a-b"], ["\\", "A"]),
        (
            'root ::= "\\"" [^"]{1,65536} "\\""',
            ['"abc"', '"' + "x" * 65536 + '"'],
            ['""', '"' + "x" * 65537 + '"'],
        ),
    ]:
        automaton = tf.gbnf(text).compile(tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256]))
        for word in accepted:
            assert automaton.matches(word.encode()), word[:9]
        for word in refused:
            assert not automaton.matches(word.encode()), word[:9]


def test_limits() -> None:
    with pytest.raises(LimitExceeded, match=str(MAX_REPETITION)):
        read_gbnf(f'root ::= "a"{{{MAX_REPETITION + 1}}}')
    with pytest.raises(LimitExceeded, match=str(MAX_NESTING)):
        read_gbnf("root ::= " + "(" * (MAX_NESTING + 2) + '"a"' + ")" * (MAX_NESTING + 2))
    assert len(read_gbnf('root ::= ("a"{1000}){1000}')["rules"]) == 2


Piece = tuple[str, str]  # a part of a rule, and Python's pattern for it


def _joined(parts: list[Piece], symbol: str, gbnf_symbol: str) -> Piece:
    gbnf = gbnf_symbol.join(text for text, _ in parts)
    return f"({gbnf})", f"(?:{symbol.join(pattern for _, pattern in parts)})"


_ATOMS = st.sampled_from(
    [
        ('"a"', "a"),
        ('"bc"', "bc"),
        ('""', ""),
        (r'"\x61\n"', "a\n"),
        ("[a-c]", "[a-c]"),
        ("[^ab]", "[^ab]"),
        (r"[\]é-]", "[]é-]"),
        (".", "(?s:.)"),
    ]
)
_OPERATORS = st.sampled_from([(sign, sign) for sign in ("?", "*", "+", "{2}", "{1,}", "{0,2}", "{1,3}")])


def _larger(parts: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    several = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda found: _joined(found, "", " ")),
        several.map(lambda found: _joined(found, "|", " | # or\n ")),
        st.tuples(parts, _OPERATORS).map(lambda p: (p[0][0] + p[1][0], f"(?:{p[0][1]}){p[1][1]}")),
    )


@given(st.recursive(_ATOMS, _larger, max_leaves=6), st.lists(st.text("abc\né]-", max_size=5), max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_rule_means_what_the_pattern_does(part: Piece, texts: list[str]) -> None:
    gbnf_text, pattern = part
    vocabulary = Vocabulary([bytes([i]) for i in range(256)] + [b""], eos=[256])
    automaton = gbnf(f"root ::= {gbnf_text}").compile(vocabulary)
    for text in {*texts, "", "a", "bc", "abc"}:
        accepted = automaton.matches(text.encode())
        assert accepted == bool(re.fullmatch(pattern, text)), (gbnf_text, pattern, text)


@given(st.text("ab:=\"'[](){}|?*+.,-^\\x41u#\n \té0", max_size=40), st.booleans())
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused_with_its_place(text: str, whole: bool) -> None:
    text = text if whole else f"root ::= {text}"
    try:
        structure = read_gbnf(text)
    except InvalidGrammar as error:
        assert error.line is None or 1 <= error.line <= text.count("\n") + 1
        assert error.column is None or 1 <= error.column <= len(text.split("\n")[(error.line or 1) - 1]) + 1
        assert (error.line is None) == ("start rule" in str(error))
    except LimitExceeded:
        pass
    else:
        names = {rule["origin"] for rule in structure["rules"]} | {t["name"] for t in structure["terminals"]}
        assert all(symbol in names for rule in structure["rules"] for symbol in rule["expansion"])


def test_repetitions_of_repetitions_do_not_multiply() -> None:
    structure = read_gbnf('root ::= "a"{9000}{900}{90}')
    assert sum(len(rule["expansion"]) for rule in structure["rules"]) < 10_000
    with pytest.raises(InvalidGrammar, match="half of a surrogate pair") as caught:
        read_gbnf('root ::= "a\ud800"')
    assert (caught.value.line, caught.value.column) == (1, 12)
