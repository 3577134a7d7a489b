"""The parsers of vLLM and SGLang read what the grammars write.

They are independent judges: each format's own layout, with the template's own whitespace, is written at
random and has to be read as the same calls.  They are less exact than the format (they strip values, take
only some of the layouts, or guess where a schema gives several types); what they are known to misread is
left out here, by pattern.  Both are read from the folder that `make hosts` fills.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tokenform.frontends.tools import FORMATS, Format, parse_tool_calls, tool_shape
from tokenform.frontends.tools.call import CallWriter
from tokenform.frontends.tools.shape import BLANK, LAST, LINE, Node, Special, Text, sequence

from . import tree_writer
from .hosts import needs
from .tree_writer import Writer, random_tools

SEEDS = 400
ENOUGH = 20
WORDS = (
    "Paris",
    "a b",
    "naïve",
    "日本",
    "🎉",
    'say "hi"',
    "it's",
    "C:\\dir",
    "{x}",
    "[1]",
    "5",
    "a<b",
    "&amp;",
)
Calls = list[tuple[str, Any]]
# What a judge is known to misread (`None`: nothing), and how its server spells a marker.
Judge = tuple[str, "str | None", "tuple[str, str] | None"]

SGLANG: dict[str, Judge] = {
    "apertus": ("apertus2509", None, None),
    "deepseek_v3": ("deepseekv3", None, None),
    "deepseek_v31": ("deepseekv31", None, None),
    "deepseek_v32": ("deepseekv32", r"\s</｜DSML｜parameter", None),
    "deepseek_v4": ("deepseekv4", r"\s</｜DSML｜parameter", None),
    "deepseek_v41": ("deepseekv41", r"\s</｜DSML｜ parameter", None),
    "gemma4": (
        "gemma4",
        r"<\|tool_call>:|<turn\|>|null|None",
        None,
    ),  # it wants the word and the closing marker
    "glm45": ("glm45", None, None),
    "glm47": ("glm47", None, None),
    "hermes": ("hermes", None, None),
    "internlm": (
        "interns1",
        r"<\|action_end\|>.*<\|action_end\|>",
        ("<|action_start|><", "<|action_start|> <"),
    ),
    "kimi_k2": ("kimi_k2", None, None),
    "kimi_k3": ("kimi_k3", None, None),
    "lfm2": ("lfm2", None, None),
    "ling": ("ling3", None, None),
    "llama3_json": ("llama3", None, None),
    "llama3_pythonic": ("pythonic", r"=-\d|\{\}|\[\]", None),
    "llama4_pythonic": ("pythonic", r"=-\d|\{\}|\[\]", None),
    "mimo": ("mimo", "&amp;|>(?:None|True|False)<", None),  # it reads entities
    "minimax": ("minimax-m2", None, None),
    "minimax_m3": ("minimax-m3", r">\{| \]<\]minimax", None),
    "mistral_v3": ("mistral", r'\{"arguments"', ("[TOOL_CALLS][", "[TOOL_CALLS] [")),
    "mistral_v11": ("mistral", r"\[CALL_ID\]|\[TOOL_CALLS\]\w+\{", None),
    "qwen3_coder": ("qwen3_coder", r"&amp;|>(?:None|True|False)<", None),
    "step3": ("step3", r"a<b|\s</steptml:parameter|&amp;", None),
}
VLLM: dict[str, Judge] = {
    "apertus": ("apertus", None, None),
    "deepseek_v3": ("deepseek_v3", None, None),
    "deepseek_v31": ("deepseek_v31", None, None),
    "deepseek_v32": ("deepseek_v32", None, None),
    "deepseek_v4": ("deepseek_v4", None, None),
    "deepseek_v41": ("deepseek_v41", None, None),
    "functiongemma": ("functiongemma", r"[{,]\w+:(?!<escape>)|<escape>[\[{\d]|None", None),
    "gemma4": ("gemma4", r"<\|tool_call>:|<turn\|>|null|None", None),
    "glm45": ("glm45", None, None),
    "glm47": ("glm47", None, None),
    "granite": ("granite", None, None),
    "granite_20b_fc": ("granite-20b-fc", None, None),
    "hermes": ("hermes", None, None),
    "hunyuan": ("hunyuan_a13b", None, None),
    "hunyuan_v3": ("hy_v3", r"<tool_call>[\w]+\n", None),
    "internlm": ("internlm", r"<\|action_end\|>.*<\|action_end\|>", None),  # one call a turn
    "kimi_k2": ("kimi_k2", None, None),
    "kimi_k3": ("kimi_k3", None, None),
    "lfm2": ("lfm2", None, None),
    "ling": ("ling3", None, None),
    "llama3_json": ("llama3_json", None, None),
    "llama3_pythonic": ("pythonic", None, None),
    "llama4_pythonic": ("llama4_pythonic", None, None),
    "mimo": ("mimo", ">(?:None|True|False)<", None),
    "minimax": ("minimax_m2", None, None),
    "minimax_m3": ("minimax_m3", None, None),
    "mistral_v3": ("mistral", None, None),
    "mistral_v11": ("mistral", r"\[CALL_ID\]", None),
    "olmo3": ("olmo3", None, None),
    "phi4": ("phi4_mini_json", r"functools\[.*\[", None),
    "qwen3_coder": ("qwen3_coder", ">(?:None|True|False)<", None),
    "seed_oss": ("seed_oss", ">(?:None|True|False)<", None),
    "step3": ("step3", r'">[\[{]', None),  # it leaves lists and objects as texts
}


class Plain(Writer):
    """Writes the template's own whitespace and none besides."""

    def _text(self, node: Node, depth: int) -> str:
        return "" if any(node is one for one in (BLANK, LINE, LAST)) else super()._text(node, depth)


def literal(self: CallWriter, text: str, blank: Node = BLANK) -> Node:
    """A marker to the letter."""
    return sequence(*(Special(p) if special else Text(p) for p, special in self.form.pieces(text)))


def written(form: Format, seed: int) -> tuple[list[dict[str, Any]], str]:
    """Random tools, and calls of them in the format's own layout."""
    rng = Random(f"{form.name} {seed}")
    definitions = random_tools(rng)
    own = dataclasses.replace(form, also=(), prefix=None, bare=False)
    shape = tool_shape(
        definitions, format=own, tool_choice="required", reasoning="none", parallel=rng.choice([True, 1, 3])
    )
    return definitions, Plain(shape, rng).text()


def typed(schema: Any) -> bool:
    """Whether every place has one type: the judges guess elsewhere, each in its own way."""
    inner = [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]
    free = schema.get("type") == "array" and "items" not in schema
    return isinstance(schema.get("type"), str) and not free and all(map(typed, inner))


def compare(name: str, judge: Judge, read: Callable[[str, Format, str, Any], Calls]) -> None:
    parser, left_out, (spelled, served) = judge[0], judge[1], judge[2] or ("\0", "")
    compared = 0
    for seed in range(SEEDS):
        definitions, text = written(FORMATS[name], seed)
        if left_out and re.search(left_out, text, re.DOTALL):
            continue
        if not all(typed(d["function"]["parameters"]) for d in definitions):
            continue
        calls = [(c.name, c.arguments) for c in parse_tool_calls(text, definitions, format=name)]
        assert read(parser, FORMATS[name], text.replace(spelled, served), definitions) == calls, text
        compared += len(calls)
        if compared >= ENOUGH:
            return
    raise AssertionError(f"only {compared} calls were compared")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallWriter, "literal", literal)
    monkeypatch.setattr(tree_writer, "WORDS", WORDS)


@pytest.mark.parametrize("name", SGLANG)
def test_sglang_reads_the_same_calls(name: str) -> None:
    needs("sglang.srt.function_call.function_call_parser")
    compare(name, SGLANG[name], by_sglang)


def by_sglang(parser: str, form: Format, text: str, definitions: Any) -> Calls:
    served = needs("sglang.srt.function_call.function_call_parser")
    protocol = needs("sglang.srt.entrypoints.openai.protocol")
    tools = [protocol.Tool(**definition) for definition in definitions]
    calls = served.FunctionCallParser(tools, parser).parse_non_stream(text)[1]
    return [(call.name, json.loads(call.parameters)) for call in calls]


class Tokenizer:
    """A character is a token, and so is each special token of a format: what vLLM's parsers ask for."""

    eos_token_id, bos_token_id, pad_token_id, vocab_size, is_fast = 1, 0, 0, 300_000, False
    eos_token, bos_token, name_or_path, chat_template = "</s>", "<s>", "", ""

    def __init__(self, marks: list[str]) -> None:
        self.vocab = {mark: 200_000 + index for index, mark in enumerate(dict.fromkeys(marks))}
        self.texts = {number: mark for mark, number in self.vocab.items()}
        self.all_special_tokens, self.all_special_ids = list(self.vocab), list(self.texts)
        self.marks = re.compile("|".join(map(re.escape, sorted(self.vocab, key=len, reverse=True))))

    def __len__(self) -> int:
        return self.vocab_size

    def get_vocab(self) -> dict[str, int]:
        return dict(self.vocab)

    get_added_vocab = get_vocab

    def encode(self, text: str, **_: Any) -> list[int]:
        ids: list[int] = []
        at = 0
        for found in self.marks.finditer(text):
            ids += [*map(ord, text[at : found.start()]), self.vocab[found.group()]]
            at = found.end()
        return [*ids, *map(ord, text[at:])]

    def decode(self, ids: Any, **_: Any) -> str:
        return "".join(self.texts.get(i) or chr(i) for i in ([ids] if isinstance(ids, int) else ids))

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str):
            return self.vocab.get(tokens, ord(tokens[0]))
        return [self.convert_tokens_to_ids(token) for token in tokens]


@pytest.mark.parametrize("name", VLLM)
def test_vllm_reads_the_same_calls(name: str) -> None:
    needs("vllm.tool_parsers")
    compare(name, VLLM[name], by_vllm)


def by_vllm(parser: str, form: Format, text: str, definitions: Any) -> Calls:
    parsers = needs("vllm.tool_parsers").ToolParserManager
    protocol = needs("vllm.entrypoints.openai.chat_completion.protocol")
    tokenizer = Tokenizer([*form.special, *form.dropped, "<think>", "</think>"])
    tools = [protocol.ChatCompletionToolsParam(**definition) for definition in definitions]
    reader = parsers.get_tool_parser(parser)(tokenizer, tools)
    request = protocol.ChatCompletionRequest(messages=[], model="any", tools=definitions, tool_choice="auto")
    calls = reader.extract_tool_calls(text, request).tool_calls
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]
