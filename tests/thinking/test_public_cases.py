"""Public complaints of app developers, each as a new user would try it; the right answers stand in the data.

pytest tests/thinking/test_public_cases.py     # each case by its name
"""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
from scripted import tokenizer
from test_served import THOUGHT, Served, chat

import tokenform as tf
from tokenform.errors import InvalidSchema, TokenformError
from tokenform.frontends.json_reader import JsonReader
from tokenform.frontends.tools import FORMATS
from tokenform_bench import data

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
try:
    CASES = [json.loads(line) for line in data.shared_file("public-cases.jsonl").read_text().splitlines()]
except data.DataError as missing:
    pytest.skip(str(missing), allow_module_level=True)
NAMES = [case["id"] for case in CASES if case["of"] == "apps"]
FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "it",
        "schema": {"type": "object", "properties": {"answer": {"type": "integer"}}},
    },
}
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
CHECKS: dict[str, Callable[..., None]] = {}


def case(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def put(check: Callable[..., None]) -> Callable[..., None]:
        CHECKS[name] = check
        return check

    return put


@pytest.fixture(scope="module")
def served() -> Any:
    made = Served("open", True)
    yield made
    made.engine.scheduler.close(drain=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_right_one(name: str, served: Served) -> None:
    if name == "smol-accents":
        pytest.skip("a real model says it: tests/real/test_first_answers.py")
    CHECKS[name](served)


def takes(grammar: Any, text: str) -> bool:
    return bool(grammar.compile(BYTES).matches(text.encode()))


def tool(name: str, needed: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(needed)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def read(text: str, format: str, *tools: Any) -> Any:
    return [(c.name, dict(c.arguments)) for c in tf.parse_tool_calls(text, list(tools), format=format)]


# Thoughts.


@case("think-text")
def _(served: Served) -> None:
    served.says("Hello there.")
    for stream in (False, True):
        assert chat(served, stream) == (THOUGHT, "Hello there.", [], "stop")


@case("think-json-effort")
def _(served: Served) -> None:
    served.says('{"answer": 4}')
    found = chat(served, False, response_format=FORM, reasoning_effort="low")
    assert found[0] == THOUGHT and json.loads(found[1]) == {"answer": 4}


@case("think-tools-auto")
def _(served: Served) -> None:
    served.says('<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>')
    found = chat(served, False, tools=[tool("weather", city=TEXT)])
    assert found == (THOUGHT, None, [("weather", {"city": "Oslo"})], "tool_calls")


@case("serve-chat-template-kwargs")
def _(served: Served) -> None:
    served.says("Hello there.")
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert chat(served, False, extra_body=off) == (None, "Hello there.", [], "stop")


@case("until-special-token")
def _(served: Served) -> None:
    known = tokenizer("open", special=True)
    vocabulary = tf.Vocabulary.from_tokenizer(known)
    automaton = tf.until("</think>", then=tf.json_schema(WHOLE)).compile(vocabulary)
    state = automaton.start
    for token in known.encode("So.</think>4", add_special_tokens=False):
        assert automaton.allows(state, token)
        state = automaton.advance(state, token)
    assert automaton.is_accepting(state)


# Schemas and types.


@case("escapes-of-fixed-text")
def _(served: Served) -> None:
    grammar = tf.json_schema({"properties": {"prod": {"enum": ["red"]}}, "required": ["prod"]})
    assert takes(grammar, '{"prod": "red"}')
    for text in ('{"p\\u0072od": "red"}', '{"prod": "\\u0072ed"}'):
        assert not takes(grammar, text)


@case("type-inline-flag")
def _(served: Served) -> None:
    grammar = tf.from_type(Annotated[str, pydantic.Field(pattern="(?i)^abc$")])
    assert takes(grammar, '"ABC"') and takes(grammar, '"abc"') and not takes(grammar, '"abd"')


class Times(pydantic.BaseModel):
    start: dt.datetime
    opens: dt.time


@case("type-naive-datetime")
def _(served: Served) -> None:
    grammar = tf.from_type(Times)
    assert takes(grammar, '{"start": "2024-03-17T10:30:00", "opens": "09:00:00"}')
    assert not takes(grammar, '{"start": "2024-13-17T10:30:00", "opens": "09:00:00"}')


@case("type-dict-key-pattern")
def _(served: Served) -> None:
    grammar = tf.from_type(dict[Annotated[str, pydantic.StringConstraints(pattern="^[a-z]+$")], int])
    assert takes(grammar, '{"ab": 1}') and not takes(grammar, '{"A_b": 1}')
    assert not takes(tf.from_type(dict[Annotated[int, pydantic.Field(ge=5)], int]), '{"4": 1}')


class Color(enum.Enum):
    RED = object()


@case("type-literal-of-plain-enum")
def _(served: Served) -> None:
    with pytest.raises(TokenformError):  # pydantic reads no JSON as it
        tf.from_type(pydantic.create_model("M", kind=(Literal[Color.RED], ...)))


class Vat(pydantic.BaseModel):
    rate: float


@case("type-optional-list-of-models")
def _(served: Served) -> None:
    grammar = tf.from_type(Optional[list[Vat]])  # noqa: UP045  (as the case has it)
    assert takes(grammar, '[{"rate": 1.5}]') and takes(grammar, "null")
    assert not takes(grammar, '[{"rate": "x"}]')


@case("type-decimal")
def _(served: Served) -> None:
    for text, value in (("1E-7", Decimal("1E-7")), ("0.1", Decimal("0.1"))):
        grammar = tf.from_type(Decimal)
        spelled = text if takes(grammar, text) else f'"{text}"'
        assert takes(grammar, spelled) and pydantic.TypeAdapter(Decimal).validate_json(spelled) == value


class Counted(pydantic.BaseModel):
    one: int
    two: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def both(self) -> int:
        return self.one + self.two


@case("partial-computed-field")
def _(served: Served) -> None:
    reader = JsonReader(tf.from_type(Counted).shapes.typed())
    for char in '{"one": 1, ':
        reader.feed(char)
    value = reader.value()
    assert value.model_dump()["one"] == 1 and "both" not in value.model_dump() and repr(value)


@case("pattern-fail-closed")
def _(served: Served) -> None:
    with pytest.raises(InvalidSchema):
        tf.json_schema({"type": "string", "pattern": "^[a-z"})


@case("batch-one-bad-schema")
def _(served: Served) -> None:
    served.says("yes")
    given = [tf.choice(["yes", "no"]), {"type": "integr"}]
    one, other = served.engine.generator.sample(["a", "b"], given, on_error="return", max_tokens=50)
    assert one[0].text in ("yes", "no") and isinstance(other[0], TokenformError)


# Tools' schemas.


@case("tools-annotation-beside-anyOf")
def _(served: Served) -> None:
    maybe = {"anyOf": [TEXT, {"type": "null"}]}
    for more in ({"example": "x"}, {"x-order": 1}, {"readOnly": True}, {"nullable": True}):
        for format in FORMATS:
            tf.tools([tool("f", a={**maybe, **more})], format=format)


@case("tools-top-level-anyOf")
def _(served: Served) -> None:
    either = tool("f", a=TEXT, b=TEXT)
    either["function"]["parameters"]["anyOf"] = [{"required": ["a"]}, {"required": ["b"]}]
    for format in FORMATS:
        tf.tools([either, tool("g")], format=format)
    grammar = tf.tools([either], format="qwen3_coder", tool_choice="required")
    frame = "<tool_call>\n<function=f>\n{}</function>\n</tool_call>"
    assert takes(grammar, frame.format("<parameter=a>\nx\n</parameter>\n"))
    assert not takes(grammar, frame.format(""))


@case("tools-one-bad-tool")
def _(served: Served) -> None:
    bad = [tool("f", a={"type": "string", "pattern": "["}), tool("g")]
    for way in ("any", "omit"):
        assert any("'f'" in line for line in tf.tools(bad, format="hermes", on_bad_tool=way).report)
    served.says('<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>')
    assert chat(served, False, tools=bad)[2] == [("g", {})]


# Reading.

SEARCH = tool("search", ("query",), query=TEXT, limit=WHOLE)


def kept(text: str, format: str, *tools: Any) -> Any:
    """The calls, those beside an error too."""
    try:
        return read(text, format, *tools)
    except TokenformError as error:
        return [(c.name, dict(c.arguments)) for c in error.calls]  # type: ignore[attr-defined]


@case("gemma4-parenthesis")
def _(served: Served) -> None:
    mark = '<|"|>'
    right = f"<|tool_call>call:search{{query:{mark}b{mark}}}<tool_call|>"
    text = f"<|tool_call>call:search(query:{mark}a{mark})<tool_call|>\n{right}"
    assert ("search", {"query": "b"}) in kept(text, "gemma4", SEARCH)


def qwen(body: str) -> str:
    return f"<tool_call>\n<function=f>\n{body}</function>\n</tool_call>"


@case("q3coder-missing-closer-next")
def _(served: Served) -> None:
    text = qwen("<parameter=s>\nabc\n<parameter=n>\n5\n</parameter>\n")
    assert read(text, "qwen3_coder", tool("f", s=TEXT, n=WHOLE)) == [("f", {"s": "abc", "n": 5})]


@case("q3coder-closer-in-value")
def _(served: Served) -> None:
    text, made = qwen("<parameter=s>\nx </parameter> y\n</parameter>\n"), tool("f", s=TEXT)
    assert takes(tf.tools([made], format="qwen3_coder", tool_choice="required"), text)
    assert read(text, "qwen3_coder", made) == [("f", {"s": "x </parameter> y"})]


@case("q3coder-missing-opener")
def _(served: Served) -> None:
    text = qwen("<parameter=s>\nx\n</parameter>\n").removeprefix("<tool_call>\n")
    assert read(text, "qwen3_coder", tool("f", s=TEXT)) == [("f", {"s": "x"})]


@case("glm-number-like-string")
def _(served: Served) -> None:
    def pair(key: str, value: str) -> str:
        return f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"

    text = f"<tool_call>f\n{pair('a', '123_456')}{pair('b', '10001')}{pair('n', '3')}</tool_call>"
    found = read(text, "glm45", tool("f", a=TEXT, b=TEXT, n=WHOLE))
    assert found == [("f", {"a": "123_456", "b": "10001", "n": 3})]


@case("dsml-orphan-closer")
def _(served: Served) -> None:
    d = "｜DSML｜"
    one = f'<{d}invoke name="f">\n<{d}parameter name="s" string="true">x</{d}parameter>\n</{d}invoke>\n'
    found = tf.parse_tool_calls(f"{one}</{d}tool_calls>", [tool("f", s=TEXT)], format="deepseek_v4")
    assert [dict(c.arguments) for c in found] == [{"s": "x"}] and not found.content


@case("dsml-sibling")
def _(served: Served) -> None:
    d = "｜DSML｜"
    calls = [f'<{d}invoke name="f">\n{{"{key}": "x"}}\n</{d}invoke>\n' for key in ("comand", "command")]
    text = f"<{d}tool_calls>\n{''.join(calls)}</{d}tool_calls>"
    assert kept(text, "deepseek_v4", tool("f", ("command",), command=TEXT)) == [("f", {"command": "x"})]


@case("minimax-none-enum")
def _(served: Served) -> None:
    made = tool("f", a={"enum": ["none", "nil", "null"]}, b={"type": ["string", "null"]})
    for word in ("none", "nil", "null"):
        text = (
            f'<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">{word}</parameter>\n'
            '<parameter name="b">null</parameter>\n</invoke>\n</minimax:tool_call>'
        )
        assert read(text, "minimax", made) == [("f", {"a": word, "b": None})]


@case("harmony-headers")
def _(served: Served) -> None:
    body, begun = '{"query": "a"}', "<|start|>assistant"
    for head in (
        "<|channel|>commentary to=functions.search <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.search<|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.search json<|message|>",
        "<|channel|>commentary to=functions.search<|message|>",
        " to=functions.search<|channel|>commentary json<|message|>",
        " to=functions.search<|channel|>commentary <|constrain|>json<|message|>",
    ):
        assert read(f"{begun}{head}{body}<|call|>", "gpt_oss", SEARCH) == [("search", {"query": "a"})], head
    dashed = f"{begun}<|channel|>commentary to=functions.a-b<|message|>{{}}<|call|>"
    assert read(dashed, "gpt_oss", tool("a-b")) == [("a-b", {})]


@case("lfm2-documented")
def _(served: Served) -> None:
    text = '<|tool_call_start|>[search(query="a", limit=2)]<|tool_call_end|>Looking.'
    assert read(text, "lfm2", SEARCH) == [("search", {"query": "a", "limit": 2})]


@case("hermes-closer-in-string")
def _(served: Served) -> None:
    text = '<tool_call>\n{"name": "search", "arguments": {"query": "a </tool_call> b"}}\n</tool_call>'
    assert read(text, "hermes", SEARCH) == streamed(text, 1) == [("search", {"query": "a </tool_call> b"})]


def streamed(text: str, size: int, *tools: Any) -> Any:
    stream = tf.tool_formats.ToolCallStream(list(tools) or [SEARCH], format="hermes")
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
    stream.close()
    return [(c.name, dict(c.arguments)) for c in stream.result]


@case("stream-any-cut")
def _(served: Served) -> None:
    made = tool("f", a={"type": "object"})
    given = {"a": {"b": {"c": {}}}}
    text = f'<tool_call>\n{{"name": "f", "arguments": {json.dumps(given)}}}\n</tool_call>'
    assert all(streamed(text, size, made) == [("f", given)] for size in range(1, 20))


@case("hermes-stringified-arguments")
def _(served: Served) -> None:
    said = json.dumps(json.dumps({"query": "a"}))
    text = f'<tool_call>\n{{"name": "search", "arguments": {said}}}\n</tool_call>'
    assert read(text, "hermes", SEARCH) == [("search", {"query": "a"})]


# The server.


@case("serve-finish-reason")
def _(served: Served) -> None:
    served.says('<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>')
    for stream in (False, True):
        assert chat(served, stream, tools=[tool("weather", city=TEXT)])[3] == "tool_calls"


@case("serve-bad-history")
def _(served: Served) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{"}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
    ]
    got = served.http.post("/v1/chat/completions", json={"model": "it", "messages": messages})
    assert got.status_code == 400 and "messages" in got.text


@case("serve-count-tokens")
def _(served: Served) -> None:
    body = {"model": "it", "messages": [{"role": "user", "content": "hi"}]}
    got = served.http.post("/v1/messages/count_tokens", json=body)
    assert got.status_code == 200 and got.json()["input_tokens"] > 0


@case("serve-tools-plain-template")
def _(served: Served) -> None:
    from typer.testing import CliRunner

    from tokenform.cli import app

    told = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert "--tool-format" in told.output


def test_every_case_has_its_check() -> None:
    assert sorted(CHECKS) == sorted(set(NAMES) - {"smol-accents"})
