"""Random tool sets, and random texts of a tool shape."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

try:
    from re import _parser as sre  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as sre  # type: ignore[no-redef]

import jsonschema

from tokenform.frontends.tools.shape import (
    AnyOrder,
    Choice,
    Free,
    Json,
    Node,
    RawString,
    Regex,
    Repeat,
    Rule,
    Seq,
    Shape,
    Special,
    Text,
)

WORDS = (
    "Paris",
    "",
    " ",
    "a b",
    "naïve",
    "日本",
    "🎉",
    'say "hi"',
    "it's",
    "line\nbreak",
    "\n",
    "tab\tbed",
    "C:\\dir",
    "<b>x</b>",
    "{x}",
    "[1]",
    "null",
    "true",
    "5",
    "-0.5",
    "</tool_call>",
    "[TOOL_CALLS]",
    "a<b",
    "&amp;",
    "```",
    "\\n",
)
NAMES = ("get_weather", "search", "f", "crm__lookup", "Bücher_suchen", "get_weather_2", "write_file")
KEYS = ("city", "q", "naïf", "value", "x1", "options", "items_", "größe", "from_")


def random_tools(rng: Random) -> list[dict[str, Any]]:
    """One to four definitions."""
    tools = []
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        tools.append({"type": "function", "function": {"name": name, "parameters": random_object(rng, 2)}})
    return tools


def random_object(rng: Random, depth: int) -> dict[str, Any]:
    keys = rng.sample(KEYS, rng.randint(0, 3))
    return {
        "type": "object",
        "properties": {key: random_schema(rng, depth - 1) for key in keys},
        "required": [key for key in keys if rng.random() < 0.5],
    }


def random_schema(rng: Random, depth: int) -> dict[str, Any]:
    kinds = ["string", "string", "enum", "integer", "number", "boolean", "null", "nullable", "union"]
    kind = rng.choice(kinds + (["array", "object", "any", "open"] if depth > 0 else []))
    if kind == "enum":
        return {"type": "string", "enum": rng.sample([w for w in WORDS if w and "</" not in w], 3)}
    if kind == "integer":
        return rng.choice([{"type": "integer"}, {"type": "integer", "minimum": 0, "maximum": 20}])
    if kind == "string":
        return rng.choice([{"type": "string"}, {"type": "string"}, {"type": "string", "maxLength": 4}])
    if kind == "nullable":
        return {"anyOf": [random_schema(rng, 0), {"type": "null"}]}
    if kind == "union":
        return {"type": ["string", "integer"]}
    if kind == "array":
        return {"type": "array", "items": random_schema(rng, depth - 1), "maxItems": 3}
    if kind == "object":
        return {**random_object(rng, depth), "additionalProperties": False}
    return {"any": {}, "open": {"type": "object"}}.get(kind, {"type": kind})


def random_value(rng: Random, schema: Any, depth: int = 3) -> Any:
    """An instance of a schema as `random_schema` makes them, or of what the shapes make of one."""
    for _ in range(200):
        value = _value(rng, schema, depth)
        if jsonschema.Draft202012Validator(schema).is_valid(value):
            return value
    raise AssertionError(f"no instance found of {schema}")


def _value(rng: Random, schema: Any, depth: int) -> Any:
    schema = {} if schema is True else schema
    for branch in schema.get("allOf", []):
        if rng.random() < 0.9:
            return _value(rng, branch, depth)
    if "anyOf" in schema:
        return _value(rng, rng.choice(schema["anyOf"]), depth)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds = schema.get("type", ["string", "integer", "number", "boolean", "null", "array", "object"])
    kind = kinds if isinstance(kinds, str) else rng.choice(kinds)
    if kind == "string":
        return rng.choice(WORDS)[: schema.get("maxLength")]
    if kind == "integer":
        return rng.choice([0, 7, 20, -3, 10**20])
    if kind == "number":
        return rng.choice([0.5, -2, 1e-7, 3.25, 10**6])
    if kind == "array":
        size = rng.randint(0, 2) if depth else 0
        return [_value(rng, schema.get("items", {}), depth - 1) for _ in range(size)]
    if kind == "object":
        known = schema.get("properties", {})
        chosen = {
            k: _value(rng, s, depth - 1)
            for k, s in known.items()
            if k in schema["required"] or rng.random() < 0.5
        }
        return (
            chosen
            if known or not depth
            else {rng.choice(WORDS): rng.choice(WORDS) for _ in range(rng.randint(0, 2))}
        )
    return None if kind == "null" else rng.random() < 0.5


class Writer:
    """Writes random texts of one shape."""

    def __init__(self, shape: Shape, rng: Random) -> None:
        self.shape, self.rng = shape, rng
        self.specials = {n.text for n in shape.nodes() if isinstance(n, Special)} | {*shape.marks}

    def text(self) -> str:
        return self._text(self.shape.root, 0)

    def _text(self, node: Node, depth: int) -> str:
        rng = self.rng
        if isinstance(node, (Text, Special)):
            return node.text
        if isinstance(node, Json):
            return self._json(node)
        if isinstance(node, Regex):
            return _matching(rng, sre.parse(node.pattern))
        if isinstance(node, RawString):
            return self._raw(node)
        if isinstance(node, Free):
            return self._free(lambda t: self._free_ok(node, t))
        if isinstance(node, Seq):
            return "".join(self._text(part, depth) for part in node.parts)
        if isinstance(node, Choice):
            options = node.options
            if depth > 4:  # a recursive rule has to end: options without a rule in them
                options = tuple(o for o in options if not isinstance(o, Seq)) or options
            return self._text(rng.choice(options), depth)
        if isinstance(node, Repeat):
            most = min(node.most if node.most is not None else node.least + 2, node.least + 2)
            count = rng.randint(node.least, max(most, node.least))
            separator = "" if node.separator is None else self._text(node.separator, depth)
            return separator.join(self._text(node.item, depth) for _ in range(count))
        if isinstance(node, AnyOrder):
            chosen = [member for member, required in node.members if required or rng.random() < 0.5]
            chosen += [] if node.others is None else [node.others] * rng.randint(0, 2)
            rng.shuffle(chosen)
            separator = "" if node.separator is None else self._text(node.separator, depth)
            lead = "" if node.prefix is None else self._text(node.prefix, depth)
            return separator.join(lead + self._text(member, depth) for member in chosen)
        assert isinstance(node, Rule)
        return self._text(self.shape.rules[node.name], depth + 1)

    def _free(self, allowed: Any) -> str:
        for _ in range(100):
            text = "".join(self.rng.choice(WORDS) for _ in range(self.rng.randint(0, 3)))
            if allowed(text):
                return text
        assert allowed("a") or allowed("a.")
        return "a" if allowed("a") else "a."

    def _raw(self, node: RawString) -> str:
        for _ in range(100):
            text = random_value(self.rng, node.schema)
            if isinstance(text, str):
                fed = [self.rng.choice(["", "\n"]) if feed else "" for feed in node.feeds]
                text = fed[0] + text + fed[1]
                if self._raw_ok(node, text):
                    return text
        return self._free(lambda t: self._raw_ok(node, t))

    def _json(self, node: Json) -> str:
        for _ in range(100):
            text = json.dumps(random_value(self.rng, node.schema), ensure_ascii=False)
            if not any(w in text for w in node.without):
                return text
        raise AssertionError(f"no instance without {node.without} found of {node.schema}")

    def _raw_ok(self, node: RawString, text: str) -> bool:
        if any(w in text for w in node.without) or any(re.search(p, text) for p in node.never):
            return False
        text = text.removeprefix("\n") if node.feeds[0] else text
        text = text.removesuffix("\n") if node.feeds[1] else text
        return bool(jsonschema.Draft202012Validator(node.schema).is_valid(text))

    def _free_ok(self, node: Free, text: str) -> bool:
        triggers = [t.text for t in node.until]
        if node.word_end and re.search(r"\w\Z", text):
            return False
        return not any(s in text for s in (*triggers, *self.specials)) and not any(
            re.match(p, text) for p in node.not_prefix
        )


def _matching(rng: Random, parsed: Any) -> str:
    """A text that a parsed pattern matches."""
    out = []
    for op, value in parsed:
        name = str(op)
        if name == "LITERAL":
            out.append(chr(value))
        elif name == "IN":
            pattern = _class(value)
            letters = [c for c in "abcXYZ0129 _-\"'\\nrté日🎉<>[]{}" if re.fullmatch(pattern, c)]
            out.append(rng.choice(letters))
        elif name == "MAX_REPEAT":
            least, most, inner = value
            for _ in range(rng.randint(least, min(most, least + 3))):
                out.append(_matching(rng, inner))
        elif name == "SUBPATTERN":
            out.append(_matching(rng, value[-1]))
        elif name == "BRANCH":
            out.append(_matching(rng, rng.choice(value[1])))
        else:
            raise AssertionError(f"the writer does not know {name}")
    return "".join(out)


def _class(items: Any) -> str:
    parts = []
    for op, value in items:
        name = str(op)
        if name == "NEGATE":
            parts.append("^")
        elif name == "LITERAL":
            parts.append(re.escape(chr(value)))
        elif name == "CATEGORY":
            parts.append(
                {"CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w", "CATEGORY_SPACE": r"\s"}[str(value)]
            )
        elif name == "RANGE":
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        else:
            raise AssertionError(f"the writer does not know {name}")
    return "[" + "".join(parts) + "]"
