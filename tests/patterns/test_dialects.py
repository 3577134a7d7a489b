"""Which reader a pattern has: ECMA-262, Python's `re`, Rust's `regex`; judged by those that are here."""

from __future__ import annotations

import json
import random
import re
import string
import unicodedata
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from benchmarks.suites import patterns as judges
from benchmarks.suites.maskcheck import byte_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

import tokenform as tf
from tokenform.errors import InvalidRegex, InvalidSchema, OptionError

VOCABULARY = byte_vocabulary()


@pytest.fixture(scope="module")
def node():
    process = judges.Node()
    yield process
    process.close()


def taken(grammar: tf.Grammar, value: Any) -> bool:
    return grammar.compile(VOCABULARY).matches(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    )


CASES = [
    (r"^[\p{L}\_ ]+$", ["José", "Jo_se"], ["p{L}", "a1"]),
    (r"^[\p{L}\' ]+$", ["O'Neé"], ["{}"]),
    (r"^\p{Lu}\-\d+$", ["É-12"], ["p{Lu}-1", "é-1"]),
    (
        r"^(?:[a-z0-9.+-]*)://(?:[a-z0-9-]+\.)+[a-z]{2,63}(?:[/?#][^\s]*)?\Z",
        ["https://a.example/x"],
        ["https://a.exampleZ"],
    ),
    (r"^[-a-z0-9_]+\Z", ["red-shoes"], ["red-shoesZ"]),
    (r"\A[a-z]{3}\z", ["abc"], ["Aabcz"]),
    (r"^\x{41}$", ["A"], ["x" * 41]),
    (r"^\U00000041$", ["A"], ["U00000041"]),
    (r"^\pL$", ["é"], ["pL"]),
    (r"(?i)^(yes|no)$", ["YES", "no"], ["maybe"]),
    (r"^(?P<y>\d{4})-(?P<m>\d\d)$", ["2024-05"], ["2024"]),
    (r"^{model}\.explore$", ["{model}.explore"], ["model.explore"]),
]


@pytest.mark.parametrize(("pattern", "accept", "refuse"), CASES)
def test_what_ecma_refuses_is_read_as_others_do_and_reported(
    pattern: str, accept: list, refuse: list
) -> None:
    grammar = tf.json_schema(
        {"properties": {"a~b": {"type": "string", "pattern": pattern}}, "type": "object"}
    )
    assert all(taken(grammar, {"a~b": text}) for text in accept)
    assert not any(taken(grammar, {"a~b": text}) for text in refuse)
    assert any(
        line.startswith("read: pattern") and "/properties/a~0b/pattern, column" in line
        for line in grammar.report
    )
    with pytest.raises(InvalidSchema) as caught:
        tf.json_schema({"pattern": pattern}, pattern_dialect="ecma")
    assert caught.value.pointer == "/pattern" and caught.value.column is not None


@pytest.mark.parametrize(
    "pattern", ["^(?:(?i)yes)no$", "^(YES|(?i)yes)$", "((?i)yes)[0-9]", "(x(?i)yes)(?-i:no)"]
)
def test_flags_in_a_group_that_change_nothing_behind_it_are_read(pattern: str) -> None:
    texts = ["YES", "yes", "Yesno", "yesNo", "yes1", "YES1", "xYESno", "xyesNO", "XYESno"]
    assert judges.by_us(pattern, texts, "auto") == judges.by_rust(pattern, texts)
    assert judges.by_us(pattern, texts, "auto") == judges.by_validator(pattern, texts)


def test_modifiers_are_ecmas_own() -> None:
    grammar = tf.json_schema({"type": "string", "pattern": "^(?i:abc)(?-i:d)$"}, pattern_dialect="ecma")
    assert taken(grammar, "ABCd") and not taken(grammar, "abcD") and grammar.report == []


REFUSED = [
    (r"^\d{,3}$", 4),  # Python counts from 0, the older ECMA-262 reads letters
    (r"^a\<$", 3),  # the start of a word in Rust, a character in Python
    (r"^[[:alpha:]]$", 12),
    (r"^[]a]$", 5),
    (r"^a++$", 4),
    (r"^a{ 2 }$", 3),
    (r"^a{2}{3}$", 6),  # a count in Rust, letters in jsonschema-rs
    (r"^a+{2}$", 4),
    (r"(?x)a b", 3),
    (r"((?i)z)x", 2),  # up to the group's end in Rust, further in jsonschema-rs
    (r"^(a(?s)|b).$", 4),
    (r"[\w-.]", 2),
    (r"[a&&\pL]", 3),  # letters to some, an operation on sets to Rust, which alone reads the rest
    (r"\pL[+--]", 6),
    (r"[a~~\x{41}]", 3),
    (r"[\pLa[b]", 6),
    (r"\q", 1),
    (r"\h", 1),
    (r"\R", 1),
    (r"\K", 1),
    (r"\e", 1),
    (r"\Qa\E", 1),
    (r"[\Z]", 2),
    (r"\p{Nonsense}", 1),
    (r"\c1", 1),
    (r"\xg", 1),
    (r"\u12", 1),
    (r"a(?|b)", 2),
    (r"a(?&n)", 2),
]


@pytest.mark.parametrize(("pattern", "column"), REFUSED)
def test_what_nobody_reads_or_two_read_differently_is_refused_where_it_stands(
    pattern: str, column: int
) -> None:
    with pytest.raises(InvalidSchema) as caught:
        tf.json_schema({"items": {"patternProperties": {pattern: {}}}})
    assert caught.value.column == column
    assert caught.value.pointer is not None and caught.value.pointer.startswith("/items/patternProperties/")


def test_every_escape_alone_is_somebodys(node: judges.Node) -> None:
    """One escape at a time, so what ours reads at least one of the readers reads so."""
    texts = ["", "\\", "-", " ", "\a", "\0", "é", *string.ascii_letters, *string.digits, *string.punctuation]
    for letter in [*(chr(code) for code in range(32, 127)), "é"]:
        for pattern in (f"^\\{letter}$", f"^[\\{letter}]$"):
            ours = judges.by_us(pattern, texts, "auto")
            ecma = node(pattern, texts)
            heard = [judges.by_python(pattern, texts), judges.by_rust(pattern, texts)]
            if isinstance(ecma, list):
                assert ours == ecma, pattern
            elif ecma is not None and isinstance(ours, list):
                others = [said for said in heard if isinstance(said, list)]
                assert others and all(ours == said for said in others), pattern
            assert not judges.judge(pattern, texts, node), pattern


def test_random_patterns_are_read_as_their_readers_do(node: judges.Node) -> None:
    rng = random.Random(7)
    for _ in range(400):
        pattern, sample = judges.random_pattern(rng)
        assert not judges.judge(pattern, judges.texts_for(rng, pattern, sample), node)


_PIECES = st.sampled_from([*"ab-_^$.|()[]{},*+?:<>=!#", "\\", "(?", "\\p{", "[^", "&&", "\\pL", "{1,2}", "é"])


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=8).map("".join))
def test_texts_of_operators_are_read_as_their_readers_do(pattern: str) -> None:
    nobody = judges.Node.__new__(judges.Node)
    nobody._process = None
    assert not judges.judge(
        pattern, ["", "a", "b", "ab", "-", "aab", "]", "a]", "{1,2}", "é", "^", "&", "p"], nobody
    )


def test_a_subschema_says_its_dialect_for_itself() -> None:
    schema = {
        "type": "object",
        "properties": {
            "ours": {"type": "string", "pattern": r"^\w$"},
            "rust": {"type": "string", "pattern": r"^[[:alpha:]é]$", "x-pattern-dialect": "rust"},
            "python": {"type": "string", "pattern": r"^\w{,1}$", "x-pattern-dialect": "python"},
        },
    }
    grammar = tf.json_schema(schema)
    assert not taken(grammar, {"ours": "é"})
    assert taken(grammar, {"rust": "é"}) and not taken(grammar, {"rust": "]"})
    assert taken(grammar, {"python": "é"})
    assert taken(tf.json_schema(schema, pattern_dialect="rust"), {"ours": "é"})
    again = tf.Grammar.from_bytes(tf.json_schema(schema, pattern_dialect="rust").to_bytes())
    assert taken(again, {"ours": "é"})
    with pytest.raises(InvalidSchema, match="must be one of"):
        tf.json_schema({"pattern": "a", "x-pattern-dialect": "perl"})


def test_dialects_of_a_regular_expression() -> None:
    matches = {
        name: tf.regex(r"\d", dialect=name).compile(VOCABULARY).matches for name in ("python", "rust", "ecma")
    }
    assert [match("٣".encode()) for match in matches.values()] == [True, True, False]
    assert [match(b"x1") for match in matches.values()] == [False, True, True]
    assert tf.regex(r"a\_", dialect="auto").report and not tf.regex(r"a_", dialect="auto").report
    with pytest.raises(InvalidRegex):
        tf.regex(r"a\_", dialect="ecma")
    with pytest.raises(OptionError):
        tf.regex("a", dialect="perl")  # type: ignore[arg-type]


def test_case_and_classes_are_pythons_character_by_character() -> None:
    chars = [chr(code) for code in range(0x600) if unicodedata.category(chr(code)) != "Cn"] + list("KÅſẞ€٣𝟘")
    for pattern in (r"\w", r"\d", r"\s", r"(?i)[k-s]", "(?i)i", "(?i)[^a-z]", "(?a)\\w", "(?ai)[k-s]"):
        match, reader = tf.regex(pattern).compile(VOCABULARY).matches, re.compile(pattern)
        assert [match(char.encode()) for char in chars] == [bool(reader.fullmatch(char)) for char in chars]
    for char in (char for char in chars if char.lower() != char or char.upper() != char):
        match, reader = tf.regex(f"(?i){char}").compile(VOCABULARY).matches, re.compile(f"(?i){char}")
        near = {char, char.lower()[0], char.upper()[0], char.title()[0], *"isIkKİıſẞß"}
        assert all(match(one.encode()) == bool(reader.fullmatch(one)) for one in near), char


# ---- types have readers of their own -----------------------------------------------------------------


def of_type(pattern: str | re.Pattern[str], **config: Any) -> tuple[tf.Grammar, pydantic.TypeAdapter]:
    model = pydantic.create_model(
        "M", __config__=ConfigDict(**config), v=(Annotated[str, Field(pattern=pattern)], ...)
    )
    return tf.from_type(model), pydantic.TypeAdapter(model)


@pytest.mark.parametrize(
    ("pattern", "config"),
    [
        (r"^\w+$", {}),
        (r"^[\w\s]+$", {}),
        (r"^[[:alpha:]]+$", {}),
        (r"^[A-Z]{2}[0-9]{2}\z", {}),
        (r"(?i)^abc$", {}),
        (r"^(?P<y>\d{4})-(?P<m>\d\d)$", {}),
        (r"\Babc", {}),
        (r"^\w+(?=é)", {"regex_engine": "python-re"}),
        (r"^[a-z]{,2}\Z", {"regex_engine": "python-re"}),
        (r"^.$", {"regex_engine": "python-re"}),
        (re.compile("^abc$", re.IGNORECASE), {}),
        (re.compile("^a.c$", re.DOTALL | re.ASCII), {}),
    ],
)
def test_a_models_pattern_is_read_as_pydantic_reads_it(pattern: Any, config: dict) -> None:
    grammar, adapter = of_type(pattern, **config)
    texts = [
        "José",
        "José Núñez",
        "abc",
        "ABC",
        ":]",
        "AB12",
        "AB12z",
        "2024-05",
        "٢٠٢٤-05",
        "xabc",
        "é",
        "aé",
        "ab",
    ]
    for text in [*texts, "", "a\n", "\r", "\u2028", "a\nc", "abc\n", "[:alpha:]"]:
        try:
            adapter.validate_python({"v": text})
            valid = True
        except pydantic.ValidationError:
            valid = False
        assert taken(grammar, {"v": text}) == valid, text
    assert "x-pattern-dialect" not in json.dumps(grammar.schema)


def test_keys_of_a_mapping_are_read_as_pydantic_reads_them() -> None:
    class Counted(BaseModel):
        counts: dict[Annotated[str, Field(pattern=r"^\w+$")], int]

    assert taken(tf.from_type(Counted), {"counts": {"été": 1}})


def test_a_functions_pattern_is_read_as_pydantic_reads_it() -> None:
    def register(name: Annotated[str, Field(pattern=r"^\w+$")]) -> str:
        """Registers a name."""
        return name

    grammar = tf.tools([register], format="hermes", tool_choice="required").compile(VOCABULARY)
    call = '<tool_call>\n{"name": "register", "arguments": {"name": "%s"}}\n</tool_call>'
    assert grammar.matches((call % "José").encode())
    assert not grammar.matches((call % "a b").encode())
    (tool,) = tf.read_tools([register]) if hasattr(tf, "read_tools") else (None,)
    assert tool is None or "x-pattern-dialect" not in json.dumps(tool.to_openai())
    assert taken(tf.from_type(register), {"name": "José"})


def test_a_structs_pattern_is_read_as_pythons() -> None:
    class Person(msgspec.Struct):
        name: Annotated[str, msgspec.Meta(pattern=r"^\w{,4}\Z")]

    grammar = tf.from_type(Person)
    for text in ("José", "abcde", "a", "a\n"):
        try:
            msgspec.json.decode(msgspec.json.encode({"name": text}), type=Person)
            valid = True
        except msgspec.ValidationError:
            valid = False
        assert taken(grammar, {"name": text}) == valid, text
    assert "x-pattern-dialect" not in json.dumps(grammar.schema)
