"""Tools' schemas in every format: none refuses a request, and what is not enforced is in `report`.

    python benchmarks/tools_schemas.py [--schemas 2000] [--shard 0/8] [--formats hermes glm45]

Schemas: arguments of BFCL's functions and objects of MaskBench, tools of recorded calls, and shapes as zod,
pydantic and MCP servers export them (drawn at random).  Each is one of two tools; as the server does it,
`on_bad_tool="any"`.

enforced  the grammar keeps the whole schema
checked   some keyword is checked when a call is read, which `report` says
any       the arguments are any JSON object, which `report` says
silent    some arguments that the grammar allows do not satisfy the schema, and nothing says so: a draw of
          texts of the grammar, read back without a check
refused   the request fails
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs

import tokenform as tf
from tokenform.errors import TokenformError
from tokenform.frontends.tools import FORMATS, parse_tool_calls

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
SHARED = Path(__file__).parents[1] / "../shared"
OUTCOMES = ("enforced", "checked", "any", "silent", "refused")
OTHER = {"name": "now", "parameters": {"type": "object", "properties": {}}}
DRAFT = "http://json-schema.org/draft-07/schema#"


def drawn(rng: random.Random) -> dict[str, Any]:
    """Arguments as zod's exporter, pydantic's, or a server of MCP writes them."""
    style = rng.choice(["zod", "pydantic", "mcp"])
    keys = rng.sample(["path", "query", "limit", "options", "mode", "items", "when", "userId", "dry_run"], 4)
    properties = {key: _value(rng, style, 2) for key in keys}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if needed := [key for key in keys if rng.random() < 0.5]:
        schema["required"] = needed
    if style == "zod":
        schema |= {"additionalProperties": False, "$schema": DRAFT}
    elif style == "pydantic":
        schema |= {"title": "Arguments", "$defs": {"Kind": {"enum": ["a", "b"], "type": "string"}}}
    else:
        more: list[dict[str, Any]] = [
            {"anyOf": [{"required": [keys[0]]}, {"required": [keys[1]]}]},
            {"minProperties": 1},
            {"dependentRequired": {keys[2]: [keys[3]]}},
            {"required": [*needed, "undeclared"]},
            {"x-order": 1, "annotations": {"readOnlyHint": True}},
        ]
        schema |= rng.choice([{}, *more])
    return schema


def _value(rng: random.Random, style: str, depth: int) -> dict[str, Any]:
    simple: list[dict[str, Any]] = [
        {"type": "string", "description": "A text."},
        {"type": "string", "minLength": 1, "maxLength": 40},
        {"type": "string", "format": rng.choice(["date-time", "uri", "email", "uuid", "date"])},
        {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
        {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
        {"type": "integer", "minimum": 1, "maximum": 100},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "boolean", "default": False},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Maybe", "example": "x"},
        {"type": ["string", "integer", "null"]},
        {"const": "fixed"},
        {},
    ]
    if style == "pydantic":
        simple += [{"$ref": "#/$defs/Kind"}, {"allOf": [{"$ref": "#/$defs/Kind"}], "default": "a"}]
    if style == "mcp":
        simple += [{"type": "string", "nullable": True, "x-widget": "area"}, {"type": "object"}]
    if depth and rng.random() < 0.5:
        inner, other = _value(rng, style, depth - 1), _value(rng, style, depth - 1)
        tag: list[dict[str, Any]] = [
            {"type": "object", "properties": {"kind": {"const": kind}, "of": value}, "required": ["kind"]}
            for kind, value in (("one", inner), ("two", other))
        ]
        nested: list[dict[str, Any]] = [
            {"type": "array", "items": inner, "minItems": rng.randrange(2)},
            {"type": "array", "items": [inner, other], "minItems": 2, "maxItems": 2},
            {"type": "array", "prefixItems": [inner, other], "minItems": 2, "maxItems": 2},
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "object", "properties": {"a": inner, "b": other}, "required": ["a"]},
            {"type": "object", "additionalProperties": inner},
            {"oneOf": tag, "discriminator": {"propertyName": "kind"}},
            {"anyOf": [inner, {"type": "null"}]},
        ]
        return rng.choice(nested)
    return rng.choice(simple)


def schemas(count: int, shared: Path) -> Iterator[dict[str, Any]]:
    """So many, a half of them drawn where the files are there."""
    rng, seen, found = random.Random(0), set(), []
    for line in _lines(shared / "data/tool-calls-dev.jsonl.xz"):
        for tool in line["tools"]:
            text = json.dumps(tool["function"].get("parameters") or {})
            found += [] if text in seen else [json.loads(text)]
            seen.add(text)
    whole = [row["schema"] for row in _lines(shared / "data/maskbench-dev.jsonl.xz")]
    objects = [one for one in whole if isinstance(one, dict) and one.get("type") == "object"]
    bfcl = [
        inner
        for one in objects
        for inner in one.get("properties", {}).values()
        if isinstance(inner, dict) and inner.get("type") == "object" and "$ref" not in json.dumps(inner)
    ]
    wanted = max(count // 2 - len(found), 0)
    found += rng.sample(objects, min(wanted // 2, len(objects)))
    found += rng.sample(bfcl, min(wanted - wanted // 2, len(bfcl)))
    found = rng.sample(found, min(count, len(found)))
    yield from found
    for _ in range(count - len(found)):
        yield drawn(rng)


def _lines(path: Path) -> Iterator[Any]:
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def outcome(schema: dict[str, Any], name: str, rng: random.Random, texts: int = 1) -> tuple[str, str]:
    """What becomes of the schema in the format, and why."""
    tools = [{"name": "f", "parameters": schema}, OTHER]
    try:
        grammar = tf.tools(tools, format=name, on_bad_tool="any")
        forced = tf.tools(tools, format=name, tool_choice="f", on_bad_tool="any", reasoning="none")
    except TokenformError as error:
        return "refused", str(error)
    said = [line for line in grammar.report if "'f'" in line]
    if any("takes any JSON object" in line for line in said):
        return "any", said[0]
    for _ in range(texts):
        text = _text(forced, rng)
        try:
            (call,) = parse_tool_calls(text, tools, format=name, reasoning="none", validate=False)
        except (TokenformError, ValueError) as error:
            return "silent", f"{text!r}: {error}"
        try:
            right = jsonschema.validators.validator_for(schema)(schema).is_valid(call.arguments)
            # patterns are ECMA's, whose dot takes no carriage return; `re`'s does
            right = right or jsonschema_rs.validator_for(schema).is_valid(call.arguments)
        except Exception as error:  # the judge does not read the schema
            right = "no judge" in str(error) or True
        if not right and not said:
            return "silent", f"{call.arguments}"
    return ("checked", said[0]) if any("is checked when" in line for line in said) else ("enforced", "")


def _text(grammar: tf.Grammar, rng: random.Random, steps: int = 120) -> str:
    """A random text of the grammar, which soon heads for its end."""
    automaton = grammar.compile(BYTES)
    state, written = automaton.start, bytearray()
    while not automaton.is_accepting(state):  # behind `steps` each byte is one fewer to the end
        left = automaton.distance(state)
        row = automaton.mask_within(state, left) if len(written) > steps else automaton.mask(state)
        allowed = [byte for byte in range(32, 127) if row[byte >> 5] >> (byte & 31) & 1]
        allowed = allowed or [byte for byte in range(256) if row[byte >> 5] >> (byte & 31) & 1]
        byte = rng.choice(allowed)
        state = automaton.advance(state, byte)
        written.append(byte)
    return written.decode("utf-8", "ignore")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schemas", type=int, default=2000)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--texts", type=int, default=1, help="random texts that are read back for each")
    parser.add_argument("--shared", type=Path, default=SHARED)
    given = parser.parse_args()
    shard, shards = map(int, given.shard.split("/"))
    table: dict[str, Counter[str]] = defaultdict(Counter)
    begun = time.process_time()
    for number, schema in enumerate(schemas(given.schemas, given.shared)):
        if number % shards != shard:
            continue
        for name in given.formats:
            became, why = outcome(schema, name, random.Random(f"{number} {name}"), given.texts)
            table[name][became] += 1
            table["all"][became] += 1
            if became in ("refused", "silent"):
                print(became.upper(), name, json.dumps(schema)[:400], "\n    ", why[:400], flush=True)
    print(f"{'format':16}" + "".join(f"{name:>10}" for name in OUTCOMES))
    for name in sorted(table, key=lambda name: (name == "all", name)):
        print(f"{name:16}" + "".join(f"{table[name][one]:>10}" for one in OUTCOMES))
    print(f"{time.process_time() - begun:.0f} s of the CPU")


if __name__ == "__main__":
    main()
