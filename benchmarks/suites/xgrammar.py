"""Random structural tags, against XGrammar itself on short texts.

    python -m benchmarks.suites.xgrammar --count 1000 --seed 1

Purpose: a tag that is read otherwise than by its own library.
Invariant: a verdict is XGrammar's, or one of the differences that `structural_tag.py` names decides.
Complexity: a tag costs two automata and some forty texts, half of them walks through XGrammar's masks.
Needs XGrammar, which is no dependency of anything else here.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xgrammar as xgr

import tokenform as tf
from tokenform.errors import TokenformError, UnsatisfiableGrammar

from .maskcheck import byte_vocabulary

BYTES = byte_vocabulary()
STYLES = [
    "json",
    "qwen_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "glm_xml",
    "cohere_xml",
    "kimi_k3_xml",
]


_EXCLUDED = ["no", "</", "b", "a b", "true", "tru", "a, 1", "c]", "1", "é", ": "]


@dataclass
class Disagreement:
    """A text on which the two differ."""

    tag: dict[str, Any]
    text: str
    ours: bool
    theirs: bool


class Writer:
    """Writes random tags, with every format that bytes as tokens can show."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def format(self, depth: int = 2) -> dict[str, Any]:
        """A format of so many levels."""
        rng = self._rng
        leaves = [self._const, self._const, self._regex, self._grammar, self._json, self._json, self._free]
        inner = [self._sequence, self._sequence, self._or, self._times, self._tag, self._tag]
        leaves += [self._token]
        inner += [self._triggered_tokens, self._dispatch_tokens]
        inner += [self._triggered, self._triggered, self._separated, self._dispatch]
        return rng.choice(leaves if depth == 0 else inner)(depth)

    def _const(self, depth: int) -> dict[str, Any]:
        return {"type": "const_string", "value": self._rng.choice(["a", "ab", "<a>", ", ", "é", "1"])}

    def _regex(self, depth: int) -> dict[str, Any]:
        patterns = ["[ab]+", "a{1,3}", r"\d+", "(ab|c)*", "x?y", "a|ab", ".b"]
        return {"type": "regex", "pattern": self._rng.choice(patterns)}

    def _token(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        if rng.random() < 0.4:
            return {"type": "token", "token": rng.choice([97, "b"])}
        kind = rng.choice(["exclude_token", "any_tokens"])
        return {"type": kind, "exclude_tokens": rng.sample([97, "b", 60, "\n"], rng.choice([1, 2]))}

    def _triggered_tokens(self, depth: int) -> dict[str, Any]:
        tags = []
        for begin in self._rng.sample([60, 91, 40], self._rng.choice([1, 2])):
            tag = self._tag(depth) | {"begin": {"type": "token", "token": begin}}
            if self._rng.random() < 0.5:
                tag["end"] = {"type": "token", "token": 62}
            tags.append(tag)
        made = {"type": "token_triggered_tags", "tags": tags} | self._flags()
        made["trigger_tokens"] = [tag["begin"]["token"] for tag in tags]
        return made | ({"exclude_tokens": [98]} if self._rng.random() < 0.3 else {})

    def _dispatch_tokens(self, depth: int) -> dict[str, Any]:
        rules = [[token, self.format(depth - 1)] for token in self._rng.sample([60, "f", 91], 2)]
        made: dict[str, Any] = {"type": "token_dispatch", "rules": rules}
        made |= {"exclude_tokens": [98]} if self._rng.random() < 0.3 else {}
        return made | ({"loop": False} if self._rng.random() < 0.3 else {})

    def _grammar(self, depth: int) -> dict[str, Any]:
        grammars = ['root ::= "(" root ")" | "x"', 'root ::= [ab]* x\nx ::= "c" | ""', 'root ::= "1"{2,3}']
        return {"type": "grammar", "grammar": self._rng.choice(grammars)}

    def _free(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "any_text"}
        if self._rng.random() < 0.4:
            made["excludes"] = self._rng.sample(["no", "<", "ab", "</"], self._rng.choice([1, 2]))
        if self._rng.random() < 0.2:
            made["max_chars"] = self._rng.choice([0, 2, 3])
        return made

    def _json(self, depth: int) -> dict[str, Any]:
        style = self._rng.choice(STYLES)
        made: dict[str, Any] = {"type": "json_schema", "style": style}
        made["json_schema"] = self.schema(2) if style == "json" else self.object(2)
        if isinstance(made["json_schema"], dict):
            made["json_schema"]["$defs"] = {
                "leaf": self._rng.choice([{"type": "integer"}, {"type": "string"}])
            }
        if self._rng.random() < 0.1:
            made["excludes"] = [self._rng.choice(_EXCLUDED)]
            if isinstance(made["json_schema"], dict) and "b" in made["json_schema"].get("required", ()):
                made["json_schema"]["required"].remove("b")  # a name that may be excluded
        if self._rng.random() < 0.2:
            made["max_whitespace_cnt"] = self._rng.choice([0, 1, 2])
        return made

    def schema(self, depth: int) -> Any:
        """A JSON Schema of a value."""
        rng = self._rng
        kinds: list[Any] = [
            {"type": "integer"},
            {"type": "boolean"},
            {"type": "null"},
            {"type": "string"},
            {"type": "string", "maxLength": 2},
            {"type": "string", "pattern": "^[a-c]+$"},
            {"enum": ["a", "b<", 1]},
            {"const": "a"},
            {"type": "integer", "minimum": 3, "maximum": 12},
            {"type": ["string", "null"]},
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"type": "number"},
        ]
        kinds += [
            {"type": "string", "format": "date"},
            {"type": "string", "minLength": 1, "maxLength": 3},
            {"type": "string", "enum": ["x y", "<a>", ""]},
            True,
            {"oneOf": [{"const": 1}, {"const": "b"}]},
            {"$ref": "#/$defs/leaf"},
        ]
        if depth:
            kinds += [{"type": "array", "items": self.schema(depth - 1)}, self.object(depth - 1)]
            kinds += [{"type": "array", "prefixItems": [self.schema(0)], "items": False, "minItems": 1}]
        return rng.choice(kinds)

    def object(self, depth: int) -> dict[str, Any]:
        """A JSON Schema of an object."""
        rng = self._rng
        names = rng.sample(["a", "b", "c d", "n"], rng.choice([0, 1, 1, 2, 2, 3]))
        made: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.schema(max(depth - 1, 0)) for name in names},
            "required": [name for name in names if rng.random() < 0.6],
            "additionalProperties": False,
        }
        if rng.random() < 0.2:
            made["additionalProperties"] = rng.choice([{"type": "integer"}, {"type": "string"}])
        elif rng.random() < 0.1:
            made |= {"patternProperties": {"^x[ab]*$": self.schema(0)}, "properties": {}, "required": []}
        elif rng.random() < 0.1:
            made |= {"propertyNames": {"pattern": "^x[ab]*$"}, "properties": {}, "required": []}
            made["additionalProperties"] = {"type": "integer"}
        if rng.random() < 0.1:
            made |= rng.choice([{"minProperties": 1}, {"maxProperties": 1 + len(made["required"])}])
        return made

    def _sequence(self, depth: int) -> dict[str, Any]:
        elements = [self.format(depth - 1) for _ in range(self._rng.choice([1, 2, 3]))]
        return {"type": "sequence", "elements": elements}

    def _or(self, depth: int) -> dict[str, Any]:
        return {"type": "or", "elements": [self.format(depth - 1) for _ in range(self._rng.choice([1, 2]))]}

    def _times(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": self._rng.choice(["optional", "plus", "star", "repeat"])}
        made["content"] = self.format(depth - 1)
        # XGrammar 0.2.8 reads through a null pointer, and takes what is excluded
        if made["type"] == "repeat" and any(
            k in json.dumps(made) for k in ("token_dispatch", "exclude_token")
        ):
            made["type"] = "star"
        if made["type"] == "repeat":
            made |= {"min": self._rng.choice([0, 1]), "max": self._rng.choice([-1, 1, 2])}
        return made

    def _tag(self, depth: int, begin: str | None = None) -> dict[str, Any]:
        rng = self._rng
        begin = begin or rng.choice(["<a>", "<b>", "[", "<a"])
        end: Any = rng.choice(["</a>", "]", ";", ["</a>", ";"], "\n</f>"])
        return {"type": "tag", "begin": begin, "content": self.format(depth - 1), "end": end}

    def _tags(self, depth: int) -> list[dict[str, Any]]:
        begins = self._rng.sample(["<a>", "<b>", "<a=1>", "[x]"], self._rng.choice([1, 2]))
        return [self._tag(depth, begin) for begin in begins]

    def _triggered(self, depth: int) -> dict[str, Any]:
        tags = self._tags(depth)
        triggers = sorted({tag["begin"][: self._rng.choice([2, 3])] for tag in tags})
        triggers = [
            one for one in triggers if not any(one != other and one.startswith(other) for other in triggers)
        ]
        made = {"type": "triggered_tags", "triggers": triggers, "tags": tags}
        return made | self._flags() | self._excludes()

    def _flags(self) -> dict[str, Any]:
        return {name: True for name in ("at_least_one", "stop_after_first") if self._rng.random() < 0.3}

    def _excludes(self) -> dict[str, Any]:
        return {"excludes": ["no"]} if self._rng.random() < 0.2 else {}

    def _separated(self, depth: int) -> dict[str, Any]:
        separator = self._rng.choice([",", "\n", ", "])
        return {
            "type": "tags_with_separator",
            "tags": self._tags(depth),
            "separator": separator,
        } | self._flags()

    def _dispatch(self, depth: int) -> dict[str, Any]:
        rules = [[text, self.format(depth - 1)] for text in self._rng.sample(["<a>", "<b>", "f("], 2)]
        made: dict[str, Any] = {"type": "dispatch", "rules": rules} | self._excludes()
        return made | ({"loop": False} if self._rng.random() < 0.3 else {})


MODELS = (
    "llama kimi kimi_k3 deepseek_r1 deepseek_v3_1 deepseek_v3_2 deepseek_v4 deepseek_v4_1 qwen_3 qwen_3_5"
)
MODELS += " qwen_3_coder mimo harmony minimax minimax_m3 glm_4_7 cohere exaone"


def of_model(rng: random.Random, writer: Writer) -> dict[str, Any] | None:
    """XGrammar's own tag for a model that it knows, with random tools; None: it has none for them."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": writer.object(2), "strict": True}}
        for name in rng.sample(["f", "get_it", "f_2", "look"], rng.choice([1, 2]))
    ]
    for tool in tools:
        tool["function"]["parameters"]["$defs"] = {
            "leaf": rng.choice([{"type": "integer"}, {"type": "string"}])
        }
    named = {"type": "function", "function": {"name": tools[0]["function"]["name"]}}
    options = {
        "tool_choice": rng.choice(["auto", "auto", "required", named]),
        "reasoning": rng.choice(["enabled", "disabled", "auto"]),
        "force_reasoning": rng.random() < 0.2,
        "parallel_tool_calls": rng.random() < 0.7,
        "exclude_special_tokens": rng.random() < 0.7,
        "max_whitespace_cnt": rng.choice([None, None, 1]),
    }
    try:
        made = xgr.get_model_structural_tag(rng.choice(MODELS.split()), tools=tools, **options)
    except (ValueError, RuntimeError):
        return None
    return made.model_dump(mode="json")


class Judge:
    """XGrammar over bytes."""

    def __init__(self) -> None:
        spelled = [bytes([b]) for b in range(256)] + [b"</s>"]
        self._compiler = xgr.GrammarCompiler(xgr.TokenizerInfo(spelled, stop_token_ids=[256]))

    def compiled(self, tag: dict[str, Any]) -> Any:
        """None: it takes no such tag."""
        try:
            return self._compiler.compile_structural_tag(json.dumps(tag))
        except RuntimeError:
            return None

    def accepts(self, compiled: Any, text: bytes) -> bool:
        """Its verdict."""
        matcher = xgr.GrammarMatcher(compiled)
        return all(matcher.accept_token(byte) for byte in text) and bool(matcher.accept_token(256))

    def walk(self, compiled: Any, rng: random.Random) -> bytes:
        """A text along its masks, finished where it may end."""
        matcher, bitmap = xgr.GrammarMatcher(compiled), xgr.allocate_token_bitmask(1, 257)
        text = bytearray()
        while len(text) < 160:
            matcher.fill_next_token_bitmask(bitmap)
            bits = np.unpackbits(bitmap.numpy().view(np.uint8), bitorder="little")[:257]
            token = drawn(rng, np.flatnonzero(bits).tolist())
            if token is None or not matcher.accept_token(token) or token == 256:
                break
            text.append(token)
        return bytes(text)


_LIKED = list(b'<>/="|{}[]:,\n abcn1-')


def drawn(rng: random.Random, allowed: list[int]) -> int | None:
    """A token: the end where it may come, mostly; characters of tags rather than others."""
    if 256 in allowed and rng.random() < 0.4:
        return 256
    likes = [token for token in allowed if token in _LIKED]
    allowed = [token for token in allowed if 32 <= token < 127 or token in (10, 256)]
    return rng.choice(likes or allowed) if likes or allowed else None


def walked(automaton: Any, rng: random.Random) -> bytes:
    """A text along our masks."""
    state, text = automaton.start, bytearray()
    while len(text) < 160:
        token = drawn(rng, automaton.allowed_tokens(state).tolist())
        if token is None or token == 256:
            break
        state = automaton.advance(state, token)
        text.append(token)
    return bytes(text)


def near(rng: random.Random, text: bytes) -> bytes:
    """The text with one character less, more or changed."""
    at = rng.randrange(len(text) + 1)
    put = bytes([rng.choice(_LIKED)])
    return rng.choice(
        [text[:at] + text[at + 1 :], text[:at] + put + text[at:], text[:at] + put + text[at + 1 :]]
    )


_SPACE = re.compile(rb"""(?<=[<>\[\]{},:;"])\s+|\s+(?=[<>\[\]{},:;"])|^\s+|\s+$""")
_NAME = re.compile(
    rb"""(<parameter=|parameter name="|<arg_key>|<cofl:value name="|argument key=")([^"<>]*)"""
)
_KEY = re.compile(rb'"(\w+)"\s*:')


def _differ(automaton: Any, judge: Judge, theirs: Any, text: bytes) -> bool:
    return bool(automaton.matches(text) != judge.accepts(theirs, text))


def decided(tag: str, text: bytes, differ: Callable[[bytes], bool]) -> str:
    """Which of the differences that `structural_tag.py` names decides; nothing: none."""
    keys = [key for _, key in _NAME.findall(text)] + _KEY.findall(text)
    steps = {
        "whitespace": lambda text: _SPACE.sub(b"", text),
        "booleans of Qwen": lambda text: text.replace(b"True", b"true").replace(b"False", b"false"),
        "names of arguments": lambda text: _NAME.sub(
            lambda found: found[1] + re.sub(rb"^\d|\W", b"z", found[2]), text
        ),
    }
    other = text
    for reason, simpler in steps.items():
        before, other = other, simpler(other)
        if other != before and not differ(other):
            return reason
    if len(set(keys)) < len(keys):
        return "a key twice"
    if keys != sorted(keys, key=lambda key: f'"{key.decode()}":' not in tag):
        return "a declared name among the others"
    if not differ(re.sub(rb"\s+", b"", text)):
        return "whitespace"
    if '"excludes"' in tag and re.search('Length"|"format"', tag):
        return "strings that XGrammar does not filter, or not by their lengths"
    return "the text of a token that ends its tag" if '"end": {"type": "token"' in tag else ""


def run(count: int, seed: int, models: bool = False) -> tuple[list[Disagreement], Counter[str]]:
    """The disagreements that nothing decides, and how many tags were read by whom."""
    rng = random.Random(seed)
    writer, judge = Writer(rng), Judge()
    found: list[Disagreement] = []
    read: Counter[str] = Counter()
    for _ in range(count):
        tag = of_model(rng, writer) if models else None
        tag = tag or {"type": "structural_tag", "format": writer.format(rng.choice([0, 1, 1, 2]))}
        read["tags"] += 1
        theirs = judge.compiled(tag)
        if theirs is None:
            read["refused by XGrammar"] += 1
            continue
        try:
            automaton = tf.tool_formats.structural_tag(tag, token_text=chr).compile(BYTES)
        except UnsatisfiableGrammar:
            read["no text"] += 1
            continue
        except TokenformError as error:
            read[f"refused: {type(error).__name__}"] += 1
            found.append(Disagreement(tag, str(error), False, True))
            continue
        texts = {b""}
        for _ in range(10):
            for text in (judge.walk(theirs, rng), walked(automaton, rng)):
                texts |= {text, near(rng, text)}
        for one in sorted(texts):
            read["texts"] += 1
            if automaton.matches(one) == judge.accepts(theirs, one):
                continue
            differ = partial(_differ, automaton, judge, theirs)
            reason = decided(json.dumps(tag), one, differ)
            read[f"decided: {reason}" if reason else "differ"] += 1
            if not reason:
                ours = automaton.matches(one)
                found.append(Disagreement(tag, one.decode("utf-8", "replace"), ours, not ours))
    return found, read


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suites.xgrammar")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=10, help="tags that are printed")
    parser.add_argument("--models", action="store_true", help="XGrammar's own tags of models")
    options = parser.parse_args()
    found, read = run(options.count, options.seed, options.models)
    shown: dict[str, list[Disagreement]] = {}
    for one in found:
        shown.setdefault(json.dumps(one.tag["format"]), []).append(one)
    for written, its in list(shown.items())[: options.show]:
        print(written)
        for one in its[:3]:
            print(f"  {one.text!r}: {one.ours}, XGrammar: {one.theirs}")
    print(f"{len(shown)} tags differ; {dict(read)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
