"""The options of a turn as APIs spell them, and whole turns: what is read goes back into the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("jinja2")

from tokenform.errors import OptionError, ToolError
from tokenform.frontends.tools import (
    FORMATS,
    ToolCallStream,
    parse_tool_calls,
    read_tools,
    tool_shape,
    tools,
)
from tokenform.frontends.tools.templates import Template

from .test_detection import template_of
from .tree_matcher import accepts

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TWO = [{"name": "a", "parameters": CITY}, {"name": "b", "parameters": {"type": "object", "properties": {}}}]
A = '<tool_call>\n{"name": "a", "arguments": {"city": "x"}}\n</tool_call>'
B = '<tool_call>\n{"name": "b", "arguments": {}}\n</tool_call>'


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def listed(mode: str, *names: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": n} for n in names]}


@pytest.mark.parametrize(
    ("wish", "texts"),
    [
        ("any", [A, B, A + B]),
        ({"type": "any"}, [A, B, A + B]),
        ({"type": "auto"}, [A, B, A + B, "hi"]),
        (None, [A, B, A + B, "hi"]),
        ({"type": "none"}, ["hi"]),
        (named("b"), [B]),
        ({"type": "function", "name": "b"}, [B]),
        ({"type": "tool", "name": "a"}, [A]),
        (listed("auto", "b"), [B, "hi"]),
        (listed("required", "b"), [B]),
        (listed("required", "b", "a"), [A, B, A + B]),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("a")]}},
            [A],
        ),
    ],
    ids=str,
)
def test_the_choices_of_the_apis(wish: Any, texts: list[str]) -> None:
    shape = tool_shape(TWO, format="hermes", tool_choice=wish)
    assert [text for text in (A, B, A + B, "hi") if accepts(shape, text)] == texts


@pytest.mark.parametrize(
    "wish",
    [
        3,
        {},
        {"type": "custom"},
        {"type": "function"},
        {"type": "allowed_tools"},
        listed("often", "a"),
        named("c"),
    ],
    ids=str,
)
def test_what_is_no_choice_is_refused(wish: Any) -> None:
    with pytest.raises((OptionError, ToolError)):
        tool_shape(TWO, format="hermes", tool_choice=wish)


@pytest.mark.parametrize("name", FORMATS)
def test_no_tools_are_a_plain_answer(name: str) -> None:
    assert tools([], format=name).parse("hi").content == "hi"
    with pytest.raises(ToolError, match="no tool to call"):
        tools([], format=name, tool_choice="required")
    assert parse_tool_calls("hi", [], format=name).content == "hi"


def test_a_call_without_tools_is_an_error() -> None:
    with pytest.raises(ToolError, match="no tool 'a'"):
        parse_tool_calls(A, [], format="hermes")


PROMPT = "<|im_start|>user\nSay <think> or not<|im_end|>\n<|im_start|>assistant\n"


def test_the_prompt_tells_whether_it_has_opened_a_thought() -> None:
    text = f"x</think>{A}"
    opened = {"format": "hermes", "prompt": PROMPT + "<think>\n"}
    assert accepts(tool_shape(TWO, tool_choice="required", **opened), text)
    assert parse_tool_calls(text, TWO, **opened).reasoning == "x"
    closed = {"format": "hermes", "prompt": PROMPT + "<think>\n\n</think>\n\n"}
    assert not accepts(tool_shape(TWO, tool_choice="required", **closed), f"<think>{text}")
    assert parse_tool_calls(f"x</think>{A}", TWO, **closed).content == "x</think>"
    own = {"format": "hermes", "prompt": PROMPT}
    assert accepts(tool_shape(TWO, tool_choice="required", **own), f"<think>{text}")
    assert parse_tool_calls(f"<think>{text}", TWO, **own).reasoning == "x"
    assert parse_tool_calls(text, TWO, **own).reasoning is None


def test_plain_answers_come_at_once_where_the_prompt_is_known() -> None:
    for prompt in (PROMPT, PROMPT + "<think>\n\n</think>\n\n"):
        stream = ToolCallStream(TWO, format="hermes", prompt=prompt)
        assert stream.feed("It is") == [{"role": "assistant", "content": "It is"}]
        assert stream.feed(" late.") == [{"content": " late."}]
    stream = ToolCallStream(TWO, format="hermes", prompt=PROMPT + "<think>\n")
    assert stream.feed("Hm") == [{"role": "assistant", "reasoning_content": "Hm"}]


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if not form.channels])
def test_what_is_read_is_written_again_by_the_template(name: str) -> None:
    """The message that templates take, and the answer to it; the call reads back from the history."""
    template, form = Template(template_of(FORMATS[name])), FORMATS[name]
    user: dict[str, Any] = {"role": "user", "content": "Hi"}
    said = {"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", **named("a")}]}
    said["tool_calls"][0]["function"]["arguments"] = {"city": "Bergen"}  # type: ignore[index]
    turn = template.render([said]).removeprefix("<|assistant|>").removesuffix("<|end|>")
    calls = parse_tool_calls(turn, TWO, format=form)
    message = calls.to_message()
    assert message["content"] == "" and message["tool_calls"][0]["function"]["arguments"] == {
        "city": "Bergen"
    }
    answer = calls[0].answer({"rain": True})
    assert answer == {"role": "tool", "tool_call_id": calls[0].id, "name": "a", "content": '{"rain": true}'}
    history = template.render([user, message, answer])
    rendered = history.split("<|assistant|>")[1].split("<|end|>")[0]
    assert list(parse_tool_calls(rendered, TWO, format=form)) == list(calls)
    api = calls.to_openai()["tool_calls"][0]["function"]["arguments"]
    assert isinstance(api, str) and json.loads(api) == {"city": "Bergen"}


QWEN3 = (
    "{%- if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n"
    "{%- endif %}{%- for message in messages %}{%- if message.role == 'tool' %}<|im_start|>user\n"
    "<tool_response>\n{{ message.content }}\n</tool_response><|im_end|>\n{%- else %}<|im_start|>"
    "{{ message.role }}\n{{ message.content }}{%- for call in message.tool_calls or [] %}"
    "{{- '\n' if not loop.first or message.content }}{{- '<tool_call>\n{\"name\": \"' }}"
    '{{- call.function.name }}{{- \'", "arguments": \' }}{{- call.function.arguments | tojson }}'
    "{{- '}\n</tool_call>' }}{%- endfor %}<|im_end|>\n{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{%- if enable_thinking is defined and not "
    "enable_thinking %}{{ '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}"
)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_two_turns_in_the_loop_of_transformers() -> None:
    """A call, its answer, and the final text, with nothing but transformers around the grammar."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenform.builtin.loading import WEIGHTS
    from tokenform.integrations.transformers import GrammarLogitsProcessor

    tokenizer = transformers.AutoTokenizer.from_pretrained(WEIGHTS / "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(WEIGHTS / "model")
    tokenizer.chat_template = QWEN3
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Add 3 and 4."}]

    def turn(choice: str) -> Any:
        shown = [tool.to_openai() for tool in read]
        prompt = tokenizer.apply_chat_template(
            messages, tools=shown, add_generation_prompt=True, tokenize=False, enable_thinking=False
        )
        grammar = tools([add], format=tokenizer, tool_choice=choice, parallel=False, prompt=prompt)
        processor = GrammarLogitsProcessor(grammar, tokenizer, model=model, max_tokens=60)
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        with torch.no_grad():
            out = model.generate(**ids, logits_processor=[processor], max_new_tokens=61, do_sample=False)
        text = tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
        return text, parse_tool_calls(text, [add], format=tokenizer, prompt=prompt)

    read = read_tools([add])
    text, calls = turn("required")
    (call,) = calls
    assert call() == call.arguments["a"] + call.arguments["b"]
    messages += [calls.to_message(), call.answer(call())]
    history = tokenizer.apply_chat_template(messages, tokenize=False)
    assert text.strip() in history or json.dumps(call.arguments) in history
    written = history.split("<|im_start|>assistant\n")[1].split("<|im_end|>")[0]
    assert list(parse_tool_calls(written, [add], format=tokenizer)) == [call]
    text, last = turn("none")
    assert not last and (last.content or "").strip() == text.strip()
