"""Every option of `json_schema`: what it changes, what it reports, what it refuses."""

from __future__ import annotations

import inspect
import json
import typing
from typing import Any

import pytest
from benchmarks.suites.maskcheck import byte_vocabulary

import tokenform as tf
from tokenform import _core
from tokenform.errors import OptionError, UnsupportedSchema

VOCABULARY = byte_vocabulary()
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]}


def accepts(schema: Any, text: str | bytes, **options: Any) -> bool:
    raw = text.encode("utf-8") if isinstance(text, str) else text
    return bool(tf.json_schema(schema, **options).compile(VOCABULARY).matches(raw))


def test_keys_come_in_the_order_of_the_text_or_in_any() -> None:
    assert accepts(OBJECT, '{"a": 1, "b": 2, "z": 3}')
    assert not accepts(OBJECT, '{"b": 2, "a": 1}')
    assert not accepts(OBJECT, '{"z": 3, "b": 2}')
    assert accepts(OBJECT, '{"z": 3, "b": 2, "a": 1}', order="any")
    assert not accepts(OBJECT, '{"a": 1, "z": 3}', order="any")


@pytest.mark.parametrize("order", ["declared", "any"])
def test_a_key_never_comes_twice(order: str) -> None:
    assert not accepts(True, '{"a": 1, "a": 2}', order=order)
    assert not accepts(True, '{"a": 1, "\\u0061": 2}', order=order, strings="any")
    assert not accepts(OBJECT, '{"b": 1, "b": 2}', order=order)


@pytest.mark.parametrize(
    ("style", "written"),
    [
        ("compact", '{"a":1,"b":[1,{}]}'),
        ("spaced", '{"a": 1, "b": [1, {}]}'),
        ("indent", '{\n  "a": 1,\n  "b": [\n    1,\n    {}\n  ]\n}'),
        ("any", ' {"a" :1 ,\r\n\t"b":[ 1,{ } ]}\n'),
    ],
)
def test_whitespace_is_what_was_asked_for(style: str, written: str) -> None:
    for other in ("compact", "spaced", "indent", "any"):
        assert accepts(OBJECT, written, whitespace=other) is (other in (style, "any"))
    assert accepts(OBJECT, written, whitespace="natural") is (style != "any")


@pytest.mark.parametrize("whitespace", ["natural", "any"])
@pytest.mark.parametrize("indent", [*range(9), "\t"])
def test_whitespace_holds_what_json_dumps_indents(indent: int | str, whitespace: str) -> None:
    document: Any = {"b": 1}
    for _ in range(25):
        document = {"b": [document]}
    text = json.dumps(document, indent=indent)
    for written in (text, text.replace("\n", "\r\n"), text.replace(": ", ":").replace(",\n", ", \n")):
        assert accepts(OBJECT, written, whitespace=whitespace)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"b":[1,{}]}',
        '{ "a": 1, "b": [ 1, { } ] }',
        '{"b": [1, 2, 3],\n "z": {}}',
        '{\n  "a": 1,\n  "b": [{\n    "c": 1\n  }, {\n    "c": 2\n  }]\n}',
        '{\n  "a": 1,\n  "b": {\n  }\n}',
        '{\n  "a": 1, "b": [\n  ]}',
        '{"a":1,\r\n"b":[ ]\r\n}',
        '{\n"a": 1,\n"b": 2\n}',
    ],
)
def test_natural_whitespace_holds_what_people_write(text: str) -> None:
    assert accepts(OBJECT, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"b":  1}',
        '{\n\n"b": 1}',
        ' {"b": 1}',
        '{"b": 1}\n',
        '{"b"\n: 1}',
        '{"b" : 1}',
        '{"b": 1 , "z": 2}',
        '{"b": 1\n, "z": 2}',
        '{"b": [1\n, 2]}',
        '{"b": [1 , 2]}',
        '{"b":\n1}',
        '{"b": 1 \n}',
        '{\t"b": 1}',
        "{\n" + " " * 17 + '"b": 1}',
    ],
)
def test_natural_whitespace_is_bounded(text: str) -> None:
    assert not accepts(OBJECT, text)
    json.loads(text)


def test_after_a_break_behind_a_value_only_the_bracket_comes_and_no_break_where_a_key_is_missing() -> None:
    closed = {**OBJECT, "additionalProperties": False, "required": ["a", "b"]}
    for schema, begun, allowed in (
        (closed, '{"a": 1', b","),
        (closed, '{"a": 1, "b": 2', b"0123456789}\n\r .eE"),
        (closed, '{"a": 1, "b": 2\n', b"}\t "),
        (OBJECT, '{"b": null\n', b"}\t "),
        (OBJECT, '{"b": []', b",}\n\r "),
        ({"minItems": 2, "type": "array"}, "[[]", b","),
        ({"minItems": 2, "type": "array"}, "[[], []", b",]\n\r "),
        ({"minItems": 2, "type": "array"}, "[[], []\n", b"]\t "),
    ):
        automaton = tf.json_schema(schema).compile(VOCABULARY)
        state = automaton.step_bytes(automaton.start, begun.encode())
        found = {byte for byte in range(256) if automaton.allows(state, byte)}
        digits = set(b"0123456789.eE") if begun == '{"a": 1' else set()
        assert found - digits == set(allowed) - digits, begun


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\r"])
@pytest.mark.parametrize("whitespace", ["natural", "any"])
@pytest.mark.parametrize(
    "begun", ["{", '{"b"', '{"b":', '{"b": 1', '{"b": 1,', '{"b": [', '{"b": [1', '{"b": [1,']
)
def test_whitespace_never_goes_on_for_ever(begun: str, whitespace: str, blank: str) -> None:
    automaton = tf.json_schema(OBJECT, whitespace=whitespace).compile(VOCABULARY)  # type: ignore[arg-type]
    state = automaton.step_bytes(automaton.start, begun.encode())
    for _ in range(40):
        blanks = [c for c in blank + "\n\t \r" if automaton.allows(state, ord(c))]
        if not blanks:
            return
        state = automaton.advance(state, ord(blanks[0]))
    pytest.fail("40 blanks in a row")


def test_numbers_are_natural_canonical_or_in_any_spelling() -> None:
    schema = {"type": "integer", "maximum": 10}
    for text in ("10", "-3", "0"):
        for numbers in ("natural", "canonical", "any"):
            assert accepts(schema, text, numbers=numbers)
    for text in ("1e1", "0.1e2", "100E-1", "10.00"):
        assert not accepts(schema, text), text
        assert not accepts(schema, text, numbers="canonical"), text
        assert accepts(schema, text, numbers="any"), text
    assert accepts(schema, "-0") and not accepts(schema, "-0", numbers="canonical")
    assert accepts(schema, "10.0", numbers="canonical") and not accepts(schema, "10.0")
    for text in ("19.90", "3e-4", "1E+06"):
        assert accepts({"type": "number"}, text), text
        assert not accepts({"type": "number"}, text, numbers="canonical"), text
    for text in ("11", "1.5", "1e2", "01", "1.", "+1"):
        assert not accepts(schema, text, numbers="any"), text


def test_strings_are_natural_canonical_or_in_any_spelling() -> None:
    schema = {"enum": ["a/b", "\n", "😀"]}
    for text in ('"a/b"', '"\\n"', '"😀"'):
        assert accepts(schema, text) and accepts(schema, text, strings="canonical")
    for text in ('"a\\/b"', '"\\u000a"', '"\\ud83d\\ude00"'):
        assert not accepts(schema, text, strings="canonical"), text
        assert accepts(schema, text) and accepts(schema, text, strings="any"), text
    for text in ('"\\u000A"', '"\\ud83d\\uDE00"', '"\\u0061/b"', '"a\\u002fb"'):
        assert not accepts(schema, text) and not accepts(schema, text, strings="canonical"), text
        assert accepts(schema, text, strings="any"), text


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"\\ude00\\ud83d"', b'"\\ud800a"', b'"\xed\xa0\x80"', b'"\\ud83d\\ud83d"']
)
def test_lone_surrogates_are_no_text(text: bytes) -> None:
    assert not accepts({"type": "string"}, text, strings="any")
    assert not accepts({"type": "object"}, b"{" + text + b": 1}", strings="any")


def test_formats_are_asserted_or_annotate() -> None:
    assert not accepts({"format": "date"}, '"2019-02-29"')
    assert accepts({"format": "date"}, '"2019-02-29"', formats="annotate")
    assert accepts({"format": "date"}, "17")


def test_an_unknown_format_is_ignored_and_reported() -> None:
    grammar = tf.json_schema({"properties": {"a": {"format": "shoe-size"}}})
    assert list(grammar.report) == ['ignored: format "shoe-size" at /properties/a/format']
    assert list(tf.json_schema({"format": "shoe-size"}, formats="annotate").report) == []
    assert list(tf.json_schema(OBJECT).report) == []
    assert list(tf.json_schema({"format": "idn-hostname"}).report) == [
        'loosened: format "idn-hostname" at /format: the 63 octets of a label are not counted in Punycode'
    ]


def test_additional_keys_may_be_forbidden_where_the_schema_is_silent() -> None:
    text = '{"a": 1, "b": 2, "z": 3}'
    assert accepts(OBJECT, text)
    assert not accepts(OBJECT, text, additional="forbid")
    assert accepts(OBJECT, '{"a": 1, "b": 2}', additional="forbid")
    assert accepts({**OBJECT, "additionalProperties": True}, text, additional="forbid")
    assert accepts({"type": "object"}, text, additional="forbid")


def test_what_cannot_be_enforced_is_refused_or_reported() -> None:
    schema = {"type": "string", "pattern": r"^(a|b)\1$"}
    with pytest.raises(UnsupportedSchema) as caught:
        tf.json_schema(schema)
    assert caught.value.pointer == "/pattern"
    grammar = tf.json_schema(schema, unsupported="report")
    assert len(grammar.report) == 1 and "backreference" in grammar.report[0]
    assert accepts(schema, '"ab"', unsupported="report")


def test_other_documents_come_from_the_registry_alone() -> None:
    schema = {"items": {"$ref": "https://example.com/size#/$defs/n"}, "type": "array"}
    with pytest.raises(UnsupportedSchema) as caught:
        tf.json_schema(schema)
    assert caught.value.pointer == "/items/$ref"
    registry = {
        "https://example.com/size": {"$defs": {"n": {"$ref": "other#top"}}},
        "https://example.com/other": {"$anchor": "top", "type": "integer"},
    }
    assert accepts(schema, "[1]", registry=registry)
    assert not accepts(schema, '["a"]', registry=registry)


def test_options_are_those_of_the_core() -> None:
    signature = inspect.signature(tf.json_schema).parameters
    hints = typing.get_type_hints(tf.json_schema)
    for name, values in _core.json_options():
        own = ["auto"] if name == "additional" else []  # what a model writes is the frontend's choice
        assert signature[name].default == [*own, *values][0]
        hint = hints[name]
        if name == "whitespace":  # "at most 3" and the like are texts beside the listed ones
            hint, other = typing.get_args(hint)
            assert other is str
        assert set(typing.get_args(hint)) == {*own, *values}


def test_options_have_known_values() -> None:
    with pytest.raises(OptionError, match="there is no option 'space'"):
        tf.lark('start: %json {"type": "integer"}', json_options={"space": "any"})
    with pytest.raises(OptionError, match="numbers='plain' is not known; choose one of 'natural'"):
        tf.lark('start: %json {"type": "integer"}', json_options={"numbers": "plain"})
    with pytest.raises(OptionError, match="whitespace='pretty' is not known"):
        tf.json_schema(OBJECT, whitespace="pretty")  # type: ignore[arg-type]


FORMATS = {
    "date": (
        ["2020-02-29", "2000-02-29", "0001-12-31"],
        ["2019-02-29", "1900-02-29", "2020-2-09", "2020-13-01"],
    ),
    "time": (["23:59:60Z", "12:00:00.5+01:00", "22:59:60-01:00"], ["12:00:60Z", "24:00:00Z", "12:00:00"]),
    "date-time": (
        ["1998-12-31T23:59:60Z", "2020-01-01t00:00:00z"],
        ["1998-12-31T23:58:60Z", "2020-01-01 00:00:00Z"],
    ),
    "duration": (["P1Y2M3DT4H5M6S", "P4W", "PT36H"], ["P1W2D", "P", "PT", "P1D2H", "P1Y2D"]),
    "uuid": (["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]),
    "ipv4": (["1.2.3.4", "255.255.255.255"], ["256.1.1.1", "01.1.1.1", "1.2.3"]),
    "ipv6": (["::1", "1::d6:192.168.0.1", "::ffff:1.2.3.4"], ["1:2", "::1%eth0", "12345::", "1::2::3"]),
    "hostname": (["a", "a-b.c", "x" * 63], ["a_", "-a", "a-", "a..b", "", "x" * 64]),
    "idn-hostname": (["例え.jp", "a.b"], ["-a", "\u302e\ud55c"]),
    "email": (
        ["a@b", '"a b"@c.d', "a@[127.0.0.1]", f"a@{'x' * 63}.b", f"a@b.{'x-' * 31}x"],
        ["a", "a@@b", ".a@b", "a..b@c", f"a@{'x' * 64}", f"a@b.{'x' * 64}.c"],
    ),
    "idn-email": (["ü@ö.de", f"a@{'ö' * 59}.b"], [f"a@{'ö' * 64}", f"a@{'x' * 64}.de"]),
    "uri": (["http://a/b?c#d", "urn:x", "mailto:a@b"], ["//a/b", "a b", "http://[::1", "http://a/\u00e9"]),
    "uri-reference": (["/a", "#x", ""], ["\\\\x", "#\\x"]),
    "iri": (["http://f\u00f8.r/?\u03c0#\u00fc"], ["bar, baz", "/abc"]),
    "json-pointer": (["", "/a~1b", "/", "/a//b"], ["a", "/~2", "/~", "#/a"]),
    "relative-json-pointer": (["0", "1/a", "0#"], ["-1/a", "01/a", "#", "/a"]),
    "uri-template": (["http://a/{b}", "{+x,y*}", "{?q:3}"], ["http://a/{b", "{}", "{a,}"]),
    "regex": (["^a$", "(a|b)[c]", "\\p{L}{2,3}"], ["a(", "[a", "a{3,2}", "*"]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_those_of_their_rfcs(name: str) -> None:
    automaton = tf.json_schema({"type": "string", "format": name}).compile(VOCABULARY)
    valid, invalid = FORMATS[name]
    for text in valid:
        assert automaton.matches(json.dumps(text, ensure_ascii=False).encode()), text
    for text in invalid:
        assert not automaton.matches(json.dumps(text, ensure_ascii=False).encode()), text
