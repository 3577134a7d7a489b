"""The engine on the grammars of tools: what the trees allow is what it accepts, its masks are the oracle's,
and its random walks read back as calls that satisfy their schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema
import pytest

import tokenform as tf
from tokenform.errors import ToolError
from tokenform.frontends.tools import FORMATS, ToolCalls, find_format, parse_tool_calls, tool_shape, tools

from .data import cases
from .reference_readers import read
from .tree_matcher import accepts
from .tree_writer import Writer, random_tools

WORDS = [
    b'{"',
    b'": "',
    b'": ',
    b'", "',
    b'"}',
    b"}}",
    b"true",
    b"name",
    b"arguments",
    b"\n",
    b"\n\n",
    b"</",
    b"<",
    b">",
]
WORDS += [
    b"[{",
    b"}]",
    b"]</",
    b"('",
    b"')",
    b"=1",
    b", ",
    "é".encode(),
    "🎉".encode()[:2],
    "🎉".encode()[2:],
    b"null",
    b"12",
]


ANY = {"order": "any", "whitespace": "any", "numbers": "any", "strings": "any"}


def vocabulary(name: str, special: bool) -> tf.Vocabulary:
    """Bytes, some joined tokens, and the format's special tokens, or no special token but the end."""
    form = find_format(name)
    marks = [text.encode() for text in dict.fromkeys(form.special + form.embedded)]
    tokens = [*(bytes([b]) for b in range(256)), *WORDS, *marks, b""]
    first = 256 + len(WORDS)
    return tf.Vocabulary(
        tokens, eos=[len(tokens) - 1], special=list(range(first, len(tokens) - 1)) if special else []
    )


def options(rng: Random, definitions: list[dict[str, Any]]) -> dict[str, Any]:
    choice = rng.choice(["auto", "required", "none", definitions[0]["function"]["name"]])
    return {"tool_choice": choice, "parallel": rng.choice([True, 1, 3])}


def tokens_of(vocab: tf.Vocabulary, text: str) -> list[int]:
    """The text with its special tokens, longest first, and bytes between."""
    special = {vocab.tokens[i]: i for i in vocab.special if vocab.tokens[i]}
    data, out = text.encode(), []
    while data:
        mark = max((m for m in special if data.startswith(m)), key=len, default=b"")
        out.append(special[mark] if mark else data[0])
        data = data[len(mark) or 1 :]
    return out


def written(name: str, seeds: range) -> None:
    """Texts of the trees are accepted, with special tokens and without."""
    for seed in seeds:
        rng = Random(f"engine {name} {seed}")
        definitions = random_tools(rng)
        chosen = options(rng, definitions)
        text = Writer(tool_shape(definitions, format=name, **chosen), rng).text()
        grammar = tools(definitions, format=name, **chosen)
        for special in (True, False):
            vocab = vocabulary(name, special)
            auto = grammar.compile(vocab)
            states = {auto.start}
            for token in tokens_of(vocab, text):
                # where a marker is part of a value, it is text and no special token
                ways = {(token,), tuple(vocab.tokens[token])}
                states = {end for state in states for way in ways for end in ends(auto, state, way)}
            assert any(map(auto.is_accepting, states)), text


def ends(auto: tf.TokenAutomaton, state: tf.engine.State, tokens: tuple[int, ...]) -> list[tf.engine.State]:
    """The state after the tokens, if they may follow."""
    for token in tokens:
        if not auto.allows(state, token):
            return []
        state = auto.advance(state, token)
    return [state]


def walked(name: str, seeds: range, steps: int, asked: int = 4) -> None:
    """Random walks under the masks: the oracle's at every `asked`-th step, a way out from everywhere, calls
    that read back."""
    called = 0
    for seed in seeds:
        rng = Random(f"walk {name} {seed}")
        definitions = random_tools(rng)
        chosen = options(rng, definitions)
        if seed == seeds[0]:
            chosen["tool_choice"] = "required"
        shape = tool_shape(definitions, format=name, **chosen)
        grammar, vocab = tools(definitions, format=name, **chosen), vocabulary(name, seed % 2 == 0)
        auto = grammar.compile(vocab)
        state, text = auto.start, b""
        for step in range(steps):
            allowed = auto.allowed_tokens(state).tolist()
            assert allowed, f"dead end after {text!r}"
            if step % asked == 0:
                assert allowed == auto.oracle(state), text
            token = rng.choice(allowed)
            forced = auto.forced_bytes(state)
            if forced and rng.random() < 0.9:
                token = forced[0]
            if auto.is_finished(auto.advance(state, token)):
                break
            state = auto.advance(state, token)
            text += vocab.tokens[token]
        while not auto.is_accepting(state):
            left = auto.distance(state)
            assert left is not None, text
            row = auto.mask_within(state, left)
            token = next(i for i in range(vocab.size) if row[i >> 5] >> (i & 31) & 1)
            state = auto.advance(state, token)
            text += vocab.tokens[token]
        called += check(name, definitions, chosen, shape, grammar, text.decode())
    assert called


def check(name: str, definitions: Any, chosen: Any, shape: Any, grammar: tf.Grammar, text: str) -> int:
    got = told(name, lambda: parse_tool_calls(text, definitions, format=name, validate=False))
    assert list(told(name, lambda: grammar.parse(text))) == list(got)
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in definitions}
    assert all(jsonschema.Draft202012Validator(schemas[c.name]).is_valid(c.arguments) for c in got), text
    if not spoken_of(name, got):
        assert [(c.name, c.arguments) for c in got] == read(name, text, definitions), text
    if chosen["tool_choice"] == "none":
        assert not got, text
    elif chosen["tool_choice"] != "auto":
        assert got, text
    if len(text) < 400:
        assert accepts(shape, text), text
    return len(got)


def told(name: str, read: Callable[[], ToolCalls]) -> ToolCalls:
    """What is read of a text.  A vocabulary without special tokens spells markers of calls in free text, too:
    the reader says so, for a call may be lost there, and reads the calls all the same."""
    try:
        return read()
    except ToolError as error:
        assert any(f"{mark!r} stands outside of a call" in str(error) for mark in find_format(name).inner)
        assert error.calls is not None
        return error.calls


def spoken_of(name: str, got: ToolCalls) -> bool:
    """Whether a marker is part of a text or a value: the reference readers would take it for one."""
    form = find_format(name)
    texts = [got.content or "", got.reasoning or "", *(str(c.arguments) for c in got)]
    return any(mark in text for mark in form.special + form.embedded for text in texts)


@pytest.mark.parametrize("name", FORMATS)
def test_texts_of_the_tree_are_accepted(name: str) -> None:
    written(name, range(2))


@pytest.mark.parametrize("name", FORMATS)
def test_walks_read_back(name: str) -> None:
    walked(name, range(4), 40)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_at_length(name: str) -> None:
    """Two hundred sets of tools."""
    written(name, range(100, 160))
    walked(name, range(100, 300), 150, asked=50)


def test_recorded_outputs_are_accepted_as_the_tree_says() -> None:
    for case in cases():
        if (
            "\n" + 16 * " " + '"' in case["output"]
        ):  # the whitespace of "any" is bounded, the matcher's is not
            continue
        chosen = {"format": case["format"], "tool_choice": case.get("choice") or "auto"}
        shape = tool_shape(case["tools"], **chosen, order="any")
        grammar = tools(case["tools"], **chosen, json_options=ANY)
        auto = grammar.compile(vocabulary(case["format"], False))
        assert auto.matches(case["output"].encode()) == accepts(shape, case["output"]), case["output"]


def test_the_end_of_a_turn_may_be_an_end_token() -> None:
    """`<|call|>` stops gpt-oss: it is a special token of the turn and an end of text at once."""
    definition = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    marks = [m.encode() for m in find_format("gpt_oss").special]
    tokens = [*(bytes([b]) for b in range(256)), *marks]
    vocab = tf.Vocabulary(tokens, eos=[tokens.index(b"<|call|>")], special=list(range(256, len(tokens))))
    auto = tools([definition], format="gpt_oss", tool_choice="required", reasoning="none").compile(vocab)
    way, state = b"", auto.start
    while not auto.is_accepting(state):
        row = auto.mask_within(state, auto.distance(state))
        token = next(i for i in range(vocab.size) if row[i >> 5] >> (i & 31) & 1)
        state, way = auto.advance(state, token), way + vocab.tokens[token]
    assert auto.allows(state, vocab.eos[0]) and auto.is_finished(auto.advance(state, vocab.eos[0]))
    assert json.loads(way.partition(b"<|message|>")[2]) == {}
