# ruff: noqa: E501 (template fragments are kept on one line)
"""Formats told from chat templates: fragments as the families' templates hold them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tokenform.decoding.prompts import PromptReader
from tokenform.engine import Vocabulary
from tokenform.errors import ToolError
from tokenform.frontends.tools import detect_format, parse_tool_calls, tools

FRAGMENTS = {
    "hermes": "{{ '<|im_start|>assistant\\n' }}{{- '<tool_call>\\n{\"name\": \"' }}{{- tool_call.name }}",
    "qwen3_coder": "{{- '<tool_call>\\n<function=' + tool_call.name + '>\\n' }}{{- '<parameter=' + args_name + '>\\n' }}",
    "llama3_json": "<|start_header_id|> {{- '{\"name\": \"' + tool_call.name + '\", ' }}{{- '\"parameters\": ' }}",
    "llama3_pythonic": '<|start_header_id|> [func_name1(params_name1=params_value1)] "parameters"',
    "llama4_pythonic": "<|header_start|>assistant<|header_end|> '<|python_start|>'",
    "mistral_v3": '{{ "[TOOL_CALLS][" }} {{ \'"id": "\' + tool_call.id }}',
    "mistral_v11": "{{- '[TOOL_CALLS]' + tool.function.name + '[ARGS]' + arguments }}",
    "deepseek_v3": "{{'<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + name + '\\n' + '```json' + '\\n'}}",
    "deepseek_v31": "{{'<｜tool▁call▁begin｜>'+ name + '<｜tool▁sep｜>' + args + '<｜tool▁call▁end｜>'}}",
    "deepseek_v32": "{{ '<｜DSML｜function_calls>' }}",
    "glm45": "{{ '\\n<tool_call>' + tc.name }}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>",
    "glm47": "{{- '<tool_call>' + tc.name -}}<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value></tool_call>",
    "kimi_k2": "<|tool_calls_section_begin|>{%- for tool_call in tool_calls -%}<|tool_call_begin|>",
    "gpt_oss": '{{- "<|start|>assistant to=functions." }}{{- "<|channel|>commentary json<|message|>" }}"<|call|>"',
    "granite": "{{- '<|start_of_role|>assistant<|end_of_role|>' }} <|tool_call|>",
    "granite_20b_fc": "{{ '<function_call> ' + call }}",
    "phi4": "{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' }}",
    "command_r": "<|START_ACTION|>[{% for tc in message.tool_calls %}",
    "nemotron": "{{- '<TOOLCALL>[' -}}{{- '{\"name\": ' -}}{{- fn.name | tojson -}}",
    "hunyuan": "{% set content = content + '<tool_calls>' + ns.tool_calls + '</tool_calls>' %}<|extra_0|>",
    "minimax_m1": "{{ '<beginning_of_sentence>ai name=MiniMax AI\\n<tool_calls>\\n' -}}{{ '</tool_calls><end_of_sentence>' }}",
    "internlm": '{{- "<|action_start|><|plugin|>\\n" }}{{- "<|action_end|>" }}',
    "apertus": "{%- set tool_calls_token = '<|tools_prefix|>' -%}{{ tool_calls_token + '[' }}",
    "exaone": '{{- "<tool_call>" }}{"name": "{{- tool_call.name }}", "arguments": <tool_result>',
    "deepseek_v4": '{{ "<｜DSML｜tool_calls>" }}',
    "deepseek_v41": '{{ "<｜DSML｜ calls>" }}',
    "seed_oss": "{%- set toolcall_begin_token = '<seed:tool_call>' -%}<function=",
    "mimo": "You are MiMo, {{- '<tool_call>\\n<function=' + name + '>\\n' }}{{- '<parameter=' + key + '>' + value }}",
    "step3": "{{ '<｜tool_calls_begin｜>' }}<steptml:invoke name=",
    "ling": "<role>ASSISTANT</role>{{- '<tool_call>' + tc.name -}}<arg_key>{{ k }}</arg_key>",
    "minimax": "{%- set toolcall_begin_token = '<minimax:tool_call>' -%}<invoke name=",
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_each_family_is_told(name: str) -> None:
    assert detect_format(FRAGMENTS[name]).name == name
    assert detect_format(SimpleNamespace(chat_template=FRAGMENTS[name])).name == name
    both = SimpleNamespace(chat_template={"default": "{{ messages }}", "tool_use": FRAGMENTS[name]})
    assert detect_format(both).name == name


@pytest.mark.parametrize("template", ["{{ messages }}", "", None])
def test_an_unknown_template_asks_for_a_name(template: str | None) -> None:
    with pytest.raises(ToolError, match="format="):
        detect_format(SimpleNamespace(chat_template=template))


class Chat:
    """A tokenizer of bytes whose chat template names the tools that it is shown."""

    chat_template = FRAGMENTS["glm47"]

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
    ids = PromptReader(chat, vocab, None).read([{"role": "user", "content": "Hi"}], grammar)
    assert bytes(ids) == b"[ping] Hi"
    assert (grammar | "No.").tools == (grammar + " " + grammar).tools == grammar.tools
