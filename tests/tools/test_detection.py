# ruff: noqa: E501 (templates are kept on one line)
"""Formats told from chat templates: templates that write each format's layout, and templates that write others."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("jinja2")

from tokenform.engine import Vocabulary
from tokenform.errors import OptionError, ToolError
from tokenform.frontends.tools import FORMATS, detect_format, parse_tool_calls, tools
from tokenform.frontends.tools.layout import (
    Either,
    Elements,
    Format,
    Id,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Maybe,
    Name,
    PythonArguments,
    Tagged,
)

TURN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% if m.tool_calls %}CALLS{% endif %}<|end|>{% endfor %}"
ARGUMENTS = "{{ c.function.arguments | tojson }}"


def jinja(text: str) -> str:
    return "{{ " + json.dumps(text, ensure_ascii=False) + " }}" if text else ""


def part_of(part: Any) -> str:
    """A part of a layout as a template writes it."""
    if isinstance(part, str):
        return jinja(part)
    if isinstance(part, Either):
        return jinja(part.texts[0])
    if isinstance(part, Name):
        return "{{ c.function.name }}"
    if isinstance(part, Id):
        return "{{ loop.index }}" if part.pattern in ("[0-9]+", "[1-9][0-9]*") else "{{ c.id }}"
    if isinstance(part, JsonArguments):
        return ARGUMENTS
    if isinstance(part, JsonCall):
        number = jinja(f'"{part.id}": "') + "{{ loop.index0 }}" + jinja('", ') if part.id else ""
        head = jinja(f'"{part.name}": ') + "{{ c.function.name | tojson }}" + jinja(f', "{part.arguments}": ')
        return jinja("{") + number + head + ARGUMENTS + jinja("}")
    if isinstance(part, Maybe):
        return "".join(map(part_of, part.parts)) if part.written is not False else ""
    each = "{% for k, v in c.function.arguments.items() %}" + "{}" + "{% endfor %}"
    if isinstance(part, PythonArguments):
        quoted = (
            "{{ ', ' if not loop.first }}{{ k }}={% if v is string %}'{{ v }}'{% else %}{{ v }}{% endif %}"
        )
        return each.replace("{}", quoted)
    if isinstance(part, MarkedArguments):
        quote = jinja(part.opened) + "{{ v }}" + jinja(part.closed)
        value = "{% if v is string %}" + quote + "{% else %}{{ v | tojson }}{% endif %}"
        return jinja("{") + each.replace("{}", "{{ ',' if not loop.first }}{{ k }}:" + value) + jinja("}")
    if isinstance(part, Elements):
        text, number = (
            jinja(part.member.replace("{kind}", kind)).replace("{name}", '" ~ k ~ "')
            for kind in (part.kinds or ("", ""))[:2]
        )
        opened = "{% if v is string %}" + text + "{% else %}" + number + "{% endif %}"
        return each.replace("{}", opened + "{{ v }}" + jinja(part.close).replace("{name}", '" ~ k ~ "'))
    assert isinstance(part, Tagged)
    other = jinja(part.typed_middle("integer")) + "{{ v | tojson }}"
    value = "{% if v is string %}" + jinja(part.middle) + "{{ v }}{% else %}" + other + "{% endif %}"
    return each.replace("{}", jinja(part.before) + "{{ k }}" + value + jinja(part.after))


def template_of(form: Format) -> str:
    """A chat template that writes the layout of the format."""
    call = "".join(map(part_of, form.wire.call))
    between = (
        "{% if not loop.first %}" + jinja(form.wire.between) + "{% endif %}" if form.wire.between else ""
    )
    opened, closed = map(jinja, form.wire.section or ("", ""))
    calls = opened + "{% for c in m.tool_calls %}" + between + call + "{% endfor %}" + closed
    return TURN.replace("CALLS", calls)


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if not form.channels])
def test_each_format_is_told_from_what_its_template_writes(name: str) -> None:
    """Or one of the same layout: some families differ in nothing but the marks that end a turn."""
    text = template_of(FORMATS[name])
    found = detect_format(text)
    assert found.name == name or found.wire == FORMATS[name].wire
    both = {"default": "{{ messages }}", "tool_use": text}
    assert detect_format(SimpleNamespace(chat_template=both)) is found


HARMONY = (
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.tool_calls %}{% for c in m.tool_calls %} to=functions."
    "{{ c.function.name }}<|channel|>commentary json<|message|>{{ c.function.arguments | tojson }}<|call|>"
    "{{ '<|start|>assistant' if not loop.last }}{% endfor %}{% else %}<|channel|>final<|message|>{{ m.content }}"
    "<|end|>{% endif %}{% endfor %}"
)


def test_harmony_is_told() -> None:
    assert detect_format(HARMONY).name == "gpt_oss"


@pytest.mark.parametrize("name", ["hermes", "glm47"])
def test_templates_may_want_arguments_as_text_one_call_or_no_content(name: str) -> None:
    text = template_of(FORMATS[name])
    refuse = "{{ raise_exception('no') }}"
    assert detect_format(f"{{% if messages[1].content == '' %}}{refuse}{{% endif %}}{text}").name == name
    one = f"{{% if messages[1].tool_calls and messages[1].tool_calls | length > 1 %}}{refuse}{{% endif %}}"
    assert detect_format(one + text).name == name
    if name == "hermes":
        assert (
            detect_format(text.replace("c.function.arguments | tojson", "'' ~ c.function.arguments")).name
            == name
        )


def test_what_transformers_gives_templates_is_there() -> None:
    text = template_of(FORMATS["hermes"])
    more = "{% generation %}{{ bos_token }}{{ strftime_now('%Y') }}{% endgeneration %}"
    loop = "{% for i in range(3) %}{% if i %}{% break %}{% endif %}{% endfor %}"
    assert detect_format(SimpleNamespace(chat_template=more + loop + text, bos_token="<s>")).name == "hermes"


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        (("<tool_call>\\n", "<tool_call>\\n<name>"), "hermes"),
        (('\\"arguments\\": ', '\\"argumentz\\": '), "hermes"),
        (("</tool_call>", "</toolcall>"), "hermes"),
    ],
)
def test_a_layout_that_is_nearly_one_is_refused_with_the_nearest(
    changed: tuple[str, str], nearest: str
) -> None:
    text = template_of(FORMATS["hermes"])
    assert changed[0] in text
    with pytest.raises(ToolError, match=rf"nearest are .*{nearest}.*format="):
        detect_format(text.replace(*changed))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages }}", "format="),
        ("", "no chat template"),
        (None, "no chat template"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "leaves calls out"),
        ("{% if %}", "can't be read"),
        ("{{ raise_exception('never') }}", "leaves calls out"),
        ("{{ messages.__class__.__mro__ }}", "leaves calls out"),
        ("{% for m in messages %}{{ m.content }}<tool_call>{% endfor %}", "leaves calls out"),
    ],
)
def test_an_unknown_template_asks_for_a_name(template: str | None, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        detect_format(SimpleNamespace(chat_template=template))


class Chat:
    """A tokenizer of bytes whose chat template names the tools that it is shown."""

    chat_template = template_of(FORMATS["glm47"])

    def apply_chat_template(self, messages: Any, tools: Any = (), **_: Any) -> list[int]:
        names = ",".join(tool["function"]["name"] for tool in tools)
        return list(f"[{names}] {messages[-1]['content']}".encode())


def test_a_tokenizer_stands_for_its_format_and_is_shown_the_tools() -> None:
    chat, definition = Chat(), {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    grammar = tools([definition], format=chat, tool_choice="required")
    vocab = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
    text = "<tool_call>ping</tool_call>"
    assert grammar.compile(vocab).matches(text.encode())
    assert [c.name for c in parse_tool_calls(text, [definition], format=chat)] == ["ping"]
    prompts = pytest.importorskip("tokenform.decoding.prompts", exc_type=ImportError)
    ids = prompts.PromptReader(chat, vocab, None).read([{"role": "user", "content": "Hi"}], grammar)
    assert bytes(ids) == b"[ping] Hi"
    assert (grammar | "No.").tools == (grammar + " " + grammar).tools == grammar.tools


def test_a_tokenizer_stands_in_place_of_a_format():
    class Tokenizer:
        chat_template = (
            "{%- for message in messages %}{%- if message.tool_calls %}{%- for call in message.tool_calls %}"
            '<tool_call>\n{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
            "\n</tool_call>{%- endfor %}{%- else %}{{ message.content }}{%- endif %}{%- endfor %}"
        )

    tool = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    told = tools([tool], tokenizer=Tokenizer(), tool_choice="required")
    named = tools([tool], format=detect_format(Tokenizer()), tool_choice="required")
    assert told.form == named.form
    for options in ({}, {"format": "hermes", "tokenizer": Tokenizer()}):
        with pytest.raises(OptionError, match="tokenizer="):
            tools([tool], **options)
