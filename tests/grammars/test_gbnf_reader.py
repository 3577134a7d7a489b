"""The reader of GBNF: the language, character by character, and mistakes with their place."""

from __future__ import annotations

import json

import pytest

from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends.gbnf_reader import MAX_NESTING, MAX_REPETITION, read_gbnf

from .judge import accepts, structure_to_lark

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
    ("root ::= (", 1, 10, "unexpected the end"),
    ('root := "a"', 1, 1, "expected a rule"),
    ('root ::= "a', 1, 10, "unexpected character"),
    (r'root ::= "a\q"', 1, 12, "unknown escape"),
    (r'root ::= "\x4"', 1, 11, "unknown escape"),
    (r'root ::= "\uD800"', 1, 11, "not a Unicode character"),
    ('root ::= "a"\nx ::= [b-a]', 2, 7, "wrong way round"),
    ("root ::= []", 1, 10, "class is empty"),
    ('root ::= "a"{3,2}', 1, 13, "wrong way round"),
    ('root ::= "a"{}', 1, 13, "unexpected character"),
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


def test_limits() -> None:
    with pytest.raises(LimitExceeded, match=str(MAX_REPETITION)):
        read_gbnf(f'root ::= "a"{{{MAX_REPETITION + 1}}}')
    with pytest.raises(LimitExceeded, match=str(MAX_NESTING)):
        read_gbnf("root ::= " + "(" * (MAX_NESTING + 2) + '"a"' + ")" * (MAX_NESTING + 2))
    assert len(read_gbnf('root ::= ("a"{1000}){1000}')["rules"]) == 2
