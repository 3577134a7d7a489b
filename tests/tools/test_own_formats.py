"""Formats of a caller's own: a value is all that is needed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import tokenform as tf
from tokenform.errors import InvalidSchema, ToolError
from tokenform.frontends.tools import FORMATS
from tokenform.tool_formats import Format, JsonArguments, JsonCall, Maybe, Name, Tagged, Wire

from .test_random_walks import same_for_cuts, some_cuts

ARROWS = Format(
    name="arrows",
    models="a model of my own",
    wire=Wire(call=("<<call:", Name(), ">>", JsonArguments(), "<</call>>"), between="\n"),
    special=("<<call:", "<</call>>"),
    dropped=("<|end|>",),
)
BOXES = Format(
    name="boxes",
    models="another",
    wire=Wire(
        call=("[[", Name(), "]]", Tagged(before="<", middle=">", after="</>", markers=("[[",)), "[[/]]"),
        section=("<box>", "</box>"),
    ),
)
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}
TOOLS: list[dict[str, Any]] = [{"name": "a", "parameters": CITY}, {"name": "b"}]
BYTES = tf.Vocabulary([*(bytes([b]) for b in range(256)), b""], eos=[256], special=[256])


@pytest.mark.parametrize(
    ("form", "text", "calls"),
    [
        (ARROWS, 'Sure. <<call:a>>{"city": "x", "n": 3}<</call>>\n<<call:b>>{}<</call>><|end|>', 2),
        (BOXES, "Sure. <box>[[a]]<city>x</><n>3</>[[/]][[b]][[/]]</box>", 2),
    ],
    ids=["arrows", "boxes"],
)
def test_a_value_is_read_written_and_streamed(form: Format, text: str, calls: int) -> None:
    grammar = tf.tools(TOOLS, format=form)
    body = text.removesuffix("<|end|>")
    assert grammar.compile(BYTES).matches(body.encode())
    got = grammar.parse(text)
    assert [(c.name, c.arguments) for c in got] == [("a", {"city": "x", "n": 3}), ("b", {})][:calls]
    assert got.content == "Sure. "
    same_for_cuts(text, TOOLS, form, some_cuts(text, Random(0)))  # type: ignore[arg-type]
    with pytest.raises(ToolError):
        tf.parse_tool_calls(text.replace("3", '"3'), TOOLS, format=form)


def test_the_class_has_one_face() -> None:
    assert tf.tool_formats.ToolFormat is tf.tools.Format is tf.tool_formats.Format is Format
    assert all(isinstance(form, tf.tool_formats.ToolFormat) for form in FORMATS.values())


@pytest.mark.parametrize(
    "wire",
    [
        Wire(call=("<x>", JsonArguments(), "</x>")),
        Wire(call=(Name(), JsonArguments())),
        Wire(call=("  ", Name(), JsonArguments())),
        Wire(call=("<x>", Name())),
        Wire(call=("<x>", Name(), JsonCall("name", "arguments"))),
        Wire(call=("<x>", Maybe((Name(),), written=True), Name(), "</x>")),
    ],
    ids=str,
)
def test_layouts_that_can_not_be_read_are_refused(wire: Wire) -> None:
    with pytest.raises(ToolError, match="'mine'"):
        Format("mine", "none", wire)


@pytest.mark.parametrize("name", ["hermes", "glm47", "llama3_pythonic", "gemma4"])
@pytest.mark.parametrize("pattern", [r"^\p{L}+$", r"^(?<y>\d{4})$", "^[^]$"])
def test_patterns_are_ecma_s(name: str, pattern: str) -> None:
    parameters = {"type": "object", "properties": {"v": {"type": "string", "pattern": pattern}}}
    tf.tools([{"name": "f", "parameters": parameters}], format=name)
    with pytest.raises(InvalidSchema, match="pattern"):
        parameters = {"type": "object", "properties": {"v": {"type": "string", "pattern": "("}}}
        tf.tools([{"name": "f", "parameters": parameters}], format=name)


def nested(depth: int, kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}} if kind == "object" else {"anyOf": [schema]}
    return {"type": "object", "properties": {"v": schema}}


@pytest.mark.parametrize("name", FORMATS)
def test_deep_and_strange_definitions_are_typed_errors(name: str) -> None:
    for kind in ("object", "any"):
        for depth in (100, 300, 3000):
            try:
                tf.tools([{"name": "f", "parameters": nested(depth, kind)}], format=name)
            except tf.TokenformError:
                assert depth > 100
    half = "a\ud800"
    strange: list[dict[str, Any]] = [{"name": half}, {"name": "f", "description": half}]
    strange.append({"name": "f", "parameters": {"type": "object", "properties": {half: {}}}})
    for definition in strange:
        with pytest.raises(tf.TokenformError, match="surrogate"):
            tf.tools([definition], format=name)
