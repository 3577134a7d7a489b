"""Mutated sources for every frontend: each gives a grammar or an error of the library, nothing else.

Purpose: whatever text or type a caller hands over, `except TokenformError` catches what goes wrong, from the
making of the grammar to a walk along its masks.
Invariant: the examples follow from the frontend's name and the seed alone.
Complexity: one process for each batch of examples, so that one that hangs or dies is named.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import random
import time
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import typing_extensions

from tokenform.batch.workers import run_tasks
from tokenform.errors import TokenformError

from .maskcheck import byte_vocabulary

BATCH = 40  # examples of one process
WALK = 12  # steps along the masks of each
MEMORY = 4 << 30

# Pieces that are put into texts, beside their own.
_TOKENS = [
    *"()[]{}|*+?~.:,;\"'/\\^$#%&<>=-_0189aZ \n\t\0é\ud800𝒳",
    "%json {}",
    "%declare foo",
    "%import .a.b",
    "%ignore ",
    "%regex {",
    "start: ",
    "A: ",
    "-> x",
    "..",
    "~ 3..1",
    "~ 99999999999",
    "{99999999999}",
    "{2}",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "\\1",
    "\\p{L}",
    "\\x4",
    "\\u12",
    "(?P<a>",
    "[^\\s\\S]",
    "root ::= ",
    "::=",
    '{"$ref": "#"}',
    '"$ref": "#/x"',
    '"type": 3',
    "1e999",
    "-1",
    "null",
    "true",
    "[]",
    "{}",
    "9" * 40,
    "a" * 400,
    "(" * 300,
    "[" * 300,
]

_SEEDS: dict[str, list[str]] = {
    "json_schema": [
        '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"type": "string", '
        '"pattern": "^[a-z]+$", "maxLength": 5}}, "required": ["a"], "additionalProperties": false}',
        '{"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}',
        '{"oneOf": [{"const": 1.5}, {"enum": ["x", null, [1]]}], "not": {"type": "boolean"}}',
        '{"items": [{"type": "number", "multipleOf": 0.01}], "uniqueItems": true, "contains": {}}',
        '{"if": {"minProperties": 2}, "then": {"propertyNames": {"$ref": "#"}}, "format": "date", '
        '"dependentRequired": {"a": ["b"]}, "patternProperties": {"^x": true}}',
    ],
    "regex": [
        "[a-z]{2,5}(foo|bar)*",
        r"(?i)\d+(?=x)x|^\w\b.$",
        r"(?P<y>[0-9]{4})-\x41\u0042[^\W\d]",
        "((a?){3}|b+?)*",
    ],
    "lark": [
        'start: expr\nexpr: NUM | expr "+" expr | "(" expr ")"\nNUM: /[0-9]+/\n%ignore " "',
        'start: list{item, ","}\nlist{x, sep}: x (sep x)*\n?item: "a".."z" | WORD -> w\nWORD: /[A-Z]+/',
        'start: "n = " value [tail]\nvalue: %json {"type": "integer"}\ntail: ("x" ~ 2..3)+ // end\nT.2: "k"i',
        '// tokenform: lexer=dynamic start=s\ns: A B*\nA: B "a" | /b(?=c)/\nB: /[^\\n]/i',
    ],
    "gbnf": [
        'root ::= "a" [0-9]+ rule? # end\nrule ::= ("x" | "y"){2,3} | [^a-z\\n]*',
        'root ::= ws "{" ws "}" \nws ::= [ \\t\\n]{0,20}',
    ],
    "choice": ["yes", "no", "a much longer text", "", "é𝒳"],
    "substring": ["To be, or not to be.\nThat is the question.", "aaaa", "é𝒳 \t"],
    "contains": ["cat", "the mat", "aa"],
    "until": ["</end>", "\n\n", "STOP"],
    "tools": [
        '[{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": '
        '"integer"}, "b": {"type": ["string", "null"]}}, "required": ["a"]}}]',
        '[{"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": '
        '{"x": {"enum": ["u", "v"]}, "y": {"type": "array", "items": {"$ref": "#"}}}}}}]',
    ],
    "structural_tag": [
        '{"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<f"], "tags": '
        '[{"begin": "<f=a>", "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, '
        '"end": "</f>"}], "at_least_one": true, "stop_after_first": false}}',
        '{"type": "structural_tag", "format": {"type": "sequence", "elements": [{"type": "const_string", '
        '"value": "x"}, {"type": "or", "elements": [{"type": "regex", "pattern": "[a-z]+"}, {"type": '
        '"grammar", "grammar": "root ::= [0-9]"}]}, {"type": "any_text", "excludes": ["z"]}]}}',
        '{"structures": [{"begin": "<g>", "schema": {"enum": [1, "u"]}, "end": "</g>"}], "triggers": ["<g"]}',
    ],
    "response_template": [
        '{"fields": {"reasoning_content": {"open": "<think>", "close": "</think>"}, "tool_calls": {"repeats":'
        ' true, "open_pattern": "\\\\s*<tool_call>", "close": ["</tool_call>", "<|im_end|>"], '
        '"content": "json", "transform": {"function": {"name": "{content.name}", "arguments": '
        '"{content.arguments}"}}}}}',
    ],
    "response_schema": [
        '{"type": "object", "properties": {"role": {"const": "assistant"}, "content": {"type": "string"}, '
        '"tool_calls": {"type": "array", "x-regex-iterator": "<tool_call>(.*?)</tool_call>", "items": '
        '{"type": "object", "x-parser": "json", "properties": {"name": {"type": "string"}, "arguments": '
        '{"type": "object"}}}}}, "x-regex": "(?:<think>(?P<thinking>.+?)</think>)?(?P<content>.*)"}',
    ],
    "strings_in": ['{"properties": {"a": {"type": "string"}, "b/c": {"items": {"type": "string"}}}}'],
    "templates": [
        "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>\n{{ c.function | "
        "tojson }}\n</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
    ],
    "from_type": [],
}
FRONTENDS = tuple(_SEEDS)
_TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


@dataclass(frozen=True)
class Finding:
    """An example that ended in something else than a grammar or an error of the library."""

    frontend: str
    source: str
    detail: str


@dataclass(frozen=True)
class Outcome:
    """What became of some examples."""

    worked: int
    refused: int
    findings: tuple[Finding, ...]


def examples(frontend: str, seed: int, count: int) -> Outcome:
    """Makes `count` mutated sources, hands them to the frontend, and walks along what it makes of them."""
    vocabulary, rng = byte_vocabulary(), random.Random(f"{frontend} {seed}")
    worked, refused, findings = 0, 0, []
    for _ in range(count):
        shown, make = _example(frontend, rng)
        try:
            _walk(make().compile(vocabulary), rng)
            worked += 1
        except TokenformError as error:
            str(error)
            refused += 1
        except Exception as error:
            findings.append(Finding(frontend, shown, f"{type(error).__name__}: {error}"[:300]))
    return Outcome(worked, refused, tuple(findings))


def _walk(automaton: Any, rng: random.Random) -> None:
    state = automaton.start
    for _ in range(WALK):
        automaton.describe(state)
        allowed = automaton.allowed_tokens(state)
        if automaton.is_finished(state) or not len(allowed):
            return
        state = automaton.advance(state, int(rng.choice(allowed.tolist())))


def _example(frontend: str, rng: random.Random) -> tuple[str, Callable[[], Any]]:
    """A source as text, and the call that makes a grammar of it."""
    import tokenform as tf

    if frontend == "from_type":
        tp = _random_type(rng, 3)
        return repr(tp), partial(tf.from_type, tp)
    text = mutated(rng.choice(_SEEDS[frontend]), rng)
    if frontend == "choice":
        texts: list[Any] = [mutated(seed, rng) for seed in rng.sample(_SEEDS[frontend], 3)]
        if rng.random() < 0.05:
            texts.append(rng.choice([3, None, b"x", ["y"]]))
        return repr(texts), partial(tf.choice, texts)
    if frontend == "tools":
        options = {"format": rng.choice(_formats()), "tool_choice": rng.choice(["auto", "required", "f"])}
        return repr((text, options)), partial(_tools, text, options)
    if frontend == "substring":
        by: Any = rng.choice(["character", "word", "line", "none"])
        return repr((text, by)), partial(tf.substring, text, by=by)
    if frontend == "contains":
        phrases = [mutated(seed, rng) for seed in _SEEDS[frontend][: rng.randint(0, 3)]]
        return repr(phrases), partial(tf.combinators.contains, phrases)
    if frontend == "until":
        triggers, then = [text, mutated("x", rng)], rng.choice([None, mutated("y", rng)])
        return repr((triggers, then)), partial(tf.until, triggers, then=then)
    if frontend == "lark":
        lexer: Any = rng.choice([None, "contextual", "dynamic"])
        return repr((text, lexer)), partial(tf.lark, text, lexer=lexer)
    if frontend == "regex":
        dialect: Any = rng.choice(["python", "ecma", "rust", "auto"])
        return repr((text, dialect)), partial(tf.regex, text, dialect=dialect)
    if frontend == "gbnf":
        return repr(text), partial(tf.gbnf, text)
    if frontend == "templates":
        return repr(text), partial(_detected, text)
    source = _restructured(text, rng) if rng.random() < 0.5 else text
    if frontend == "structural_tag":
        return _shown(source), partial(tf.tool_formats.structural_tag, source, special=["<f", "z"])
    if frontend in ("response_template", "response_schema"):
        return _shown(source), partial(_answers, source)
    if frontend == "strings_in":
        places = [rng.choice(["/properties/a", "/properties/b~1c/items", "", mutated("/a", rng)])]
        return _shown((source, places)), partial(
            tf.json_schema, source, strings_in={place: tf.regex("[a-z]+") for place in places}
        )
    return _shown(source), partial(tf.json_schema, source)


def _shown(source: Any) -> str:
    try:
        return repr(source)
    except (ValueError, RecursionError) as error:  # a huge integer, deep nesting
        return f"a schema that can't be shown ({error})"


def _tools(text: str, options: dict[str, Any]) -> Any:
    import tokenform as tf

    try:
        definitions = json.loads(text)
    except (ValueError, RecursionError):
        definitions = [text]
    return tf.tools(definitions, **options)


def _detected(template: str) -> Any:
    """Tools in the format that a chat template shows."""
    import tokenform as tf

    return tf.tools([_TOOL], format=tf.tool_formats.detect_format(template))


def _answers(template: Any) -> Any:
    """Tools in the format that a tokenizer says how to read."""
    import tokenform as tf
    from tokenform.frontends.tools import response_format

    if isinstance(template, str):
        try:
            template = json.loads(template)
        except (ValueError, RecursionError):
            template = {"fields": template}
    return tf.tools([_TOOL], format=response_format(template))


def _formats() -> list[str]:
    from tokenform.frontends.tools.formats import FORMATS

    return sorted(FORMATS)


def mutated(text: str, rng: random.Random) -> str:
    """The text after one to six small changes."""
    for _ in range(rng.randint(0, 6)):
        at, to = sorted(rng.randint(0, len(text)) for _ in range(2))
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + rng.choice(_TOKENS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[min(to, at + 8) :]
        elif kind == 2:
            text = text[:at] + text[at:to] + text[at:]
        elif kind == 3 and text:
            text = text[:at] + chr(rng.choice([rng.randrange(128), rng.randrange(0x3000)])) + text[at + 1 :]
        else:
            text = text[:at] + rng.choice(_TOKENS) + text[at + 1 :]
    return text[:4000]


def _restructured(text: str, rng: random.Random) -> Any:
    """A schema as a value some of whose parts were exchanged; the text where it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    parts = list(_parts(value))
    for _ in range(rng.randint(1, 3)):
        if not parts:
            break
        holder, key = rng.choice(parts)
        other, place = rng.choice(parts)
        new = rng.choice(
            [other[place], 10**5000, 1e300, float("nan"), -1, None, "x", [], {}, {1: 2}, b"x", True]
        )
        try:
            holder[key] = json.loads(json.dumps(new)) if isinstance(new, dict | list) else new
        except (TypeError, ValueError, RecursionError):
            holder[key] = new
    return value


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    todo = [value]
    while todo:
        holder = todo.pop()
        keys = (
            list(holder)
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else []
        )
        for key in keys:
            yield holder, key
            todo.append(holder[key])


def _random_type(rng: random.Random, depth: int) -> Any:
    """A type, or something that only looks like one."""
    atoms: list[Any] = [
        int,
        str,
        float,
        bool,
        None,
        bytes,
        complex,
        object,
        decimal.Decimal,
        datetime.date,
        datetime.timedelta,
        datetime.time,
        typing.Any,
        "int",
        "print('run')",
        3,
        b"x",
        [],
        {},
        typing.Literal["a", 1, None],
        Ellipsis,
        typing.TypeVar("T", bound="int"),
        typing.NewType("N", int),
        lambda x: x,
        enum.Enum("E", {"A": object()}),
        enum.Enum("F", {"A": 1, "B": "x"}),
        typing.NamedTuple("P", [("x", int)]),
        typing_extensions.TypedDict("D", {"k": "int"}),  # type: ignore[operator]
    ]
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(atoms)
    inner = partial(_random_type, rng, depth - 1)
    try:
        return rng.choice(
            [
                lambda: list[inner()],  # type: ignore[misc]
                lambda: dict[inner(), inner()],  # type: ignore[misc]
                lambda: tuple[inner(), inner()],  # type: ignore[misc]
                lambda: tuple[inner(), ...],  # type: ignore[misc]
                lambda: typing.Union[inner(), inner()],  # noqa: UP007
                lambda: typing.Annotated[inner(), rng.choice([3, "x", object()])],
                lambda: typing.Callable[[inner()], inner()],
                lambda: type[inner()],  # type: ignore[misc]
                lambda: set[inner()],  # type: ignore[misc]
            ]
        )()
    except Exception:  # Python itself refuses it
        return rng.choice(atoms)


def prober() -> Callable[[tuple[str, int]], Outcome]:
    """The function that a worker runs."""
    return lambda task: examples(task[0], task[1], BATCH)


def run(frontend: str, seconds: float, seed: int = 0, *, timeout: float = 60.0, workers: int = 2) -> Outcome:
    """Batch after batch until the time is over."""
    began, worked, refused, findings, batch = time.monotonic(), 0, 0, [], seed * 10_000
    while time.monotonic() - began < seconds:
        tasks = [(frontend, batch + i) for i in range(workers)]
        batch += workers
        for task, outcome in run_tasks(tasks, prober, workers=workers, timeout=timeout, memory_bytes=MEMORY):
            if outcome.status != "ok":
                findings.append(Finding(frontend, f"seed {task[1]}", f"{outcome.status}: {outcome.detail}"))
                continue
            worked, refused = worked + outcome.value.worked, refused + outcome.value.refused
            findings.extend(outcome.value.findings)
    return Outcome(worked, refused, tuple(findings))
