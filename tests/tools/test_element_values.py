"""Formats that write each argument by itself: values of mixed types, free keys, orders, names."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tokenform.engine import Vocabulary
from tokenform.errors import LimitExceeded, ToolError
from tokenform.frontends.gbnf import gbnf
from tokenform.frontends.to_gbnf import to_gbnf
from tokenform.frontends.tools import FORMATS, find_format, parse_tool_calls, tools
from tokenform.frontends.tools.compiled import shape_form
from tokenform.frontends.tools.shape import AnyOrder, Regex, Shape, Text
from tokenform.frontends.tools.shown import written_call

from .test_engine_walks import tokens_of, vocabulary

# A call of `f` with elements, and one element, by format; strings and other values may be marked apart.
ELEMENTS = {
    "qwen3_coder": (
        "<tool_call>\n<function=f>\n{}</function>\n</tool_call>",
        "<parameter={}>\n{}\n</parameter>\n",
    ),
    "glm45": (
        "<tool_call>f\n{}</tool_call>",
        "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n",
    ),
    "glm47": ("<tool_call>f{}</tool_call>", "<arg_key>{}</arg_key><arg_value>{}</arg_value>"),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="f">\n{}</invoke>\n</minimax:tool_call>',
        '<parameter name="{}">{}</parameter>\n',
    ),
    "deepseek_v32": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n{}</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        '<｜DSML｜parameter name="{}" string="{marked}">{}</｜DSML｜parameter>\n',
    ),
}


def call(name: str, *pairs: tuple[str, Any]) -> str:
    """The call; values that are str stand for themselves, others are (text, False): JSON."""
    body = ""
    for key, value in pairs:
        text, marked = (value, "true") if isinstance(value, str) else (value[0], "false")
        body += ELEMENTS[name][1].format(key, text, marked=marked)
    return ELEMENTS[name][0].format(body)


def accepts(name: str, parameters: dict[str, Any], text: str, **options: Any) -> bool:
    """Whether the grammar takes the text, which it does exactly if it reads back as a valid call."""
    definition = {"name": "f", "parameters": {"type": "object", **parameters}}
    vocab = vocabulary(name, True)
    auto = tools([definition], format=name, tool_choice="required", **options).compile(vocab)
    state = auto.start
    for token in tokens_of(vocab, text):
        if not auto.allows(state, token):
            return False
        state = auto.advance(state, token)
    if auto.is_accepting(state):
        assert len(parse_tool_calls(text, [definition], format=name)) == 1
    return auto.is_accepting(state)


STRING, WHOLE, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
MIXED: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"oneOf": [STRING, WHOLE]}, ["x", "", ("7", False)], [("1.5", False), ("[]", False)]),
    ({"type": ["string", "integer"], "minLength": 2}, ["xy", ("7", False)], ["x"]),
    ({"type": ["string", "null"]}, ["x", ("null", False)], [("{}", False)]),
    (
        {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^z"}]},
        ["ab", "zzz"],
        ["abc"],
    ),
    (
        {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^z"}, WHOLE]},
        ["ab", "zzz", ("7", False)],
        ["zz", "abc"],
    ),
    ({"type": "string", "not": {"enum": ["no"]}}, ["yes"], ["no"]),
    ({"type": "string", "if": {"minLength": 3}, "then": {"pattern": "^a"}}, ["b", "abc"], ["bcd"]),
    ({"enum": ["a", 1, None]}, ["a", ("1", False), ("null", False)], ["b", ("2", False)]),
    ({"not": {"type": "string"}}, [("7", False), ("null", False)], ["x"]),
    (
        {"$ref": "#/$defs/T"},
        ["x", ('["x", [["y"]]]', False)],
        [("7", False), ("[7]", False)],
    ),
]
DEFS = {"T": {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/T"}}]}}


def readable_as_text(schema: dict[str, Any], value: Any) -> bool:
    """Unmarked, a JSON value is also a text, which a schema with free strings takes."""
    return not isinstance(value, str) and "pattern" not in str(schema) and "string" in str(schema)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize(("schema", "good", "bad"), MIXED, ids=str)
def test_values_of_mixed_types(name: str, schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    parameters = {"properties": {"v": schema}, "required": ["v"], "$defs": DEFS}
    for value in good:
        assert accepts(name, parameters, call(name, ("v", value))), value
    for value in bad:
        if name != "deepseek_v32" and readable_as_text({**schema, **DEFS}, value):
            continue
        assert not accepts(name, parameters, call(name, ("v", value))), value


@pytest.mark.parametrize("name", ELEMENTS)
def test_null_is_null_where_a_string_may_stand(name: str) -> None:
    definition = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"v": {"type": ["string", "null"]}}},
    }
    (got,) = parse_tool_calls(call(name, ("v", ("null", False))), [definition], format=name)
    assert got.arguments == {"v": None}


def read_value(name: str, schema: Any, text: str) -> Any:
    """The argument `v` of the only call."""
    parameters = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    (got,) = parse_tool_calls(text, [{"name": "f", "parameters": parameters}], format=name)
    return got.arguments["v"]


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("schema", [{"type": ["integer", "boolean", "string"]}, {}], ids=str)
def test_a_text_that_begins_as_json_and_its_closing_marker(name: str, schema: Any) -> None:
    """The marker counts by what follows it, behind JSON as behind a text."""
    close = "</arg_value>" if name.startswith("glm") else "</parameter>"
    for text in (f"true{close}<param", f"7{close} times", f"7{close}{close}"):
        assert read_value(name, schema, call(name, ("v", text))) == text
    assert read_value(name, schema, call(name, ("v", ("7", False)))) == 7


@pytest.mark.parametrize("name", ["qwen3_coder", "glm45", "minimax"])
def test_a_word_of_python_where_no_such_text_may_stand(name: str) -> None:
    schema = {"anyOf": [{"type": "boolean"}, {"type": "string", "maxLength": 3}]}
    assert read_value(name, schema, call(name, ("v", "True"))) is True
    assert read_value(name, {"type": ["boolean", "string"]}, call(name, ("v", "True"))) == "True"


@pytest.mark.parametrize("name", FORMATS)
def test_items_of_lists_that_are_named_whole(name: str) -> None:
    lists: list[Any] = [[1, "1", None], [["1", 1], {"k": [2, "2"]}], [], "x", {"k": [1]}]
    for value in lists:
        text = written_call("f", {"v": value}, FORMATS[name])
        assert read_value(name, {"enum": lists}, text) == value


def test_an_empty_element_is_a_list_where_the_schema_takes_one() -> None:
    text = written_call("f", {"v": []}, FORMATS["minimax_m3"])
    for other in ("number", "boolean", "null"):
        assert read_value("minimax_m3", {"type": [other, "array"]}, text) == []
        assert read_value("minimax_m3", {"type": [other, "object"]}, text) == {}
    assert read_value("minimax_m3", {"type": ["array", "object"], "minItems": 1}, text) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("functiongemma", "<start_function_call>call:f{b:1,v:2,b:3}<end_function_call>"),
        ("gemma4", "<|tool_call>call:f{b:1,v:2,b:3}<tool_call|>"),
        ("llama4_pythonic", "[f(b=1, v=2, b=3)]"),
        ("qwen3_coder", call("qwen3_coder", ("b", ("1", False)), ("v", ("2", False)), ("b", ("3", False)))),
    ],
)
def test_the_last_of_two_arguments_that_are_not_declared_counts(name: str, text: str) -> None:
    parameters = {"properties": {"v": WHOLE}, "required": ["v"], "additionalProperties": WHOLE}
    definition = {"name": "f", "parameters": {"type": "object", **parameters}}
    auto = tools([definition], format=name, json_options={"order": "any"}).compile(vocabulary(name, False))
    assert auto.matches(text.encode())
    (got,) = parse_tool_calls(text, [definition], format=name)
    assert got.arguments == {"b": 3, "v": 2}
    with pytest.raises(ToolError, match="given twice"):
        parse_tool_calls(text.replace("b", "v"), [definition], format=name)


@pytest.mark.parametrize("name", ELEMENTS)
def test_arguments_that_are_not_declared(name: str) -> None:
    extra = {"properties": {"a": WHOLE}, "additionalProperties": STRING}
    assert accepts(name, extra, call(name, ("a", ("1", False)), ("b", "x"), ("c-d", "y")))
    assert accepts(name, extra, call(name, ("b", "x"))) and accepts(name, extra, call(name))
    assert not accepts(name, extra, call(name, ("a", "x")))
    if name == "deepseek_v32":
        assert not accepts(name, extra, call(name, ("b", ("1", False))))
    closed = {"properties": {"a": WHOLE}}
    assert not accepts(name, closed, call(name, ("b", "x")))
    assert accepts(name, closed, call(name, ("b", "x")), strict=False)
    assert not accepts(name, {**closed, "additionalProperties": False}, call(name, ("b", "x")), strict=False)


@pytest.mark.parametrize("name", ELEMENTS)
def test_arguments_in_any_order(name: str) -> None:
    parameters = {"properties": {k: STRING for k in "abc"}, "required": ["a", "b"]}
    free = {"json_options": {"order": "any"}}
    for keys in itertools.chain.from_iterable(itertools.permutations("abc", n) for n in range(4)):
        text = call(name, *((key, key.upper()) for key in keys))
        assert accepts(name, parameters, text, **free) == ({"a", "b"} <= set(keys)), keys
        assert accepts(name, parameters, text) == (keys in (("a", "b"), ("a", "b", "c"))), keys
    assert not accepts(name, parameters, call(name, ("a", "x"), ("b", "x"), ("a", "x")), **free)


@pytest.mark.parametrize("name", ELEMENTS)
def test_many_arguments_in_any_order(name: str) -> None:
    keys = [f"k{i}" for i in range(30)]
    parameters = {"properties": dict.fromkeys(keys, STRING), "required": keys[::2]}
    free = {"json_options": {"order": "any"}}
    rng = random.Random(name)
    for _ in range(3):
        rng.shuffle(keys)
        pairs = [(key, key.upper()) for key in keys if key in parameters["required"] or rng.random() < 0.5]
        assert accepts(name, parameters, call(name, *pairs), **free)
        needed = next(i for i, pair in enumerate(pairs) if pair[0] in parameters["required"])
        assert not accepts(name, parameters, call(name, *pairs[:needed], *pairs[needed + 1 :]), **free)
        assert not accepts(name, parameters, call(name, *pairs, pairs[3]), **free)


def test_python_arguments_in_any_order_and_not_declared() -> None:
    parameters = {"properties": {"a": WHOLE, "b": STRING}, "additionalProperties": WHOLE}
    free = {"json_options": {"order": "any"}}
    for text in ("[f(b='x', a=1)]", "[f(c=2, a=1)]", "[f()]", "[f(a=1, c=3, b='y', d=4)]"):
        assert accepts("llama3_pythonic", parameters, text, **free), text
    assert accepts("llama3_pythonic", parameters, "[f(a=1, c=2)]")
    assert not accepts("llama3_pythonic", parameters, "[f(c=2, a=1)]")
    assert not accepts("llama3_pythonic", parameters, "[f(c='x')]", **free)
    nested = {
        "properties": {"o": {"type": "object", "properties": {"k'": WHOLE}, "additionalProperties": STRING}}
    }
    assert accepts("llama3_pythonic", nested, '[f(o={"k\'": 1})]')
    assert accepts("llama3_pythonic", nested, r"[f(o={'k\'': 1, 'z': 'x'})]")
    for wrong in (r"[f(o={'k\'': 'x'})]", "[f(o={\"k'\": 'x'})]", "[f(o={\"k\\'\": 'x'})]"):
        assert not accepts("llama3_pythonic", nested, wrong), wrong


@pytest.mark.parametrize("name", ["get-weather", "class", "a.b-c", "2nd", "a b"])
def test_names_that_python_can_not_read_are_refused(name: str) -> None:
    with pytest.raises(ToolError, match="rename"):
        tools([{"name": name}], format="llama4_pythonic")
    parameters = {"type": "object", "properties": {name.split(".")[-1]: STRING}}
    with pytest.raises(ToolError, match="rename"):
        tools([{"name": "f", "parameters": parameters}], format="llama4_pythonic")


def test_an_argument_that_is_required_and_forbidden() -> None:
    both = {"required": ["a"], "additionalProperties": False}
    assert find_format("glm47")
    with pytest.raises(Exception, match="required and forbidden"):
        accepts("glm47", both, "")


def test_what_a_format_can_not_write_is_reported() -> None:
    spoken = {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING}
    outer = {"type": "object", "properties": {"o": spoken}}
    for parameters, places in ((spoken, 1), (outer, 1), ({**outer, "additionalProperties": WHOLE}, 2)):
        for name, notes in (("minimax_m3", places), ("minimax", 0)):
            grammar = tools([{"name": "f", "parameters": parameters}], format=name)
            assert sum("can't write" in line for line in grammar.report) == notes, name
    assert not tools([{"name": "f", "parameters": {"properties": {"a": STRING}}}], format="minimax_m3").report


def test_any_order_as_rules_of_gbnf() -> None:
    def written(count: int) -> str:
        members = tuple((Text(f"k{i}"), i == 0) for i in range(count))
        shape = Shape(AnyOrder(members, Regex("x[0-9]"), Text(","), Text("-")))
        return to_gbnf(shape_form(shape), "members")

    back = gbnf(written(3)).compile(Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256]))
    for text in ("-k0", "-k2,-k0,-k1", "-x1,-k0,-x1"):
        assert back.matches(text.encode()), text
    for text in ("", "-k1", "-k0,-k0", "-k0-k1", ",-k0", "k0"):
        assert not back.matches(text.encode()), text
    with pytest.raises(LimitExceeded, match="20 members in any order"):
        written(20)


@pytest.mark.parametrize("schema", [{}, {"description": "A."}, {"readOnly": True}, {"$defs": {}}])
def test_where_a_schema_only_annotates_a_text_is_a_text(schema: dict[str, Any]) -> None:
    mark = "]<]minimax[>["
    call = f'{mark}<invoke name="f">{mark}<a>12{mark}</a>{mark}</invoke>\n'
    text = f"{mark}<tool_call>\n{call}{mark}</tool_call>"
    tool = {"name": "f", "parameters": {"properties": {"a": schema}}}
    assert parse_tool_calls(text, [tool], format="minimax_m3")[0].arguments == {"a": "12"}
