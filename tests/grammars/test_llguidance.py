"""llguidance's dialect of Lark's language: the texts that its documentation gives to each construct."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf
from tokenform.errors import (
    InvalidGrammar,
    LimitExceeded,
    OptionError,
    TokenformError,
    UnsatisfiableGrammar,
    UnsupportedRegex,
)

BYTES = byte_vocabulary()
TOOLS = """
start: ( f_foo | f_bar )* f_end
f_end: TEXT
TEXT: /(.|\\n)*/

f_foo_hd[lazy]: TEXT "<function"
f_foo: f_foo_hd "=foo>" %json { "type": "object", "additionalProperties": false } "</function>"

f_bar_hd[lazy]: TEXT "<function"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"
"""

CASES = [
    ('%llguidance {}\nstart: "a" /[0-9]+/', ["a1", "a12"], ["a", "a1b"]),
    ('start: ab{3,5}\nab: "a" | "b"', ["aba", "aaaaa"], ["ab", "aaaaaa"]),
    ('start: ab{,2} # at most\nab: "a" | "b"', ["", "a", "ab"], ["aba"]),
    ('start: ab{2}\nab: "a" | "b"', ["ab"], ["a", "aba"]),
    ('start: ab~2..3 | <|x|>\nab: "a" | "b"', ["ab", "aba", "<|x|>"], ["a", "abab"]),
    # every terminal of the longest match counts
    (
        "%llguidance {}\nstart: \"'foo'\" /a+/ | STRING /b+/\nSTRING: /'[^']*'/",
        ["'foo'a", "'foo'bb", "'bar'b"],
        ["'bar'a", "'foo'ab"],
    ),
    ('%llguidance {}\nstart: ID | "if" "!"\nID: /[a-z]+/', ["if", "if!", "x"], ["x!", "iff!"]),
    ('start: A B?\nA: /[a-z]+/ & ~/abc/\nB: "!"', ["ab", "abd!"], ["abc", "abc!"]),
    # `&` binds tighter than `|`, `~` than `+`
    ("start: A\nA: /[ab]+/ & /[bc]+/ | /d/", ["b", "bb", "d"], ["a", "c", "dd"]),
    ("start: A\nA: /[ab]*/ & (~/a/)+", ["b", "ab", "aa"], ["a", "c"]),
    ('start: "A" %regex { "substring_words": "foo bar" } "B"', ["AB", "AfooB", "A barB"], ["AfoB", "Abarb"]),
    (
        'start: S\nS: "A" %regex { "substring_chunks": ["ab", "c"] }',
        ["A", "Aab", "Aabc", "Ac"],
        ["Ab", "Abc"],
    ),
    ('start: %regex { "substring_chars": "日本" }', ["", "日", "日本"], ["本日"]),
    (TOOLS, ["", "hello", "x<function=foo>{}</function>", "a<function=bar>12</function>b"], ["<function"]),
    (
        TOOLS,
        ["<function=bar>1</function><function=foo>{}</function>"],
        ["x<function=baz>", "<function=bar>x"],
    ),
    # what is ignored stands between two lexemes
    ('%llguidance {}\nstart: "A" "!"\n%ignore / +/', ["A!", "A  !"], [" A!", "A! "]),
    (
        '%llguidance {"allow_initial_skip": true}\nstart: "A" "!"\n%ignore / +/',
        [" A!", "A !"],
        ["A! "],
    ),
    (
        'start: /[xy]/ %lark {\n  start: "[" "A"* "]"\n  %ignore / +/\n} "."',
        ["x[].", "y[A  A]."],
        ["x [].", "[]."],
    ),
    ('start: a-b\na-b[suffix="</x>"]: /.*/', ["</x>", "a</x>"], ["a", "</x></x>"]),
    ('start: w "b"\nw[lazy]: /[0-9]+/', ["1b"], ["12b", "b"]),
    ('start: %json {"type": "integer"} | A{2}\nA: "x".."z"', ["7", "xy"], ["x", "7x"]),
    ("%llguidance {}\nstart: /(?i:a)[[:digit:]]/ /b/i", ["A1B", "a2b"], ["A", "a٣b"]),
    ("%llguidance {}\n%import common.INT\n%import common (WS, WORD)\nstart: INT WS WORD", ["1 a"], ["a 1"]),
    # a stop is not written, and no stop is within the text; what follows may begin as the text goes on
    ('start: x "!"\nx[stop="e"]: /[a-z]*/', ["!", "foo!"], ["fooe!", "fo"]),
    ('start: x "<end>"\nx[stop="<end>"]: /.*/', ["foo<end>", "<<end>"], ["foo", "foo<end>b<end>"]),
    ('start: x "b"\nx[stop=STOP]: /.+/\nSTOP: "e" | /[x-z]/', ["foob", "bb"], ["b", "foeb", "fozb"]),
    ('start: "a" x "b"\nx[max_tokens=0]: /.*/', ["ab"], ["axb"]),
    ('start: x "c"\nx[stop=""]: /[ab]+/', ["abc"], ["c"]),
    # a lazy text that may be empty is
    ('start: x "ab"\nx[lazy]: /[a-c]*/', ["ab"], ["aab", "cab"]),
    ('%llguidance {}\nstart: x\n  | "b" -> other\nx: ("a"\n  | "c")', ["a", "b", "c"], ["d"]),
]


@pytest.mark.parametrize(("grammar", "accept", "refuse"), CASES)
def test_what_its_documentation_says(grammar: str, accept: list[str], refuse: list[str]) -> None:
    automaton = tf.lark(grammar).compile(BYTES)
    for text in accept:
        assert automaton.matches(text.encode()), text
    for text in refuse:
        assert not automaton.matches(text.encode()), text
    again = tf.Grammar.from_bytes(tf.lark(grammar).to_bytes()).compile(BYTES)
    assert all(again.matches(text.encode()) for text in accept)


@pytest.mark.parametrize("grammar", [grammar for grammar, *_ in CASES])
def test_masks_are_those_of_the_oracle(grammar: str) -> None:
    automaton = tf.lark(grammar).compile(BYTES)
    state, rng = automaton.start, np.random.default_rng(1)
    for _ in range(12):
        allowed = automaton.allowed_tokens(state).tolist()
        assert allowed == list(automaton.oracle(state))
        allowed = [token for token in allowed if token < 128]
        if not allowed:
            break
        assert automaton.distance(state) is not None
        state = automaton.advance(state, int(rng.choice(allowed)))


def test_tokens_by_their_numbers() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"<|end|>", b"<|call|>", b"<|x|>", b""]
    vocabulary = tf.Vocabulary(tokens, eos=[259], special=[256, 257, 258, 259])

    def allowed(grammar: str) -> list[int]:
        automaton = tf.lark(grammar).compile(vocabulary)
        return [token for token in automaton.allowed_tokens(automaton.start).tolist() if token > 255]

    assert allowed("start: <|call|>") == [257]
    assert allowed("start: <[256]> | <[257-258]>") == [256, 257, 258]
    assert allowed('start: "a" | <[256,258]>') == [256, 258]
    assert allowed("start: <[^257]>* <|call|>") == [256, 257, 258]
    assert allowed("start: <[^256-257]>* <|call|>") == [257, 258]
    assert allowed("start: <[^0-255,257]> <|call|>") == [256, 258]
    assert allowed("start: <[*]>") == [256, 257, 258]
    one = tf.lark("start: <[^97-98,256]> <[97-99]>").compile(vocabulary)
    assert one.matches(b"cc") and one.matches(b"zb") and not one.matches(b"ac") and not one.matches(b"zzb")


def test_other_grammars_by_name() -> None:
    grammar = tf.lark('start: "f" @fcall', definitions={"fcall": tf.json_schema({"type": "integer"})})
    assert grammar.compile(BYTES).matches(b"f12")
    with pytest.raises(InvalidGrammar, match="no grammar of the name"):
        tf.lark("start: @fcall")


def test_what_changes_no_text_is_reported() -> None:
    grammar = tf.lark("start: x\nx[capture, temperature=0.5]: /a+/")
    assert [line.partition(",")[0] for line in grammar.report] == ["left out: temperature of the rule x"]


CAPTURES = [
    ('start: x "z" y ("," y)*\nx[capture="n"]: /[a-c]+/\ny[capture]: /[0-9]+/ | "(" y ")"', "abz12,3,(45)"),
    ('start: x y\nx[stop=".", capture]: /[a-z.]*/\ny[capture]: /[A-Z]/\n%ignore " "', "ab C"),
    ('start: (item ";")*\nitem[capture="i"]: /[a-z ]+/', "a;b c;" * 40),
    ('start: "call" args\nargs[capture="a"]: %json {"type": "object"}', 'call{"x": 1}'),
    ('start[capture]: "a" | "b" x?\nx[capture]: "c"{2,3}', "bccc"),
]
FOUND: list[dict[str, list[str]]] = [
    {"n": ["ab"], "y": ["12", "3", "(45)", "45"]},
    {"x": ["ab"], "y": ["C"]},
    {"i": ["a", "b c"] * 40},
    {"a": ['{"x": 1}']},
    {"start": ["bccc"], "x": ["ccc"]},
]


@pytest.mark.parametrize(
    ("grammar", "text", "found"), [(*c, f) for c, f in zip(CAPTURES, FOUND, strict=True)]
)
def test_captures_are_found_in_a_text(grammar: str, text: str, found: dict[str, list[str]]) -> None:
    made = pickle.loads(pickle.dumps(tf.lark(grammar)))
    assert not made.parts[1].rules.pieces  # their keys were places in memory, which other parts may have now
    captures = made.captures(text)
    listed = {name: one if isinstance(one, list) else [one] for name, one in captures.items()}
    assert {name: [one.text for one in several] for name, several in listed.items()} == found
    assert all(text[slice(*one.span)] == one.text for several in listed.values() for one in several)
    with pytest.raises(OptionError, match="no text of the grammar"):
        made.captures(text + "!")


def test_captures_in_a_rule_that_begins_with_itself_are_refused() -> None:
    grammar = tf.lark('start: a\na: a "+" b | b\nb[capture]: /[0-9]/')
    with pytest.raises(OptionError, match="begin with themselves"):
        grammar.captures("1+2")
    assert tf.lark("start: @g", definitions={"g": grammar}).compile(BYTES).matches(b"1+2")


REFUSED = [
    ("start: x\nx[max_tokens=3]: /a+/", 2, 1),
    ('%llguidance {}\nstart: "a" & A\nA: "a"', 2, 8),
    ("start: x\nx[foo]: /a+/", 2, 3),
    ("start: foo{7,6}\nfoo: /a/", 1, 11),
    ("%llguidance {}\nstart: FOO", 2, 8),
    ("%llguidance {}\nstart: foo", 2, 8),
    ("%llguidance {}\nstart: FOO\nFOO: /a/ | BAR\nBAR: /b/ FOO", 4, 10),
    ('start: FOO\nFOO: "a" <|x|>', 2, 10),
    ('start: FOO\nFOO: %json {} "a"{2}', 2, 6),
    ("start: <[1-2-3]>", 1, 8),
    ("start: <[^*]>", 1, 8),
    ("start: <[*,5]>", 1, 8),
    ("start: <[5-4]>", 1, 8),
    ('%llguidance {}\nstart: "d".."a"', 2, 8),
    ('%llguidance {}\nstart: "ab".."c"', 2, 8),
    ('%llguidance {}\nstart: "a\\q"', 2, 8),
    ("%llguidance {}\nstart: /a/l", 2, 8),
    ("%llguidance {}\nstart: /a", 2, 8),
    ("%llguidance {}\nstart: /[a/", 2, 8),
    ("%llguidance {}\nstart: /a/\nb: /(/", 3, 4),
    ("%llguidance {}\nstart: /a)|(?:b/", 2, 8),
    ("%llguidance {}\nstart: /a)(?:b/i", 2, 8),
    ("%llguidance {}\nstart: x{_y}\nx: /a/", 2, 8),
    ("%llguidance {}\nstart.2: /a/", 2, 1),
    ("%llguidance {}\nstart: /a/\nstart: /b/", 3, 1),
    ("%llguidance {}\n%import other.X\nstart: X", 2, 9),
    ("%llguidance {}\n%import common.NONE\nstart: NONE", 3, 8),
    ('%llguidance {"skip_repetition": "once"}\nstart: /a/', None, None),
    ('start: %regex {"foo": 1}', 1, 8),
    ('start: %regex {"substring_words": 1}', 1, 8),
    ("%llguidance {}\nstart: %json {", 2, 8),
    ('%llguidance {}\nstart: %json {"type": 5}', 2, 8),
]


@pytest.mark.parametrize(("grammar", "line", "column"), REFUSED)
def test_what_is_refused_is_refused_where_it_stands(
    grammar: str, line: int | None, column: int | None
) -> None:
    with pytest.raises(TokenformError) as caught:
        tf.lark(grammar)
    assert line is None or (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("body", ["x", "x{1,2}", '"b"? x', '"A"i{1,2} x', "/(.|\\n)*c/? x", "x x"])
def test_conditions_that_never_hold_leave_no_text(body: str) -> None:
    grammar = f"""%llguidance {{}}
start: {body}
x: p::0
p::_: x %if gt([1:3], 0)
  | "A" p::bit_or(6) "."
"""
    with pytest.raises(UnsatisfiableGrammar, match="The rule start derives no text"):
        tf.lark(grammar)


def test_limits_and_patterns_without_an_end() -> None:
    with pytest.raises(UnsupportedRegex):
        tf.lark("%llguidance {}\nstart: /a\\b/ /c/")
    with pytest.raises(LimitExceeded):
        tf.lark('start: "a"{30000}')
    doubled = "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(40))
    with pytest.raises(LimitExceeded):
        tf.lark(f'%llguidance {{}}\nstart: A0\n{doubled}\nA40: "a"')
    for deep in ("start: " + "(" * 10_000, "start: A\nA: " + "~" * 10_000 + "/a/"):
        with pytest.raises(LimitExceeded):
            tf.lark(f"%llguidance {{}}\n{deep}")


def test_the_dialect_is_told_from_the_text() -> None:
    both = 'start: A "b"\nA: /a+/'
    assert tf.lark(both).compile(BYTES).matches(b"aab")
    assert tf.lark(both, dialect="llguidance").compile(BYTES).matches(b"aab")
    assert tf.lark('start: x~2..3 "&" "<|x|>" // {1,2}\nx: /a{1,2}b/').compile(BYTES).matches(b"abaab&<|x|>")
    with pytest.raises(InvalidGrammar):
        tf.lark('start: "a"{2}', dialect="lark")
    with pytest.raises(OptionError):
        tf.lark(both, dialect="ebnf")  # type: ignore[arg-type]
    with pytest.raises(OptionError):
        tf.lark(both, dialect="llguidance", lexer="dynamic")


XGRAMMARS = {  # what XGrammar's own reader of Lark takes, and texts of each
    'start: A+ "x"?\nA: /[0-9]+/': ["1", "12x", "x", ""],
    'start: (A ",")* A\nA: /[a-z]+/': ["a", "a,b", "a,", ""],
    'start: "a"{2,3} | "b"{2} | "c"{2,}': ["a", "aa", "aaaa", "bb", "b", "cccc", "c"],
    'start: "a"i "B"': ["AB", "aB", "ab"],
    'start: a b\na: "x" | ""\nb: "y"': ["y", "xy", "x"],
    'start: A B\nA: "x"\nB: "y"\n%ignore /[ ]+/': ["xy", "x  y", "x"],
    'start: "x" %json {"type": "boolean"} "y"': ["xtruey", "xtrue", "xfalsey"],
    'start: A\nA: "a".."f"': ["a", "f", "g"],
    'start: %regex {"substring_chars": "hello"}': ["ell", "hello", "hl"],
    'start: %regex {"substring_chunks": ["ab", "cd"]}': ["ab", "abcd", "bc"],
    'start: x "end"\nx[lazy]: /.*/': ["end", "e"],
    'start: x\nx[suffix="</t>"]: /.*/': ["ab</t>", "ab", "</t>a</t>"],
    'start: x\nx[capture="n", temperature=0.5]: "a" | "b"': ["a", "c"],
    "%import common (WORD, DIGIT)\nstart: WORD DIGIT": ["ab1", "a", "1"],
    "%import common.NUMBER\nstart: NUMBER": ["12", "1.5", "a"],
    'start: %lark { start: "a" B\n B: /b+/ } "c"': ["abc", "abbc", "ac"],
    'start: e\ne: e "+" t | t\nt: "x" | "(" e ")"': ["x", "x+x", "(x+x)+x", "x+"],
    'start: ["a"] ("b" | "c" "d"?)+': ["b", "abcd", "a", "cbc"],
    "start: /[^a]+/": ["b\n", "a"],
    'start: A -> al\n | "b" -> be\nA: "a"': ["a", "b", "ab"],
}


@pytest.mark.parametrize("grammar", XGRAMMARS)
def test_xgrammars_reader_of_lark_takes_the_same_texts(grammar: str) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    spelled = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(spelled, stop_token_ids=[256])
    theirs = xgrammar.GrammarCompiler(info, max_threads=1).compile_lark(grammar)
    ours = tf.lark(grammar, dialect="llguidance").compile(BYTES)
    for text in XGRAMMARS[grammar]:
        matcher = xgrammar.GrammarMatcher(theirs)
        taken = all(matcher.accept_token(byte) for byte in text.encode()) and matcher.accept_token(256)
        assert ours.matches(text.encode()) == taken, text
