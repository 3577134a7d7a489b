"""Tools as branches, each read once, beside the oracle: one grammar in which every tool is rules of it."""

from __future__ import annotations

import gc
import json
import pickle
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform import _core
from tokenform.engine import Limits
from tokenform.errors import InvalidGrammar, TokenformError
from tokenform.frontends import forms
from tokenform.frontends.tools import FORMATS, read_tools, shape_form, tool_shape
from tokenform.frontends.tools.cache import TOOLS
from tokenform.frontends.tools.calling import GRAMMARS
from tokenform.frontends.tools.judge import is_schema
from tokenform.frontends.tools.linked import branched_form
from tokenform.frontends.tools.members import close
from tokenform.frontends.tools.shape import CachedOption
from tokenform.frontends.tools.tool import Tool

from .tree_writer import random_tools

MARKS = [b"<tool_call>", b"</tool_call>", b"<think>", b"</think>"]
WORDS = [b"get_", b'{"', b'": "', b"name", b'", "', b"arguments", b'": {', b"}}", b"}\n", b'"ab', b"abc"]
VOCABULARY = tf.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", *WORDS, *MARKS],
    eos=[256],
    special=[256, *range(257 + len(WORDS), 257 + len(WORDS) + len(MARKS))],
)
BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])

names = st.text(st.sampled_from("ab_."), min_size=1, max_size=6)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def both(tools: Any, **options: Any) -> tuple[Any, Any, int]:
    """The automata of the branches and of the plain union, and how many lists of branches there are."""
    made, lists = branched_form(tool_shape(tools, **options))
    plain = shape_form(tool_shape(tools, **options))
    one, other = forms.compiled(made, "branches", lists), forms.compiled(plain, "plain")
    return one.compile(VOCABULARY), other.compile(VOCABULARY), len(lists)


def same_masks(one: Any, other: Any, rng: random.Random, steps: int = 120) -> None:
    """Walks both along one text, which tokens of several bytes come in as well."""
    here, there = one.start, other.start
    for _ in range(steps):
        assert one.mask(here).tobytes() == other.mask(there).tobytes()
        assert one.is_accepting(here) == other.is_accepting(there)
        allowed = [token for token in one.allowed_tokens(here).tolist() if token != 256]
        if not allowed:
            return
        long = [token for token in allowed if token > 256]
        token = rng.choice(long if long and rng.random() < 0.5 else allowed)
        here, there = one.advance(here, token), other.advance(there, token)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_masks_are_those_of_the_plain_union(format: str) -> None:
    for seed in range(4):
        rng = random.Random(f"{format} {seed}")
        tools = read_tools(random_tools(rng))
        for choice in ("required", "auto"):
            one, other, lists = both(tools, format=format, tool_choice=choice)
            same_masks(one, other, rng)
            assert lists


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_another_list_of_the_same_turn_is_what_it_would_be_alone(format: str) -> None:
    """What stands around the calls is made once; the lists of the calls are put into it."""
    rng = random.Random(format)
    for choice in ("required", "auto"):
        options: dict[str, Any] = {"format": format, "tool_choice": choice}
        for _ in range(3):
            tools = read_tools(random_tools(rng))
            made = tf.tools(tools, **options)
            plain = forms.compiled(shape_form(tool_shape(tools, **options)), "plain")
            same_masks(made.compile(VOCABULARY), plain.compile(VOCABULARY), rng)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_tool_whose_strings_have_a_grammar_is_of_its_own_list_alone(format: str) -> None:
    """Such a tool is written into the form: the next list of the same turn must not find it there."""
    text = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    ruled = Tool("ruled", "", text, strings_in={"/properties/input": tf.regex("[ab]{2,4}")})
    lists = [[ruled], [tool("plain", a={"type": "integer"})], [ruled, tool("other", b={"type": "null"})]]
    for choice in ("required", "auto"):
        options: dict[str, Any] = {"format": format, "tool_choice": choice}
        for tools in (*lists, *reversed(lists)):
            try:
                plain = forms.compiled(shape_form(tool_shape(tools, **options)), "plain")
            except TokenformError:  # the format has no place for such strings
                continue
            made = tf.tools(tools, **options)
            same_masks(made.compile(VOCABULARY), plain.compile(VOCABULARY), random.Random(format))


@settings(max_examples=25, deadline=None)
@given(st.lists(names, min_size=1, max_size=7, unique=True), st.integers(0, 2**32), st.booleans())
def test_names_that_begin_each_other(found: list[str], seed: int, strict: bool) -> None:
    tools = read_tools([tool(name, a={"type": "integer"}, b={"enum": [name]}) for name in found])
    rng = random.Random(seed)
    for format in (
        "hermes",
        "kimi_k2",
        "functionary",
        "mistral_v11",
        "qwen3_coder",
        "gpt_oss",
        "minimax_m3",
        "gemma4",
    ):
        one, other, lists = both(tools, format=format, tool_choice="required", strict=strict)
        assert lists
        for _ in range(3):
            same_masks(one, other, rng)


def test_every_call_is_accepted_and_no_other() -> None:
    known = [f"get_{index}" for index in range(300)]
    turn = tf.tools(
        [tool(name, a={"const": name}) for name in known], format="hermes", tool_choice="required"
    )
    automaton = turn.compile(BYTES)
    for name in known[::37]:
        for value in (name, "get_"):
            body = json.dumps({"name": name, "arguments": {"a": value}})
            assert automaton.matches(f"<tool_call>\n{body}\n</tool_call>".encode()) == (value == name)
    assert not automaton.matches(b'<tool_call>\n{"name": "get_300", "arguments": {}}\n</tool_call>')


def test_a_grammar_of_branches_is_combined_pickled_and_read_from_its_form() -> None:
    turn = tf.tools([tool("a", b={"type": "integer"}), tool("ab")], format="hermes", tool_choice="required")
    call = b'<tool_call>\n{"name": "a", "arguments": {"b": 1}}\n</tool_call>'
    wrong = call.replace(b"1", b'"1"')
    for made in (turn, turn | tf.literal("none"), pickle.loads(pickle.dumps(turn)), tf.literal("") + turn):
        automaton = made.compile(BYTES)
        assert (automaton.matches(call), automaton.matches(wrong)) == (True, False)
    form = json.loads(turn.core.form())
    assert forms.compiled(form, "again").compile(BYTES).matches(call)
    assert (turn | tf.literal("none")).compile(BYTES).matches(b"none")


def test_what_is_left_is_short_and_a_fault_names_its_tool() -> None:
    turn = tf.tools(
        [tool("long", text={"type": "string", "minLength": 90}), tool("short")],
        format="hermes",
        tool_choice="required",
    )
    automaton = turn.compile(BYTES)
    state = automaton.start
    assert automaton.distance(state) < 60
    with pytest.raises(TokenformError, match="second"):
        tf.tools([tool("first"), tool("second", a={"enum": []}, b=False)], format="hermes")
    with pytest.raises(TokenformError):
        turn.compile(BYTES, limits=Limits(work=10))


def test_a_branch_needs_a_text_and_what_follows_it() -> None:
    with pytest.raises(InvalidGrammar):
        _core.Rest(json.dumps({"language": {"regex": "a?", "dialect": "python"}}))
    with pytest.raises(InvalidGrammar):
        _core.Rest(json.dumps({"special": 3}))
    rest = _core.Rest(json.dumps({"language": {"literal": "b"}}))
    listed = _core.ListedTools.of([_core.OfTool("a")])
    with pytest.raises(InvalidGrammar):
        listed.read(7, rest, [(0, "", None)])
    with pytest.raises(InvalidGrammar):
        listed.read(7, rest, [(0, "a", "{}")])
    assert listed.missing(7) == [0] and listed.branches(7) is None
    listed.read(7, rest, [(0, "a", None)])
    branches = listed.branches(7)
    assert branches and not branches.specials and listed.missing(7) == [] and listed.missing(8) == [0]
    made = _core.composite('{"branches": 0}', "a list", [branches])
    assert made.compile(BYTES).matches(b"ab")
    with pytest.raises(InvalidGrammar):
        _core.composite('{"branches": 1}', "a list", [branches])


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.text(max_size=3),
    st.floats(-1, 3, allow_nan=False),
    st.sampled_from(["string", "object", "date", "nothing"]),
    st.lists(st.sampled_from(["a", "b"]), max_size=3),
)
KEYWORDS = st.sampled_from(
    [
        "type",
        "title",
        "description",
        "format",
        "default",
        "enum",
        "required",
        "minimum",
        "maxLength",
        "uniqueItems",
        "items",
        "not",
        "additionalProperties",
        "anyOf",
        "properties",
        "$ref",
        "x",
    ]
)
SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, VALUES, max_size=3),
    lambda inner: st.dictionaries(
        KEYWORDS,
        st.one_of(
            VALUES,
            inner,
            st.lists(inner, max_size=2),
            st.dictionaries(st.text(max_size=2), inner, max_size=2),
        ),
        max_size=3,
    ),
    max_leaves=8,
)


def plain(schema: Any) -> Any:
    """What a plain definition with these parameters says: name, description, parameters, and these closed."""
    listed = _core.KeptTools(1 << 20).look([{"name": "f", "parameters": schema}])
    return listed.definitions([0])[0]


@settings(max_examples=400, deadline=None)
@given(SCHEMAS)
def test_what_is_plainly_a_schema_is_one_by_the_meta_schemas(schema: dict[str, Any]) -> None:
    schema["type"] = "object"
    if said := plain(schema):
        assert said[:3] == ("f", "", json.dumps(schema))
        assert said[3] is None or json.loads(said[3]) == close(schema)
        assert is_schema(said[2], None)
        for draft in ("http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#"):
            assert is_schema(said[2], draft), draft


def test_most_schemas_of_arguments_are_plain() -> None:
    schema = tool("a", b={"type": "array", "items": {"type": "string"}})["function"]["parameters"]
    assert plain(schema)[3] == json.dumps({**schema, "additionalProperties": False})
    for other in (
        [],
        {"type": "text"},
        {"required": "a"},
        {"items": [{}]},
        {"minLength": -1},
        {"properties": {"a": {"$ref": "#"}}},
    ):
        assert not plain({"type": "object", **other} if isinstance(other, dict) else other)
    assert not plain({"properties": {}})


@pytest.mark.parametrize("seed", range(6))
def test_a_manner_of_writing_is_that_of_the_whole_form(seed: int) -> None:
    """What drafts follow is made of the tools' parts, and has the texts of the form that is read whole."""
    rng = random.Random(seed)
    grammar = tf.tools(random_tools(rng), format="hermes", tool_choice="required", strict=False)
    options = {"additional": "forbid", "whitespace": "spaced", "numbers": "canonical"}
    narrower, whole = grammar.in_manner(options), forms.narrowed(grammar.form, options)
    assert narrower is not None and whole is not None
    same_masks(narrower.compile(VOCABULARY), forms.compiled(whole, "whole").compile(VOCABULARY), rng)


def test_what_is_written_in_one_manner_already_has_no_other() -> None:
    canonical = {"numbers": "canonical", "strings": "canonical"}
    grammar = tf.tools([tool("f", a={"type": "number"})], format="hermes", json_options=canonical)
    assert grammar.in_manner({"numbers": "shortest", "strings": "canonical"}) is None
    assert grammar.in_manner({"whitespace": "compact"}) is not None


@pytest.mark.parametrize("format", ["hermes", "gemma4", "minimax_m3", "qwen3_coder"])
def test_what_is_kept_of_a_tool_holds_no_other_tool(format: str) -> None:
    """One tool of a list changes at every turn: of those that were changed nothing is left."""
    before = held()  # by grammars that other tests keep
    listed = [tool(f"tool_{i}", **{f"of_{i}": {"type": "string"}}) for i in range(8)]
    grammar = None
    for turn in range(140):  # a leak of one tool a turn would be eight times what is allowed
        listed[turn % 7] = tool(f"tool_{turn % 7}", **{f"turn_{turn}": {"type": "integer"}})
        grammar = tf.tools(listed, format=format)
    assert grammar is not None
    assert held() <= before + 2 * len(listed)  # layouts
    del grammar, listed
    assert held() <= before


def held() -> int:
    """Tools that somebody holds, those of caches apart."""
    TOOLS.clear()
    GRAMMARS.clear()
    gc.collect()
    return sum(type(one) is CachedOption for one in gc.get_objects())
