"""The tags by which vLLM constrains tool calls, of every model that has one: compiled, walked, read back."""

from __future__ import annotations

import itertools
import random

import pytest

import tokenform as tf

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Rome", "Oslo"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "options": {"type": "object", "properties": {"rain": {"type": "boolean"}}, "required": ["rain"]},
    },
    "required": ["city", "days", "options"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "parameters": PARAMETERS, "strict": True}
TOOL = {"type": "function", "function": FUNCTION}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
# models of vLLM's registry, and the format that reads what their tags allow; that of kimi_k3 asks for one
# argument, whichever are required
READ_AS = {
    "deepseek_v3_1": "deepseek_v31",
    "deepseek_v3_2": "deepseek_v32",
    "deepseek_v4": "deepseek_v4",
    "deepseek_v4_1": "deepseek_v41",
    "glm_4_7": "glm47",
    "hermes": "hermes",
    "kimi": "kimi_k2",
    "minimax": "minimax",
    "qwen_3": "hermes",
    "qwen_3_5": "qwen3_coder",
    "qwen_3_coder": "qwen3_coder",
}
VOCABULARY = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])


def tag(registry, model: str, choice: object, reasoning: bool) -> dict | None:
    """What vLLM asks its backend for."""
    tools = [registry.ChatCompletionToolsParam(**TOOL)]
    if isinstance(choice, dict):
        choice = registry.ChatCompletionNamedToolChoiceParam(**choice)
    made = registry.get_model_structural_tag(model, tools, choice, reasoning)
    return None if made is None else made.model_dump(mode="json")


def walk(automaton, seed: int) -> str:
    """A text of the automaton, at most 120 bytes longer than its shortest."""
    draws, written = random.Random(seed), bytearray()
    matcher = tf.engine.Matcher(automaton, max_tokens=automaton.distance(automaton.start) + 121)
    while True:
        allowed = [int(token) for token in matcher.allowed_tokens() if token not in (9, 10, 13, 32)]
        token = draws.choice(allowed or [int(token) for token in matcher.allowed_tokens()])
        if token == 256:
            return written.decode("utf-8", errors="replace")
        matcher.accept_tokens([token])
        written.append(token)


@pytest.fixture(scope="module")
def registry(needs):
    return needs("vllm.tool_parsers.structural_tag_registry")


def test_every_tag_compiles(registry) -> None:
    models = registry.SUPPORTED_STRUCTURAL_TAG_MODELS | set(registry._VLLM_STRUCTURAL_TAG_REGISTRY)
    for model, choice, reasoning in itertools.product(
        sorted(models), ("auto", "required", NAMED), (False, True)
    ):
        spec = tag(registry, model, choice, reasoning)
        if spec is not None:
            automaton = tf.tool_formats.structural_tag(spec).compile(VOCABULARY)
            assert automaton.mask(automaton.start).any(), (model, choice, reasoning)


@pytest.mark.parametrize("model", READ_AS)
def test_required_calls_are_read_with_arguments_of_the_schema(registry, model: str) -> None:
    spec = tag(registry, model, "required", False)
    assert spec is not None
    automaton = tf.tool_formats.structural_tag(spec).compile(VOCABULARY)
    for seed in range(20):
        text = walk(automaton, seed)
        calls = tf.parse_tool_calls(text, [TOOL], format=READ_AS[model])
        assert calls, text
        for call in calls:
            assert call.name == "get_weather" and call.arguments["city"] in ("Rome", "Oslo"), text
            assert call.arguments["days"] in range(1, 10), text
            assert call.arguments["options"]["rain"] in (True, False), text
