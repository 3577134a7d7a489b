"""GBNF that is written out: read by `tf.gbnf` and by llama.cpp's own parser, beside where it came from."""

from __future__ import annotations

import ctypes
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import InvalidGrammar, LimitExceeded, TokenRejected

FOLDER = Path(os.environ.get("TOKENFORM_HOSTS", Path(__file__).parents[2] / ".hosts"))
LIBRARY = FOLDER / "gbnf_judge.so"
STRANGERS = '\x01 !"#\\]^-09AZaz{}\x7f\x80éü€퟿\ue000\uffff😀\U0010ffff'
BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^\\w+ \\w+$", "maxLength": 20},
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "kind": {"enum": ["a", "ü", 3, None]},
        "more": {"type": "array", "items": {"type": "boolean"}},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
}
INTEGER, NULL = {"type": "integer"}, {"type": "null"}


def closed(required: list[str], **properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


# schema, options
RECURSIVE: dict[str, tuple[Any, Any]] = {
    "lists": ({"type": "array", "items": {"$ref": "#"}}, {"whitespace": "compact"}),
    "lists of two": (
        {"type": ["array", "boolean"], "items": {"$ref": "#"}, "minItems": 2},
        {"whitespace": "spaced"},
    ),
    "lists of one to three": (
        {"type": ["array", "null"], "items": {"$ref": "#"}, "minItems": 1, "maxItems": 3},
        {"whitespace": "compact"},
    ),
    "tree": (
        closed(["v"], v=INTEGER, left={"$ref": "#"}, right={"$ref": "#"}, more={"enum": ["a", "ü"]}),
        {"whitespace": "compact", "numbers": "canonical"},
    ),
    "tree in every spelling": (
        closed(["v"], v={"type": "string", "maxLength": 2}, more={"type": "array", "items": {"$ref": "#"}}),
        {"whitespace": "spaced", "strings": "any"},
    ),
    "linked list": (
        {"$defs": {"l": closed(["next"], v=INTEGER, next={"anyOf": [ref("l"), NULL]})}, **ref("l")},
        {"whitespace": "compact", "strings": "canonical"},
    ),
    "expressions": (
        {
            "$defs": {
                "e": {"oneOf": [{"type": "number"}, ref("sum"), ref("call")]},
                "sum": {"type": "array", "items": ref("e"), "maxItems": 2},
                "call": closed(["f"], f=ref("name"), x=ref("e"), unused=ref("name")),
                "name": {"type": "string", "pattern": "^[a-c]+$"},
            },
            "title": "an expression",
            "allOf": [ref("e")],
        },
        {"whitespace": "compact", "numbers": "canonical"},
    ),
    "a way that never ends": (
        {
            "$defs": {"never": closed(["a"], a=ref("never"))},
            **closed([], x={"anyOf": [ref("never"), {"type": "boolean"}]}, y=ref("never"), z={"$ref": "#"}),
        },
        {"whitespace": "compact"},
    ),
    "types": (
        {
            "type": ["object", "null"],
            "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}},
            "required": ["b"],
        },
        {"whitespace": "compact", "additional": "forbid"},
    ),
}
GRAMMARS = {
    **{name: tf.json_schema(schema, **options) for name, (schema, options) in RECURSIVE.items()},
    "regex": tf.regex(r"[a-c]+(?:ä|€|😀|\d{2,3})?"),
    "any": tf.regex(r"(?s).*"),
    "not": ~tf.combinators.contains(["ab"]) & tf.regex("[abé]*"),
    "classes": tf.regex(r'[\]\[\\^"-]+[^a-y]\n'),
    "lookahead": tf.regex(r"(?=.*7)[0-9]+"),
    "choice": tf.choice(["yes", "no", "maybe", "ja, natürlich"]),
    "schema": tf.json_schema(SCHEMA, whitespace="compact", numbers="canonical"),
    "closed": tf.json_schema(
        {"properties": {"a": {"type": "integer"}}, "type": "object"}, additional="forbid"
    ),
    "date": tf.json_schema({"type": "string", "format": "date"}),
    "gbnf": tf.gbnf('root ::= "(" root ")" | my_rule{2}\nmy_rule ::= [x-z] # root\n'),
    "sequence": tf.gbnf('root ::= "(" root ")" | "x"') + "->" + tf.json_schema({"type": "integer"}),
    "either": tf.gbnf('root ::= "(" root ")" | "x"') | tf.json_schema({"type": "boolean"}),
    "lark": tf.lark('start: "a" B+\nB: /[bc]/'),
    "left": tf.gbnf('root ::= root "+" t | t\nt ::= [0-9] | "(" root ")"'),
    "left, empty": tf.gbnf('root ::= a root "x" | b? b\na ::= "-" | ""\nb ::= b "y" | "z" | ""'),
    "left in a ring": tf.gbnf('root ::= a | "."\na ::= b "x" | "1"\nb ::= root "y" | a "z"'),
    "many": tf.gbnf('root ::= "a"{2,2100} "b"'),
    "lark without a lexer": tf.lark(
        'start: e\ne: e "+" m | m\nm: m "*" a | a\na: /[0-9]+/ | "("i e ")" | "let"i\n%ignore " "',
        lexer="dynamic",
    ),
    "lark with parts": tf.lark(
        'start: "<" start* ">" | %json {"enum": [1, "x"]}',
        lexer="dynamic",
        json_options={"strings": "canonical"},
    ),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_same_language(name):
    one = GRAMMARS[name].compile(BYTES)
    other = tf.gbnf(GRAMMARS[name].to_gbnf()).compile(BYTES)
    seen = {(one.start, other.start)}
    waiting = list(seen)
    steps = 0
    while waiting and steps < 1500:
        first, second = waiting.pop()
        steps += 1
        assert one.is_accepting(first) == other.is_accepting(second)
        allowed = one.allowed_tokens(first)
        assert np.array_equal(allowed, other.allowed_tokens(second))
        for byte in allowed[allowed < 256].tolist():
            pair = one.advance(first, byte), other.advance(second, byte)
            if pair not in seen and len(seen) < 1500:
                seen.add(pair)
                waiting.append(pair)


@pytest.mark.parametrize(
    "grammar",
    [
        tf.json_schema({"type": "integer", "multipleOf": 7}),
        tf.json_schema(
            {"$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "type": "array"}}, "$ref": "#/$defs/t"}
        ),
        tf.json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        tf.json_schema({"type": "string", "maxLength": 100_000}),
    ],
)
def test_what_gbnf_cannot_say_is_refused(grammar):
    with pytest.raises(LimitExceeded, match="GBNF"):
        grammar.to_gbnf()


TREE = closed(["v"], v=INTEGER, more={"$ref": "#"})


@pytest.mark.parametrize(
    ("schema", "options", "pointer", "what"),
    [
        (TREE, {"whitespace": "natural"}, "", "whitespace='natural'"),
        (TREE, {"whitespace": "indent"}, "", "whitespace='indent'"),
        (TREE, {"order": "any"}, "", "order='any'"),
        (TREE | {"additionalProperties": True}, {}, "", "undeclared keys"),
        (TREE | {"minProperties": 1}, {}, "", "minProperties"),
        (closed([], v={"multipleOf": 0.5}, more={"$ref": "#"}) | {"$anchor": "x"}, {}, "", "anchor"),
        ({"type": "array", "items": {"$ref": "#"}, "uniqueItems": True}, {}, "", "uniqueItems"),
        (
            {"type": "object", "additionalProperties": False, "properties": {"a": {"not": {"$ref": "#"}}}},
            {},
            "/properties/a",
            "not",
        ),
        (
            closed([], a={"allOf": [{"$ref": "#"}, {"maxProperties": 1}]}),
            {},
            "/properties/a",
            "allOf",
        ),
        (
            closed([], a={"oneOf": [{"$ref": "#"}, {"type": "object", "maxProperties": 1}]}),
            {},
            "/properties/a",
            "oneOf",
        ),
        (
            {"$defs": {"p": {"$id": "p", "properties": {"x": {"$ref": "#"}}}}, **TREE},
            {},
            "",
            r"\$id",
        ),
    ],
)
def test_a_recursion_that_rules_cannot_say_is_refused_by_name(schema, options, pointer, what):
    grammar = tf.json_schema(schema, **{"whitespace": "compact", **options})
    with pytest.raises(LimitExceeded, match=what) as raised:
        grammar.to_gbnf()
    assert raised.value.pointer == pointer and "GBNF" in str(raised.value)


def test_the_work_of_all_states_is_bounded_as_that_of_a_call():
    """Each state costs more than the one before it: no call of the 4,000 is long, and all took a minute."""
    grammar = tf.lark('?start: " " | start+ " " start')
    with pytest.raises(LimitExceeded, match=r"Limits\.work.* in GBNF.*lexer='dynamic'"):
        grammar.to_gbnf()
    within = tf.regex(r"\w{1,20}")
    before = tf.engine.Limits()
    assert within.to_gbnf()
    try:
        tf.engine.set_limits(tf.engine.Limits(work=1_000_000))
        with pytest.raises(LimitExceeded, match=r"1000000 steps of work \(Limits\.work\)"):
            within.to_gbnf()
    finally:
        tf.engine.set_limits(before)


def test_a_recursion_deeper_than_python_reads_is_refused():
    inner = {"$ref": "#/$defs/n"}
    for _ in range(300):
        inner = {"type": "object", "properties": {"a": inner}, "additionalProperties": False}
    with pytest.raises(LimitExceeded, match="nest it less"):
        tf.json_schema({"$ref": "#/$defs/n", "$defs": {"n": inner}}, whitespace="compact").to_gbnf()


def test_numbers_that_python_rounds_are_not_rounded():
    schema = json.dumps(closed([], v={"const": 0.5}, more={"$ref": "#"}))
    spelled: Any = {"whitespace": "compact", "numbers": "canonical"}
    assert tf.json_schema(schema, **spelled).to_gbnf()
    longer = tf.json_schema(schema.replace("0.5", "0.50000000000000000001"), **spelled)
    with pytest.raises(LimitExceeded, match=r"0\.50000000000000000001"):
        longer.to_gbnf()


@pytest.mark.parametrize("name", RECURSIVE)
def test_documents_of_recursive_rules_are_those_that_jsonschema_takes(name):
    schema, options = RECURSIVE[name]
    judge = jsonschema.Draft202012Validator(schema)
    separators = {"compact": (",", ":"), "spaced": (", ", ": ")}[options["whitespace"]]
    rules = tf.gbnf(GRAMMARS[name].to_gbnf()).compile(BYTES)
    rng, texts, verdicts = random.Random(name), set(), []
    for _ in range(80):
        matcher = tf.engine.Matcher(rules, max_tokens=rng.randint(30, 90))
        while not matcher.is_terminated():
            matcher.accept_tokens([rng.choice(matcher.allowed_tokens().tolist())])
        texts.add(bytes(matcher.tokens[:-1]).decode())
    documents = [json.loads(text) for text in sorted(texts)]
    for document in documents:
        judge.validate(document)
    for document in documents:  # and with another document's part in a place of this one
        changed = grafted(document, rng.choice(documents), rng)
        if options.get("additional") == "forbid" and isinstance(changed, dict) and set(changed) - {"a", "b"}:
            continue
        text = json.dumps(changed, separators=separators, ensure_ascii=False)
        verdicts.append(judge.is_valid(changed))
        assert rules.matches(text.encode()) == verdicts[-1], text
    assert len(texts) > 3 and any(verdicts)


def grafted(document: Any, other: Any, rng: random.Random) -> Any:
    """The document with a part of another in the place of one of its own, keys in their order."""
    parts = [other, 7, None, "ab", [], {}, *(other.values() if isinstance(other, dict) else ())]
    if isinstance(document, dict) and document and rng.random() < 0.8:
        key = rng.choice(list(document))
        return {**document, key: grafted(document[key], other, rng)}
    if isinstance(document, list) and document and rng.random() < 0.8:
        place = rng.randrange(len(document))
        return [*document[:place], grafted(document[place], other, rng), *document[place + 1 :]]
    return rng.choice(parts)


def test_control_tokens_are_refused():
    with pytest.raises(InvalidGrammar, match="control"):
        (tf.combinators.special_token("<x>") + "a").to_gbnf()


def test_names_are_those_that_llama_cpp_reads():
    import re

    for grammar in GRAMMARS.values():
        for line in grammar.to_gbnf().splitlines():
            assert re.match(r"[a-zA-Z][a-zA-Z0-9-]* ::=", line), line


class Judge:
    """A grammar as llama.cpp reads it."""

    def __init__(self, library: ctypes.CDLL, text: str) -> None:
        self._library = library
        self._grammar = ctypes.c_void_p(library.judge_new(text.encode()))
        assert self._grammar, f"llama.cpp refuses\n{text[:2000]}"

    def walk(self, text: str) -> tuple[int, bool]:
        """How many characters it takes, and whether the text may end after them."""
        points = (ctypes.c_uint32 * len(text))(*map(ord, text))
        ends = ctypes.c_int32()
        taken = self._library.judge_walk(self._grammar, points, len(text), ctypes.byref(ends))
        return taken, bool(ends.value)

    def close(self) -> None:
        self._library.judge_free(self._grammar)


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if not LIBRARY.exists():
        pytest.skip(f"llama.cpp's reader of grammars is not at {LIBRARY}; `make hosts` builds it")
    loaded = ctypes.CDLL(str(LIBRARY))
    loaded.judge_new.restype = ctypes.c_void_p
    loaded.judge_new.argtypes = [ctypes.c_char_p]
    return loaded


def texts_of(automaton: tf.TokenAutomaton, count: int, rng: random.Random) -> Iterator[str]:
    """Texts along the masks, some of which end early, and some with a stranger in the middle."""
    for _ in range(count):
        state, written = automaton.start, bytearray()
        while len(written) < 80:
            allowed = automaton.allowed_tokens(state).tolist()
            byte = rng.choice(allowed) if rng.random() < 0.9 or 256 not in allowed else 256
            if byte == 256:
                break
            state = automaton.advance(state, byte)
            written.append(byte)
        text = written.decode("utf-8", "ignore").partition("\0")[0]  # llama.cpp's texts end at a NUL
        place = rng.randint(0, len(text))
        yield text
        yield text[:place] + rng.choice(STRANGERS) + text[place:]


@pytest.mark.parametrize("name", GRAMMARS)
def test_llama_cpp_reads_the_same_language(library: ctypes.CDLL, name: str) -> None:
    automaton = GRAMMARS[name].compile(BYTES)
    judge = Judge(library, GRAMMARS[name].to_gbnf())
    rng, ended = random.Random(name), 0
    for text in texts_of(automaton, 60, rng):
        state, taken = automaton.start, 0
        for character in text:
            try:
                after = state
                for byte in character.encode():
                    after = automaton.advance(after, byte)
            except TokenRejected:
                break
            state, taken = after, taken + 1
        ends = automaton.is_accepting(state)
        assert judge.walk(text) == (taken, ends), text
        ended += ends
    judge.close()
    assert ended


def test_the_judge_refuses_what_is_no_grammar(library: ctypes.CDLL) -> None:
    for text in ('root ::= "a', 'start ::= "a"', 'root ::= root "a" | "b"'):
        assert library.judge_new(text.encode()) is None
