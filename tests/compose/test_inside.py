"""JSON inside grammars, grammars inside JSON strings, grammars by name."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from tests.compose.walks import VOCABULARY, accepts, walk

import tokenform as tf
from tokenform.errors import (
    InvalidGrammar,
    InvalidSchema,
    OptionError,
    TokenformError,
    TokenRejected,
    UnsatisfiableSchema,
    UnsupportedSchema,
)

SCHEMA = {
    "type": "object",
    "properties": {"k": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["k"],
}
CALL = f'start: "call" NAME "(" %json {json.dumps(SCHEMA)} ")"\nNAME: /[a-z]+/\n%ignore " "'


def test_json_in_a_lark_text() -> None:
    grammar = tf.lark(CALL)
    document = '{"k": "v", "n": 3}'
    for text in (f"call f({document})", f"callf(  {document} ) ", f"call callx({document})"):
        assert accepts(grammar, text), text
    for text in ("call f({})", f"call f({document}", f"call ({document})", 'call f({"k": 1})'):
        assert not accepts(grammar, text), text
    for seed in range(6):
        text = walk(grammar, seed).decode()
        inner = text[text.index("(") + 1 : text.rindex(")")]
        jsonschema.validate(json.loads(inner), SCHEMA)


def test_grammars_by_name_are_not_cut_by_the_lexer() -> None:
    items = (
        tf.json_schema({"type": "integer"}) | tf.regex("[a-c]+;?") | tf.lark('start: "<" start ">" | "<" ">"')
    )
    for lexer in ("contextual", "dynamic"):
        grammar = tf.lark('start: (ITEM ";")* | "x"', lexer=lexer, definitions={"ITEM": items})  # type: ignore[arg-type]
        for text in ("", "x", "12;", "a;", "a;;", "abc;<<>>;-3;", "12;a;;a;"):
            assert accepts(grammar, text), (lexer, text)
        for text in (";", "12", "xa;", "<<>;", "a;;;"):
            assert not accepts(grammar, text), (lexer, text)
        for seed in range(6):
            walk(grammar, seed)


def test_a_lexeme_before_json_is_the_longest() -> None:
    grammar = tf.lark('start: NAME %json {"type": "boolean"}\nNAME: /[a-z]+/\n%ignore " "')
    assert accepts(grammar, "x true") and not accepts(grammar, "xtrue")
    for seed in range(6):
        assert accepts(grammar, walk(grammar, seed).decode())


def test_options_of_json_and_places_of_errors() -> None:
    source = 'start: "a"\n  | %json {"type": "integer"}'
    assert accepts(tf.lark(source, json_options={"numbers": "any"}), "1e2")
    with pytest.raises(InvalidSchema, match="Line 2, column 5") as caught:
        tf.lark('start: "a"\n  | %json {"type": "int"}')
    assert (caught.value.line, caught.value.column, caught.value.pointer) == (2, 5, "/type")
    with pytest.raises(OptionError, match="capitals"):
        tf.lark("start: ITEM", definitions={"item": tf.regex("a")})
    with pytest.raises(InvalidGrammar, match="ITEM"):
        tf.lark("start: ITEM")
    with pytest.raises(InvalidGrammar, match="UNUSED"):
        tf.lark("start: ITEM UNUSED\n%declare UNUSED", definitions={"ITEM": tf.regex("a")})


QUERY = {
    "type": "object",
    "properties": {"sql": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["sql"],
}
WORDS = tf.lark('start: WORD ("\\n" WORD)* ["\\"" TAIL "\\\\"]\nWORD: /[a-zé\\t]+/\nTAIL: /[^"\\\\]/')


def test_a_field_that_holds_another_language() -> None:
    grammar = tf.json_schema(QUERY, strings_in={"/properties/sql": WORDS})
    for value in ("a", "a\nb", "é\t\nx", 'a"\x01\\', 'a"/\\'):
        assert accepts(WORDS, value), value
        assert accepts(grammar, json.dumps({"sql": value, "n": 1}, ensure_ascii=False)), value
    for value in ("", "A", "a\n", 'a"'):
        assert not accepts(grammar, json.dumps({"sql": value}, ensure_ascii=False)), value
    for seed in range(10):
        document = json.loads(walk(grammar, seed))
        jsonschema.validate(document, QUERY)
        assert accepts(WORDS, document["sql"])


def test_sql_in_a_field() -> None:
    sql = tf.grammars.sql()
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    grammar = tf.json_schema(schema, strings_in={"/properties/query": sql})
    rng = random.Random(3)
    for query in ("SELECT a FROM b WHERE c = 'x\"y'", "SELECT *\nFROM t", "SELEC a", "SELECT a FROM"):
        text = json.dumps({"query": query}, ensure_ascii=False)
        assert accepts(grammar, text) == accepts(sql, query)
    for _ in range(2):
        assert accepts(sql, json.loads(walk(grammar, rng.randint(0, 99), steps=15))["query"])


def test_several_fields_and_branches() -> None:
    schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    }
    inner = {"/anyOf/1": tf.regex("a*"), "/anyOf/2/items": tf.json_schema({"type": "array"}) | tf.regex('"+')}
    grammar = tf.json_schema(schema, strings_in=inner)
    for value in (3, "", "aa", ['"'], ["[1]", '""']):
        assert accepts(grammar, json.dumps(value)), value
    for value in ("b", ["a"], [""]):
        assert not accepts(grammar, json.dumps(value)), value
    for seed in range(6):
        walk(grammar, seed)


def test_a_grammar_inside_a_string_takes_the_escapes_of_the_spelling() -> None:
    inner = {"": tf.regex('[a-zé/\n"😀]+')}
    grammar = tf.json_schema({"type": "string"}, strings_in=inner, strings="any")
    for text in (r'"a\u00e9"', r'"\uD83D\ude00\/"', r'"\n\u000A"', r'"\u0062"', r'"\""', r'"\u0022/"'):
        assert accepts(grammar, text), text
    for text in (r'"\u0041"', r'"\ud83d"', r'"\t"', r'"\u0009"', r'"\ud83dx"', r'"\ud83d\u0061"', r'"\u00"'):
        assert not accepts(grammar, text), text
    for seed in range(20):
        walk(grammar, seed)
    natural = tf.json_schema({"type": "string"}, strings_in=inner)
    for text in (r'"a\u00e9"', r'"\ud83d\ude00\/"', r'"\n\u000a"', r'"b"', r'"\""', r'"/"'):
        assert accepts(natural, text), text
    for text in (
        r'"\u0062"',
        r'"\u0022"',
        r'"\u000A"',
        r'"\uD83D\ude00"',
        r'"\ud83d\uDE00"',
        r'"\u002f"',
        r'"\u00c9"',
    ):
        assert not accepts(natural, text), text
    for seed in range(20):
        walk(natural, seed)
    slashes = tf.json_schema({"type": "string"}, strings_in={"": tf.regex("/+")})
    assert accepts(slashes, r'"\//"') and not accepts(slashes, r'"\u"')
    canonical = tf.json_schema({"type": "string"}, strings_in={"": tf.regex("[é/]+")}, strings="canonical")
    assert (
        accepts(canonical, '"é/"') and not accepts(canonical, r'"\/"') and not accepts(canonical, r'"\u00e9"')
    )


# schema, place, what may stand there besides; the grammar's texts are a, aa, aaa, ...
MORE_SAID = [
    ({"type": "object", "propertyNames": {"type": "string"}}, "/propertyNames"),
    ({"propertyNames": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "string"}}}, "/$defs/n"),
    ({"propertyNames": {"anyOf": [{"type": "string"}, {"const": "q"}]}}, "/propertyNames/anyOf/0"),
    ({"not": {"type": "string"}}, "/not"),
    ({"allOf": [{"type": "string"}, {"maxLength": 1}]}, "/allOf/0"),
    ({"allOf": [{"type": "string"}, {"pattern": "a$"}]}, "/allOf/0"),
    ({"oneOf": [{"type": "string"}, {"type": "string", "pattern": "^a"}]}, "/oneOf/0"),
    ({"enum": ["aa", "b", 1], "allOf": [{"type": ["string", "integer"]}]}, "/allOf/0"),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "/items"),
    ({"if": {"type": "string"}, "then": {"const": "a"}, "else": {"const": "b"}}, "/if"),
    ({"properties": {"a": {"type": "string"}}, "patternProperties": {"^a": {"maxLength": 1}}},
     "/properties/a"),
    ({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"enum": ["a", "b"]}}}]},
     "/allOf/0/properties/a"),
]  # fmt: skip
NOT_MORE = [
    ({"type": "string"}, ""),
    ({"anyOf": [{"type": "string"}, {"const": "b"}]}, "/anyOf/0"),
    ({"allOf": [{"type": "string"}, {"type": ["string", "null"]}]}, "/allOf/0"),
    ({"enum": ["b", 1], "anyOf": [{"type": "string"}, {}]}, "/anyOf/0"),
    ({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"b": {}}},
     "/additionalProperties"),
    ({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"const": "b"}}}]},
     "/anyOf/0/properties/a"),
]  # fmt: skip
DOCUMENTS: list[object] = [
    "a", "aa", "b", "ab", "", 1, None, {"a": "a"}, {"a": "aa"}, {"a": "b"}, {"aa": 1}, {"b": 1}, {"q": 1},
    {"b": "ab"},
    ["a", "aa"], ["a", "a"], ["b"], [1], [],
]  # fmt: skip


def pattern_there(schema: object, pointer: str) -> object:
    """The schema with the texts of the grammar as a pattern."""
    made = json.loads(json.dumps(schema))
    place = made
    for step in pointer.split("/")[1:]:
        place = place[int(step) if isinstance(place, list) else step]
    place["pattern"] = "^a+$"
    return made


@pytest.mark.parametrize(("schema", "pointer"), [*MORE_SAID, *NOT_MORE])
def test_a_regular_grammar_is_one_wherever_it_stands(schema: dict, pointer: str) -> None:
    grammar = tf.json_schema(schema, strings_in={pointer: tf.regex("a+")})
    judge = jsonschema.Draft202012Validator(pattern_there(schema, pointer))
    for document in DOCUMENTS:
        assert accepts(grammar, json.dumps(document)) == judge.is_valid(document), document


@pytest.mark.parametrize(("schema", "pointer"), NOT_MORE)
def test_other_grammars_where_they_alone_decide(schema: dict, pointer: str) -> None:
    grammar = tf.json_schema(schema, strings_in={pointer: tf.lark('start: "a" start?')})
    judge = jsonschema.Draft202012Validator(pattern_there(schema, pointer))
    for document in DOCUMENTS:
        assert accepts(grammar, json.dumps(document)) == judge.is_valid(document), document


@pytest.mark.parametrize(("schema", "pointer"), MORE_SAID)
def test_other_grammars_are_refused_where_more_is_said_of_their_strings(schema: dict, pointer: str) -> None:
    with pytest.raises(UnsupportedSchema, match="not regular"):
        grammar = tf.json_schema(schema, strings_in={pointer: tf.lark('start: "a" start?')})
        accepts(grammar, '{"a":"aa"}')


def test_mistakes_in_strings_in() -> None:
    word = tf.regex("a")
    with pytest.raises(OptionError, match="nowhere"):
        tf.json_schema(QUERY, strings_in={"/properties/x": word})
    with pytest.raises(InvalidSchema, match="maxLength"):
        tf.json_schema({"type": "string", "maxLength": 3}, strings_in={"": word})
    with pytest.raises(TokenformError, match="special"):
        tf.json_schema(
            {"type": "string"}, strings_in={"": tf.regex("a") + tf.combinators.special_token("<tool>")}
        )


@pytest.mark.parametrize("keyword", ["dependentSchemas", "dependencies"])
def test_what_another_property_says_of_the_string_is_named(keyword: str) -> None:
    draft = "https://json-schema.org/draft/2020-12/schema" if keyword == "dependentSchemas" else ""
    schema = SCHEMA | {keyword: {"n": {"properties": {"k": {"maxLength": 3}}}}}
    schema["$schema"] = draft or "http://json-schema.org/draft-07/schema#"
    nested = tf.lark('start: "(" start ")" | "x"')
    with pytest.raises(UnsupportedSchema, match="may say more of them") as error:
        tf.json_schema(schema, strings_in={"/properties/k": nested})
    assert (error.value.pointer, error.value.keyword) == ("/properties/k", keyword)


@pytest.mark.parametrize(
    "names",
    [
        {"propertyNames": {"enum": ["a", "b"]}},
        {"propertyNames": {"pattern": "^[ab]$"}},
        {"patternProperties": {"^(?![ab]$)": False}},
        {"propertyNames": {"enum": ["a", "b", "c"]}, "maxProperties": 2},
    ],
)
@pytest.mark.parametrize("order", ["declared", "any"])
def test_names_that_are_used_up_beside_a_grammar_in_strings(names: dict, order: Any) -> None:
    """A name is never a text of the grammar, so behind the last one comes no comma."""
    schema = {"type": "object", **names, "additionalProperties": {"type": "string"}}
    inside = {"/additionalProperties": tf.json_schema({"type": "array", "items": {"type": "integer"}})}
    grammar = tf.json_schema(schema, strings_in=inside, order=order)
    assert accepts(grammar, '{"a": "[1]", "b": "[]"}')
    automaton = grammar.compile(VOCABULARY)
    for text in (b'{"a": "[1]", "b": "[]",', b'{"a": "[]", "a'):
        with pytest.raises(TokenRejected):
            automaton.step_bytes(automaton.start, text)
    for seed in range(20):
        document = json.loads(walk(grammar, seed))
        jsonschema.validate(document, schema)
        assert all(isinstance(json.loads(value), list) for value in document.values())
    with pytest.raises(UnsatisfiableSchema):
        tf.json_schema({**schema, "minProperties": 4}, strings_in=inside, order=order)
