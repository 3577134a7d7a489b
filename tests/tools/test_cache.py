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
from tokenform.frontends.tools.cache import TOOLS, LruCache, text_of
from tokenform.frontends.tools.calling import GRAMMARS
from tokenform.frontends.tools.definitions import read_tools

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


@pytest.mark.parametrize("also", [{}, {"no": {"enum": []}}, {"no": {"not": {}}}], ids=str)
def test_what_its_owner_does_to_a_definition_later_is_not_seen(also: dict[str, Any]) -> None:
    TOOLS.clear()
    GRAMMARS.clear()
    changed = tool("f", size={"enum": ["small", "large"]}, **also)
    changed["function"]["parameters"]["required"] = ["size"]
    same = copy.deepcopy(changed)
    tf.tools([changed], format="hermes")
    changed["function"]["parameters"]["properties"]["size"]["enum"].remove("large")
    read = tf.tools([same], format="llama4_pythonic", tool_choice="required").compile(BYTES)
    assert read.matches(b'[f(size="small")]') and read.matches(b'[f(size="large")]')


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
    recent: LruCache[str] = LruCache(100)
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


def made(kept: _core.KeptTools, items: list[Any]) -> list[Any]:
    """What is kept of each item, None where nothing is; it is its name from then on."""
    listed = kept.look(items)
    before, fresh = listed.made()
    for at, told in zip(fresh, listed.definitions(fresh), strict=True):
        if told:
            listed.keep(at, told[0], _core.OfTool(told[0]))
    return before


def test_definitions_have_one_number_each_and_are_forgotten_past_the_bound() -> None:
    kept = _core.KeptTools(200)
    listed = kept.look([tool("f"), tool("g"), tool("f")])
    first = listed.key
    assert first is not None and first[:8] == first[16:] != first[8:16] and listed.size > 200
    assert made(kept, [tool("f"), tool("g")]) == [None, None]
    for _ in range(9):  # each passes the bound; what is asked for each time stays
        others = [tool("h", a={"description": 100 * "-"}), tool("i", b={"description": 100 * "-"})]
        key = kept.look([tool("g"), *others]).key
        assert key and key[:8] == first[8:16] and made(kept, [tool("g")]) == ["g"]
    del listed
    assert kept.look([tool("f")]).key not in (first[:8], first[8:16]) and made(kept, [tool("f")]) == [None]
    long = [tool(f"f{i}", a={"description": 100 * "-"}) for i in range(9)]
    once, again = kept.look(long).key, kept.look(long[1:]).key
    assert once and again and once[8:16] != again[:8] and len(once) == 72  # larger than all may be
    full = _core.KeptTools(700)
    full.look([tool(f"before_{i}") for i in range(5)])
    names = [f"f{i}" for i in range(6)]  # the bound is passed while they are read
    assert made(full, [*map(tool, names)]) == [None] * 6 and made(full, [*map(tool, names)]) == names
    small = _core.KeptTools(1 << 20)
    assert made(small, [tool("g")]) == [None]
    assert made(small, [tool("h"), tool("g")]) == [None, "g"]
    small.clear()
    assert made(small, [tool("g")]) == [None]
    listed = small.look([tool("f"), print])
    assert listed.key is None and listed.made()[1] == [0, 1]


ALIKE: list[tuple[Any, Any]] = [
    (1, True),
    (0, False),
    (1, 1.0),
    (0.0, -0.0),
    (1, "1"),
    ("a", "b"),
    ("\u00e9", "e"),
    (None, "null"),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    ([[1], 2], [[1, 2]]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}),
    ({"a": []}, {"a": {}}),
]


@pytest.mark.parametrize("one, other", ALIKE)
def test_what_is_nearly_the_same_has_another_number(one: Any, other: Any) -> None:
    """Each list is compared with what was seen of the one before."""
    kept = _core.KeptTools(1 << 20)
    for _ in range(2):
        seen = [kept.look([{"a": value}, {"z": 0}]).key for value in (one, copy.deepcopy(one), other, one)]
        assert seen[0] and seen[2] and seen[0] == seen[1] == seen[3]
        assert seen[2][:8] != seen[0][:8] and seen[2][8:] == seen[0][8:]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_numbers_are_those_of_texts(data: st.DataObject) -> None:
    """Of values that are changed in place, copied, and given in other orders."""
    kept, numbers = _core.KeptTools(1 << 20), dict[str, bytes]()
    values = data.draw(
        st.lists(
            st.dictionaries(TEXTS, ATOMS | TEXTS | st.lists(ATOMS | TEXTS, max_size=3), max_size=4),
            min_size=1,
            max_size=4,
        )
    )
    for _ in range(6):
        key = kept.look(values).key
        assert key is not None
        for at, value in enumerate(values):
            number = key[8 * at : 8 * at + 8]
            assert numbers.setdefault(json.dumps(value), number) == number
        assert len(set(numbers.values())) == len(numbers)
        values[data.draw(st.integers(0, len(values) - 1))][data.draw(TEXTS)] = data.draw(ATOMS | TEXTS)
        values = json.loads(json.dumps(data.draw(st.permutations(values))))


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
