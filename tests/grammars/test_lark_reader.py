"""The reader of Lark's language: its form means what Lark means, and mistakes are told with their place."""

from __future__ import annotations

import json

import pytest
from lark import Lark

from tokenform.errors import InvalidGrammar, OptionError, TokenformError
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.lark_reader import read_lark

from .judge import accepts, structure_to_lark


def _bodies(structure: GrammarStructure, origin: str) -> list[list[str]]:
    return [rule["expansion"] for rule in structure["rules"] if rule["origin"] == origin]


def _terminal(structure: GrammarStructure, name: str) -> dict[str, object]:
    return dict(next(entry for entry in structure["terminals"] if entry["name"] == name))


def test_is_plain_data() -> None:
    structure = read_lark('start: "a" NAME*\nNAME: /[a-z]+/i\n%ignore " "\n')
    assert json.loads(json.dumps(structure)) == structure
    assert structure["ignore"] == ["__IGNORE_0"] and structure["lexer"] == "contextual"


def test_terminals() -> None:
    structure = read_lark('start: A B C\nA.2: "x+"i\nB: /y\\/.|z/s\nC: "0".."9"\n')
    assert _terminal(structure, "A") == {
        "name": "A", "pattern": "x\\+", "literal": "x+", "kind": "str", "flags": "i", "priority": 2,
    }  # fmt: skip
    assert _terminal(structure, "B")["flags"] == "s" and _terminal(structure, "B")["literal"] is None
    assert _terminal(structure, "C")["pattern"] == "[0-9]"


def test_terminals_stand_in_the_order_of_larks_lexer() -> None:
    structure = read_lark('start: (A | B | LONG | FIRST)+\nA: "ab"\nB: "abc"\nLONG: /[a-z]+/\nFIRST.1: "a"\n')
    assert [entry["name"] for entry in structure["terminals"]] == ["FIRST", "LONG", "B", "A"]


def test_rules_keep_order_and_priority() -> None:
    structure = read_lark('start: x\nx.3: "a" -> first\n | "b" x? -> second\n')
    rules = [(r["expansion"], r["priority"], r["order"]) for r in structure["rules"] if r["origin"] == "x"]
    assert rules == [(["A"], 3, 0), (["B", "x"], 3, 1), (["B"], 3, 2)]


def test_templates_imports_ignore_and_declare() -> None:
    head = "%import common (INT, WS)\n%ignore WS\n%declare INDENT\n"
    text = head + 'start: list{INT} INDENT\nlist{x}: x ("," x)*\n'
    structure = read_lark(text)
    assert structure["declare"] == ["INDENT"] and structure["ignore"] == ["WS"]
    assert _bodies(structure, "start") == [["list{INT}", "INDENT"]]
    assert {"INT", "WS", "COMMA"} == {entry["name"] for entry in structure["terminals"]}


@pytest.mark.parametrize(
    ("grammar", "texts"),
    [
        (
            'start: "a"~2..4 ("b" | "c")? x{"d"}\nx{t}: "[" t+ "]"',
            ["aa[d]", "aaaa[dd]", "aaac[d]", "a[d]", "aaaaa[d]"],
        ),
        ('start: e\n?e: e "+" e | "1" | "(" e ")"', ["1", "1+1+(1)", "1+", "()", "(1"]),
        ('start: [a] b* -> s\na: "x"i\n_c: "y"\nb: _c | "z"', ["", "X", "xyz", "zz", "yx"]),
        ("start: /a(?=b)/ /b|c/", ["ab", "ac", "a"]),
        ('start: "a" ~ 60', ["a" * 60, "a" * 59, "a" * 61]),
    ],
)
def test_same_language_as_lark(grammar: str, texts: list[str]) -> None:
    own = structure_to_lark(read_lark(grammar, lexer="dynamic"))
    theirs = Lark(grammar, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    assert [accepts(own, text) for text in texts] == [accepts(theirs, text) for text in texts]
    assert {accepts(own, text) for text in texts} == {True, False}


def test_directives() -> None:
    text = (
        "// tokenform: lexer=dynamic start=top\n"
        "// tokenform: indenter newline=_NL indent=IN dedent=OUT open=LPAR,LSQB close=RPAR,RSQB tab=4\n"
        'top: "(" _NL IN OUT ")"\n_NL: /\\n */\n%declare IN OUT\n'
    )
    structure = read_lark(text)
    assert (structure["start"], structure["lexer"]) == ("top", "dynamic")
    assert structure["indenter"] == {
        "newline": "_NL", "indent": "IN", "dedent": "OUT",
        "open": ["LPAR", "LSQB"], "close": ["RPAR", "RSQB"], "tab": 4,
    }  # fmt: skip
    assert read_lark(text, lexer="contextual")["lexer"] == "contextual"
    with pytest.raises(OptionError, match="lexer must be"):
        read_lark(text, lexer="standard")  # type: ignore[arg-type]
    with pytest.raises(InvalidGrammar, match="lacks dedent, indent"):
        read_lark('// tokenform: indenter newline=_NL\nstart: "a"\n')


def test_schemas_inside_a_grammar() -> None:
    structure = read_lark('start: "x" %json {"type":\n  "integer"} y\ny: %json {"const": "%json"}\n')
    assert structure["schemas"] == {
        "JSON_SCHEMA_0": '{"type":\n  "integer"}',
        "JSON_SCHEMA_1": '{"const": "%json"}',
    }
    assert _bodies(structure, "start") == [["X", "JSON_SCHEMA_0", "y"]]
    assert structure["declare"] == ["JSON_SCHEMA_0", "JSON_SCHEMA_1"]
    with pytest.raises(InvalidGrammar) as caught:
        read_lark('start: %json {"a":\n 1} "x" b\n')
    assert (caught.value.line, caught.value.column) == (2, 9)


def test_percent_json_in_strings_and_comments_is_text() -> None:
    structure = read_lark('start: "%json {" // %json {\n')
    assert structure["schemas"] == {} and structure["terminals"][0]["literal"] == "%json {"


MISTAKES = [
    ('start: a "b"\n', 1, 8, "'a' used but not defined"),
    ('start: "x"\n     | (a\na: "x"\n', 2, 10, "expected '\\)'"),
    ('start: "a" $ \n', 1, 12, "unexpected character '\\$'"),
    ("start a\n", 1, 7, "missing colon"),
    ('start: "a" -> B\n', 1, 15, "expected a rule name"),
    ("start: A\nA: /(/\n", 2, 1, "terminal A is not a regular expression"),
    ("start: A\nA: /a*/\n", 2, 1, "terminal A matches the empty text"),
    ("start: A\nA:\n", 2, 1, "cannot be empty"),
    ('start: ""\n', 1, 8, "Empty terminals"),
    ('start: "b".."a"\n', 1, 8, "bad character range"),
    ('start: "x"\n  | x\nx: "a" x\n', 3, 1, "rule 'x' derives nothing"),
    ('start: "a" x*\nx: y\ny: x\n', 2, 1, "rule 'x' derives nothing"),
    ('start: A\nA: B "x"\nB: A\n', 2, 1, "Recursion in terminal 'A'"),
    ('start: B\nB: A C\nA: "a"\n', 2, 6, "not defined: C"),
    ('start: A\nA: x\nx: "a"\n', 2, 1, "Rules aren't allowed inside terminals"),
    ('start: a\na: "1"\na: "2"\n', 3, 1, "more than once"),
    ('start: "a" ~ 3..1\n', 1, 12, "Bad Range"),
    ("%import nothing.FOO\nstart: FOO\n", 1, 9, "'nothing' that is imported was not found"),
    ('%ignore FOO\nstart: "a"\n', 1, 9, "FOO"),
    ('start: t{"a", "b"}\nt{x}: x\n', 2, 1, "Wrong number of template arguments"),
    ("start: %json {a}\n", 1, 15, "%json needs a JSON Schema"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), MISTAKES, ids=lambda v: v if isinstance(v, str) else None
)
def test_mistakes(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(InvalidGrammar, match=message) as caught:
        read_lark(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    shown = str(caught.value).splitlines()
    assert shown[-2] == text.splitlines()[line - 1] and shown[-1] == " " * (column - 1) + "^"


@pytest.mark.parametrize("text", ["", "// nothing\n", 'other: "a"\n'])
def test_no_start_rule(text: str) -> None:
    with pytest.raises(InvalidGrammar, match="start rule 'start' is not defined"):
        read_lark(text)


@pytest.mark.parametrize("text", ["start: " + "(" * 3000, "start: " + "[" * 500 + '"a"' + "]" * 500])
def test_hostile_texts_end_in_an_error(text: str) -> None:
    with pytest.raises(TokenformError):
        read_lark(text)
