"""Tools that come again are what they were, and never what another list was."""

from __future__ import annotations

import copy
import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform import _core
from tokenform.errors import SchemaWarning, TokenformError
from tokenform.frontends.tools import FORMATS
from tokenform.frontends.tools.calling import GRAMMARS
from tokenform.frontends.tools.definitions import read_tools
from tokenform.frontends.tools.kept import TOOLS, LastAsked, text_of

from .tree_writer import random_tools

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def walk(automaton: Any, rng: random.Random, steps: int = 60) -> list[bytes]:
    """Masks along a random text."""
    state, found = automaton.start, []
    for _ in range(steps):
        found.append(automaton.mask(state).tobytes())
        allowed = [token for token in automaton.allowed_tokens(state).tolist() if token != 256]
        if not allowed:
            break
        state = automaton.advance(state, rng.choice(allowed))
    return found


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_masks_are_those_of_tools_that_were_never_met(format: str) -> None:
    rng = random.Random(format)
    tools = random_tools(rng)
    changed = [*copy.deepcopy(tools[1:]), tool("another", a={"type": "integer"})]
    for one in (tools, changed, tools):
        for strict in (True, False):
            options: dict[str, Any] = {"format": format, "tool_choice": "required", "strict": strict}
            kept = tf.tools(one, **options)
            GRAMMARS.clear()
            again = tf.tools(one, **options)  # of tools that are kept
            GRAMMARS.clear()
            TOOLS.clear()
            fresh = tf.tools(one, **options)
            seeds = [walk(made.compile(BYTES), random.Random(7)) for made in (kept, again, fresh)]
            assert seeds[0] == seeds[1] == seeds[2]
            assert kept.tools == fresh.tools and kept.report == fresh.report


def test_the_same_list_is_the_same_grammar_and_another_is_not() -> None:
    tools = [tool("f", a={"type": "integer"}), tool("g")]
    first = tf.tools(tools, format="hermes")
    assert tf.tools(copy.deepcopy(tools), format="hermes") is first
    for options in (
        {"tool_choice": "required"},
        {"parallel": False},
        {"strict": False},
        {"reasoning": "none"},
    ):
        assert tf.tools(tools, format="hermes", **options) is not first  # type: ignore[arg-type]
    assert tf.tools(tools, format="glm45") is not first
    tools[0]["function"]["parameters"]["properties"]["a"]["type"] = "string"  # its owner changes it
    text = '<tool_call>\n{"name": "f", "arguments": {"a": %s}}\n</tool_call>'
    for grammar, value in ((first, "1"), (tf.tools(tools, format="hermes"), '"1"')):
        automaton = grammar.compile(BYTES)
        assert [automaton.matches((text % v).encode()) for v in ("1", '"1"')] == [value == "1", value != "1"]


def test_what_is_no_plain_json_is_read_each_time() -> None:
    def f(a: int) -> int:
        """A function."""
        return a

    assert tf.tools([f], format="hermes") is not tf.tools([f], format="hermes")
    one = tool("f")
    assert len(tf.tools((t for t in [one]), format="hermes").tools) == 1
    assert text_of([f]) is None and text_of({1: 2}) is None and text_of("f") is None
    assert text_of([1, True, 1.0, None]) == "[1, true, 1.0, null]"


ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 2**60), st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.one_of(st.text(max_size=20), st.text(st.sampled_from('abcd ~"\\\x1f\x7f\u2028'), max_size=20))


@settings(max_examples=400, deadline=None)
@given(
    st.recursive(
        ATOMS | TEXTS,
        lambda inner: (
            st.lists(inner, max_size=4) | st.tuples(inner) | st.dictionaries(TEXTS, inner, max_size=4)
        ),
    )
)
def test_texts_are_those_of_json(value: Any) -> None:
    assert text_of([value]) == json.dumps([value])


def test_errors_and_warnings_come_each_time() -> None:
    for _ in range(2):
        with pytest.raises(TokenformError, match="'f'"):
            tf.tools([tool("f", a={"type": "integr"})], format="hermes")
        misspelt = tool("f")
        misspelt["function"]["parameters"]["additonalProperties"] = False
        with pytest.warns(SchemaWarning, match="additonalProperties"):
            tf.tools([misspelt], format="hermes")


def test_values_are_bounded_in_bytes() -> None:
    recent: LastAsked[str] = LastAsked(100)
    for key in "abcd":
        recent.put(key, key, 30)
    assert [recent.get(key) for key in "abcd"] == [None, "b", "c", "d"]
    recent.get("b")
    recent.put("e", "e", 60)
    assert [recent.get(key) for key in "bcde"] == ["b", None, None, "e"]
    recent.put("e", "f", 10)
    recent.put("g", "g", 60)
    assert [recent.get(key) for key in "beg"] == ["b", "f", "g"]
    recent.put("h", "h", 101)
    assert recent.get("h") is None and recent.get("g") == "g"


def test_definitions_have_one_number_each_and_are_forgotten_past_the_bound() -> None:
    kept = _core.KeptTools(200)
    first, size, found = kept.look([tool("f"), tool("g"), tool("f")])
    assert first is not None and first[:8] == first[16:] != first[8:16] and size > 200
    for (number, _), made in zip(found, "fg"):
        kept.keep(number, made)
    for _ in range(9):  # each passes the bound; what is asked for each time stays
        last = kept.look(
            [tool("g"), tool("h", a={"description": 100 * "-"}), tool("i", b={"description": 100 * "-"})]
        )
        assert last[2][0] == "g" and last[0] and last[0][:8] == first[8:16]
    numbers, _, found = kept.look([tool("f")])
    assert found != ["f"] and numbers not in (first[:8], first[8:16])
    long = [tool(f"f{i}", a={"description": 100 * "-"}) for i in range(9)]
    once, again = kept.look(long)[0], kept.look(long)[0]
    assert (
        once and again and once[:8] != again[:8] and len(once) == len(again) == 72
    )  # larger than all may be
    full = _core.KeptTools(700)
    full.look([tool(f"before_{i}") for i in range(5)])
    listed = [tool(f"f{i}") for i in range(6)]  # the bound is passed while they are read
    for number, _ in full.look(listed)[2]:
        full.keep(number, number)
    assert all(type(one) is int for one in full.look(listed)[2])
    small = _core.KeptTools(1 << 20)
    small.keep(small.look([tool("g")])[2][0][0], "what was made")
    assert small.look([tool("h"), tool("g")])[2][1] == "what was made"
    small.clear()
    assert small.look([tool("g")])[2] != ["what was made"]
    assert small.look([tool("f"), print])[::2] == (None, [small.look([tool("f")])[2][0], None])
    for one, other in (({"a": 1}, {"a": True}), ({"a": 1}, {"a": 1.0}), ({"a": 1, "b": 2}, {"b": 2, "a": 1})):
        assert small.look([one])[0] != small.look([other])[0]


def test_a_list_that_is_read_by_several_threads_is_what_it_is() -> None:
    lists = [[tool(f"f{i}", **{f"of_{n}": {"type": "integer"}}) for i in range(40)] for n in range(6)]
    wanted = [[one.definition for one in read_tools(listed)] for listed in lists]

    def read(at: int) -> bool:
        if at % 5 == 0:
            TOOLS.clear()
        listed = lists[at % len(lists)]
        return [one.definition for one in read_tools(listed)] == wanted[at % len(lists)]

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(200)))
