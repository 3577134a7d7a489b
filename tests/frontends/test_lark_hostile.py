"""Grammars in Lark's language that nobody means well with: typed errors, with a place and a way out."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, load_grammar

import tokenform as tf
from tokenform import errors
from tokenform.frontends import lark_errors, lark_groups
from tokenform.frontends.lark_reader import read_lark

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
DIGITS = "1" * 5000

CASES = [
    ("start: T\nT: %json {}", errors.InvalidGrammar, (2, 1), "put it into a rule"),
    ("%declare D\nstart: T D\nT: D", errors.InvalidGrammar, (3, 1), "put it into a rule"),
    ('start: T\nT: "a" (U: "b")', errors.InvalidGrammar, (2, 10), "expected"),
    ('start: "ab".."c"', errors.InvalidGrammar, (1, 8), 'as in "a".."z"'),
    ('start: T\nT: "a".."bc"', errors.InvalidGrammar, (2, 4), 'as in "a".."z"'),
    ('%declare foo\nstart: "a"', errors.InvalidGrammar, (1, 10), "in capitals"),
    ("start: /a{99999999999}/", errors.LimitExceeded, (1, 10), "repetition"),
    (r'start: "\x4"', errors.InvalidGrammar, (1, 8), "write \\\\xHH"),
    ('start: "\0"', errors.InvalidGrammar, (1, 8), "escape"),
    ('A:j{"":', errors.InvalidGrammar, (1, 7), "expected"),
    (f'start.{DIGITS}: "a"', errors.LimitExceeded, (1, 7), "18 are the most"),
    (f'start: A\nA.{DIGITS}: "a"', errors.LimitExceeded, (2, 3), "18 are the most"),
    ('start: b\nb: [a] [a]\na: "x"', errors.InvalidGrammar, (2, 1), "'a' more than once"),
    (f'start: "a" ~ {DIGITS}', errors.LimitExceeded, (1, 14), "18 are the most"),
    ("start: %json " + "[" * 100_000, errors.LimitExceeded, (1, 1), "nested too deeply"),
    ("start: %json " + '{"items":' * 1500 + "{}" + "}" * 1500, errors.LimitExceeded, (1, 1), "nested"),
    (
        '// tokenform: indenter newline=N indent=I dedent=D tab=²\nstart: "a"',
        errors.InvalidGrammar,
        (1, 1),
        "tab",
    ),
    ('start: x{2}\nx: "a"', errors.InvalidGrammar, (1, 10), "x ~ 2"),
    ('start: "a"{2,3}', errors.InvalidGrammar, (1, 11), "x ~ 2"),
    ('start: %regex {"substring_chars": "abc"}', errors.InvalidGrammar, (1, 8), "write a /regex/"),
    ('root ::= "a"', errors.InvalidGrammar, (1, 7), "tf.gbnf"),
    ("start: A\nA: /a(?=b)c/", errors.UnsatisfiableGrammar, (2, 1), "matches no text"),
    ("start: A\nA: /[^\\s\\S]b/", errors.UnsatisfiableGrammar, (2, 1), "matches no text"),
    ('start: %json {"const": 1' + "0" * 5000 + "}", errors.LimitExceeded, (1, 8), "%json"),
]


@pytest.mark.parametrize(("text", "kind", "place", "message"), CASES, ids=lambda v: str(v)[:40])
def test_mistakes_are_typed_and_placed(
    text: str, kind: type[Exception], place: tuple[int, int], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        tf.lark(text, dialect="lark")
    error = caught.value
    assert isinstance(error, errors.TokenformError) and (error.line, error.column) == place
    assert len(str(error)) < 1000


def test_templates_and_terminals_that_grow_without_end_are_refused() -> None:
    cases = {
        'start: t{"a"}\nt{x}: x | t{t{x}}': (2, 1),
        'start: t{"a", "b"}\nt{x, y}: x y | t{u{x}, u{y}}\nu{x}: x "c"': (2, 1),
        "start: A0\n" + "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(40)) + '\nA40: "a"': (2, 1),
    }
    for text, (_, column) in cases.items():
        with pytest.raises(errors.LimitExceeded) as caught:
            tf.lark(text)
        assert caught.value.line is not None and caught.value.column == column
    rules = "start: a0\n" + "\n".join(f"a{i}: a{i + 1} a{i + 1}" for i in range(16)) + '\na16: "a"'
    assert accepts(tf.lark(rules), "a" * 2**16)


def test_templates_that_end_are_read() -> None:
    grammar = tf.lark('start: list{item{"a"}, ","}\nlist{x, sep}: x (sep x)*\nitem{x}: x x?')
    assert accepts(grammar, "a,aa,a") and not accepts(grammar, "a,,a")


def accepts(grammar: tf.Grammar, text: str) -> bool:
    return grammar.compile(BYTES).check(text.encode()) is None


@pytest.mark.parametrize(
    "grammar",
    [
        tf.lark('start: A | "ok"\nA: /[^\\u0000-\\U0010FFFF]/'),
        tf.lark('start: "ok" | /a(?=b)c/'),
        tf.lark('start: "ok" | /a(?=b)c/', lexer="dynamic"),
        tf.lark('start: "ok"\n%ignore /a(?=b)c/'),
        tf.gbnf('root ::= [^\\x00-\\U0010FFFF] | "ok"'),
        tf.regex("[^\\u0000-\\U0010FFFF]|ok"),
    ],
    ids=lambda grammar: grammar.source,
)
def test_a_branch_that_matches_nothing_is_left_out(grammar: tf.Grammar) -> None:
    assert accepts(grammar, "ok") and not accepts(grammar, "a") and not accepts(grammar, "")
    automaton = grammar.compile(BYTES)
    assert automaton.allowed_tokens(automaton.start).tolist() == list(automaton.oracle(automaton.start))


@pytest.mark.parametrize("lexer", ["dynamic", "contextual"])
def test_the_empty_text_satisfies_an_empty_rule(lexer: Any) -> None:
    for text in ('start: \nr1: "("* | r1+', 'start: \nr1: "a"'):
        assert accepts(tf.lark(text, lexer=lexer), "")


def test_no_file_is_read_without_import_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.lark").write_text('WORD: "secret"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("__main__.__file__", str(tmp_path / "main.py"), raising=False)
    for text in ("%import .secret.WORD\nstart: WORD", "%import secret.WORD\nstart: WORD"):
        with pytest.raises(errors.InvalidGrammar, match=r"was not found|can.t read"):
            tf.lark(text)
    assert accepts(tf.lark("%import secret.WORD\nstart: WORD", import_paths=[str(tmp_path)]), "secret")
    assert accepts(tf.lark("%import common.DIGIT\nstart: DIGIT"), "7")


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ('start: "a"\n%extend foo: "b"\n', 2, 9, "foo"),
        ('start: "a"\n%override foo: "b"\n', 2, 11, "foo"),
        ('start: "a"\n%extend A: "b"\n', 2, 9, "A"),
        ('start: "a"\n%extend start{x}: "b"\n', 2, 9, "start"),
        ('start: "a"\n%ignore foo\n', 2, 1, "the rule foo"),
        ('start: "a"\n%ignore " "\n%ignore ("x" | foo)\n', 3, 1, "the rule foo"),
        ('start: "a"\n%ignore\n', 2, 1, "what %ignore names"),
        ('start: "a"\n%ignore "x" -> b\n', 2, 13, "->"),
    ],
)
def test_mistakes_in_directives_have_a_place(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(errors.InvalidGrammar) as caught:
        tf.lark(text)
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert (
        said in str(caught.value)
        and "__IGNORE" not in str(caught.value)
        and "NonTerminal" not in str(caught.value)
    )


def chain(n: int, name: str, last: str = '"b"') -> str:
    return "\n".join(f'{name}{i}: {name}{i + 1} "a"' for i in range(n)) + f"\n{name}{n}: {last}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start: T0\n" + chain(800, "T"), "parts when those that they name"),
        ('start: "a"' + "\n" * 10**6, "steps of work"),
        ("start: " + " ".join(["(a|b)?"] * 20_000) + '\na: "a"\nb: "b"\n', "steps of work"),
        ("start: r0\n" + chain(20_000, "r"), "steps of work"),
        ('start: "' + "a" * 2_000_000 + '"\n', "steps of work"),
    ],
    ids=["a chain of terminals", "a million empty lines", "groups", "rules", "a long string"],
)
def test_what_lark_would_read_for_too_long_is_refused_before(text: str, message: str) -> None:
    with pytest.raises(errors.LimitExceeded, match=message):
        tf.lark(text)


def test_the_limit_on_reading_is_the_limit_of_work() -> None:
    text = "start: r0\n" + chain(200, "r")
    usual = tf.engine.Limits()
    tf.engine.set_limits(tf.engine.Limits(work=10**6))
    try:
        with pytest.raises(errors.LimitExceeded, match="1000000 steps of work"):
            tf.lark(text + "// once\n")
    finally:
        tf.engine.set_limits(usual)
    assert tf.lark(text + "// twice\n").compile(BYTES).matches(b"b" + b"a" * 200)


def test_comments_and_some_empty_lines_are_hardly_charged() -> None:
    text = "// a line of a header that is long\n" * 50_000 + "\n" * 500 + 'start: "a"\n' + "\n# more" * 50_000
    assert tf.lark(text).compile(BYTES).matches(b"a")


def test_a_chain_of_unused_rules_is_dropped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    original = load_grammar.classify_bool
    monkeypatch.setattr(load_grammar, "classify_bool", lambda *a: looks.append(1) or original(*a))
    unused = chain(300, "r", "R") + 'R: "c"\ncircle: other\nother: circle | K\nK: "k"\nown: own "o" | "p"\n'
    read = read_lark(f'start: "x" [shown]\nshown: "y"\n{unused}%ignore I\nI: " "\n')
    assert len(looks) < 10
    # a circle names itself, so that Lark keeps it
    plain = Lark(f'start: "x" [shown]\nshown: "y"\n{unused}%ignore I\nI: " "\n', parser="earley")
    assert {rule["origin"] for rule in read["rules"]} == {str(rule.origin.name) for rule in plain.rules}
    assert {terminal["name"] for terminal in read["terminals"]} == {str(t.name) for t in plain.terminals}


def test_the_first_of_many_mistakes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    original = lark_errors._get_parser
    monkeypatch.setattr(lark_errors, "_get_parser", lambda: reads.append(1) or original())
    text = 'start: "a"\n' + "\n".join(f"r{i}: ) (" for i in range(3000))
    with pytest.raises(errors.InvalidGrammar) as caught:
        tf.lark(text)
    assert (caught.value.line, caught.value.column) == (2, 5) and len(reads) == 1


@pytest.mark.parametrize("text", ["a b? c? d?", "a? (b|c)? (b d)?", "[a] b [c d] (a b|c)?"])
def test_groups_mean_the_same_where_there_are_many_rules(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = f'start: {text}\na: "a"\nb: "b"\nc: "c"\nd: "d"\n'
    words = ["".join(w) for n in range(5) for w in itertools.product("abcd", repeat=n)]
    usual = tf.lark(grammar).compile(BYTES)
    monkeypatch.setattr(lark_groups, "ALL", 1)
    monkeypatch.setattr(lark_groups, "FEW", 2)
    named = tf.lark(grammar + "// again\n").compile(BYTES)
    assert [named.matches(w.encode()) for w in words] == [usual.matches(w.encode()) for w in words]


@pytest.mark.parametrize(
    "body",
    [
        " | ".join(["x x x x"] * 400),
        " ".join(["x"] * 4_000),
        " ".join(["[x]"] * 6) + " x" * 50,
        " ".join(["(x | x x)"] * 30),
        "((x | x x) (x | x x) (x | x x) (x | x x) (x | x x)" + " x" * 50 + ")*",
    ],
    ids=["alternatives", "symbols", "groups", "many groups", "a loop of groups"],
)
def test_what_a_template_is_written_out_to_is_counted(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    original = load_grammar.ApplyTemplates.template_usage
    monkeypatch.setattr(
        load_grammar.ApplyTemplates, "template_usage", lambda *a: copied.append(1) or original(*a)
    )
    uses = " ".join(f't{{"{i}"}}' for i in range(1900))
    with pytest.raises(errors.LimitExceeded, match="steps of work"):
        tf.lark(f"start: {uses}\nt{{x}}: {body}\n")
    assert 2 <= len(copied) < 1900  # it is told before all are made


def test_alternatives_are_charged_by_their_length() -> None:
    groups, names = "(a|b) " * 6, '\na: "a"\nb: "b"\n'
    rules = "\n".join(f"r{i}: {groups}" + "a " * 400 for i in range(50))
    with pytest.raises(errors.LimitExceeded, match="steps of work"):
        tf.lark(f"start: r0\n{rules}{names}")
    short = "\n".join(f"r{i}: {groups}" + "a " * 10 for i in range(50))
    assert tf.lark(f"start: r0\n{short}{names}").compile(BYTES).matches(b"ababab" + b"a" * 10)
