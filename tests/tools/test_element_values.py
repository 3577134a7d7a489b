"""Formats that write each argument by itself: values of mixed types, free keys, orders, names."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tokenform.errors import ToolError, UnsupportedSchema
from tokenform.frontends.tools import find_format, parse_tool_calls, tools

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
    with pytest.raises(UnsupportedSchema, match="any order"):
        accepts(name, {"properties": {f"k{i}": STRING for i in range(9)}}, "", **free)


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
